"""How pods come to their nodes and leave them: taints, Services' variables, grace, waiting before the end."""

from __future__ import annotations

from typing import Any

import pytest

from builders import replicas as r
from modelplane.core import Manifest

STACKS = ("Standard", "Dynamo")

GRACE: list[tuple[float | None, int, int | None, int | None, str]] = [
    (None, 120, 15, 45, "Kubernetes' own 30 s cut most generations; workers outstay their leader"),
    (600.0, 600, 15, 45, "the user's, as a whole number"),
    (30, 30, 15, 15, "half of it at most: the process needs time of its own"),
    (10, 10, 5, 5, "and less where there is less"),
    (1, 1, None, None, "no time to wait"),
    (0, 0, None, None, "at once, as asked"),
]


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize(("own", "grace", "leader", "worker", "reason"), GRACE)
def test_pods_stop_taking_requests_before_they_are_told_to_stop(
    own: float | None, grace: int, leader: int | None, worker: int | None, reason: str, stack: str
) -> None:
    pod: dict[str, Any] = {} if own is None else {"terminationGracePeriodSeconds": own}
    found = r.pods(r.one(r.replica(r.gang(leader=dict(pod), worker=dict(pod))), stack))
    for role, wait in (("leader", leader), ("worker", worker)):
        assert found[role]["spec"]["terminationGracePeriodSeconds"] == grace, reason
        lifecycle = r.engine_container(found[role]).get("lifecycle")
        assert lifecycle == (None if wait is None else {"preStop": {"sleep": {"seconds": wait}}}), reason


@pytest.mark.parametrize("stack", STACKS)
def test_only_the_engine_waits_before_it_stops(stack: str) -> None:
    composite = r.split()
    for engine in composite["spec"]["engines"]:
        engine["members"][0]["template"]["spec"]["containers"].append(r.container("logs"))
    for pod in r.all_pods(composite, stack).values():
        others = [*pod["spec"]["containers"], *pod["spec"].get("initContainers", [])]
        assert [x["name"] for x in others if "lifecycle" in x] == ["engine"]


@pytest.mark.parametrize(("composite", "stack", "kinds", "reason"), r.SHAPES)
def test_no_service_of_the_team_becomes_a_variable_of_an_engine(
    composite: Manifest, stack: str, kinds: list[str], reason: str
) -> None:
    """A deployment called vllm gave every engine VLLM_..._PORT, which vLLM takes for a setting of its own."""
    for pod in r.all_pods(composite, stack).values():
        assert pod["spec"]["enableServiceLinks"] is False, reason


GPU = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
TAINTS: list[tuple[Any, list[Manifest], str]] = [
    (None, [], "none declared"),
    (
        [{"key": "team", "value": "a", "effect": "NoExecute"}],
        [{"key": "team", "operator": "Exists", "effect": "NoExecute"}],
        "the scheduler chose the pool, so its pods must stand there",
    ),
    ([{"key": "nvidia.com/gpu", "effect": "NoSchedule"}], [], "ours already"),
    (
        [{"key": "b", "effect": "NoSchedule"}, {"key": "a", "effect": "NoSchedule"}],
        [
            {"key": "a", "operator": "Exists", "effect": "NoSchedule"},
            {"key": "b", "operator": "Exists", "effect": "NoSchedule"},
        ],
        "another order in the spec restarts nothing",
    ),
    ("junk", [], "nothing that can be read"),
    ([7, {"key": ""}, {"effect": "NoSchedule"}, {"key": None}], [], "a toleration without a key is for all"),
]


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize(("taints", "extra", "reason"), TAINTS)
def test_pods_tolerate_the_taints_of_their_pool_and_no_other(
    taints: Any, extra: list[Manifest], reason: str, stack: str
) -> None:
    cluster = r.cluster(stack=stack)
    cluster["spec"]["nodePools"][0]["taints"] = taints
    cluster["spec"]["nodePools"][1]["taints"] = [{"key": "other", "effect": "NoSchedule"}]
    given, _ = r.settled(r.replica(), cluster)
    (pod,) = r.pods(r.workload(given)).values()
    assert pod["spec"]["tolerations"] == [GPU, *extra], reason
