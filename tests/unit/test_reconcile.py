"""What Crossplane's core does with an answer (crossplane internal/controller/apiextensions/composite)."""

from __future__ import annotations

import pytest

from builders import core, worlds
from modelplane import contracts as c
from modelplane.core import Answer, Inputs, Manifest, Requirement, paths
from modelplane.sim import deletion
from modelplane.sim.reconcile import MAX_CALLS, Reply, reconcile
from modelplane.sim.world import World, ref

OWNER = worlds.OWNER
THING = core.thing("it", "team", spec={"a": 1})


def run(world: World, function: worlds.Function, target: worlds.Ref = OWNER) -> dict[str, str]:
    return dict(reconcile(world, target, function, worlds.admit).refused)


def state(world: World, type_: str, target: worlds.Ref = OWNER) -> tuple[object, ...]:
    found = paths.condition(world.objects[target], type_)
    return found.get("status"), found.get("reason"), found.get("message", "")


def test_a_composed_object_carries_cores_marks_and_the_composites_namespace() -> None:
    world = worlds.world()
    run(world, worlds.answering({"a": core.thing("it")}))
    made = world.observed(OWNER)["a"]
    assert made["metadata"]["namespace"] == "team"
    assert made["metadata"]["labels"][c.COMPOSITE_LABEL] == "one"
    assert made["metadata"]["annotations"][c.RESOURCE_NAME_ANNOTATION] == "a"


def test_an_object_without_a_name_gets_a_stable_one() -> None:
    nameless: Manifest = {"apiVersion": "example.org/v1", "kind": "Thing"}
    found = set()
    for _ in range(2):
        world = worlds.world()
        run(world, worlds.answering({"a": nameless}))
        found.add(world.observed(OWNER)["a"]["metadata"]["name"])
    assert len(found) == 1


def test_deletion_comes_before_apply_and_in_the_foreground() -> None:
    world = worlds.world()
    run(world, worlds.answering({"old": core.thing("old", "team")}))
    seen: list[bool] = []

    def admit(manifest: Manifest, old: Manifest | None) -> tuple[Manifest, list[str]]:
        seen.append(ref(core.thing("old", "team")) in world.deleting)
        return manifest, []

    reconcile(world, OWNER, worlds.answering({"new": core.thing("new", "team")}), admit)
    assert seen[0] is True
    assert set(world.deleting.values()) == {"foreground"}
    deletion.advance(world)
    assert sorted(world.observed(OWNER)) == ["new"]


def test_a_refused_deletion_stops_the_composition_until_the_usage_is_gone() -> None:
    world = worlds.world()
    old, by = core.thing("old", "team"), core.thing("user", "team")
    run(world, worlds.answering({"old": old, "other": core.thing("other", "team")}))
    world.apply(by)
    guard = world.apply(core.usage(old, by))
    wanted = worlds.answering({"new": core.thing("new", "team")}, status={"size": 2})
    refused = run(world, wanted)
    assert "Usage team/guard: in use by Thing user" in refused["old"]
    assert refused[""] == refused["old"]
    assert state(world, "Synced")[0] == "False"
    deletion.advance(world)
    assert sorted(world.observed(OWNER)) == ["old"], "the other one went, the new one waits"
    assert "size" not in world.objects[OWNER].get("status", {})
    world.remove(guard)
    assert run(world, wanted) == {}
    deletion.advance(world)
    assert sorted(world.observed(OWNER)) == ["new"]


def test_name_and_namespace_of_a_key_are_pinned_once_observed() -> None:
    world = worlds.world()
    run(world, worlds.answering({"a": core.thing("first")}))
    run(world, worlds.answering({"a": core.thing("second", spec={"a": 2})}))
    made = world.observed(OWNER)["a"]
    assert (made["metadata"]["name"], made["spec"]) == ("first", {"a": 2})
    assert [r.name for r in world.objects if r.kind == "Thing"] == ["first"]


CLUSTER = ref(core.widget(namespace=""))


