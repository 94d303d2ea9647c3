"""Collected bug reports on scheduling, as far as no other module has them. Case ids stand in the reasons.

The others: C11, C13, C18, C20, C24, C25 and C28 in test_placement.py, C71 in test_model_deployment.py.
"""

from __future__ import annotations

import itertools

import pytest

from builders import eks
from builders import platform as p
from builders import scheduling as b
from modelplane import contracts as c
from modelplane.core import Manifest
from modelplane.kinds.registry import KINDS

BUILDING: list[tuple[Manifest, str]] = [
    (b.cluster(gateway=None), "C17: no gateway address yet"),
    (b.cluster(ready=False), "C17: still being built"),
    (b.cluster(ready=False, gateway=None), "C17: both"),
]


@pytest.mark.parametrize(("cluster", "reason"), BUILDING, ids=[row[1] for row in BUILDING])
def test_a_replica_comes_once_its_cluster_is_ready_and_has_an_address(cluster: Manifest, reason: str) -> None:
    fleet, xr = b.Fleet(cluster), b.deployment()
    assert b.placed(fleet.apply(xr)) == [], reason
    fleet.clusters = [b.cluster()]
    assert b.placed(fleet.ask(xr)) == ["north/0"], reason


TOLERATED = [{"key": "maintenance", "operator": "Equal", "value": "yes"}]
# effect of the taint on north, tolerations, where the one replica of north is in the end, where a second goes
TAINTED = [
    (c.NO_EXECUTE, [], ["south/0"], {"south": 2}, "C20: NoExecute moves it, and takes no new one"),
    (
        c.NO_SCHEDULE,
        [],
        ["north/0"],
        {"north": 1, "south": 1},
        "C20: NoSchedule keeps it, and takes no new one",
    ),
    (c.NO_EXECUTE, TOLERATED, ["north/0"], {"north": 2}, "C20: tolerated, NoExecute is nothing"),
    (c.NO_SCHEDULE, TOLERATED, ["north/0"], {"north": 2}, "C20: tolerated, NoSchedule is nothing"),
]


@pytest.mark.parametrize(
    ("effect", "tolerations", "stays", "grown", "reason"), TAINTED, ids=[row[4] for row in TAINTED]
)
def test_a_taint_acts_as_its_effect_says(
    effect: str, tolerations: list[Manifest], stays: list[str], grown: dict[str, int], reason: str
) -> None:
    fleet = b.Fleet(b.cluster())
    one = b.deployment(tolerations=tolerations, policy="Pack")
    fleet.apply(one)
    fleet.clusters = [b.cluster(taints=[b.taint(effect=effect)]), b.cluster("south")]
    for _ in range(3):
        fleet.apply(one)
    assert b.placed(fleet.ask(one)) == stays, reason
    two = b.deployment(replicas=2, tolerations=tolerations, policy="Pack")
    assert b.where(fleet.ask(two)) == grown, reason


GROWING = [
    ({"nodeCount": 1, "minNodeCount": 1, "maxNodeCount": 4}, 4, "C23: the ceiling, with what gets it there"),
    ({"nodeCount": 1}, 1, "C23: what cannot grow is as large as it is"),
]


@pytest.mark.parametrize(("counts", "nodes", "reason"), GROWING, ids=[row[2] for row in GROWING])
def test_a_pool_is_published_as_large_as_something_makes_it(
    counts: dict[str, int], nodes: int, reason: str
) -> None:
    cluster = p.cluster(pools=[p.pool(**{"minNodeCount": None, "maxNodeCount": None, **counts})])
    answer = p.compose(KINDS[c.API, "InferenceCluster"], cluster, p.inference_class())
    (pool,) = answer.status["gpuPools"]
    assert pool["nodes"] == nodes, reason
    (cloud,) = (x.manifest for x in answer.resources.values() if x.manifest["kind"] == c.EKS_CLUSTER)
    (asked,) = (x for x in cloud["spec"]["nodePools"] if x["name"] == pool["name"])
    assert asked.get("maxNodeCount", asked["nodeCount"]) == nodes, reason


def test_what_a_pool_may_grow_to_has_an_autoscaler_that_finds_its_group() -> None:
    """C23: without one, pods wait for nodes that never come."""
    world = eks.at_rest(eks.cluster(eks.pool(nodeCount=1, minNodeCount=1, maxNodeCount=4)))
    groups = [
        x["spec"]["forProvider"]["scalingConfig"]
        for x in eks.children(world, c.EKS_NODE_POOL, "gpu").values()
        if x["kind"] == "NodeGroup"
    ]
    assert [sum(x[bound] for x in groups) for bound in ("minSize", "maxSize")] == [1, 4]
    release = eks.one(world, "Release", "autoscaler")
    assert release["spec"]["forProvider"]["chart"]["name"] == "cluster-autoscaler"
    values = release["spec"]["forProvider"]["values"]
    assert values["autoDiscovery"]["clusterName"] == eks.one(world, "Cluster")["metadata"]["name"]


# nodes, ready ones, whether the replica serves, what the condition says
LOST = [
    (2, 1, False, "CapacityLost", "C28: a node is lost, and the gang that needs two does not serve"),
    (2, 2, False, "ModelStarting", "C28: all nodes are there, so it is the pods that are not ready"),
    (4, 3, False, "ModelStarting", "C28: what is left is enough for what is placed"),
    (2, 1, True, "AllReplicasReady", "C28: who serves has lost nothing"),
    (2, None, False, "ModelStarting", "C28: nobody counted"),
]


@pytest.mark.parametrize(("nodes", "ready", "serves", "says", "reason"), LOST, ids=[row[4] for row in LOST])
def test_lost_capacity_is_told_from_pods_that_are_not_ready(
    nodes: int, ready: int | None, serves: bool, says: str, reason: str
) -> None:
    fleet, xr = b.Fleet(b.cluster("north", b.pool("gpu", nodes))), b.deployment(b.gang())
    fleet.apply(xr)
    over = {} if ready is None else {"readyNodes": ready}
    fleet.clusters = [b.cluster("north", b.pool("gpu", nodes, **over))]
    answer = fleet.apply(xr, ready=serves)
    assert b.placed(answer) == ["north/0"], "nothing that runs is moved"
    answer = fleet.ask(xr)
    status, why, message = b.condition(answer, c.REPLICAS_READY)
    assert (status, why) == (serves, says), reason
    assert ("north/gpu has 1 of 2 nodes ready" in message) is (says == "CapacityLost"), reason


def test_a_replicas_name_is_that_of_its_place_whatever_the_order_and_its_endpoint_has_it_too() -> None:
    """C86: the name tells neither cluster nor index, and order changes nothing."""
    clusters = [b.cluster(), b.cluster("south")]
    found = []
    for order in itertools.permutations(clusters):
        fleet, xr = b.Fleet(*order), b.deployment(replicas=2)
        fleet.apply(xr)
        answer = fleet.ask(xr)
        named = {key: x.manifest["metadata"]["name"] for key, x in answer.resources.items()}
        for place in ("north-0", "south-0"):
            assert named[f"endpoint-{place}"] == named[f"replica-{place}"]
            assert named[f"replica-{place}"].startswith("heron-")
            assert "north" not in named[f"replica-{place}"]
        found.append(named)
    assert found[0] == found[1]
    assert len(set(found[0].values())) == 2
