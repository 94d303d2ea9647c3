"""InferenceCluster: one GPU cluster of the fleet, made or registered, its serving stack and its teams.

What runs is never given up on doubt: a class that vanishes, a cloud that goes dark or Secrets that are not
reported any more leave every composed object as it was made; only the owner's spec removes things.
"""

from collections.abc import Sequence

from modelplane import contracts as c
from modelplane import names
from modelplane.api.inference_cluster import InferenceClusterSpec
from modelplane.clouds.cloud import Cloud, Secret
from modelplane.clouds.registry import CLOUDS
from modelplane.core import (
    Condition,
    Desired,
    Event,
    Hold,
    Inputs,
    InvalidSpecError,
    Kind,
    Manifest,
    Plan,
    Ready,
    Requirement,
    Waiting,
    builders,
    keep,
    paths,
    specs,
)
from modelplane.kinds import cluster_pools, cluster_status, cluster_teams

CONFIG = "cluster-provider-config-kubernetes"
STACK = "serving-stack"
SOURCE_CHANGED = "SourceChanged"
_KUBECONFIG = "the cluster's kubeconfig"


def requires(cluster: Manifest) -> list[Requirement]:
    """Return the lookups: whoever is on the cluster, and the classes of its pools."""
    return [
        *cluster_teams.requirements(cluster),
        *cluster_pools.requirements(cluster, c.API),
    ]


def compose(inputs: Inputs) -> Plan:
    """Return the Plan of an InferenceCluster."""
    spec = specs.parse(InferenceClusterSpec, inputs.spec, c.CLUSTER_READY)
    _refuse_other_source(inputs, spec)
    who = cluster_teams.census(inputs)
    cloud = CLOUDS.get(spec.cluster.source)
    if cloud is None:
        return _nothing(inputs, who, c.REASON_SOURCE_NOT_SUPPORTED, _unsupported(spec))
    if getattr(spec.cluster, cloud.block) is None:
        raise InvalidSpecError(
            c.CLUSTER_READY, f"spec.cluster.{cloud.block}", f"is missing; source {cloud.source} reads it"
        )
    pools = cluster_pools.resolve(inputs, cloud, spec.node_pools)
    if pools.problems and not _started(inputs, cloud):
        return _nothing(inputs, who, pools.reason, f"{pools.message}; nothing is composed before")
    secrets = _secrets(inputs, cloud, spec)
    teams = cluster_teams.objects(inputs, who, CONFIG)
    resources = [
        *cluster_teams.guard(inputs, who),
        *_cloud(inputs, cloud, spec, pools, teams),
        _config(inputs, cloud, secrets),
        _stack(inputs, cloud, spec, secrets),
        *teams,
    ]
    seen = cluster_status.Seen(
        inputs=inputs,
        cloud=cloud,
        spec=spec,
        pools=pools,
        reached=bool(secrets),
        stack=inputs.observed.get(STACK, {}),
        child=inputs.observed.get(cloud.provision.key, {}) if cloud.provision else {},
    )
    return Plan(
        resources=resources,
        status=cluster_status.status(seen, cluster_teams.prepared(inputs, who)),
        conditions=cluster_status.conditions(seen),
        events=[Event(pools.message, warning=True)] if pools.problems else [],
        ready=False if pools.problems else None,
    )


def _nothing(inputs: Inputs, who: cluster_teams.Census, reason: str, message: str) -> Plan:
    """Return the Plan that composes no more than there is, beside the guard."""
    return Plan(
        resources=cluster_teams.guard(inputs, who),
        status={**keep.kept_status(inputs.composite), "namespace": c.SYSTEM_NAMESPACE},
        conditions=[
            Condition(c.CLUSTER_READY, False, reason, message),
            Condition(c.BACKEND_READY, False, cluster_status.WAITING_FOR_CLUSTER, "the cluster is not ready"),
            Condition(c.REQUIREMENTS_MET, None, cluster_status.CHECKING, "the cluster is not ready"),
        ],
        events=[Event(message, warning=True)],
        keep_all=True,
        ready=False,
    )


def _unsupported(spec: InferenceClusterSpec) -> str:
    return (
        f"spec.cluster.source: {spec.cluster.source} is not provisioned by this release, which has"
        f" {', '.join(sorted(CLOUDS))}; register the cluster with source Existing, or wait for a later one"
    )


def _refuse_other_source(inputs: Inputs, spec: InferenceClusterSpec) -> None:
    """Hold where the source of a cluster that stands was edited: following it would delete the cluster."""
    source = spec.cluster.source
    stack = inputs.observed.get(STACK)
    was = {
        cloud.source
        for cloud in CLOUDS.values()
        if cloud.provision and cloud.provision.key in inputs.observed
    } or ({paths.text(stack, "spec", "cloud")} if stack else set())
    if was - {source, ""}:
        raise Hold(
            c.CLUSTER_READY,
            SOURCE_CHANGED,
            f"spec.cluster.source was {', '.join(sorted(was))} and is now {source}; a running cluster cannot"
            " change its source: restore it, or delete this InferenceCluster and create another",
        )


def _started(inputs: Inputs, cloud: Cloud) -> bool:
    keys = {CONFIG, STACK} | ({cloud.provision.key} if cloud.provision else set())
    return bool(keys & inputs.observed.keys()) or bool(paths.items(inputs.composite, "status", "gpuPools"))