@pytest.mark.parametrize(
    ("namespace", "made", "refused", "reason"),
    [
        ("team", {"apiVersion": "v1", "kind": "Namespace"}, "cluster-scoped Namespace", "crossplane#6361"),
        ("team", {"apiVersion": c.API, "kind": "InferenceCluster"}, "cluster-scoped", "so does one of ours"),
        ("team", {"apiVersion": "v1", "kind": "ConfigMap"}, "", "its own namespace is filled in"),
        ("", {"apiVersion": "v1", "kind": "ConfigMap"}, "needs a namespace", "nobody says where"),
        ("", {"apiVersion": "v1", "kind": "Namespace"}, "", "cluster-scoped makes cluster-scoped"),
        ("", {"apiVersion": c.API, "kind": "InferenceCluster"}, "", "and ours"),
    ],
)
def test_a_misplaced_kind_stops_the_reconcile(
    namespace: str, made: Manifest, refused: str, reason: str
) -> None:
    world = World.of([core.widget(namespace=namespace)])
    target = OWNER if namespace else CLUSTER
    found = run(world, worlds.answering({"a": {**made, "metadata": {"name": "x"}}}), target)
    assert (refused in found.get("", "")) if refused else found == {}, reason
    assert (state(world, "Synced", target)[0] == "False") is bool(refused), reason


def test_a_foreign_namespace_is_overridden_with_a_warning() -> None:
    world = worlds.world()
    report = reconcile(world, OWNER, worlds.answering({"a": core.thing("it", "elsewhere")}), worlds.admit)
    assert report.refused == {}
    assert [r.namespace for r in world.objects if r.kind == "Thing"] == ["team"]
    assert report.warnings == ("a: namespace elsewhere is ignored: a composite in team composes there only",)


def test_an_invalid_child_leaves_the_others_applied_and_the_status_written() -> None:
    world = worlds.world()
    bad = core.thing("bad", "team", refuse=["spec.size: must be positive"])
    found = run(world, worlds.answering({"a": bad, "b": THING}, ready=["a", "b"], status={"size": 1}))
    assert found == {"a": "Thing team/bad refused: spec.size: must be positive"}
    assert sorted(world.observed(OWNER)) == ["b"]
    assert world.objects[OWNER]["status"]["size"] == 1
    assert state(world, "Synced") == ("False", "ReconcileError", found["a"])
    assert state(world, "Ready")[0] == "True", "core believes a function that calls it ready all the same"


@pytest.mark.parametrize("where", ["child", "status"])
def test_an_undeclared_field_stops_the_reconcile_and_leaves_ready_stale(where: str) -> None:
    world = worlds.world()
    good = worlds.answering({"a": THING}, ready=["a"], status={"size": 1}, conditions=[worlds.condition()])
    run(world, good)
    assert state(world, "Ready")[0] == "True"

    def admit(manifest: Manifest, old: Manifest | None) -> tuple[Manifest, list[str]]:
        bad = manifest["kind"] == "Thing" if where == "child" else "status" in manifest
        return manifest, ['spec.x: unknown field "x"'] if bad else []

    more = worlds.answering(
        {"a": THING, "b": core.thing("b")}, status={"size": 2}, conditions=[worlds.condition()]
    )
    refused = reconcile(world, OWNER, more, admit).refused
    assert "unknown field" in refused[""]
    assert world.objects[OWNER]["status"]["size"] == 1
    assert state(world, "Synced")[0] == "False"
    assert state(world, "Ready")[0] == "True"
    assert state(world, "Built")[:2] == ("Unknown", "FatalError")


def test_a_resource_of_another_composite_is_refused_and_stays_theirs() -> None:
    world = worlds.world(core.widget("two"))
    both = worlds.answering({"a": THING})
    assert run(world, both) == {}
    other = ref(core.widget("two"))
    assert run(world, both, other) == {"a": "Thing team/it is already composed by Widget team/one"}
    assert world.owner(ref(THING)) == (OWNER, "a")


def test_what_nobody_controls_is_taken_over() -> None:
    world = worlds.world(THING)
    assert run(world, worlds.answering({"a": THING})) == {}
    assert world.owner(ref(THING)) == (OWNER, "a")


