"""What is not wanted any more leaves user first: a refused deletion would stop the whole composite."""

from __future__ import annotations

from typing import Any

import pytest

from builders.core import desired, kind, thing, usage, widget
from modelplane import contracts as c
from modelplane.core import Answer, Desired, Inputs, Plan, settle
from modelplane.core.paths import Manifest

A, B, C = (thing(name, "team") for name in "abc")
GUARD = usage(A, B)
OWNED = {
    **GUARD,
    "metadata": {
        **GUARD["metadata"],
        "ownerReferences": [{"apiVersion": B["apiVersion"], "kind": B["kind"], "name": "b", "uid": "1"}],
    },
}
LET_GO = {**GUARD, "spec": {"of": GUARD["spec"]["of"], "reason": "let go"}}
SIGHTLESS = {**GUARD, "spec": 7}


def answer(observed: dict[str, Any], *wanted: Desired) -> Answer:
    return settle.settle(kind(), Plan(wanted), Inputs(widget(), observed))


@pytest.mark.parametrize(
    ("observed", "wanted", "sent", "reason"),
    [
        ({"a": A, "b": B, "u": GUARD}, "", {"a", "u"}, "both go: only the user is deleted now"),
        ({"a": A, "u": OWNED}, "", {"a", "u"}, "core lost sight of the user, but it still owns its Usage"),
        ({"a": A, "u": GUARD}, "", {"a"}, "the user is gone: the Usage goes, and the used one pass later"),
        ({"a": A}, "", set(), "nothing holds it any more"),
        ({"a": A, "b": B, "u": GUARD}, "a", {"a"}, "only the user goes: its Usage waits for it by itself"),
        ({"a": A, "b": B, "u": GUARD}, "b", {"a", "b", "u"}, "the user stays, and holds what it uses"),
        ({"a": A, "b": B, "u": LET_GO}, "b", {"a", "b"}, "it was let go: it goes, and the used a pass later"),
        ({"b": B, "u": GUARD}, "b", {"b", "u"}, "what it held is not ours: it is let go all the same"),
        (
            {"a": A, "b": B, "u": GUARD},
            "ab",
            {"a", "b", "u"},
            "the edge was taken back between two that stay",
        ),
        ({"a": A, "b": B, "u": SIGHTLESS}, "", set(), "an unreadable Usage names nobody"),
    ],
)
def test_the_user_goes_first_and_the_used_when_nothing_holds_it(
    observed: dict[str, Any], wanted: str, sent: set[str], reason: str
) -> None:
    found = answer(observed, *(desired(key, thing(key, "team")) for key in wanted))
    assert set(found.resources) == sent, reason
    assert all(found.resources[key].ready for key in sent - set(wanted)), "and takes nothing from what stays"


def test_a_chain_goes_from_its_last_user() -> None:
    observed = {"a": A, "b": B, "c": C, "u": GUARD, "v": usage(B, C, "other")}
    assert set(answer(observed).resources) == {"a", "b", "u", "v"}


def test_what_a_user_that_stays_holds_is_sent_as_it_is() -> None:
    found = answer({"a": A, "b": B, "u": GUARD}, desired("b", B)).resources
    assert (found["a"].manifest, found["u"].manifest) == (A, GUARD)


def test_a_usage_of_what_is_not_used_any_more_names_its_user_no_more() -> None:
    # Core's own deletion of a composed Usage waits for its user, so that one would wait for ever.
    plan = Plan([desired("b", B)], unused=frozenset({"a"}))
    found = settle.settle(kind(), plan, Inputs(widget(), {"a": A, "b": B, "u": GUARD})).resources
    assert set(found) == {"a", "b", "u"}
    manifest: Manifest = found["u"].manifest
    assert "by" not in manifest["spec"]
    assert manifest["spec"]["of"] == GUARD["spec"]["of"]
    assert manifest["spec"]["reason"]
    assert manifest["apiVersion"] == c.PROTECTION_API