def _cloud(
    inputs: Inputs,
    cloud: Cloud,
    spec: InferenceClusterSpec,
    pools: cluster_pools.Pools,
    teams: Sequence[Desired | Waiting],
) -> list[Desired | Waiting]:
    """Return the composite that makes the cluster; none where it exists.

    It outlives what is deleted on the cluster through it: the stack sees to its own, the teams' are here.
    """
    if cloud.provision is None:
        return []
    key = cloud.provision.key
    if pools.lost or not pools.made:
        # Without the recipe of a pool that runs, any request would drop it.
        lacks = ", ".join(pools.lost) or "every pool"
        return [Waiting(key, f"the InferenceClass of {lacks}")]
    manifest: Manifest = {
        "apiVersion": c.INFRA_API,
        "kind": cloud.provision.kind,
        "metadata": {
            "name": inputs.name,
            "namespace": c.SYSTEM_NAMESPACE,
            "labels": {c.CLUSTER_LABEL: names.label_value(inputs.name)},
        },
        "spec": cloud.provision.spec(spec, pools.made),
    }
    reach = [
        x.key for x in teams if isinstance(x, Desired) and "managementPolicies" not in x.manifest["spec"]
    ]
    return [Desired(key, manifest, outlives=(STACK, *reach))]


def _secrets(inputs: Inputs, cloud: Cloud, spec: InferenceClusterSpec) -> list[Secret]:
    """Return how the cluster is reached; none while nobody has said.

    A provisioned cluster tells while it is Ready. When it goes dark, what the stack was given
    last stays true.
    """
    if cloud.provision is None:
        return list(cloud.secrets(spec))
    key = cloud.provision.key
    if inputs.is_ready(key) and (found := _read_secrets(inputs.observed[key], "status", "secrets")):
        return found
    return _read_secrets(inputs.observed.get(STACK), "spec", "secrets")


def _read_secrets(obj: object, *path: str) -> list[Secret]:
    found = [
        Secret(*(paths.text(entry, part) for part in ("type", "name", "key", "namespace")))
        for entry in paths.mappings(obj, *path)
        if all(paths.text(entry, part) for part in ("type", "name", "key"))
    ]
    return found if any(s.type == c.KUBECONFIG for s in found) else []


def _config(inputs: Inputs, cloud: Cloud, secrets: list[Secret]) -> Desired | Waiting:
    """Return the ClusterProviderConfig that reaches the cluster: Objects of every team name it."""
    if not secrets:
        return Waiting(CONFIG, _KUBECONFIG)
    keys = {
        s.type: builders.SecretKey(s.namespace or c.SYSTEM_NAMESPACE, s.name, s.key)
        for s in reversed(secrets)
    }
    kubeconfig = keys.pop(c.KUBECONFIG)
    identity = next((builders.Identity(s.type, keys[s.type]) for s in secrets if s.type in keys), None)
    manifest = builders.provider_config(
        c.KUBERNETES_API,
        "ClusterProviderConfig",
        names.cluster_config(inputs.name),
        kubeconfig,
        identity,
        None,
    )
    return Desired(CONFIG, manifest, Ready.exists(), after=_after(cloud))


def _stack(
    inputs: Inputs, cloud: Cloud, spec: InferenceClusterSpec, secrets: list[Secret]
) -> Desired | Waiting:
    """Return the ServingStack; as it is while nobody says how the cluster is reached."""
    if not secrets:
        return Waiting(STACK, _KUBECONFIG)
    wanted: Manifest = {
        "clusterName": inputs.name,
        "cloud": cloud.source,
        "stack": spec.stack,
        "stackRelease": spec.stack_release or paths.text(inputs.composite, "status", "stackRelease"),
        "provided": cloud.provided(spec),
        # On a cluster that is not ours to make, a class of the usual name may be somebody else's.
        "gateway": {"className": c.OWN_GATEWAY_CLASS} if cloud.provision is None else None,
        "poolTaints": sorted({key for p in spec.node_pools for t in p.taints or () if (key := t.get("key"))}),
        "images": spec.images,
        "components": spec.components,
        "secrets": [_secret_entry(secret) for secret in secrets],
    }
    manifest: Manifest = {
        "apiVersion": c.INFRA_API,
        "kind": "ServingStack",
        "metadata": {
            "name": names.serving_stack(inputs.name),
            "namespace": c.SYSTEM_NAMESPACE,
            "labels": {c.CLUSTER_LABEL: names.label_value(inputs.name)},
        },
        "spec": {key: value for key, value in wanted.items() if value},
    }
    return Desired(STACK, manifest, after=_after(cloud))


def _secret_entry(secret: Secret) -> Manifest:
    entry = {"type": secret.type, "name": secret.name, "key": secret.key}
    return {**entry, "namespace": secret.namespace} if secret.namespace else entry


def _after(cloud: Cloud) -> tuple[str, ...]:
    return (cloud.provision.key,) if cloud.provision else ()


KIND = Kind(
    c.API,
    "InferenceCluster",
    compose,
    (c.CLUSTER_READY, c.BACKEND_READY, c.REQUIREMENTS_MET),
    requires,
    # Replicas and classes are required, and cores up to 2.3 do not watch what is required: a team waits this
    # long at most for its namespace on a cluster.
    ttl=60,
    health=c.BACKEND_READY,
)
