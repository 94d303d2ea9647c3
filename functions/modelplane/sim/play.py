"""Playing reconciles over a whole control plane until nothing changes."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from modelplane.core import Manifest
from modelplane.sim import deletion, rules
from modelplane.sim.reconcile import Admission, Function, Report, reconcile
from modelplane.sim.world import Ref, World

# A fleet whose clusters exist settles in some twenty passes, one that makes them on EKS in some forty-five:
# network, control plane, system nodes, add-ons, then the stack's waves. More than this is an oscillation.
MAX_PASSES = 80


class Unsettled(Exception):  # noqa: N818  (what happened, to be reported as such)
    """The world kept changing: an oscillation, which in a real control plane never ends."""


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass over all composites.

    Attributes:
        number: from 1.
        reports: one per composite, in the order they were reconciled.
        changed: objects that are new or whose desired part changed in this pass.
        gone: what left in this pass.
        objects: everything, after the pass.
        waiting: what cannot go although it was deleted, and why.
    """

    number: int
    reports: tuple[Report, ...]
    changed: dict[Ref, Manifest] = field(default_factory=dict)
    gone: tuple[Ref, ...] = ()
    objects: dict[Ref, Manifest] = field(default_factory=dict)
    waiting: dict[Ref, str] = field(default_factory=dict)


def composites(world: World, kinds: set[tuple[str, str]]) -> list[Ref]:
    """Return the composites that a composer answers for, by kind and name; none that is being deleted."""
    return sorted(
        r
        for r in world.objects
        if r[:2] in kinds and r not in world.deleting and not rules.is_leaf(r.api_version, r.kind)
    )


def one_pass(world: World, kinds: set[tuple[str, str]], function: Function, admit: Admission) -> Pass:
    """Reconcile every composite once, let every leaf's controller act, then what is deleted leave."""
    world.passes += 1
    before = dict(world.objects)
    reports = [reconcile(world, target, function, admit) for target in composites(world, kinds)]
    for target in sorted(world.objects):
        rules.act(target, world)
    deletion.advance(world)
    after = dict(world.objects)
    return Pass(
        number=world.passes,
        reports=tuple(reports),
        changed={r: o for r, o in after.items() if _desired(before.get(r)) != _desired(o)},
        gone=tuple(sorted(before.keys() - after.keys())),
        objects=after,
        waiting=dict(world.waiting),
    )


def play(
    world: World,
    kinds: set[tuple[str, str]],
    function: Function,
    admit: Admission,
    limit: int = MAX_PASSES,
) -> Iterator[Pass]:
    """Yield passes until one changes nothing; that last one is yielded too.

    Raises:
        Unsettled: after `limit` passes, naming what still changes.
    """
    previous = dict(world.objects)
    for _ in range(limit):
        done = one_pass(world, kinds, function, admit)
        yield done
        if done.objects == previous and _quiet(world):
            return
        previous = done.objects
    last = sorted(str(r) for r in done.changed) or ["statuses only"]
    raise Unsettled(f"still changing after {limit} passes: {', '.join(last[:5])}")


def _quiet(world: World) -> bool:
    """Tell whether no controller has news still to come: each has had its time since the last birth."""
    return world.passes - max(world.born.values(), default=0) >= rules.SLOWEST


def _desired(obj: Manifest | None) -> Manifest | None:
    return None if obj is None else {k: v for k, v in obj.items() if k != "status"}
