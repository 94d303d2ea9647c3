"""Looking at the copies of a gang one by one, while not all of them serve.

The parts of a workload are observed, and only once its controller has said that copies are missing: a replica
that serves costs nothing more. What was looked at goes when the workload is ready.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from modelplane.api.model_replica import Engine
from modelplane.core import Desired, Inputs, Ready, paths, refused
from modelplane.gangs import copies
from modelplane.gangs.copies import Part
from modelplane.gangs.workload import Workload

# What one replica looks at: eight copies of a gang. Each is an Object on the control plane and a request to
# the cluster every half minute.
_MOST = 16
# A message is read in one line; the other copies are named by number.
_TOLD = 3

# From a part to the Object that looks at it.
Look = Callable[[Part], Desired]


@dataclass(frozen=True, slots=True)
class Copies:
    """What is known of the copies of one engine.

    Attributes:
        ready: how many have all their pods ready; None where not every copy was seen.
        message: which are short and why; empty where nothing is known, or nothing is short.
    """

    ready: int | None = None
    message: str = ""


def looks(inputs: Inputs, runs: Sequence[Workload], look: Look) -> list[Desired]:
    """Return the Objects that look; none for a workload that is ready, or has not said what is missing.

    One that stands stays until the workload is ready, whatever can be seen of that in this pass.
    """
    parts = [
        x for run in runs if not inputs.is_ready(run.key) for x in _parts(run, _reports(inputs, run), inputs)
    ]
    found = [look(x) for x in sorted(parts, key=lambda x: x.copy)[:_MOST]]
    return [_plain(x) for x in found]


def _plain(desired: Desired) -> Desired:
    # What is only looked at holds nothing up: the workload itself is not ready.
    return Desired(desired.key, desired.manifest, Ready.exists(), blocked=desired.blocked)


def _reports(inputs: Inputs, run: Workload) -> bool:
    """Tell whether the workload on the cluster is this one, and its controller has been there."""
    remote = inputs.remote(run.key)
    return paths.name(remote) == paths.name(run.manifest) and bool(paths.mapping(remote, "status"))


def _parts(run: Workload, reports: bool, inputs: Inputs) -> Iterator[Part]:
    for engine in run.engines:
        for part in run.backend.parts(run, engine):
            if reports or part.key in inputs.observed:
                yield part


def seen(inputs: Inputs, run: Workload, engine: Engine) -> Copies:
    """Return what the looks say of an engine's copies."""
    wanted = run.backend.parts(run, engine)
    parts: dict[int, list[Part]] = {}
    for part in wanted:
        if part.key in inputs.observed:
            parts.setdefault(part.copy, []).append(part)
    short = {copy: words for copy, found in parts.items() if (words := _short(inputs, found))}
    whole = bool(wanted) and all(_answered(inputs, x) for x in wanted)
    return Copies(engine.copies - len(short) if whole else None, _message(short))


def _answered(inputs: Inputs, part: Part) -> bool:
    return paths.name(inputs.remote(part.key)) == paths.name(part.manifest) or _absent(inputs, part)


def _absent(inputs: Inputs, part: Part) -> bool:
    return refused.NOT_THERE in refused.said(inputs.observed.get(part.key))


def _short(inputs: Inputs, parts: Sequence[Part]) -> str:
    return ", ".join(words for part in parts if (words := _missing(inputs, part)))


def _missing(inputs: Inputs, part: Part) -> str:
    """Return what a part lacks; empty where it has all its pods, or has not been seen yet."""
    kind, name = part.manifest["kind"], paths.name(part.manifest)
    if _absent(inputs, part):
        return f"{part.role} not made yet ({kind} {name})"
    remote = inputs.remote(part.key)
    if paths.name(remote) != name:
        return ""
    ready = part.ready_pods(remote)
    if ready >= part.pods:
        return ""
    why = copies.complaint(remote)
    return f"{part.role} {ready} of {part.pods} ready ({kind} {name}{': ' if why else ''}{refused.cut(why)})"


def _message(short: dict[int, str]) -> str:
    told = [f"copy {copy}: {words}" for copy, words in sorted(short.items())[:_TOLD]]
    if rest := [str(copy) for copy in sorted(short)[_TOLD:]]:
        told.append(f"and copies {', '.join(rest)}")
    return "; ".join(told)
