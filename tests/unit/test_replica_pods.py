"""What no pod can have is refused by field before a controller gets it, and what a pod can have never is."""

from __future__ import annotations

from typing import Any

import pytest

from builders import pod_rules
from builders import replicas as r
from builders.replicas import condition
from modelplane import contracts as c
from modelplane.core import Manifest


def gang(member: dict[str, Any]) -> Manifest:
    return r.replica(r.gang(worker=member))


@pytest.mark.parametrize("stack", ["Standard", "Dynamo"])
@pytest.mark.parametrize(("member", "field", "words", "reason"), pod_rules.REFUSED)
def test_what_no_pod_can_have_is_refused_by_field_and_takes_nothing_that_runs(
    member: dict[str, Any], field: str, words: str, reason: str, stack: str
) -> None:
    """LWS and Grove would take it, make no pod of it and tell of it in events alone."""
    cluster = r.cluster(stack=stack)
    _, seen = r.settled(r.replica(r.gang()), cluster)
    given = r.answer(gang(member), cluster, observed=seen)
    accepted = condition(given, c.MODEL_ACCEPTED)
    assert (accepted.status, accepted.reason) == (False, "InvalidSpec"), reason
    path, _, message = accepted.message.partition(": ")
    assert path == f"spec.engines[0].members[1].template.spec.{field}", reason
    assert words in message, reason
    assert seen.keys() <= given.resources.keys(), reason


@pytest.mark.parametrize(("member", "reason"), pod_rules.ADMITTED)
def test_what_a_pod_can_have_is_never_refused(member: dict[str, Any], reason: str) -> None:
    given, _ = r.settled(gang(member))
    assert condition(given, c.MODEL_ACCEPTED).status is True, reason
