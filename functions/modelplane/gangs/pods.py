"""The pods of a member: what the user wrote, and around it what every pod on a serving cluster needs."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from modelplane import contracts as c
from modelplane import names
from modelplane.api.model_replica import Engine, Member
from modelplane.core import paths
from modelplane.core.paths import Manifest
from modelplane.gangs import claims, env, fabric, flags, leaving, probes, references
from modelplane.gangs.site import Site

_SHM_MOUNT = "/dev/shm"
_LEADER_HOST = f"$({c.ENV_LEADER_ADDRESS})"
_ZONE = "topology.kubernetes.io/zone"


@dataclass(frozen=True, slots=True)
class Placed:
    """What a backend adds to the pods of one member.

    Attributes:
        workload: name of the object the pods belong to.
        contract: the gang's environment; empty for a single pod.
        labels: managed labels beside the common ones.
        copy_label: the label that tells the copies of a gang apart; empty for a single pod.
        proxy: an init container that takes requests before the engine; None for none.
    """

    workload: str
    contract: Sequence[Manifest] = ()
    labels: dict[str, str] = field(default_factory=dict)
    copy_label: str = ""
    proxy: Manifest | None = None


def metadata(site: Site, engine: Engine, member: Member, placed: Placed) -> Manifest:
    """Return the labels and annotations of the member's pods; the managed ones stand over the user's."""
    template = member.template.metadata
    labels = {
        **template.labels,
        c.WORKLOAD_LABEL: placed.workload,
        c.REPLICA_LABEL: names.label_value(site.replica),
        c.ENGINE_LABEL: engine.name,
        **placed.labels,
    }
    if site.shared_cache:
        labels[c.CACHE_LABEL] = site.shared_cache
    if member.role != c.WORKER:
        labels[c.SERVING_LABEL] = names.label_value(site.replica)
        # The picker reads vLLM's metrics of pods without it.
        if (kind := flags.engine_type(engine)) != flags.VLLM:
            labels[c.LLMD_ENGINE_LABEL] = kind
    labels.update(site.scheduling)
    if engine.phase and member.role != c.WORKER:
        labels[c.LLMD_ROLE_LABEL] = engine.phase.lower()
        labels[c.LLMD_SERVING_LABEL] = "true"
        labels["app"] = names.label_value(site.replica)
    found: Manifest = {"labels": labels}
    # Grove refuses a set whose annotations name another queue than its labels.
    if annotations := {k: v for k, v in template.annotations.items() if k not in site.scheduling}:
        found["annotations"] = annotations
    return found


def spec(site: Site, engine: Engine, member: Member, placed: Placed) -> Manifest:
    """Return the pod spec of the member."""
    wanted = member.template.spec
    member_claims = claims.claims(site, engine, member)
    containers = [_container(site, engine, member, placed, x) for x in wanted.containers]
    inits = [_beside(site, placed, x) for x in wanted.init_containers]
    if placed.proxy is not None:
        inits.append(placed.proxy)
    found: Manifest = {
        "containers": containers,
        "nodeSelector": {c.POOL_LABEL: member.node_pool_name},
        "tolerations": _tolerations(site, member),
        "terminationGracePeriodSeconds": leaving.grace(member),
        # Else every Service of the team becomes variables of every engine, and vLLM and Ray take their
        # settings from names such as VLLM_PORT (vLLM, docs/usage/env_vars.md).
        "enableServiceLinks": False,
    }
    if inits:
        found["initContainers"] = inits
    volumes = [references.volume(site, v) for v in wanted.volumes]
    if volumes := [*volumes, *_volumes(site, [*containers, *inits])]:
        found["volumes"] = volumes
    if member_claims:
        found["resourceClaims"] = [
            {"name": x.pod_name, "resourceClaimTemplateName": x.template} for x in member_claims
        ]
    own = site.pull_secrets if placed.proxy is not None else ()
    if pull := references.pull_secrets(site, wanted.image_pull_secrets, own):
        found["imagePullSecrets"] = pull
    if site.is_dynamo:
        found["schedulerName"] = c.KAI_SCHEDULER
    if placed.copy_label and site.fabric(member.node_pool_name):
        found["affinity"] = _together(placed)
    return found


def refused_env(engine: Engine) -> list[str]:
    """Return the names users set in a gang's containers that stay Modelplane's own."""
    contract = env.contract("", "", 0)
    found: set[str] = set()
    for member in engine.members:
        wanted = member.template.spec
        for container in (*wanted.containers, *wanted.init_containers):
            found.update(env.refused(contract, paths.mappings(container, "env")))
    return sorted(found)


def _container(site: Site, engine: Engine, member: Member, placed: Placed, wanted: Manifest) -> Manifest:
    if wanted["name"] != c.ENGINE_CONTAINER:
        return _beside(site, placed, wanted)
    found = copy.deepcopy(wanted)
    network = fabric.in_use(site, member)
    port = flags.engine_port(engine)
    serves = member.role != c.WORKER
    managed = list(placed.contract)
    if site.cache is not None:
        managed += env.cache()
    host = "127.0.0.1" if serves else _LEADER_HOST
    managed += [*env.model_express(site, network, host, port), *env.for_fabric(network)]
    if engine.phase:
        managed += env.phase(network)
    found["env"] = references.environment(site, env.merge(managed, paths.mappings(wanted, "env")))
    if not found["env"]:
        del found["env"]
    _mount(site, found)
    if in_pod := [x.pod_name for x in claims.claims(site, engine, member)]:
        found["resources"] = {**paths.mapping(found, "resources"), "claims": [{"name": n} for n in in_pod]}
    if network:
        # RDMA registers memory; without the right to lock it the transfer fails (modelexpress v0.5.1,
        # examples/p2p_transfer_k8s/client/vllm/aws_efa). A "restricted" namespace refuses such a pod.
        found["securityContext"] = {"capabilities": {"add": ["IPC_LOCK"]}}
    found.update(leaving.lifecycle(member))
    if serves:
        found["ports"] = [{"name": "http", "containerPort": port, "protocol": "TCP"}]
        found.update(probes.serving(wanted, port))
    return found


def _beside(site: Site, placed: Placed, wanted: Manifest) -> Manifest:
    """Return a container beside the engine: as written, plus what it may have to know of its gang."""
    found = copy.deepcopy(wanted)
    if entries := env.merge(placed.contract, paths.mappings(wanted, "env")):
        found["env"] = references.environment(site, entries)
    return found


def _mount(site: Site, container: Manifest) -> None:
    mounts: list[Any] = paths.items(container, "volumeMounts")
    taken = {paths.text(m, "mountPath").rstrip("/") for m in mounts}
    if _SHM_MOUNT not in taken:
        mounts.append({"name": c.SHM_VOLUME, "mountPath": _SHM_MOUNT})
    if site.cache is not None and c.CACHE_MOUNT not in taken:
        # Writable: engines put locks and compiled kernels beside the weights.
        mounts.append({"name": c.CACHE_VOLUME, "mountPath": c.CACHE_MOUNT})
    container["volumeMounts"] = mounts


def _volumes(site: Site, containers: Sequence[Manifest]) -> list[Manifest]:
    mounted = {paths.text(m, "name") for x in containers for m in paths.mappings(x, "volumeMounts")}
    found: list[Manifest] = []
    if c.SHM_VOLUME in mounted:
        found.append({"name": c.SHM_VOLUME, "emptyDir": {"medium": "Memory"}})
    if site.cache is not None:
        found.append({"name": c.CACHE_VOLUME, "persistentVolumeClaim": {"claimName": site.cache.claim}})
    return found


def _tolerations(site: Site, member: Member) -> list[Manifest]:
    """Tolerate what the scheduler knew when it chose the pool; nothing injects it where GPUs are claimed."""
    taints = [(c.GPU_TAINT, c.NO_SCHEDULE)]
    declared = site.taints.get(member.node_pool_name, ())
    taints += [(paths.text(t, "key"), paths.text(t, "effect")) for t in declared]
    return [
        {"key": key, "operator": "Exists", "effect": effect}
        for key, effect in dict.fromkeys(taints)
        if key and effect
    ]


def _together(placed: Placed) -> Manifest:
    """Draw the pods of one copy into one zone, which EFA does not leave.

    Preferred only: a required term would keep the first pod of a gang pending, and exclusive placement of
    LeaderWorkerSet means one gang per zone.
    """
    term = {
        "topologyKey": _ZONE,
        "labelSelector": {"matchLabels": {c.WORKLOAD_LABEL: placed.workload}},
        "matchLabelKeys": [placed.copy_label],
    }
    preferred = [{"weight": 100, "podAffinityTerm": term}]
    return {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
