"""What an InferenceCluster says of itself: status and conditions, from its children.

A field that cannot be told in this pass is sent as it was told last; left out, it would be removed, and the
scheduler, endpoints and caches read it.
"""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from modelplane import contracts as c
from modelplane import names
from modelplane.api.inference_cluster import InferenceClusterSpec
from modelplane.clouds.cloud import Cloud
from modelplane.core import Condition, Inputs, Manifest, paths
from modelplane.kinds import cluster_pools

CLUSTER_RUNNING = "ClusterRunning"
PROVISIONING = "Provisioning"
BACKEND_HEALTHY = "BackendHealthy"
WAITING_FOR_CLUSTER = "WaitingForCluster"
INSTALLING = "Installing"
CHECKING = "Checking"

_STATUS = {"True": True, "False": False}
_COMPONENT = ("name", "version", "state", "message")


@dataclass(frozen=True, slots=True)
class Seen:
    """What one pass knows of a cluster.

    Attributes:
        inputs: of the pass.
        cloud: the source.
        spec: of the cluster.
        pools: resolved.
        reached: whether it is known how to reach the cluster.
        stack: the observed ServingStack, or an empty mapping.
        child: the observed composite that makes the cluster, or an empty mapping.
    """

    inputs: Inputs
    cloud: Cloud
    spec: InferenceClusterSpec
    pools: cluster_pools.Pools
    reached: bool
    stack: Mapping[str, Any]
    child: Mapping[str, Any]


def status(seen: Seen, namespaces: Sequence[str]) -> Manifest:
    """Return the status; `namespaces` are the teams that are prepared."""
    inputs, spec = seen.inputs, seen.spec
    found: Manifest = {
        "providerConfigRef": {"name": names.cluster_config(inputs.name)},
        "namespace": c.SYSTEM_NAMESPACE,
        "namespaces": list(namespaces),
        "gpuPools": cluster_pools.gpu_pools(inputs, seen.cloud, spec.node_pools, seen.pools),
        "pools": cluster_pools.pool_states(inputs, seen.cloud, spec.node_pools, seen.pools),
        "stackRelease": _told(seen, seen.stack, "stackRelease"),
        "components": _components(seen),
    }
    if address := _told(seen, seen.stack, "gateway", "address"):
        found["gateway"] = {"address": address}
    if storage_class := _storage_class(seen):
        found["cache"] = {"storageClassName": storage_class}
    access = paths.mapping(seen.child, "status", "access") or paths.mapping(
        inputs.composite, "status", "access"
    )
    if access and seen.cloud.provision:
        found["access"] = copy.deepcopy(dict(access))
    return {key: value for key, value in found.items() if value}


def _told(seen: Seen, child: Mapping[str, Any], *path: str) -> str:
    return paths.text(child, "status", *path) or paths.text(seen.inputs.composite, "status", *path)


def _storage_class(seen: Seen) -> str:
    if seen.cloud.provision is None:
        return seen.cloud.storage_class(seen.spec)
    return _told(seen, seen.child, "cache", "storageClassName")


def _components(seen: Seen) -> list[Manifest]:
    reported = list(paths.mappings(seen.stack, "status", "components"))
    listed = reported or list(paths.mappings(seen.inputs.composite, "status", "components"))
    return [
        {key: entry[key] for key in _COMPONENT if paths.text(entry, key)}
        for entry in listed
        if paths.text(entry, "name")
    ]


def conditions(seen: Seen) -> list[Condition]:
    """Return all conditions of the kind."""
    return [_cluster_ready(seen), _backend_ready(seen), _requirements_met(seen)]


def _cluster_ready(seen: Seen) -> Condition:
    if seen.pools.problems:
        message = f"{seen.pools.message}; what runs stays as it is"
        return Condition(c.CLUSTER_READY, False, seen.pools.reason, message)
    provision = seen.cloud.provision
    if provision is None:
        message = "registered; its kubeconfig is tried when the serving stack is installed"
        return Condition(c.CLUSTER_READY, True, CLUSTER_RUNNING, message)
    if paths.is_true(seen.child, c.READY) and seen.reached:
        return Condition(c.CLUSTER_READY, True, CLUSTER_RUNNING)
    what = f"{provision.kind} {c.SYSTEM_NAMESPACE}/{seen.inputs.name}"
    if not seen.child:
        return Condition(c.CLUSTER_READY, False, PROVISIONING, f"{what} is being created")
    if paths.is_true(seen.child, c.READY):
        why = "is ready but reports no Secret of type Kubeconfig in status.secrets"
    else:
        why = f"is not ready: {_why(seen.child, c.CLUSTER_READY)}"
    return Condition(c.CLUSTER_READY, False, PROVISIONING, f"{what} {why}")


def _backend_ready(seen: Seen) -> Condition:
    if paths.is_true(seen.stack, c.READY):
        return Condition(c.BACKEND_READY, True, BACKEND_HEALTHY)
    if not seen.stack and not seen.reached:
        return Condition(
            c.BACKEND_READY, False, WAITING_FOR_CLUSTER, "the stack is installed once the cluster is ready"
        )
    name = f"ServingStack {c.SYSTEM_NAMESPACE}/{names.serving_stack(seen.inputs.name)}"
    state = f"is not ready: {_why(seen.stack, c.COMPONENTS_READY)}" if seen.stack else "is being created"
    return Condition(c.BACKEND_READY, False, INSTALLING, f"{name} {state}")


def _requirements_met(seen: Seen) -> Condition:
    found = paths.condition(seen.stack, c.REQUIREMENTS_MET)
    if not found:
        return Condition(c.REQUIREMENTS_MET, None, CHECKING, "the serving stack has not reported yet")
    return Condition(
        c.REQUIREMENTS_MET,
        _STATUS.get(str(found.get("status"))),
        paths.text(found, "reason") or CHECKING,
        paths.text(found, "message"),
    )


def _why(child: Mapping[str, Any], first: str) -> str:
    """Return the message of the child's most telling False condition."""
    for type_ in ("Synced", first, c.READY):
        found = paths.condition(child, type_)
        if found.get("status") != "True" and (said := paths.text(found, "message")):
            return said
    return "it has not reported why; look at its conditions and events"
