"""The simulated API server: values, ownership, lookups, and asking for deletion."""

from __future__ import annotations

import pytest

from builders import core, worlds
from modelplane import contracts as c
from modelplane.core import Manifest, Requirement
from modelplane.sim.world import World, ref

THING = core.thing("it", "team", spec={"a": 1})


@pytest.mark.parametrize(
    ("second", "generation", "reason"),
    [
        (THING, 1, "the same again changes nothing"),
        ({**THING, "spec": {"a": 2}}, 2, "a new spec is a new generation"),
        ({**THING, "status": {"b": 1}}, 1, "a status is none"),
        ({**THING, "metadata": {**THING["metadata"], "labels": {"x": "y"}}}, 1, "nor are labels"),
    ],
)
def test_generation_counts_changes_of_the_spec(second: Manifest, generation: int, reason: str) -> None:
    world = World.of([THING])
    target = world.apply(second)
    assert world.objects[target]["metadata"]["generation"] == generation, reason


def test_an_apply_keeps_status_uid_and_crossplanes_marks_but_not_other_annotations() -> None:
    marks = {"crossplane.io/external-name": "x", "example.org/note": "y"}
    world = World.of([{**THING, "metadata": {**THING["metadata"], "annotations": marks}}])
    target = ref(THING)
    world.report(target, {"phase": "Bound"})
    before = world.objects[target]
    world.apply({**THING, "spec": {"a": 2}})
    after = world.objects[target]
    assert after["status"] == {"phase": "Bound"}
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["metadata"]["annotations"] == {"crossplane.io/external-name": "x"}


def test_an_unchanged_object_stays_the_same_value() -> None:
    world = World.of([THING])
    before = world.objects[ref(THING)]
    world.apply(THING)
    assert world.objects[ref(THING)] is before


NAMED = [
    core.thing("a", "one", metadata={"name": "a", "namespace": "one", "labels": {"k": "v"}}),
    core.thing("a", "two", metadata={"name": "a", "namespace": "two", "labels": {"k": "v"}}),
    core.thing("b", "one"),
    core.thing("a"),
]


@pytest.mark.parametrize(
    ("asked", "found", "reason"),
    [
        ({"match_name": "a", "namespace": "one"}, ["one/a"], "a name in a namespace"),
        ({"match_name": "a"}, ["/a"], "a name without one addresses a cluster-scoped object"),
        ({"match_name": "c", "namespace": "one"}, [], "looked for, absent"),
        ({"match_labels": {"k": "v"}}, ["one/a", "two/a"], "labels span namespaces, sorted"),
        ({"match_labels": {"k": "w"}}, [], "another value"),
        ({"match_labels": {"k": "v"}, "namespace": "two"}, ["two/a"], "labels in one namespace"),
        ({"match_labels": {}}, ["/a", "one/a", "one/b", "two/a"], "no labels: all of the kind"),
    ],
)
def test_requirements_find_what_core_would_fetch(asked: Manifest, found: list[str], reason: str) -> None:
    world = World.of(NAMED)
    got = world.fetch(Requirement("x", "example.org/v1", "Thing", **asked))
    assert [f"{o['metadata'].get('namespace', '')}/{o['metadata']['name']}" for o in got] == found, reason


def test_a_usage_refuses_as_long_as_it_stands_and_says_by_whom() -> None:
    by = core.thing("user", "team")
    world = World.of([THING, by, core.usage(THING, by)])
    assert world.delete(ref(THING)) == ["Usage team/guard: in use by Thing user"]
    assert ref(THING) not in world.deleting
    world.remove(ref(by))
    assert world.users(ref(THING)) == ["Usage team/guard: in use by Thing user"]


@pytest.mark.parametrize(
    ("of", "refused", "reason"),
    [
        ({"kind": "Thing", "resourceRef": {"name": "it"}}, True, "in the Usage's own namespace"),
        ({"kind": "Thing", "resourceRef": {"name": "it", "namespace": "team"}}, True, "the same, said"),
        ({"kind": "Thing", "resourceRef": {"name": "it", "namespace": "other"}}, False, "another namespace"),
        ({"kind": "Other", "resourceRef": {"name": "it"}}, False, "another kind"),
        ({"kind": "Thing", "resourceRef": {"name": "that"}}, False, "another name"),
    ],
)
def test_a_usage_protects_what_it_names(of: Manifest, refused: bool, reason: str) -> None:
    usage = core.thing(
        "guard", "team", "Usage", spec={"of": {"apiVersion": "example.org/v1", **of}, "reason": "r"}
    )
    world = World.of([THING, {**usage, "apiVersion": c.PROTECTION_API}])
    assert bool(world.delete(ref(THING))) is refused, reason


def test_deleting_what_is_not_there_or_twice_is_accepted() -> None:
    world = World.of([THING])
    assert world.delete(ref(core.thing("other"))) == []
    assert world.delete(ref(THING), "foreground") == []
    assert world.delete(ref(THING), "background") == []
    assert world.deleting == {ref(THING): "foreground"}
    assert "deletionTimestamp" in world.objects[ref(THING)]["metadata"]


def test_an_apply_does_not_take_a_deletion_back() -> None:
    world = World.of([THING])
    world.delete(ref(THING))
    world.apply({**THING, "spec": {"a": 2}})
    assert "deletionTimestamp" in world.objects[ref(THING)]["metadata"]


def test_what_was_removed_and_made_again_is_new() -> None:
    world = worlds.world(THING)
    world.adopt(worlds.OWNER, "it", ref(THING))
    world.passes = 3
    world.remove(ref(THING))
    assert world.observed(worlds.OWNER) == {}
    assert world.owner(ref(THING)) is None
    assert ref(THING) in world.gone
    world.apply(THING)
    assert ref(THING) not in world.gone
    assert world.age(ref(THING)) == 0
    assert world.owner(ref(THING)) is None


def test_a_copy_shares_nothing_that_changes() -> None:
    world = worlds.world(THING)
    world.adopt(worlds.OWNER, "it", ref(THING))
    world.fail(ref(THING), "Failed")
    other = world.copy()
    assert other == world
    other.delete(ref(THING))
    other.recover()
    other.remove(ref(THING))
    assert ref(THING) in world.objects
    assert world.owner(ref(THING)) == (worlds.OWNER, "it")
    assert (world.deleting, len(world.failures)) == ({}, 1)
