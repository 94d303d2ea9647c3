"""The request an InferenceCluster makes of an EKSCluster, and what pools' owners are told."""

from __future__ import annotations

from typing import Any

import pytest

from builders import platform as p
from modelplane.api.inference_cluster import InferenceClusterSpec, NodePool
from modelplane.clouds.eks import request
from modelplane.clouds.registry import CLOUDS

HARDWARE = {"instanceType": "g6e.12xlarge", "diskSizeGb": 300, "gpu": {"acceleratorType": "nvidia-l40s"}}


def _pool(**over: Any) -> NodePool:
    return NodePool.model_validate({"name": "gpu", "className": "amber-4x", **over})


COUNTS: list[tuple[str, dict[str, int], tuple[int, int, int]]] = [
    ("nodeCount alone is a fixed pool, not 0 to 8", {"nodeCount": 3}, (3, 3, 3)),
    ("nothing said is one node", {}, (1, 1, 1)),
    ("parked", {"nodeCount": 0}, (0, 0, 0)),
    ("both bounds", {"nodeCount": 2, "minNodeCount": 1, "maxNodeCount": 4}, (2, 1, 4)),
    ("a ceiling alone may empty the pool, as in v0.4", {"nodeCount": 2, "maxNodeCount": 4}, (2, 0, 4)),
    ("a floor alone allows no more than it starts with", {"nodeCount": 2, "minNodeCount": 1}, (2, 1, 2)),
    ("EKS refuses to start below the floor", {"minNodeCount": 2, "maxNodeCount": 4}, (2, 2, 4)),
    (
        "EKS refuses to start above the ceiling",
        {"nodeCount": 9, "minNodeCount": 0, "maxNodeCount": 4},
        (4, 0, 4),
    ),
]


@pytest.mark.parametrize(("reason", "given", "wanted"), COUNTS, ids=[x[0] for x in COUNTS])
def test_all_three_counts_are_sent(reason: str, given: dict[str, int], wanted: tuple[int, int, int]) -> None:
    found = request.pool(_pool(**given), HARDWARE)
    assert (found["nodeCount"], found["minNodeCount"], found["maxNodeCount"]) == wanted, reason


def test_a_pool_is_the_owners_fields_and_the_classs_hardware() -> None:
    ours = {
        "capacityBlock": {"capacityReservationId": "cr-0a1b"},
        "purchase": "CapacityBlock",
        "localStorage": "RAID0",
        "taints": [{"key": "team", "effect": "NoSchedule"}],
        "labels": {"a": "b"},
    }
    found = request.pool(_pool(zones=["a", "b", "a"], fabric={"type": "EFA"}, **ours), HARDWARE)
    assert found.items() >= {**HARDWARE, **ours, "role": "GPU", "fabric": "EFA", "zones": ["a", "b"]}.items()


def test_what_the_owner_left_out_stays_out() -> None:
    found = request.pool(_pool(), HARDWARE)
    assert found.keys() == {"name", "role", "nodeCount", "minNodeCount", "maxNodeCount", *HARDWARE}
    spec = InferenceClusterSpec.model_validate(
        {"cluster": {"source": "EKS", "eks": {"region": "eu-north-1"}}}
    )
    assert request.spec(spec, [found]) == {
        "region": "eu-north-1",
        "kubernetesVersion": "1.36",
        "nodePools": [found],
    }


def test_every_eks_setting_is_handed_down_as_written() -> None:
    block = {
        "region": "eu-north-1",
        "kubernetesVersion": "1.35",
        "credentials": {"type": "ProviderConfig", "name": "aws"},
        "network": {"cidr": "10.1.0.0/16", "nat": "None"},
        "access": {"publicCidrs": []},
        "encryption": {"kmsKey": "None"},
        "logging": {"types": ["api"], "retentionDays": 7},
        "supportType": "EXTENDED",
        "deletionProtection": True,
        "tags": {"team": "ml"},
    }
    whole = {
        "cluster": {"source": "EKS", "eks": block},
        "images": {"mirror": "r.example.org"},
        "components": {"grove": {"values": {"a": 1}}},
        "stackRelease": "2026.12",
    }
    found = request.spec(InferenceClusterSpec.model_validate(whole), [])
    expected = {**block, **{k: whole[k] for k in ("images", "components", "stackRelease")}, "nodePools": []}
    assert found == expected


def test_a_recipe_survives_the_way_through_the_composed_pool() -> None:
    recipe = request.recipe(p.inference_class())
    assert recipe == HARDWARE
    assert request.recorded(request.pool(_pool(), recipe)) == recipe


NOTES: list[tuple[str, str, dict[str, Any], str]] = [
    (
        "EFA over two zones may split a gang",
        "EKS",
        {"zones": ["a", "b"], "fabric": {"type": "EFA"}},
        "2 zones",
    ),
    ("EFA over all zones as well", "EKS", {"fabric": {"type": "EFA"}}, "all zones of the cluster"),
    ("EFA in one zone is what it is for", "EKS", {"zones": ["a"], "fabric": {"type": "EFA"}}, ""),
    ("several zones without EFA are fine", "EKS", {"zones": ["a", "b"]}, ""),
    ("more than it may have", "EKS", {"nodeCount": 9, "maxNodeCount": 4}, "starts with 4"),
    ("fewer than it has at least is only a start", "EKS", {"minNodeCount": 2, "maxNodeCount": 4}, ""),
    ("InfiniBand does nothing on EKS", "EKS", {"fabric": {"type": "InfiniBand"}}, "InfiniBand not applied"),
    (
        "a reservation does nothing on hardware that exists",
        "Existing",
        {"purchase": "Spot"},
        "purchase not applied",
    ),
    ("nothing to say", "Existing", {"fabric": {"type": "EFA"}}, ""),
]


@pytest.mark.parametrize(("reason", "source", "over", "says"), NOTES, ids=[x[0] for x in NOTES])
def test_the_pools_owner_is_told_what_does_not_do_what_it_says(
    reason: str, source: str, over: dict[str, Any], says: str
) -> None:
    found = "; ".join(CLOUDS[source].notes(_pool(**over)))
    assert (says in found) if says else found == "", reason
