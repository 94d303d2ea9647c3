"""A refused change leaves what ran before, and Ready with it: the one thing that tells is the message."""

from __future__ import annotations

from typing import Any

import pytest

from builders.core import kind, thing, widget
from modelplane.core import Condition, Desired, Hold, Inputs, Manifest, Plan, refused, settle
from modelplane.kinds.registry import KINDS

WORKS = Condition("Works", True, "Serving", "3 of 3")


def failed(name: str, said: str = "denied by webhook", ready: str = "True", **over: Any) -> Manifest:
    """A resource whose last change was refused; Ready speaks of what ran before."""
    conditions = [
        {"type": "Ready", "status": ready},
        {"type": "Synced", "status": "False", "reason": "ReconcileError", "message": said},
    ]
    return thing(name, status={"conditions": conditions}, **over)


def carrying(remote_kind: str, **spec: Any) -> Manifest:
    return {"spec": {"forProvider": {"manifest": {"kind": remote_kind}}, **spec}}


def told(observed: dict[str, Manifest], works: Condition = WORKS, *, leaves: tuple[str, ...] = ()) -> str:
    """The message of a kind whose second condition says whether it works."""
    plan = Plan([Desired(k, thing(k)) for k in observed if k not in leaves], conditions=[works])
    of = kind(lambda _: plan, conditions=("Sent", "Works", "Named"), health="Works")
    answer = settle.compose(of, Inputs(widget(), observed))
    assert [x.type for x in answer.conditions if "not applied" in x.message] in (["Works"], [])
    (found,) = [x for x in answer.conditions if x.type == "Works"]
    assert (found.status, found.reason) == (works.status, works.reason), "the message alone changes"
    return found.message


DENIED = "denied by webhook"
CASES: list[tuple[dict[str, Manifest], str, str]] = [
    ({"a": failed("a")}, f"3 of 3; not applied: Thing a: {DENIED}", "what ran before still does"),
    ({"a": failed("a", ready="False")}, f"3 of 3; not applied: Thing a: {DENIED}", "nothing runs yet"),
    ({"a": thing("a")}, "3 of 3", "nobody has said anything"),
    (
        {"a": failed("a", "")},
        "3 of 3; not applied: Thing a: ReconcileError",
        "a reason is better than nothing",
    ),
    (
        {k: failed(k) for k in "abc"},
        f"3 of 3; not applied: Thing a and 2 more: {DENIED}",
        "one cause in one line: a cluster that is away",
    ),
    (
        {k: failed(k, f"no {k}") for k in "abcdef"},
        "3 of 3; not applied: Thing a: no a; Thing b: no b; Thing c: no c; and 3 more",
        "bounded",
    ),
    (
        {"a": failed("a", **carrying("Secret"))},
        "3 of 3; not applied: Thing a: it was refused; its own condition Synced says why",
        "an error about a Secret may quote it",
    ),
    (
        {"a": failed("a", **carrying("ConfigMap", managementPolicies=["Observe"]))},
        "3 of 3",
        "what is only looked for may well be absent",
    ),
    (
        {"a": failed("a", "cannot resolve references: VPC b has no ID yet", ready="False")},
        "3 of 3",
        "being created after another is no refusal",
    ),
    (
        {"a": failed("a", "cannot resolve references: no VPC b")},
        "3 of 3; not applied: Thing a: cannot resolve references: no VPC b",
        "it stood, and what it refers to has gone",
    ),
    ({"a": {"status": {"conditions": "x"}}, "b": {}}, "3 of 3", "junk"),
]


@pytest.mark.parametrize(("observed", "message", "reason"), CASES, ids=[x[2] for x in CASES])
def test_what_is_refused_is_told_where_people_look(
    observed: dict[str, Manifest], message: str, reason: str
) -> None:
    assert told(observed) == message, reason


def test_what_a_condition_says_already_is_not_said_twice() -> None:
    long = "x" * 900
    said = Condition("Works", False, "Starting", f"engine main: {long[:200]}")
    assert told({"a": failed("a", long)}, said) == said.message


def test_an_error_is_cut_to_what_fits_a_message() -> None:
    assert len(told({k: failed(k, k * 5000) for k in "abcdef"})) < 1200


def test_what_the_spec_has_left_is_not_complained_of() -> None:
    assert told({"a": thing("a"), "b": failed("b")}, leaves=("b",)) == "3 of 3"


def test_a_childs_refusals_reach_its_parent() -> None:
    """A ModelDeployment is what people look at; the Object of its ModelReplica is two levels below."""
    condition = {"type": "ModelReady", "status": "True", "message": "not applied: Object x: denied"}
    child = thing("heron", status={"conditions": [condition]})
    ours = {**child, "apiVersion": "modelplane.ai/v1alpha1", "kind": "ModelReplica"}
    assert told({"a": ours}) == "3 of 3; not applied: ModelReplica heron: Object x: denied"
    assert told({"a": child}) == "3 of 3", "other people's words stay theirs"


def test_a_hold_says_of_refusals_only_what_is_true_now() -> None:
    def hold(_: Inputs) -> Plan:
        raise Hold("Sent", "X", "y")

    of = kind(hold, conditions=("Sent", "Works"))
    before = {
        "type": "Works",
        "status": "True",
        "reason": "R",
        "message": "3 of 3; not applied: Thing a: old",
    }
    xr = widget(status={"conditions": [before]})
    now = {
        name: settle.compose(of, Inputs(xr, {"a": seen})).conditions[1].message
        for name, seen in {"passed": thing("a"), "new": failed("a", "new")}.items()
    }
    assert now == {"passed": "3 of 3", "new": "3 of 3; not applied: Thing a: new"}


def test_every_kind_says_which_condition_tells_whether_it_works() -> None:
    assert {of.kind: of.working for of in KINDS.values()} == {
        "EKSCluster": "ClusterReady",
        "EKSNetwork": "NetworkReady",
        "EKSNodePool": "NodesReady",
        "InferenceClass": "Accepted",
        "InferenceCluster": "BackendReady",
        "InferenceGateway": "GatewayReady",
        "ModelCache": "ArtifactReady",
        "ModelCacheReplica": "ArtifactReady",
        "ModelDeployment": "ReplicasReady",
        "ModelEndpoint": "RoutingReady",
        "ModelReplica": "ModelReady",
        "ModelService": "RoutingReady",
        "ServingStack": "ComponentsReady",
    }
    assert all(of.working in of.conditions for of in KINDS.values())


def test_a_complaint_names_its_object() -> None:
    assert refused.complaint(failed("a")) == f"Thing a: {DENIED}"
    assert refused.complaint(thing("a")) == refused.complaint(None) == ""
