"""A request in, a response out: what Crossplane sees of any kind."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from typing import Any

import pytest
from crossplane.function.proto.v1 import run_function_pb2 as fnv1
from google.protobuf import json_format
from structlog.testing import capture_logs

from builders.calls import Compose, fatal, manifests, request, run
from builders.core import (
    WIDGET,
    WIDGET_API,
    conditions,
    desired,
    kind,
    ready,
    thing,
    widget,
)
from modelplane import contracts as c
from modelplane.core import Condition, Event, Hold, Inputs, Plan, Requirement, Waiting
from modelplane.core.paths import Manifest
from modelplane.shell import wire
from modelplane.shell.respond import Responder

SECRET = "hunter2-hf_token"
CLASS = Requirement("class", "example.org/v1", "Class", match_name="big")


def boom(_: Inputs) -> Plan:
    raise RuntimeError(f"cannot read {SECRET}")


def held(_: Inputs) -> Plan:
    raise Hold("Built", "ClassGone", "no class big")


def two(_: Inputs) -> Plan:
    return Plan([desired("a"), desired("b", after=("a",)), Waiting("d", "an address")])


@pytest.mark.parametrize(
    ("compose", "required", "reason"),
    [
        (two, None, "first call: nothing is fetched"),
        (two, {"class": []}, "fetched, and absent"),
        (two, {"class": [thing("big")]}, "fetched, and found"),
        (held, {"class": []}, "also where the composer holds"),
        (boom, {"class": []}, "and where it fails: a requirement that comes and goes never settles"),
    ],
)
def test_requirements_are_the_same_on_every_call(
    compose: Compose, required: dict[str, list[Manifest]] | None, reason: str
) -> None:
    rsp = run(compose, request(required=required), requires=lambda _: [CLASS])
    want = {"class": {"apiVersion": "example.org/v1", "kind": "Class", "matchName": "big"}}
    assert json_format.MessageToDict(rsp.requirements)["resources"] == want, reason


@pytest.mark.parametrize(
    ("requirement", "want", "reason"),
    [
        (
            Requirement("r", "v1", "A", match_name="x", namespace="n"),
            {"matchName": "x", "namespace": "n"},
            "name",
        ),
        (
            Requirement("r", "v1", "A", match_labels={"a": "b"}),
            {"matchLabels": {"labels": {"a": "b"}}},
            "labels, in all namespaces",
        ),
        (Requirement("r", "v1", "A"), {}, "neither: all of the kind"),
    ],
)
def test_a_requirement_selects_as_it_says(
    requirement: Requirement, want: dict[str, Any], reason: str
) -> None:
    rsp = run(two, requires=lambda _: [requirement])
    found = json_format.MessageToDict(rsp.requirements)["resources"]["r"]
    assert found == {"apiVersion": "v1", "kind": "A", **want}, reason


def seen_requirements(req: fnv1.RunFunctionRequest, *requirements: Requirement) -> list[Any]:
    calls: list[Any] = []

    def compose(inputs: Inputs) -> Plan:
        calls.append({r.name: list(inputs.all(r.name)) for r in requirements})
        return Plan([desired("a")])

    run(compose, req, requires=lambda _: requirements)
    return calls


@pytest.mark.parametrize(
    ("required", "want", "reason"),
    [
        (None, [], "not fetched: the composer is not called, since it would take that for absent"),
        ({"other": [thing("x")]}, [], "another one is fetched"),
        ({"class": []}, [{"class": []}], "looked for, and absent"),
        ({"class": [thing("big")]}, [{"class": [thing("big")]}], "found"),
    ],
)
def test_a_composer_runs_once_all_is_fetched(
    required: dict[str, list[Manifest]] | None, want: list[Any], reason: str
) -> None:
    assert seen_requirements(request(required=required), CLASS) == want, reason


def test_a_composer_does_not_run_on_half_of_its_requirements() -> None:
    other = Requirement("pools", "v1", "Pool")
    assert seen_requirements(request(required={"class": []}), CLASS, other) == []


def test_what_an_older_core_calls_extra_resources_counts_as_fetched() -> None:
    req = request()
    req.extra_resources["class"].items.add().resource.CopyFrom(wire.to_struct(thing("big")))
    assert seen_requirements(req, CLASS) == [{"class": [thing("big")]}]


def test_a_requirement_of_an_empty_name_is_not_asked_for_and_finds_nothing() -> None:
    nameless = Requirement("class", "example.org/v1", "Class", match_name="")
    assert seen_requirements(request(), nameless) == [{"class": []}]
    assert not run(two, requires=lambda _: [nameless]).requirements.resources


def test_a_call_that_only_fetches_says_nothing_else() -> None:
    rsp = run(two, request(earlier={"x": thing("x")}), requires=lambda _: [CLASS])
    assert manifests(rsp) == {"x": thing("x")}
    assert not list(rsp.conditions) + list(rsp.results)
    assert not rsp.desired.composite.resource.fields


def test_what_earlier_steps_want_survives() -> None:
    req = request(earlier={"x": thing("x")})
    req.desired.resources["x"].ready = fnv1.READY_TRUE
    req.desired.composite.resource.update({"status": {"ours": 1, "theirs": {"url": "u"}}})
    req.context.update({"theirs": 1, c.HELD_BACK_CONTEXT: {"x-user": "waiting for x"}})

    def compose(_: Inputs) -> Plan:
        return Plan([desired("a"), Waiting("b", "an address")], status={"ours": {"new": 2}})

    rsp = run(compose, req)
    assert manifests(rsp) == {"x": thing("x"), "a": thing("a")}
    assert rsp.desired.resources["x"].ready == fnv1.READY_TRUE
    status = {"ours": {"new": 2}, "theirs": {"url": "u"}}
    assert wire.to_dict(rsp.desired.composite.resource) == {"status": status}
    held_back = {"x-user": "waiting for x", "b": "an address"}
    assert wire.to_dict(rsp.context) == {"theirs": 1, c.HELD_BACK_CONTEXT: held_back}


def test_what_a_plan_says_reaches_crossplane() -> None:
    def compose(inputs: Inputs) -> Plan:
        assert inputs.composite["spec"] == {"size": 3}
        return Plan(
            [desired("a"), desired("b"), desired("d", blocked="no address")],
            status={"replicas": {"ready": 1, "total": 2}},
            conditions=[Condition("Built", False, "Slow", "x" * 5000), Condition("Sent", True, "Sent")],
            events=[Event("built"), Event("careful", warning=True)],
        )

    req = request(widget(spec={"size": 3}), observed={"a": ready(thing("a"))})
    rsp = run(compose, req, conditions=("Built", "Sent", "Seen"), ttl=10)
    assert manifests(rsp) == {"a": thing("a"), "b": thing("b")}
    states = {key: r.ready for key, r in rsp.desired.resources.items()}
    assert states == {"a": fnv1.READY_TRUE, "b": fnv1.READY_FALSE}
    assert rsp.desired.composite.ready == fnv1.READY_FALSE
    assert wire.to_dict(rsp.desired.composite.resource) == {"status": {"replicas": {"ready": 1, "total": 2}}}
    assert [(x.type, x.status, x.reason) for x in rsp.conditions] == [
        ("Built", fnv1.STATUS_CONDITION_FALSE, "Slow"),
        ("Sent", fnv1.STATUS_CONDITION_TRUE, "Sent"),
        ("Seen", fnv1.STATUS_CONDITION_UNKNOWN, "Undetermined"),
    ]
    assert len(rsp.conditions[0].message) == 4096
    severities = [(r.severity, r.message) for r in rsp.results]
    assert severities == [(fnv1.SEVERITY_NORMAL, "built"), (fnv1.SEVERITY_WARNING, "careful")]
    assert wire.to_dict(rsp.context) == {c.HELD_BACK_CONTEXT: {"d": "no address"}}
    assert (rsp.meta.tag, rsp.meta.ttl.ToSeconds()) == ("t1", 10)


def test_nothing_is_marked_ready_on_the_first_pass_and_readiness_is_else_left_to_crossplane() -> None:
    rsp = run(lambda _: Plan([desired("a")]))
    assert rsp.desired.resources["a"].ready == fnv1.READY_FALSE
    assert rsp.desired.composite.ready == fnv1.READY_UNSPECIFIED
    assert not rsp.context.fields


def test_a_plan_that_serves_while_a_replacement_comes_up_is_ready() -> None:
    rsp = run(lambda _: Plan([desired("a")], ready=True))
    assert rsp.desired.resources["a"].ready == fnv1.READY_FALSE, "the resource itself is not"
    assert rsp.desired.composite.ready == fnv1.READY_TRUE


REFUSED = {"annotations": {"usage.crossplane.io/deletion-attempt-with-policy": "Background"}}


@pytest.mark.parametrize(
    ("ttl", "built", "metadata", "asked", "reason"),
    [
        (60, True, {}, 60, "it rests"),
        (60, False, {}, 15, "it waits for what core does not watch"),
        (60, None, {}, 15, "and does not know yet"),
        (10, False, {}, 10, "never later than at rest"),
        (0, False, {}, 0, "a kind that requires nothing hears of all it waits for"),
        (60, True, REFUSED, 15, "its Usage has to go once nobody needs it any more"),
        (0, True, REFUSED, 0, "what needs it is composed, and watched"),
        (60, True, {"annotations": None}, 60, "odd metadata says nothing"),
    ],
)
def test_what_waits_is_asked_about_sooner(
    ttl: int, built: bool | None, metadata: Manifest, asked: int, reason: str
) -> None:
    xr = widget()
    xr["metadata"] |= metadata

    def compose(_: Inputs) -> Plan:
        return Plan(conditions=[Condition("Built", built, "Because")])

    assert run(compose, request(xr), ttl=ttl).meta.ttl.ToSeconds() == asked, reason


def not_built(plan: Plan) -> Compose:
    return lambda _: replace(plan, conditions=[Condition("Built", status=False, reason="Because")])


@pytest.mark.parametrize(
    ("plan", "asked", "reason"),
    [
        (Plan([desired("a")]), 60, "core watches what is composed"),
        (Plan([desired("a"), desired("b", after=("a",))]), 60, "and what comes after that"),
        (Plan([Waiting("a", "an address")]), 15, "but not whose address is missing"),
        (Plan([desired("a"), Waiting("b", "an address")]), 15, "also beside what is composed"),
        (Plan([desired("a", blocked="no namespace")]), 15, "nor who prepares the namespace"),
        (Plan(), 15, "nor what is to come before anything is composed"),
        (Plan([desired("a")], keep_all=True), 15, "nor what a plan that cannot decide waits for"),
    ],
)
def test_what_waits_for_no_more_than_it_composed_is_not_asked_about_sooner(
    plan: Plan, asked: int, reason: str
) -> None:
    rsp = run(not_built(plan), request(widget()), ttl=60, watched=frozenset({"Built"}))
    assert rsp.meta.ttl.ToSeconds() == asked, reason


def test_a_watched_condition_excuses_no_other() -> None:
    def compose(_: Inputs) -> Plan:
        return Plan(
            [desired("a")],
            conditions=[Condition("Sent", False, "Because"), Condition("Built", False, "Because")],
        )

    given: Any = {"ttl": 60, "conditions": ("Sent", "Built"), "watched": frozenset({"Built"})}
    assert run(compose, request(widget()), **given).meta.ttl.ToSeconds() == 15


def test_a_hold_keeps_what_runs_and_is_not_fatal() -> None:
    xr = widget(status={"url": "u", **conditions(Built="True", Sent="True")})
    rsp = run(held, request(xr, observed={"a": ready(thing("a"))}), conditions=("Built", "Sent"))
    assert manifests(rsp) == {"a": thing("a")}
    assert [r.severity for r in rsp.results] == [fnv1.SEVERITY_WARNING]
    assert [x.status for x in rsp.conditions] == [fnv1.STATUS_CONDITION_FALSE, fnv1.STATUS_CONDITION_TRUE]
    assert wire.to_dict(rsp.desired.composite.resource) == {"status": {"url": "u"}}


def raises_while_writing(_: Inputs) -> Plan:
    return Plan([desired("a", thing("a", data={"token": {SECRET}}))])


def raises_in_its_cause(_: Inputs) -> Plan:
    try:
        raise ValueError(SECRET)
    except ValueError as error:
        raise KeyError(SECRET) from error


@pytest.mark.parametrize(
    ("compose", "of_kind", "error", "place", "reason"),
    [
        (boom, {}, "RuntimeError", "core/settle.py:", "a composer's bug"),
        (raises_in_its_cause, {}, "KeyError", "core/settle.py:", "a chained one"),
        (raises_while_writing, {}, "ValueError", "shell/wire.py:", "a value that no Struct can hold"),
        (two, {"requires": lambda xr: xr["spec"]["nope"]}, "KeyError", "shell/respond.py:", "a bad requires"),
        (lambda _: Plan([desired("a"), desired("a")]), {}, "PlanError", "core/plan.py:", "a bad plan"),
        (
            lambda _: Plan(conditions=[Condition("Painted", True, SECRET)]),
            {},
            "PlanError",
            "core/settle.py:",
            "a condition that is not the kind's",
        ),
    ],
)
def test_a_fault_is_fatal_and_names_the_composite_the_type_and_the_place_but_no_value(
    compose: Compose,
    of_kind: dict[str, Any],
    error: str,
    place: str,
    reason: str,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    xr = widget(spec={"token": SECRET}, status={"seen": SECRET})
    req = request(xr, observed={"s": thing("s", data={"k": SECRET})}, required={"r": [thing(SECRET)]})
    with capture_logs() as logs, caplog.at_level(logging.DEBUG):
        rsp = run(compose, req, **of_kind)
    message = fatal(rsp)
    assert f"composing {WIDGET} one: {error} at {place}" in message, reason
    assert SECRET not in message
    assert SECRET not in json.dumps(logs, default=str) + caplog.text + "".join(capfd.readouterr())
    (entry,) = (log for log in logs if log["event"] == "failed")
    assert (entry["xr_kind"], entry["xr_namespace"], entry["xr_name"]) == (WIDGET, "team", "one")
    assert entry["error"] == error


def test_no_run_logs_what_a_user_wrote() -> None:
    xr = widget(spec={"token": SECRET})
    with capture_logs() as logs:
        run(two, request(xr, observed={"a": thing("a", data={"k": SECRET})}))
        run(held, request(xr))
    assert [log["event"] for log in logs] == ["ran", "ran"]
    assert SECRET not in json.dumps(logs, default=str)


def test_a_bad_composite_does_not_affect_the_next_call() -> None:
    bad = kind(boom, kind="Bad")
    responder = Responder({(k.api_version, k.kind): k for k in (bad, kind(two))})
    before = responder.respond(request())
    assert fatal(responder.respond(request({**widget(), "kind": "Bad"})))
    assert responder.respond(request()) == before
    assert not before.results


@pytest.mark.parametrize(
    ("xr", "reason"),
    [
        ({"apiVersion": WIDGET_API, "kind": "Unknown"}, "a kind that nobody composes"),
        ({"kind": 3, "metadata": "junk"}, "no composite at all"),
    ],
)
def test_a_composite_that_nobody_composes_is_refused(xr: Manifest, reason: str) -> None:
    message = fatal(run(two, request(xr)))
    assert message.startswith("no composer for "), reason
    assert "one of Widget, Usages" in message


def test_an_answer_depends_on_nothing_but_the_request() -> None:
    ticks = iter(range(100))
    kinds = {(WIDGET_API, WIDGET): kind(two)}
    one, other = Responder(kinds, clock=lambda: float(next(ticks))), Responder(kinds)
    req = request(observed={"a": ready(thing("a"))})
    before = req.SerializeToString(deterministic=True)
    answers = {r.respond(req).SerializeToString(deterministic=True) for r in (one, other, one)}
    assert len(answers) == 1
    assert req.SerializeToString(deterministic=True) == before, "a request is never written to"
