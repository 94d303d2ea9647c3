"""The spec of an EKSCluster, from an InferenceCluster and its classes."""

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from modelplane import contracts as c
from modelplane.api.inference_cluster import InferenceClusterSpec, NodePool
from modelplane.core import paths
from modelplane.core.paths import Manifest

_HANDED_DOWN = (
    "credentials",
    "network",
    "access",
    "encryption",
    "logging",
    "support_type",
    "deletion_protection",
    "tags",
)
_POOL_HANDED_DOWN = ("capacity_block", "reservation", "purchase", "local_storage", "taints", "labels")
_DEFAULT_DISK_GB = 100


def spec(cluster: InferenceClusterSpec, pools: Sequence[Manifest]) -> Manifest:
    """Return the EKSCluster's spec; what the user left out stays out, for its own defaults."""
    eks = cluster.cluster.eks
    if eks is None:
        raise ValueError("spec.cluster.eks is absent")
    found: Manifest = {"region": eks.region, "kubernetesVersion": eks.kubernetes_version}
    wire = eks.model_dump(by_alias=True, exclude_none=True, include=set(_HANDED_DOWN))
    found.update(wire)
    if cluster.stack_release:
        found["stackRelease"] = cluster.stack_release
    for name, block in (("images", cluster.images), ("components", cluster.components)):
        if block:
            found[name] = copy.deepcopy(block)
    return {**found, "nodePools": list(pools)}


def pool(ours: NodePool, hardware: Mapping[str, Any]) -> Manifest:
    """Return one pool: counts and zones of ours, hardware of the class.

    All three counts are always sent. With only nodeCount the EKSCluster's own bounds (0 and 8) would make a
    fixed pool scale, to nothing too; and EKS refuses a desired size outside the bounds.
    """
    low, high = bounds(ours)
    found: Manifest = {
        "name": ours.name,
        "role": "GPU",
        **copy.deepcopy(dict(hardware)),
        "nodeCount": min(max(ours.node_count, low), high),
        "minNodeCount": low,
        "maxNodeCount": high,
    }
    if ours.zones:
        found["zones"] = list(dict.fromkeys(ours.zones))
    if ours.fabric.type == c.FABRIC_EFA:
        found["fabric"] = c.FABRIC_EFA
    found.update(ours.model_dump(by_alias=True, exclude_none=True, include=set(_POOL_HANDED_DOWN)))
    return found


def bounds(ours: NodePool) -> tuple[int, int]:
    """Return the fewest and most nodes of a pool; without either bound it is fixed at nodeCount."""
    low, high = ours.min_node_count, ours.max_node_count
    if low is None and high is None:
        return ours.node_count, ours.node_count
    # Only a floor: it may not shrink below it, and nothing allows more than it starts with.
    return low or 0, high if high is not None else max(ours.node_count, low or 0)


def recipe(inference_class: Mapping[str, Any]) -> Manifest | None:
    """Return the hardware of a pool from its class, or None where the class has no usable block for EKS."""
    provisioning = paths.mapping(inference_class, "spec", "provisioning")
    block = paths.mapping(provisioning, "eks")
    if paths.text(provisioning, "provider") != c.EKS:
        return None
    return _hardware(block, paths.text(block, "accelerator", "type"))


def recorded(observed_pool: Mapping[str, Any]) -> Manifest | None:
    """Return the hardware of a pool from an EKSCluster that was composed earlier, or None."""
    return _hardware(observed_pool, paths.text(observed_pool, "gpu", "acceleratorType"))


def _hardware(block: Mapping[str, Any], accelerator: str) -> Manifest | None:
    instance_type = paths.text(block, "instanceType")
    if not instance_type or not accelerator:
        return None
    return {
        "instanceType": instance_type,
        "diskSizeGb": paths.integer(block, "diskSizeGb", default=_DEFAULT_DISK_GB),
        "gpu": {"acceleratorType": accelerator},
    }


def notes(ours: NodePool) -> Sequence[str]:
    """Return what the pool's owner should know."""
    found = []
    high = bounds(ours)[1]
    if ours.node_count > high:
        found.append(f"nodeCount {ours.node_count} is above maxNodeCount {high}: the pool starts with {high}")
    if ours.fabric.type == c.FABRIC_EFA and len(set(ours.zones)) != 1:
        zones = f"{len(set(ours.zones))} zones" if ours.zones else "all zones of the cluster"
        found.append(
            f"EFA does not cross zones and the pool spans {zones}: a gang may be split; name one zone"
        )
    if ours.fabric.type == c.FABRIC_INFINIBAND:
        found.append("fabric InfiniBand not applied: EKS has EFA; set fabric.type EFA or drop it")
    return found
