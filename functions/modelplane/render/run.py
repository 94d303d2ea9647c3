"""Rendering: files in, passes out."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from modelplane import contracts as c
from modelplane.api import definitions
from modelplane.core import Manifest, paths
from modelplane.kinds.registry import KINDS
from modelplane.render import adapter, collect, tree
from modelplane.sim import prerequisites, rules
from modelplane.sim.play import Pass, one_pass, play
from modelplane.sim.reconcile import Admission, Function
from modelplane.sim.world import Ref, World, ref


class Admitted:
    """Admission that gives its last verdicts again where the same object comes over the same old one."""

    def __init__(self) -> None:
        self._last: dict[Ref, list[tuple[Manifest, Manifest | None, tuple[Manifest, Sequence[str]]]]] = {}

    def __call__(self, manifest: Manifest, old: Manifest | None) -> tuple[Manifest, Sequence[str]]:
        """Return the verdict of `admit`."""
        # A composite comes twice in a pass: as its parent composes it, and with its status.
        known = self._last.setdefault(ref(manifest), [])
        for asked, before, verdict in known:
            if asked == manifest and before == old:
                return verdict
        verdict = admit(manifest, old)
        self._last[ref(manifest)] = [*known[-1:], (manifest, old, verdict)]
        return verdict


@dataclass
class Rendering:
    """One rendering and what it has seen so far.

    Attributes:
        world: the simulated control plane.
        recurse: whether passes go on, children included, until nothing changes.
    """

    world: World
    recurse: bool
    function: Function = field(default_factory=lambda: adapter.function(KINDS, remember=True))
    kinds: set[tuple[str, str]] = field(default_factory=lambda: set(KINDS))
    admission: Admission = field(default_factory=Admitted)

    def passes(self) -> Iterator[tuple[Pass, list[tree.Line]]]:
        """Yield each pass with its tree; without recursion there is one, over the given composites only."""
        if not self.recurse:
            done = one_pass(self.world, self.kinds, self.function, self.admission)
            yield done, tree.lines(done, self.world.children)
            return
        for done in play(self.world, self.kinds, self.function, self.admission):
            yield done, tree.lines(done, self.world.children)


def rendering(
    roots: Sequence[Path], observed: Sequence[Path] = (), required: Sequence[Path] = (), *, recurse: bool
) -> Rendering:
    """Return a rendering of the files.

    Args:
        roots: what to render.
        observed: objects already composed; each names its key in the annotation Crossplane writes.
        required: objects that composers may read.
        recurse: see `Rendering`.

    Raises:
        InputError: for anything unreadable or refused.
    """
    documents = collect.read(roots)
    others = collect.read(required) if required else []
    world = World.of([*prerequisites.objects(), *documents, *others])
    if observed:
        _adopt(world, [ref(d) for d in documents], collect.read(observed))
    kinds = set(KINDS)
    if not recurse:
        # One call per given composite: what is only required is read, not reconciled.
        kinds = {(r.api_version, r.kind) for r in map(ref, documents)} & kinds
    if not any(
        (r.api_version, r.kind) in kinds and not rules.is_leaf(r.api_version, r.kind) for r in world.objects
    ):
        raise collect.InputError([f"{', '.join(map(str, roots))}: nothing here that Modelplane composes"])
    return Rendering(world, recurse, kinds=kinds)


def _adopt(world: World, composites: Sequence[Ref], found: Sequence[Manifest]) -> None:
    owners = {r.name: r for r in composites if (r.api_version, r.kind) in KINDS}
    faults = []
    for manifest in found:
        key = paths.text(manifest, "metadata", "annotations", c.RESOURCE_NAME_ANNOTATION)
        owner = paths.labels(manifest).get(c.COMPOSITE_LABEL) or (
            next(iter(owners)) if len(owners) == 1 else ""
        )
        if not key or owner not in owners:
            faults.append(
                f"{ref(manifest)}: observed objects need the annotation {c.RESOURCE_NAME_ANNOTATION} and the "
                f"label {c.COMPOSITE_LABEL} naming a composite that is rendered"
            )
            continue
        world.adopt(owners[str(owner)], key, world.apply(manifest))
    if faults:
        raise collect.InputError(faults)


def admit(manifest: Manifest, old: Manifest | None) -> tuple[Manifest, Sequence[str]]:
    """Default and judge an object as the API server does; kinds of others pass as they are."""
    known = definitions.load()
    if known.of(manifest) is None:
        return manifest, ()
    problems = known.judge(manifest, old)
    return known.default(manifest), [str(p) for p in problems]


def composed(done: Pass, children: Mapping[Ref, Mapping[str, Ref]]) -> list[Manifest]:
    """Return every composed object after a pass, without statuses, composites' children in key order."""
    return [
        desired(done.objects[child])
        for owner in sorted(children)
        for _, child in sorted(children[owner].items())
        if child in done.objects
    ]


def desired(manifest: Manifest) -> Manifest:
    """Return the part of an object that a composer asked for."""
    metadata = {k: v for k, v in manifest["metadata"].items() if k not in ("uid", "generation")}
    return {**{k: v for k, v in manifest.items() if k != "status"}, "metadata": metadata}
