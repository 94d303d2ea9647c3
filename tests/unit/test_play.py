"""Passes over a whole control plane: order, rest, and oscillation."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from builders import core, worlds
from modelplane.core import Answer, Composed, Inputs, Manifest, builders, paths
from modelplane.sim.play import Unsettled, composites, play
from modelplane.sim.reconcile import Reply
from modelplane.sim.world import World, ref


def run(world: World, function: worlds.Function, limit: int = 20) -> list[int]:
    """Play to rest; return how many objects were new or changed in each pass."""
    return [len(p.changed) for p in play(world, worlds.KINDS, function, worlds.admit, limit)]


def test_a_world_at_rest_ends_with_a_pass_that_changes_nothing() -> None:
    world = worlds.world()
    passes = list(play(world, worlds.KINDS, worlds.answering({"a": core.thing("it")}), worlds.admit))
    assert len(passes[0].changed) == 1
    assert passes[-1].objects == passes[-2].objects
    assert [p.number for p in passes] == list(range(1, len(passes) + 1))


def test_a_world_is_not_at_rest_while_a_controller_still_has_news() -> None:
    """A Job reports after two passes, in the first of which nothing at all changes."""
    job = worlds.remote("Job", api="batch/v1")
    obj = worlds.carrying("it", job, query=builders.JOB_COMPLETE)
    world = World.of([worlds.config(), obj])
    run(world, worlds.answering({}))
    assert paths.is_true(world.objects[ref(obj)], "Ready")


def test_parents_are_reconciled_in_an_order_that_does_not_depend_on_how_they_were_given() -> None:
    given = [core.widget(name) for name in ("c", "a", "b")]
    orders = {tuple(composites(World.of(docs), worlds.KINDS)) for docs in (given, given[::-1])}
    assert len(orders) == 1


def test_what_is_being_deleted_is_not_reconciled() -> None:
    world = worlds.world(core.widget("two"))
    world.adopt(worlds.OWNER, "child", ref(core.widget("two")))
    world.delete(worlds.OWNER, "foreground")
    assert composites(world, worlds.KINDS) == [ref(core.widget("two"))]


def test_a_leaf_kind_is_never_reconciled() -> None:
    obj = worlds.carrying("it", worlds.remote("ConfigMap"))
    world = World.of([obj])
    assert composites(world, {ref(obj)[:2]}) == []


def test_an_oscillation_is_reported_with_what_changes() -> None:
    turn = [0]

    def function(_: Inputs) -> Reply:
        turn[0] += 1
        flapping = {**core.thing("it"), "spec": {"turn": turn[0]}}
        return Reply((), Answer(resources={"a": Composed(flapping, False)}))

    with pytest.raises(Unsettled, match=r"still changing after 7 passes: Thing team/it"):
        run(worlds.world(), function, limit=7)


def test_an_oscillation_of_statuses_only_is_reported_too() -> None:
    turn = [0]

    def function(_: Inputs) -> Reply:
        turn[0] += 1
        return Reply((), Answer(status={"turn": turn[0]}))

    with pytest.raises(Unsettled, match="statuses only"):
        run(worlds.world(), function, limit=5)


@pytest.mark.parametrize(
    ("wanted", "gone", "reason"),
    [
        ([["a"], []], ["Thing team/a"], "what is no longer desired leaves"),
        ([["a"], ["a"]], [], "what stays, stays"),
        ([["a"], ["b"]], ["Thing team/a"], "and another takes its place"),
    ],
)
def test_a_pass_tells_what_left(wanted: Sequence[Sequence[str]], gone: list[str], reason: str) -> None:
    world = worlds.world()
    for names in wanted:
        desired: dict[str, Manifest] = {name: core.thing(name) for name in names}
        passes = list(play(world, worlds.KINDS, worlds.answering(desired), worlds.admit))
    assert [str(r) for p in passes for r in p.gone] == gone, reason
