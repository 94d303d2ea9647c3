"""What an EKSNodePool says of itself: failures, states, and which of its nodes can be used."""

from __future__ import annotations

from typing import Any

import pytest

from builders import eks
from modelplane import contracts as c
from modelplane.core import Answer, Manifest

ZONES = list(eks.SUBNETS)


def failing(key_part: str, type_: str, message: str, **at_provider: Any) -> Answer:
    found, _ = eks.running(eks.node_pool(fabric="EFA"))
    (key,) = [k for k in found if k.startswith(key_part)]
    said = {"type": type_, "status": "False", "reason": "ReconcileError", "message": message}
    status = found[key]["status"]
    status["conditions"] = [*status["conditions"], said]
    status["atProvider"] = {**status["atProvider"], **at_provider}
    return eks.ask(eks.node_pool(fabric="EFA"), found)


FAILURES = [
    (
        "node-group-",
        "LastAsyncOperation",
        "InsufficientInstanceCapacity",
        {"status": "CREATE_FAILED"},
        "no capacity",
    ),
    ("node-group-", "Synced", "refuse to update the external resource", {}, "Ready stays True"),
    ("launch-template-", "LastAsyncOperation", "InvalidLaunchTemplateName", {}, "no group is even asked for"),
    ("placement-group-", "Synced", "PlacementGroupLimitExceeded", {}, "nodes stand in it"),
]


@pytest.mark.parametrize(
    ("key", "type_", "message", "says", "reason"), FAILURES, ids=[x[2] for x in FAILURES]
)
def test_what_aws_or_the_provider_says_against_a_pool_stands_in_its_status(
    key: str, type_: str, message: str, says: Manifest, reason: str
) -> None:
    answer = failing(key, type_, message, **says)
    status, why, said = eks.condition(answer, c.NODES_READY)
    assert (status, why) == (False, "NodeGroupFailed"), reason
    assert message in said
    assert message in answer.status["message"]


@pytest.mark.parametrize("state", ["CREATE_FAILED", "DEGRADED", "DELETE_FAILED"])
def test_a_broken_group_without_an_error_says_its_state_and_the_worst_is_the_pools(state: str) -> None:
    found, before = eks.running(eks.node_pool(subnets=ZONES[:2]))
    key = min(k for k in before.resources if k.startswith("node-group-"))
    answer = eks.ask(eks.node_pool(subnets=ZONES[:2]), {**found, key: eks.told(before, key, status=state)})
    assert answer.status["status"] == state
    assert "see its health at EKS" in answer.status["message"]


def looked_at(manifest: Manifest, name: str) -> Manifest:
    return {
        "apiVersion": c.KUBERNETES_API,
        "kind": "Object",
        "metadata": {"name": name, "namespace": c.SYSTEM_NAMESPACE},
        "status": {"atProvider": {"manifest": manifest}},
    }


def node(name: str, ready: str = "True", **spec: Any) -> Manifest:
    conditions = {"conditions": [{"type": "Ready", "status": ready}]}
    return looked_at({"kind": "Node", "metadata": {"name": name}, "spec": spec, "status": conditions}, name)


def published(name: str, driver: str = c.GPU_DEVICE_CLASS) -> Manifest:
    return looked_at(
        {"kind": "ResourceSlice", "spec": {"nodeName": name, "driver": driver}}, f"{name}-{driver}"
    )


NODES: list[tuple[list[Manifest], list[Manifest], tuple[int, int], str]] = [
    ([node("a"), node("b")], [published("a"), published("b")], (2, 2), ""),
    (
        [node("a"), node("b")],
        [published("a")],
        (1, 1),
        "1 of 2 ready nodes lack ResourceSlices of gpu.nvidia.com",
    ),
    (
        [node("a"), node("b")],
        [published("a", c.EFA_DRIVER)],
        (0, 1),
        "2 of 2 ready nodes lack ResourceSlices of gpu",
    ),
    (
        [node("a"), node("b", "False")],
        [published("a")],
        (1, 1),
        "1 of 2 nodes are ready: see the Auto Scaling",
    ),
    (
        [node("a"), node("b", unschedulable=True)],
        [published("a"), published("b")],
        (1, 2),
        "1 of 2 nodes are ready",
    ),
    ([], [published("other")], (0, 0), "0 of 2 nodes are ready"),
]


@pytest.mark.parametrize(("nodes", "slices", "counts", "said"), NODES)
def test_a_node_counts_once_it_is_ready_and_its_gpus_are_published(
    nodes: list[Manifest], slices: list[Manifest], counts: tuple[int, int], said: str
) -> None:
    body = eks.node_pool(providerConfigName="lab-kubeconfig")
    found, _ = eks.running(body)
    answer = eks.ask(body, found, {"nodes": nodes, "slices": slices})
    assert (answer.status["readyNodes"], answer.status["slices"]) == counts
    assert said in answer.status.get("message", "")
    assert said or "message" not in answer.status


def test_an_efa_pool_says_that_its_nodes_offer_no_efa() -> None:
    body = eks.node_pool(providerConfigName="lab-kubeconfig", fabric="EFA")
    found, _ = eks.running(body)
    answer = eks.ask(
        body, found, {"nodes": [node("a"), node("b")], "slices": [published("a"), published("b")]}
    )
    assert answer.status["readyNodes"] == 2
    assert "2 of 2 ready nodes lack ResourceSlices of dra.net" in answer.status["message"]


def test_nobody_looked_is_not_none() -> None:
    found, answer = eks.running(eks.node_pool())
    assert "readyNodes" not in answer.status
    told = {**eks.node_pool(), "status": {"readyNodes": 2, "slices": 2}}
    assert eks.ask(told, found).status["readyNodes"] == 2


def test_a_pool_that_may_shrink_to_nothing_is_warned_with_the_reason() -> None:
    _, answer = eks.running(eks.node_pool(minNodeCount=0, maxNodeCount=4))
    assert "kubernetes/autoscaler#7799" in answer.status["message"]
    block = {"capacityReservationId": "cr-0b"}
    _, answer = eks.running(eks.node_pool(minNodeCount=0, maxNodeCount=4, capacityBlock=block))
    assert "7799" not in answer.status["message"]
    assert "40 minutes before its end" in answer.status["message"]
