"""A Plan checks itself: a contradiction is our bug and never reaches a cluster."""

from __future__ import annotations

from typing import Any

import pytest

from builders.core import conditions, desired, thing
from modelplane.core import Condition, Desired, InvalidSpecError, Plan, PlanError, Ready, Requirement, Waiting


@pytest.mark.parametrize(
    ("fields", "message", "reason"),
    [
        ({"resources": [desired("a"), desired("a")]}, "a stands twice", "one key, two resources"),
        ({"resources": [desired("a"), Waiting("a", "b")]}, "a stands twice", "also where one waits"),
        (
            {"conditions": [Condition("Built", True, "X"), Condition("Built", False, "Y")]},
            "Built stands twice",
            "a type said twice hides the first",
        ),
        ({"resources": [desired("a", after=("b",))]}, "a names b", "a gate on what is not there never opens"),
        ({"resources": [desired("a", outlives=("b",))]}, "a names b", "a Usage of nothing"),
        (
            {"resources": [Desired("a", {"kind": "Thing"})]},
            "a has no metadata.name",
            "names are ours to choose",
        ),
        (
            {"resources": [desired("a", after=("b",))], "keep_all": True},
            "a names b",
            "keeping all does not say what is there",
        ),
    ],
)
def test_a_plan_that_contradicts_itself_is_refused(fields: dict[str, Any], message: str, reason: str) -> None:
    with pytest.raises(PlanError) as refused:
        Plan(**fields)
    assert message in str(refused.value), reason


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({}, "nothing wanted"),
        ({"resources": [desired("a", after=("b",)), desired("b", outlives=("a",))]}, "edges within the plan"),
        ({"resources": [desired("a", after=("b",)), Waiting("b", "an address")]}, "to what waits"),
        (
            {"resources": [desired("a", after=("b",), outlives=("b",))], "keep": frozenset({"b"})},
            "to what is kept",
        ),
        ({"conditions": [Condition("Built", None, "X"), Condition("Sent", None, "X")]}, "different types"),
    ],
)
def test_a_sound_plan_is_accepted(fields: dict[str, Any], reason: str) -> None:
    plan = Plan(**fields)
    assert [r.key for r in plan.resources] == [r.key for r in fields.get("resources", [])], reason


def test_a_requirement_by_name_and_by_labels_is_refused() -> None:
    with pytest.raises(PlanError, match="class asks for a name and for labels"):
        Requirement("class", "v1", "Class", match_name="a", match_labels={"b": "c"})


def test_an_invalid_spec_names_the_field() -> None:
    error = InvalidSpecError("Built", "spec.engines[0].name", "too long")
    assert (error.condition, error.reason) == ("Built", "InvalidSpec")
    assert error.message == "spec.engines[0].name: too long"


@pytest.mark.parametrize(
    ("rule", "status", "want", "reason"),
    [
        (Ready.condition(), conditions(Ready="True"), True, "its own condition is True"),
        (Ready.condition(), conditions(Ready="False"), False, "and here False"),
        (Ready.condition(), {}, False, "no condition yet"),
        (
            Ready.condition("Available"),
            conditions(Available="True", Ready="False"),
            True,
            "the named one decides",
        ),
        (Ready.exists(), {}, True, "there is enough"),
        (Ready.at("status", "phase", value="Bound"), {"phase": "Bound"}, True, "the field has the value"),
        (Ready.at("status", "phase", value="Bound"), {"phase": "Pending"}, False, "it has another"),
        (Ready.at("status", "phase", value="Bound"), {}, False, "it is missing"),
        (Ready.at("status", "address"), {"address": "10.0.0.1"}, True, "any value will do"),
        (Ready.at("status", "address"), {"address": None}, False, "null is no value"),
        (Ready.at("status", "address"), {}, False, "none yet"),
    ],
)
def test_readiness_is_judged_from_what_is_observed(
    rule: Ready, status: dict[str, Any], want: bool, reason: str
) -> None:
    assert rule.holds(thing("a", status=status)) is want, reason


@pytest.mark.parametrize(
    "rule", [Ready.condition(), Ready.exists(), Ready.at("a"), Ready.at("a", value=None)], ids=str
)
def test_what_is_not_observed_is_never_ready(rule: Ready) -> None:
    assert rule.holds(None) is False