def test_a_condition_that_is_not_sent_keeps_its_last_value() -> None:
    world = worlds.world()
    run(world, worlds.answering({}, conditions=[worlds.condition("Built"), worlds.condition("Known")]))
    run(world, worlds.answering({}, conditions=[worlds.condition("Built", False, "Broken")]))
    assert state(world, "Known")[0] == "True"
    assert state(world, "Built")[:2] == ("False", "Broken")


def test_a_status_field_that_is_not_sent_is_removed() -> None:
    world = worlds.world()
    run(world, worlds.answering({}, status={"a": 1, "b": 2}))
    run(world, worlds.answering({}, status={"a": 1}))
    assert "b" not in world.objects[OWNER]["status"]


@pytest.mark.parametrize(
    ("resources", "ready", "said", "expected", "reason"),
    [
        ({}, [], None, ("True", "Available", ""), "nothing composed is ready"),
        ({"a": THING}, [], None, ("False", "Creating", "Unready resources: a"), "one is not"),
        ({"a": THING}, ["a"], None, ("True", "Available", ""), "all are"),
        ({"a": THING}, ["a"], False, ("False", "Creating", ""), "the function says otherwise"),
    ],
)
def test_ready_is_derived(
    resources: dict[str, Manifest],
    ready: list[str],
    said: bool | None,
    expected: tuple[str, ...],
    reason: str,
) -> None:
    world = worlds.world()
    run(world, worlds.answering(resources, ready=ready, said=said))
    assert state(world, "Ready") == expected, reason


def test_a_fatal_result_keeps_everything_and_makes_our_conditions_unknown() -> None:
    world = worlds.world()
    run(
        world,
        worlds.answering({"a": THING}, ready=["a"], conditions=[worlds.condition()], status={"size": 1}),
    )
    report = reconcile(world, OWNER, lambda _: Reply(fatal="boom"), worlds.admit)
    assert (report.answer, report.refused) == (None, {"": "boom"})
    assert sorted(world.observed(OWNER)) == ["a"]
    assert world.objects[OWNER]["status"]["size"] == 1
    assert state(world, "Synced") == ("False", "ReconcileError", "boom")
    assert state(world, "Ready")[0] == "True"
    assert state(world, "Built")[:2] == ("Unknown", "FatalError")


def _asks(n: int) -> Requirement:
    return Requirement(f"r{n}", "v1", "Secret", match_name=f"s{n}", namespace="team")


@pytest.mark.parametrize(
    ("links", "calls", "fatal", "reason"),
    [
        (0, 1, "", "nothing asked"),
        (1, 2, "", "one link costs one more call"),
        (2, 3, "", "two cost two"),
        (4, 5, "", "the last that settles"),
        (9, MAX_CALLS, "requirements didn't stabilize", "core gives up after six calls"),
    ],
)
def test_requirements_are_asked_for_until_they_settle(
    links: int, calls: int, fatal: str, reason: str
) -> None:
    """Each object that is found makes the function ask for the next."""
    found: list[int] = []

    def function(inputs: Inputs) -> Reply:
        found.append(len(inputs.required))
        asked = min(links, len(inputs.required) + 1)
        settled = len(inputs.required) == links
        return Reply([_asks(n) for n in range(asked)], Answer() if settled else None)

    report = reconcile(worlds.world(), OWNER, function, worlds.admit)
    assert fatal in report.refused.get("", ""), reason
    assert bool(report.refused) is bool(fatal), reason
    assert report.calls == len(found), reason
    assert report.calls <= MAX_CALLS
    assert report.calls >= calls, reason


def test_what_is_asked_for_and_absent_arrives_empty() -> None:
    seen: list[object] = []

    def function(inputs: Inputs) -> Reply:
        seen.append(dict(inputs.required))
        return Reply([_asks(0)], Answer())

    reconcile(worlds.world(), OWNER, function, worlds.admit)
    assert seen[-1] == {"r0": []}
