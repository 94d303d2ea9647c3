"""The function in process: the same question gets the same answer, and nothing is lost on the way."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from builders import core
from modelplane.core import Condition, Event, Inputs, Manifest, Plan, Ready, Requirement
from modelplane.core.plan import Waiting
from modelplane.render import adapter
from modelplane.sim.reconcile import Function

SECRET = Requirement("secret", "v1", "Secret", match_name="s", namespace="team")
LABELLED = Requirement("labelled", "v1", "Secret", match_labels={"a": "b"})


def function(
    *, remember: bool = False, asked: Sequence[Requirement] = (), calls: list[Inputs] | None = None
) -> Function:
    def compose(inputs: Inputs) -> Plan:
        if calls is not None:
            calls.append(inputs)
        return Plan(
            resources=[
                core.desired("a", core.thing("a", spec={"n": 3, "f": 1.5}), ready=Ready.exists()),
                Waiting("b", "a value of a"),
            ],
            status={"size": 2},
            conditions=[Condition("Built", None, "Unsure", "so far")],
            events=[Event("look", warning=True)],
        )

    kind = core.kind(compose, requires=lambda _: asked)
    return adapter.function({(core.WIDGET_API, core.WIDGET): kind}, remember=remember)


@pytest.mark.parametrize("remember", [False, True])
def test_an_answer_comes_back_whole(remember: bool) -> None:
    ask = function(remember=remember)
    reply = ask(Inputs(core.widget(), {"a": core.thing("a")}, {}))
    assert reply.answer is not None
    composed = reply.answer.resources["a"]
    assert composed.manifest == core.thing("a", spec={"n": 3, "f": 1.5})
    assert isinstance(composed.manifest["spec"]["n"], int)
    assert composed.ready is True
    assert reply.answer.held_back == {"b": "a value of a"}
    assert reply.answer.status == {"size": 2}
    assert reply.answer.conditions == [Condition("Built", None, "Unsure", "so far")]
    assert reply.answer.events == [Event("look", warning=True)]
    assert reply.answer.ready is False


def test_requirements_come_back_as_they_were_asked() -> None:
    reply = function(asked=[LABELLED, SECRET])(Inputs(core.widget(), {}, {}))
    assert list(reply.requirements) == [LABELLED, SECRET]
    assert reply.answer is None or reply.answer.resources == {}


def test_a_requirement_that_found_nothing_is_told_from_one_never_asked() -> None:
    calls: list[Inputs] = []
    ask = function(asked=[SECRET], calls=calls)
    ask(Inputs(core.widget(), {}, {}))
    assert calls == []
    ask(Inputs(core.widget(), {}, {"secret": []}))
    assert [dict(call.required) for call in calls] == [{"secret": []}]


def test_a_fatal_result_is_one() -> None:
    def compose(_: Inputs) -> Plan:
        raise KeyError("secret value")

    ask = adapter.function({(core.WIDGET_API, core.WIDGET): core.kind(compose)})
    reply = ask(Inputs(core.widget(), {}, {}))
    assert reply.answer is None
    assert "internal error composing Widget one: KeyError" in reply.fatal
    assert "secret value" not in reply.fatal


CHANGES: list[tuple[Manifest, Manifest, list[Manifest], int, str]] = [
    (core.widget(), core.thing("a"), [], 1, "the same question"),
    (core.widget(spec={"x": 1}), core.thing("a"), [], 2, "another spec"),
    (core.widget(), core.thing("a", status={"x": 1}), [], 2, "another observed object"),
    (core.widget(), core.thing("a"), [core.thing("s")], 2, "something required has come"),
    (core.widget("two"), core.thing("a"), [], 2, "another composite"),
]


@pytest.mark.parametrize(("xr", "observed", "found", "composed", "reason"), CHANGES)
def test_only_the_same_question_is_answered_from_memory(
    xr: Manifest, observed: Manifest, found: list[Manifest], composed: int, reason: str
) -> None:
    calls: list[Inputs] = []
    ask = function(remember=True, asked=[SECRET], calls=calls)
    ask(Inputs(core.widget(), {"a": core.thing("a")}, {"secret": []}))
    ask(Inputs(xr, {"a": observed}, {"secret": found}))
    assert len(calls) == composed, reason


def test_without_memory_every_question_is_asked() -> None:
    calls: list[Inputs] = []
    ask = function(calls=calls)
    for _ in range(2):
        ask(Inputs(core.widget(), {}, {}))
    assert len(calls) == 2
