"""Moving a stack from one release to another: only when asked, CRDs first, each component after its needs.

The order in which a stack is created also is the one in which it moves: while a component's needs are not at
the new release and working, it stays as it is. The recorded release changes when all have moved, so until
then the old one can be asked for again; after it there is no way back.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from modelplane import contracts as c
from modelplane.core import Desired, Hold, Inputs, InvalidSpecError, Manifest, Waiting, paths
from modelplane.facts import versions
from modelplane.facts.versions import Pin, Release, UnknownReleaseError
from modelplane.stacks.component import ChartComponent, Component, Crds
from modelplane.stacks.components import chart_crds
from modelplane.stacks.render import Rendered, before

REASON_UNKNOWN_RELEASE = "UnknownRelease"


@dataclass(frozen=True, slots=True)
class Move:
    """Which release a stack has and which it should have.

    Attributes:
        target: the pins to install.
        recorded: name of the release that is installed whole; empty for a new stack.
    """

    target: Release
    recorded: str = ""

    @property
    def under_way(self) -> bool:
        """Tell whether the stack is to move."""
        return bool(self.recorded) and self.recorded != self.target.name

    @property
    def before(self) -> Release | None:
        """The recorded release's pins, or None where this package does not know them."""
        return versions.releases().get(self.recorded)


@dataclass(frozen=True, slots=True)
class Pace:
    """How far a move is.

    Attributes:
        resources: what is composed now.
        moved: whether a component is at the target and works, by key; empty without a move.
        waits: the components a component waits for, by key.
    """

    resources: tuple[Desired | Waiting, ...]
    moved: Mapping[str, bool] = field(default_factory=dict)
    waits: Mapping[str, str] = field(default_factory=dict)

    @property
    def done(self) -> bool:
        """Tell whether nothing is left to move."""
        return all(self.moved.values())


def plan(asked: str, components: Sequence[Component], inputs: Inputs) -> Move:
    """Return the move: to the release asked for, else none; a new stack gets the newest.

    Raises:
        InvalidSpecError: where the asked one is unknown, or older than what is installed.
        Hold: where what is installed is unknown.
    """
    recorded = paths.text(inputs.composite, "status", "stackRelease") or _installed(components, inputs)
    try:
        target = versions.release(asked or recorded) if asked or recorded else versions.newest()
    except UnknownReleaseError as error:
        if asked:
            raise InvalidSpecError(c.COMPONENTS_READY, "spec.stackRelease", str(error)) from None
        # An older package over a newer stack: installing older charts over newer ones unasked is a guess.
        raise Hold(
            c.COMPONENTS_READY,
            REASON_UNKNOWN_RELEASE,
            f"status.stackRelease: {error}; update the package, or name a known release in spec.stackRelease",
        ) from None
    move = Move(target, recorded)
    if move.before and (target.date, target.name) < (move.before.date, recorded):
        raise InvalidSpecError(
            c.COMPONENTS_READY,
            "spec.stackRelease",
            f"{target.name} is older than {recorded}, which is installed: CRDs and charts have no way back;"
            f" ask for {recorded} or a newer one",
        )
    return move


def _installed(components: Sequence[Component], inputs: Inputs) -> str:
    """Return the release whose charts are there, for a stack whose status was lost; empty for a new stack."""
    charts = {
        x.pin: version
        for x in components
        if isinstance(x, ChartComponent) and (version := _asked(inputs.observed.get(x.key)))
    }
    if not charts:
        return ""

    def fits(release: Release) -> int:
        return sum(key in release.pins and release.pins[key].version == v for key, v in charts.items())

    # The oldest of equals: what is there is not moved on a guess.
    return max(versions.releases().values(), key=fits).name


def _asked(release: Manifest | None) -> str:
    return paths.text(release, "spec", "forProvider", "chart", "version")


def crd_charts(components: Sequence[Component], move: Move) -> list[Pin]:
    """Return the pins of the charts whose CRDs a Job has to apply in this move."""
    if not move.under_way:
        return []
    was = move.before.pins if move.before else {}
    pins = [
        move.target.pin(x.pin) for x in components if isinstance(x, ChartComponent) and x.crds is Crds.FOLDER
    ]
    return [pin for pin in pins if pin.key not in was or was[pin.key].version != pin.version]


def pace(rendered: Sequence[Rendered], inputs: Inputs, move: Move) -> Pace:
    """Return what is composed now: without a move all of it, in a move each component after its needs."""
    if not move.under_way:
        return Pace(tuple(desired for each in rendered for desired in each.desired))
    moved = {each.component.key: _moved(each, inputs) for each in rendered}
    resources: list[Desired | Waiting] = []
    waits: dict[str, str] = {}
    for each in rendered:
        behind = [need for need in before(each.component) if not moved.get(need, True)]
        if behind:
            waits[each.component.key] = f"waits for {', '.join(behind)}"
        why = waits.get(each.component.key, "")
        resources.extend(_paced(desired, inputs, why) for desired in each.desired)
    return Pace(tuple(resources), moved, waits)


def _paced(desired: Desired, inputs: Inputs, waits: str) -> Desired | Waiting:
    seen = inputs.observed.get(desired.key)
    if not waits or (seen is not None and not _changes(desired, seen)):
        return desired
    if seen is None:
        return replace(desired, blocked=desired.blocked or waits)
    return Waiting(desired.key, waits)


def _moved(each: Rendered, inputs: Inputs) -> bool:
    """Tell whether all of a component is observed as it should be, applied, and working."""
    for desired in each.desired:
        seen = inputs.observed.get(desired.key)
        if seen is None or _changes(desired, seen) or not _applied(seen) or not inputs.is_ready(desired.key):
            return False
    return True


def _changes(desired: Desired, seen: Mapping[str, Any]) -> bool:
    """Tell whether applying it would change what the provider does; what others default does not count."""
    wanted, there = desired.manifest["spec"]["forProvider"], paths.mapping(seen, "spec", "forProvider")
    chart = wanted.get("chart", {})
    if any(paths.at(there, "chart", key) != value for key, value in chart.items()):
        return True
    return any(there.get(key) != value for key, value in wanted.items() if key != "chart")


def _applied(seen: Mapping[str, Any]) -> bool:
    """Tell whether what is Ready is what is asked for now: a provider reports an upgrade after the fact."""
    told = paths.integer(paths.condition(seen, c.READY), "observedGeneration", default=0)
    asked = paths.integer(seen, "metadata", "generation", default=0)
    if told and asked and told < asked:
        return False
    if seen.get("kind") != "Release":
        return True
    deployed = paths.text(seen, "status", "atProvider", "version")
    return deployed.removeprefix("v") == _asked(dict(seen)).removeprefix("v")


def serving(rendered: Sequence[Rendered], inputs: Inputs, move: Move) -> bool:
    """Tell whether all that served before the move still does, whatever is added or applied beside it."""
    return move.under_way and all(
        inputs.is_ready(desired.key)
        for each in rendered
        for desired in each.desired
        if each.component.key != chart_crds.COMPONENT.key
    )
