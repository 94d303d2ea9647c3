"""The rules of every kind: gates, readiness, keeping, and what a Hold does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from builders.core import conditions, config, consumer, desired, kind, ready, thing, usage, widget
from modelplane.core import (
    Answer,
    Condition,
    Desired,
    Event,
    Hold,
    Inputs,
    InvalidSpecError,
    Plan,
    PlanError,
    Ready,
    Waiting,
    settle,
)
from modelplane.core.paths import Manifest

Observed = dict[str, Manifest]
BUILT = kind(conditions=("Built", "Sent"))


def answer(plan: Plan, observed: Mapping[str, Manifest] | None = None, **xr: Any) -> Answer:
    return settle.settle(BUILT, plan, Inputs(widget(**xr), observed or {}))


def state(found: Answer) -> dict[str, bool]:
    return {key: composed.ready for key, composed in found.resources.items()}


@pytest.mark.parametrize(
    ("b", "observed", "composed", "held_back", "reason"),
    [
        (desired("b", after=("a",)), {}, {"a"}, {"b": "waiting for a"}, "a is not there yet"),
        (
            desired("b", after=("a",)),
            {"a": thing("a")},
            {"a"},
            {"b": "waiting for a"},
            "a is there and says nothing",
        ),
        (
            desired("b", after=("a",)),
            {"a": ready(thing("a"), "False")},
            {"a"},
            {"b": "waiting for a"},
            "a is there and not ready",
        ),
        (desired("b", after=("a",)), {"a": ready(thing("a"))}, {"a", "b"}, {}, "a is ready: the gate opens"),
        (
            desired("b", after=("a",)),
            {"a": ready(thing("a"), "False"), "b": thing("b")},
            {"a", "b"},
            {},
            "what was created once stays when its gate closes",
        ),
        (
            desired("b", after=("a",)),
            {"b": thing("b")},
            {"a", "b"},
            {},
            "also when what it waited for is gone",
        ),
        (desired("b", blocked="no address"), {}, {"a"}, {"b": "no address"}, "a cause outside the plan"),
        (
            desired("b", after=("a",), blocked="no address"),
            {"a": ready(thing("a"))},
            {"a"},
            {"b": "no address"},
            "it also closes an open gate",
        ),
        (
            desired("b", blocked="no address"),
            {"b": thing("b")},
            {"a", "b"},
            {},
            "and not what was created once",
        ),
        (Waiting("b", "an address"), {}, {"a"}, {"b": "an address"}, "nothing to create it from"),
        (Waiting("b", "an address"), {"b": thing("b")}, {"a", "b"}, {}, "it was created: it is kept"),
        (
            Waiting("b", ""),
            {},
            {"a"},
            {"b": "waiting for a value that nobody has reported yet"},
            "a composer that gives no cause still holds back",
        ),
    ],
)
def test_a_resource_is_created_when_its_gate_opens_and_then_stays(
    b: Desired | Waiting, observed: Observed, composed: set[str], held_back: dict[str, str], reason: str
) -> None:
    found = answer(Plan([desired("a"), b]), observed)
    assert set(found.resources) == composed, reason
    assert found.held_back == held_back, reason
    assert found.ready is (False if held_back else None), "unready while something is held back"


def test_a_gate_names_all_that_it_waits_for() -> None:
    plan = Plan([desired("a"), desired("b"), desired("d", after=("a", "b", "c")), Waiting("c", "x")])
    found = answer(plan, {"b": ready(thing("b"))})
    assert found.held_back["d"] == "waiting for a, c"


@pytest.mark.parametrize(
    ("gate", "observed", "opens", "reason"),
    [
        (desired("a", ready=Ready.exists()), thing("a"), True, "there is enough"),
        (desired("a", ready=Ready.condition("Up")), ready(thing("a")), False, "the rule's condition counts"),
        (
            desired("a", ready=Ready.at("status", "phase", value="Bound")),
            thing("a", status={"phase": "Bound"}),
            True,
            "a field",
        ),
        (Waiting("a", "x"), thing("a"), True, "kept without conditions: as ready as it will ever say"),
        (Waiting("a", "x"), ready(thing("a"), "False"), False, "kept, and it says that it is not ready"),
    ],
)
def test_a_gate_opens_by_the_rule_of_what_it_waits_for(
    gate: Desired | Waiting, observed: Manifest, opens: bool, reason: str
) -> None:
    found = answer(Plan([gate, desired("b", after=("a",))]), {"a": observed})
    assert ("b" in found.resources) is opens, reason
    assert found.resources["a"].ready is opens, "the gate and the answer agree"


@pytest.mark.parametrize(
    ("said", "held_back", "counts", "reason"),
    [
        (None, False, None, "left to the resources"),
        (None, True, False, "something is not composed yet"),
        (False, False, False, "the composer knows better than its resources"),
        (True, False, True, "what serves goes on while its replacement comes up"),
        (True, True, True, "also while the replacement is not composed yet"),
    ],
)
def test_readiness_of_the_composite(
    said: bool | None, held_back: bool, counts: bool | None, reason: str
) -> None:
    resources = [desired("a"), *([Waiting("b", "an address")] if held_back else [])]
    assert answer(Plan(resources, ready=said)).ready is counts, reason


def test_a_gate_on_a_kept_resource_judges_it_as_the_answer_does() -> None:
    plan = Plan([desired("b", after=("a",))], keep=frozenset({"a"}))
    assert state(answer(plan, {"a": config("a")})) == {"a": True, "b": False}


def test_nothing_is_ready_on_the_first_pass() -> None:
    rules = [Ready.condition(), Ready.exists(), Ready.at("spec"), Ready.at("kind", value="Thing")]
    resources = [desired(f"r{i}", ready=rule) for i, rule in enumerate(rules)]
    resources += [desired("config", config()), desired("object", consumer("object"))]
    found = answer(Plan(resources))
    assert len(found.resources) == len(resources) + 1, "and the Usage of the config"
    assert set(state(found).values()) == {False}


@pytest.mark.parametrize(
    ("plan", "keys", "reason"),
    [
        (Plan([desired("a")]), ["a"], "what the plan leaves out goes"),
        (Plan([desired("a")], keep=frozenset({"b"})), ["a", "b"], "what it keeps stays"),
        (Plan([desired("a")], keep=frozenset({"gone"})), ["a"], "a key to keep is not created"),
        (Plan([desired("a")], keep_all=True), ["a", "b", "c"], "all of it"),
        (Plan(keep_all=True), ["a", "b", "c"], "without building any"),
        (Plan([Waiting("b", "x")]), ["b"], "what waits stays"),
        (Plan(), [], "a plan of nothing removes all: only an owner's spec may ask for that"),
    ],
)
def test_what_is_observed_stays_only_as_the_plan_says(plan: Plan, keys: list[str], reason: str) -> None:
    observed = {key: thing(key) for key in ("a", "b", "c")}
    assert list(answer(plan, observed).resources) == keys, reason


def test_what_is_kept_is_sent_back_as_it_is_and_what_is_built_as_planned() -> None:
    observed = {
        "a": thing("a", spec={"size": 1}),
        "b": {**ready(thing("b", spec={"size": 1}), "False"), "data": {"x": "y"}},
    }
    plan = Plan([desired("a", thing("a", spec={"size": 2}))], keep=frozenset({"a", "b"}))
    found = answer(plan, observed)
    assert found.resources["a"].manifest == thing("a", spec={"size": 2})
    assert found.resources["b"].manifest == {**thing("b", spec={"size": 1}), "data": {"x": "y"}}


@pytest.mark.parametrize(
    ("observed", "want", "reason"),
    [
        (thing("a"), True, "kinds without a Ready condition are ready once there"),
        (ready(thing("a")), True, "it says so"),
        (ready(thing("a"), "False"), False, "it says it is not"),
        (ready(thing("a"), "Unknown"), False, "it does not know"),
    ],
)
def test_a_kept_resource_is_judged_by_its_own_ready_condition(
    observed: Manifest, want: bool, reason: str
) -> None:
    assert state(answer(Plan(keep_all=True), {"a": observed})) == {"a": want}, reason


@pytest.mark.parametrize(
    ("seen", "reason"),
    [({}, "nothing left of it"), ({**thing("b"), "kind": None}, "a kind that cannot be read")],
)
def test_the_teardown_order_of_an_unreadable_kept_resource_stays_as_it_was(
    seen: Manifest, reason: str
) -> None:
    plan = Plan([desired("a", outlives=("b",)), Waiting("b", "a value")])
    held = usage(thing("a"), thing("b"))
    found = answer(plan, {"a": thing("a"), "b": seen, "usage-a-by-b": held})
    assert found.resources["usage-a-by-b"].manifest["spec"] == held["spec"], reason
    assert "usage-a-by-b" not in answer(plan, {"a": thing("a"), "b": seen}).resources, (
        "none can be made of it"
    )


def test_every_condition_of_the_kind_is_given_in_its_order() -> None:
    found = answer(Plan(conditions=[Condition("Sent", True, "Sent", "to all")]))
    assert found.conditions == [
        Condition("Built", None, "Undetermined"),
        Condition("Sent", True, "Sent", "to all"),
    ]


def test_a_condition_that_the_kind_does_not_declare_is_refused() -> None:
    with pytest.raises(PlanError, match="Widget does not declare condition Painted"):
        answer(Plan(conditions=[Condition("Painted", True, "X")]))


def test_resources_are_in_order_of_their_keys_whatever_the_plan_s() -> None:
    observed = {"k": thing("k"), "d": thing("d")}
    plan = Plan([desired("z"), desired("a"), desired("m")], keep_all=True)
    assert list(answer(plan, observed).resources) == ["a", "d", "k", "m", "z"]


def holding(hold: Hold) -> Any:
    def compose(_: Inputs) -> Plan:
        raise hold

    return kind(compose, conditions=("Built", "Sent", "New"))


def test_a_hold_keeps_all_resources_the_status_and_the_other_conditions() -> None:
    north, south = config("north", "team"), consumer("south", "north", "team")
    observed = {"north": north, "south": ready(south), "guard": usage(north, south)}
    xr = widget(status={"url": "http://a", "crossplane": {}, **conditions(Built="True", Sent="True")})
    found = settle.compose(holding(Hold("Built", "ClassGone", "no class big")), Inputs(xr, observed))
    assert found.resources["south"].manifest == south
    assert state(found) == {"north": True, "south": True, "guard": True}
    assert found.status == {"url": "http://a"}
    assert found.conditions == [
        Condition("Built", False, "ClassGone", "no class big"),
        Condition("Sent", True, "Because", "Sent was"),
        Condition("New", None, "Undetermined"),
    ]
    assert found.events == [Event("no class big", warning=True)]
    assert found.ready is False


def test_a_hold_before_anything_is_composed_says_why_and_composes_nothing() -> None:
    error = InvalidSpecError("Sent", "spec.to", "unknown")
    found = settle.compose(holding(error), Inputs(widget()))
    assert (found.resources, found.held_back, found.status) == ({}, {}, {})
    assert found.conditions[1] == Condition("Sent", False, "InvalidSpec", "spec.to: unknown")


def test_a_hold_keeps_a_condition_that_was_unreadable_as_unknown() -> None:
    xr = widget(status={"conditions": [{"type": "Sent", "status": "Maybe", "reason": 3}, "junk"]})
    found = settle.compose(holding(Hold("Built", "X", "y")), Inputs(xr))
    assert found.conditions[1] == Condition("Sent", None, "Undetermined")


def test_a_hold_on_a_condition_that_the_kind_does_not_have_is_our_bug() -> None:
    with pytest.raises(PlanError, match="holds on Painted"):
        settle.compose(holding(Hold("Painted", "X", "y")), Inputs(widget()))


def test_any_other_exception_is_the_shell_s_to_report() -> None:
    def compose(_: Inputs) -> Plan:
        raise KeyError("boom")

    with pytest.raises(KeyError):
        settle.compose(kind(compose), Inputs(widget()))
