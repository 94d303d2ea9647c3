"""Dispatch: the composite's own kind, or the one that a platform's Composition names for a step."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from builders.core import conditions, kind, widget
from modelplane import contracts as c
from modelplane.shell.step import StepError, dispatch

STACK = kind(api_version="example.org/v2", kind="Stack")
KINDS = {(k.api_version, k.kind): k for k in (kind(), STACK)}
PLATFORM = {
    **widget(spec={"size": 1, "stack": {"release": "r1"}, "list": [1]}),
    "apiVersion": "platform.example.org/v1",
    "kind": "Platform",
    "status": {"url": "http://a", "stack": {"release": "r0"}, **conditions(Built="True")},
}


def step(**over: Any) -> dict[str, Any]:
    found = {"apiVersion": c.API, "kind": "Step", "compose": "Stack", **over}
    return {key: value for key, value in found.items() if value is not None}


def test_without_input_the_composite_s_own_kind_decides() -> None:
    xr = widget()
    call = dispatch(KINDS, xr, {})
    assert call.kind is KINDS[("example.org/v1", "Widget")]
    assert (call.composite, call.status_to) == (xr, ("status",))


@pytest.mark.parametrize(
    ("over", "spec", "status", "status_to", "reason"),
    [
        ({}, PLATFORM["spec"], {"url": "http://a", "stack": {"release": "r0"}}, ("status",), "all of it"),
        ({"specFrom": "spec.stack"}, {"release": "r1"}, None, ("status",), "a part of the spec"),
        ({"specFrom": ""}, PLATFORM["spec"], None, ("status",), "an empty path is the default"),
        ({"statusTo": "status.stack"}, None, {"release": "r0"}, ("status", "stack"), "a part of the status"),
        ({"statusTo": "status.new.part"}, None, {}, ("status", "new", "part"), "one that is not there yet"),
        ({"statusTo": ""}, None, {}, (), "no status at all"),
    ],
)
def test_a_step_shows_its_composer_the_parts_it_names(
    over: dict[str, Any],
    spec: dict[str, Any] | None,
    status: dict[str, Any] | None,
    status_to: tuple[str, ...],
    reason: str,
) -> None:
    before = copy.deepcopy(PLATFORM)
    call = dispatch(KINDS, PLATFORM, step(**over))
    found = dict(call.composite)
    assert call.kind is STACK
    assert (found["apiVersion"], found["kind"]) == ("example.org/v2", "Stack")
    assert found["metadata"] == PLATFORM["metadata"]
    own = dict(found["status"])
    assert own.pop("conditions") == PLATFORM["status"]["conditions"], "conditions are the composite's"
    if spec is not None:
        assert found["spec"] == spec, reason
    if status is not None:
        assert {k: v for k, v in own.items() if k != "conditions"} == status, reason
    assert call.status_to == status_to, reason
    assert before == PLATFORM, "the composite is never written to"


def test_the_usages_pass_has_no_composer() -> None:
    call = dispatch(KINDS, PLATFORM, step(compose="Usages"))
    assert (call.kind, call.composite) == (None, PLATFORM)


def test_a_composite_without_a_spec_is_composed_from_an_empty_one() -> None:
    xr = {key: value for key, value in PLATFORM.items() if key != "spec"}
    assert dispatch(KINDS, xr, step()).composite["spec"] == {}


@pytest.mark.parametrize(
    ("given", "message", "reason"),
    [
        (step(apiVersion="v1"), "want apiVersion modelplane.ai/v1alpha1, kind Step", "another API"),
        (step(kind="Stack"), "want apiVersion modelplane.ai/v1alpha1, kind Step", "another kind"),
        (step(compose=None), "input.compose: missing", "nothing to compose"),
        (step(compose=3), "input.compose: missing", "no text"),
        (
            step(compose="Stock"),
            "Stock is not one of Stack, Widget, Usages",
            "an unknown kind, with the known",
        ),
        (step(spcFrom="spec.a"), "unknown field spcFrom", "a typo must not read as the default"),
        (step(specFrom=["spec"]), "input.specFrom: want a field path", "no text"),
        (step(statusTo={}), "input.statusTo: want a field path", "no text"),
        (
            step(specFrom="spec.stock"),
            "input.specFrom: Platform has no object at spec.stock",
            "nothing there",
        ),
        (step(specFrom="spec.size"), "Platform has no object at spec.size", "a number"),
        (step(specFrom="spec.list"), "Platform has no object at spec.list", "a list"),
        (step(specFrom="spec..stack"), "Platform has no object at spec..stack", "an empty field name"),
        (step(statusTo="spec.stack"), "want a path below status", "only the status is a function's to write"),
        (step(statusTo="status."), "want a path below status", "an empty field name"),
        (step(statusTo=".status"), "want a path below status", "in front"),
        (step(statusTo="status.conditions"), "want a path below status", "Crossplane's own"),
        (step(statusTo="status.crossplane.a"), "want a path below status", "Crossplane's own"),
    ],
)
def test_a_bad_step_says_what_to_change(given: dict[str, Any], message: str, reason: str) -> None:
    with pytest.raises(StepError) as refused:
        dispatch(KINDS, PLATFORM, given)
    assert message in str(refused.value), reason


def test_a_composite_of_an_unknown_kind_names_the_ones_there_are() -> None:
    with pytest.raises(StepError) as refused:
        dispatch(KINDS, PLATFORM, {})
    message = str(refused.value)
    assert message.startswith("no composer for platform.example.org/v1 Platform;")
    assert "compose: one of Stack, Widget, Usages" in message
