"""Where a ModelReplica runs: what its cluster and its staged cache say, read into a Site."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from modelplane import contracts as c
from modelplane import names
from modelplane.api.model_replica import ModelReplicaSpec
from modelplane.core import Hold, Inputs, Manifest, Requirement, paths
from modelplane.core import images as pull
from modelplane.gangs import backends, env, images, workload
from modelplane.gangs.images import EdgeImages
from modelplane.gangs.site import CacheMount, Site

CLUSTER = "cluster"
CACHE = "cache"
REASON_WAITING_FOR_CLUSTER = "WaitingForCluster"
REASON_STACK_CHANGED = "StackChanged"
_READY_PHASE = "Ready"


@dataclass(frozen=True, slots=True)
class Place:
    """A cluster that can be reached, and what still keeps work from starting on it.

    Attributes:
        site: what pods find there.
        config: name of its ClusterProviderConfig.
        images: of the serving edge.
        closed: why nothing may be created yet; empty where it may.
        unknown: why workloads cannot be described now; empty where they can.
    """

    site: Site
    config: str
    images: EdgeImages
    closed: str
    unknown: str


class NoPlaceError(Exception):
    """Raised while the cluster cannot be reached and nothing runs there; says what is missing."""


def requirements(composite: Manifest) -> list[Requirement]:
    """Return the lookups of the cluster and of the cache staged there; none that the spec does not name."""
    cluster = paths.text(composite, "spec", "clusterName")
    cache = paths.text(composite, "spec", "modelCacheRef", "name")
    if not cluster:
        return []
    found = [Requirement(CLUSTER, c.API, "InferenceCluster", match_name=cluster)]
    if cache:
        name = names.cache_replica(cache, cluster)
        namespace = paths.namespace(composite)
        found.append(Requirement(CACHE, c.API, "ModelCacheReplica", match_name=name, namespace=namespace))
    return found


def read(inputs: Inputs, spec: ModelReplicaSpec, copied: Mapping[tuple[str, str], str]) -> Place:
    """Return the place.

    Raises:
        NoPlaceError: the cluster is absent or cannot be reached, and nothing is composed.
        Hold: the same while something is composed, or the cluster's stack is not the one it was made for.
    """
    cluster = inputs.one(CLUSTER)
    config = paths.text(cluster, "status", "providerConfigRef", "name")
    if cluster is None:
        _stop(
            inputs, f"InferenceCluster {spec.cluster_name} does not exist: create it, or delete this replica"
        )
    if not config:
        _stop(inputs, f"InferenceCluster {spec.cluster_name} has no status.providerConfigRef: wait for it")
    stack = _stack(inputs, spec, cluster)
    pools = {paths.text(pool, "name"): pool for pool in paths.mappings(cluster, "spec", "nodePools")}
    mount, unknown = _cache(inputs, spec)
    site = Site(
        inputs.name,
        inputs.namespace,
        stack,
        fabrics={name: paths.text(pool, "fabric", "type") or c.FABRIC_NONE for name, pool in pools.items()},
        cache=mount,
        copied=copied,
        labels=spec.labels,
        taints={name: _taints(pool) for name, pool in pools.items()},
        pull_secrets=pull.pull_secrets(cluster),
    )
    release = paths.text(cluster, "status", "stackRelease") or paths.text(cluster, "spec", "stackRelease")
    mirror = paths.text(cluster, "spec", "images", "mirror")
    return Place(
        site,
        config,
        images.edge_images(release, mirror),
        _closed(inputs, spec, cluster),
        _missing_pool(spec, pools) or unknown,
    )


def _stop(inputs: Inputs, message: str) -> NoReturn:
    if inputs.observed:
        raise Hold(c.MODEL_ACCEPTED, REASON_WAITING_FOR_CLUSTER, message)
    raise NoPlaceError(message)


def _stack(inputs: Inputs, spec: ModelReplicaSpec, cluster: Manifest) -> str:
    """Return the cluster's stack; one that differs from what runs is misread, or another cluster's."""
    stack = paths.at(cluster, "spec", "stack", default=c.STANDARD)
    if stack not in (c.STANDARD, c.DYNAMO):
        _stop(
            inputs,
            f"InferenceCluster {spec.cluster_name}: spec.stack takes Standard or Dynamo",
        )
    for key in sorted(inputs.observed):
        if workload.engine_of(key) is None:
            continue
        remote = paths.mapping(inputs.observed[key], "spec", "forProvider", "manifest")
        scheduler = paths.text(remote, "spec", "template", "spec", "schedulerName")
        made_for = backends.stack_of(paths.text(remote, "kind"), scheduler)
        if made_for and made_for != stack:
            message = (
                f"InferenceCluster {spec.cluster_name} says stack {stack}, {key} was made for {made_for}: "
                "restore spec.stack, or delete this replica"
            )
            raise Hold(c.MODEL_ACCEPTED, REASON_STACK_CHANGED, message)
    return str(stack)


def _closed(inputs: Inputs, spec: ModelReplicaSpec, cluster: Manifest) -> str:
    if inputs.namespace in paths.items(cluster, "status", "namespaces"):
        return ""
    space = names.team_namespace(inputs.namespace)
    return f"waiting for InferenceCluster {spec.cluster_name} to prepare namespace {space}"


def _taints(pool: Mapping[str, Any]) -> list[Manifest]:
    return sorted(
        ({k: str(v) for k, v in taint.items()} for taint in paths.mappings(pool, "taints")),
        key=lambda taint: (taint.get("key", ""), taint.get("effect", "")),
    )


def _missing_pool(spec: ModelReplicaSpec, pools: Mapping[str, object]) -> str:
    wanted = sorted({m.node_pool_name for e in spec.engines for m in e.members} - pools.keys())
    if not wanted:
        return ""
    return f"InferenceCluster {spec.cluster_name} has no node pool {', '.join(wanted)}: add it, or place anew"


def _cache(inputs: Inputs, spec: ModelReplicaSpec) -> tuple[CacheMount | None, str]:
    if spec.model_cache_ref is None:
        return None, ""
    name = spec.model_cache_ref.name
    found = inputs.one(CACHE)
    claim = paths.text(found, "status", "claimName") or names.cache_claim(inputs.namespace, name)
    revision = paths.text(found, "status", "resolvedRevision") or _revision_in_use(inputs, claim)
    mount = CacheMount(claim, revision, name)
    where = f"ModelCache {name} on cluster {spec.cluster_name}"
    if found is None:
        return mount, f"{where} has no ModelCacheReplica: let the cache select the cluster"
    if (phase := paths.text(found, "status", "phase")) != _READY_PHASE:
        return mount, f"{where} is {phase or 'not reported'}: wait until it is staged"
    return mount, ""


def _revision_in_use(inputs: Inputs, claim: str) -> str:
    """Return the revision that running engines were given, so that losing a report restarts nothing."""
    for key in sorted(inputs.observed):
        if workload.engine_of(key) is not None:
            for entry in _env_entries(paths.mapping(inputs.observed[key], "spec", "forProvider", "manifest")):
                found = str(entry.get("value", ""))
                if entry.get("name") == env.MX_REVISION and found.endswith(f"-{claim}"):
                    return found.removesuffix(f"-{claim}")
    return ""


def _env_entries(node: object) -> list[Mapping[str, object]]:
    if isinstance(node, Mapping):
        own = list(paths.mappings(node, "env"))
        return own + [e for k, v in node.items() if k != "env" for e in _env_entries(v)]
    if isinstance(node, list):
        return [e for v in node for e in _env_entries(v)]
    return []
