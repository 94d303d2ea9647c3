"""A step of a platform's own Composition: one of our composers on a part of its XR, or the teardown pass."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from crossplane.function.proto.v1 import run_function_pb2 as fnv1

from builders.calls import fatal, manifests, request, run
from builders.core import WIDGET, config, consumer, desired, thing, widget
from modelplane.core import Inputs, Plan
from modelplane.core.paths import Manifest
from modelplane.shell import wire


def two(_: Inputs) -> Plan:
    return Plan([desired("a"), desired("b", after=("a",))])


PLATFORM = {**widget(spec={"part": {"size": 3}}), "kind": "Platform"}


def test_a_step_composes_a_part_and_writes_its_status_where_it_says() -> None:
    def compose(inputs: Inputs) -> Plan:
        assert inputs.spec == {"size": 3}
        return Plan([desired("a")], status={"url": "u"})

    req = request(PLATFORM, step={"compose": WIDGET, "specFrom": "spec.part", "statusTo": "status.part"})
    req.desired.composite.resource.update({"status": {"other": {"url": "o"}, "part": {"was": "there"}}})
    rsp = run(compose, req)
    assert wire.to_dict(rsp.desired.composite.resource) == {
        "status": {"other": {"url": "o"}, "part": {"was": "there", "url": "u"}}
    }


def test_a_step_without_a_status_writes_none() -> None:
    rsp = run(
        lambda _: Plan(status={"url": "u"}), request(PLATFORM, step={"compose": WIDGET, "statusTo": ""})
    )
    assert not rsp.desired.composite.resource.fields
    assert [x.type for x in rsp.conditions] == ["Built"], "its conditions are said all the same"


def test_a_bad_step_is_fatal_and_changes_nothing() -> None:
    req = request(PLATFORM, step={"compose": WIDGET, "specFrom": "spec.nope"}, earlier={"x": thing("x")})
    rsp = run(two, req)
    assert fatal(rsp) == "input.specFrom: Platform has no object at spec.nope"
    assert manifests(rsp) == {"x": thing("x")}


def usages_pass(
    earlier: dict[str, Manifest], observed: Sequence[str] = (), seen: dict[str, Manifest] | None = None
) -> fnv1.RunFunctionResponse:
    there = {key: thing(key) for key in observed} | (seen or {})
    return run(two, request(PLATFORM, earlier=earlier, observed=there, step={"compose": "Usages"}))


def nameless(manifest: Manifest) -> Manifest:
    return {**manifest, "metadata": {}}


@pytest.mark.parametrize(
    ("earlier", "seen", "want", "reason"),
    [
        ({"c": config(), "x": consumer("x"), "y": consumer("y")}, {}, ["x", "y"], "one per consumer"),
        ({"c": config(), "t": thing("t")}, {}, [], "no consumer"),
        ({"x": consumer("x")}, {}, [], "a config of somebody else"),
        ({"c": config(), "x": nameless(consumer("x"))}, {}, [], "Crossplane has not named it yet"),
        ({"c": config(), "x": nameless(consumer("x"))}, {"x": consumer("given")}, ["x"], "now it has"),
    ],
)
def test_the_usages_pass_orders_what_earlier_steps_compose(
    earlier: dict[str, Manifest], seen: dict[str, Manifest], want: list[str], reason: str
) -> None:
    rsp = usages_pass(earlier, seen=seen)
    added = {key: m for key, m in manifests(rsp).items() if key not in earlier}
    assert sorted(added) == [f"usage-c-by-{key}" for key in want], reason
    assert {key: manifests(rsp)[key] for key in earlier} == earlier, "which it leaves as they are"
    for key, manifest in added.items():
        by = (seen or earlier)[key.removeprefix("usage-c-by-")]
        assert manifest["spec"]["by"]["resourceRef"]["name"] == by["metadata"]["name"]
        assert manifest["metadata"]["namespace"] == "team"


def test_the_usages_pass_leaves_a_usage_of_an_earlier_step_alone() -> None:
    own = thing("own", kind="Usage")
    rsp = usages_pass({"c": config(), "x": consumer("x"), "usage-c-by-x": own})
    assert manifests(rsp)["usage-c-by-x"] == own


def test_the_usages_pass_marks_ready_only_what_is_observed() -> None:
    earlier = {"c": config(), "x": consumer("x"), "y": consumer("y")}
    rsp = usages_pass(earlier, observed=["usage-c-by-x"])
    assert rsp.desired.resources["usage-c-by-x"].ready == fnv1.READY_TRUE
    assert rsp.desired.resources["usage-c-by-y"].ready == fnv1.READY_FALSE
    assert rsp.desired.resources["x"].ready == fnv1.READY_UNSPECIFIED, "not this step's to say"
