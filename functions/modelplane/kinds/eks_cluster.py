"""EKSCluster: a GPU cluster on Amazon EKS, from its network to its node pools.

It is ready when a serving stack can be installed: the control plane serves, its kubeconfig is there, and the
system's nodes run what every pod needs. GPU pools are told of one by one and hold nothing up: what makes them
usable is part of the stack that waits for this.
"""

from collections.abc import Sequence
from typing import Any

from modelplane import contracts as c
from modelplane import names
from modelplane.api.eks import EKSClusterSpec
from modelplane.clouds.eks import addons, control_plane, iam, inside, pools, report, storage, versions
from modelplane.clouds.eks.site import CLUSTER, CLUSTER_AUTH, NETWORK, Site
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
    Waiting,
    keep,
    paths,
    specs,
)
from modelplane.facts import versions as pins
from modelplane.kinds.eks_network import UNSUITABLE

RUNNING, PROVISIONING, POOLS_READY, POOLS_PENDING = (
    "ClusterRunning",
    "Provisioning",
    "PoolsReady",
    "PoolsPending",
)
POOL_PROBLEM, UNKNOWN_RELEASE, REGION_CHANGED = "InvalidNodePool", "UnknownRelease", "RegionChanged"
# What must keep serving for the cluster to stay ready once it was.
_CORE = (CLUSTER, CLUSTER_AUTH, pools.SYSTEM)
# What comes up beside the rest without holding the stack up.
_BESIDE = {inside.EFA_DRIVER, inside.SLICES, control_plane.KEY_ALIAS}
_AUTOSCALER = "pod-identity-autoscaler"


def compose(inputs: Inputs) -> Plan:
    """Return the Plan of a cluster."""
    spec = specs.parse(EKSClusterSpec, inputs.spec, c.CLUSTER_READY)
    _refuse_other_region(inputs, spec)
    if not spec.node_pools:
        # Admission asks for one; a list that got lost on the way must not take every pool along.
        raise InvalidSpecError(c.CLUSTER_READY, "spec.nodePools", "is empty; name at least one pool")
    site = Site.of(inputs, spec)
    release = _release(site)
    version, upgrading = _version(site)
    made = pools.resources(site)
    efa = any(pool.fabric == c.FABRIC_EFA for pool in spec.node_pools)
    resources: list[Desired | Waiting] = [
        _network(site),
        *_outliving(iam.roles(site.aws, control_plane.key_arn(site))),
        *control_plane.resources(site, version, _unfit(inputs)),
        *addons.resources(site, pools.SYSTEM),
        *storage.resources(site),
        *inside.resources(site, release, pools.SYSTEM, efa=efa),
        *made.resources,
    ]
    waiting = _waiting(inputs, resources)
    ready = not [key for key in (_CORE if _was_ready(inputs) else waiting) if key in waiting]
    problems = list(made.problems.values())
    events = [Event(text, warning=True) for text in problems]
    return Plan(
        resources=resources,
        status=_status(site, release, made),
        conditions=[_cluster_ready(site, waiting, upgrading, ready=ready), _pools_ready(site, problems)],
        events=events,
        ready=ready,
    )


def _refuse_other_region(inputs: Inputs, spec: EKSClusterSpec) -> None:
    """Hold where the region of a cluster that stands was edited: all of it would be made again elsewhere."""
    for key, seen in sorted(inputs.observed.items()):
        there = paths.text(seen, "spec", "forProvider", "region")
        if there and there != spec.region:
            raise Hold(
                c.CLUSTER_READY,
                REGION_CHANGED,
                f"spec.region was {there} ({key}) and is now {spec.region}; a cluster cannot move: restore it"
                ", or delete this EKSCluster and create another",
            )


def _release(site: Site) -> pins.Release:
    """Return the release of the pins: the spec's, else the recorded one, else the newest."""
    recorded = paths.text(site.inputs.composite, "status", "stackRelease")
    asked = site.spec.stack_release or recorded
    try:
        return pins.release(asked) if asked else pins.newest()
    except pins.UnknownReleaseError as error:
        message = f"{'spec' if site.spec.stack_release else 'status'}.stackRelease: {error}; name a known one"
        raise Hold(c.CLUSTER_READY, UNKNOWN_RELEASE, message) from None


def _version(site: Site) -> tuple[str, str]:
    """Return the version to ask for now; one that no cluster can have is refused before there is one."""
    wanted, runs = site.spec.kubernetes_version, site.seen(CLUSTER, "version")
    made = paths.text(site.inputs.observed.get(CLUSTER), "spec", "forProvider", "version")
    if why := versions.fault(wanted):
        if not made:
            raise InvalidSpecError(c.CLUSTER_READY, "spec.kubernetesVersion", why)
        return runs or made, f"spec.kubernetesVersion: {why}"
    if made and report.state(site.inputs.observed.get(CLUSTER)) != report.ACTIVE:
        # One step at a time: while a step is taken, or nothing is told, none follows.
        return made, ""
    return versions.step(wanted, runs, pools.node_versions(site))


def _network(site: Site) -> Desired:
    spec = site.spec
    wanted: Manifest = {
        "clusterName": site.aws.cluster,
        "region": spec.region,
        "credentials": spec.credentials.model_dump(by_alias=True),
        "poolZones": pools.network_zones(site),
        "tags": dict(spec.tags),
    }
    if spec.network is not None:
        wanted["network"] = _given(spec.network)
    elif spec.networking is not None:
        wanted["networking"] = _given(spec.networking)
    manifest: Manifest = {
        "apiVersion": c.INFRA_API,
        "kind": c.EKS_NETWORK,
        "metadata": {
            "name": names.child(site.inputs.name, "network"),
            "labels": {c.CLUSTER_LABEL: site.aws.label},
        },
        "spec": {key: value for key, value in wanted.items() if value},
    }
    return Desired(NETWORK, manifest, outlives=(CLUSTER,))


def _unfit(inputs: Inputs) -> str:
    """Return why EKS would refuse a cluster in the network; empty where nothing is known against it."""
    found = paths.condition(inputs.observed.get(NETWORK), c.NETWORK_READY)
    unfit = found.get("status") == "False" and found.get("reason") == UNSUITABLE
    return paths.text(found, "message") if unfit else ""


def _given(model: Any) -> Manifest:
    found: Manifest = model.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_unset=True)
    return found


def _outliving(roles: Any) -> Sequence[Desired]:
    return [
        Desired(r.key, r.manifest, r.ready, outlives=(CLUSTER,) if r.key in iam.OUTLIVING else ())
        for r in roles
    ]


def _waiting(inputs: Inputs, resources: Sequence[Desired | Waiting]) -> list[str]:
    """Return the keys that hold readiness up: what is not there, or does not work, of all but GPU pools."""
    found = []
    for resource in resources:
        key = resource.key
        pool = key.startswith(pools.key_of("")) and key != pools.SYSTEM
        if key in _BESIDE or pool or key.startswith(("efa-", "access-")):
            continue
        seen = inputs.observed.get(key)
        works = resource.ready.holds(seen) if isinstance(resource, Desired) else inputs.is_ready(key)
        if not works:
            found.append(key)
    return found


def _was_ready(inputs: Inputs) -> bool:
    return paths.is_true(inputs.composite, c.READY)


def _cluster_ready(site: Site, waiting: Sequence[str], upgrading: str, *, ready: bool) -> Condition:
    observed = site.inputs.observed
    failed = report.first_failure(observed, waiting)
    notes = [upgrading, _no_way_out(site)]
    if ready:
        # What serves may still have been refused a change, or have lost a part that is not waited for.
        notes += [failed or report.first_failure(observed, sorted(observed)), _child(site, waiting)]
        return Condition(c.CLUSTER_READY, True, RUNNING, "; ".join(n for n in notes if n))
    said = failed or _child(site, waiting) or f"waiting for {', '.join(waiting[:4])}"
    return Condition(c.CLUSTER_READY, False, PROVISIONING, "; ".join(n for n in (said, *notes[:2]) if n))


def _child(site: Site, waiting: Sequence[str]) -> str:
    """Return what the network or the system's pool says of itself; they know best what they wait for."""
    for key, type_ in ((NETWORK, c.NETWORK_READY), (pools.SYSTEM, c.NODES_READY)):
        found = paths.condition(site.inputs.observed.get(key), type_)
        if key in waiting and found.get("status") == "False" and (said := paths.text(found, "message")):
            return f"{key}: {said}"
    return ""


def _no_way_out(site: Site) -> str:
    if site.asked_network.existing is None and site.asked_network.nat == "None":
        return (
            "network.nat None: nodes reach neither the image registries nor the AWS APIs unless the VPC has"
            " endpoints or routes of its own; set PerZone or Single, or add them"
        )
    return ""


def _pools_ready(site: Site, problems: Sequence[str]) -> Condition:
    if problems:
        return Condition(c.NODE_POOLS_READY, False, POOL_PROBLEM, "; ".join(problems))
    waits = []
    for pool in pools.all_pools(site):
        seen = site.inputs.observed.get(pools.key_of(pool.name))
        if not paths.is_true(seen, c.READY):
            why = next(
                (
                    paths.text(found, "message")
                    for type_ in (c.ACCEPTED, c.NODES_READY)
                    if (found := paths.condition(seen, type_)).get("status") == "False"
                ),
                "",
            )
            waits.append(f"pool {pool.name}: {why or 'its node groups are not active yet'}")
    if waits:
        return Condition(c.NODE_POOLS_READY, False, POOLS_PENDING, "; ".join(waits))
    return Condition(c.NODE_POOLS_READY, True, POOLS_READY)


def _status(site: Site, release: pins.Release, made: pools.Pools) -> Manifest:
    """Return the status; what is not told in this pass is sent as it was told last."""
    inputs, last = site.inputs, keep.kept_status(site.inputs.composite)
    told: Manifest = {
        "clusterName": site.aws.cluster,
        "kubernetesVersion": site.seen(CLUSTER, "version"),
        "endpoint": site.seen(CLUSTER, "endpoint"),
        "access": {"publicCidrs": sorted(site.spec.access.public_cidrs)},
        "vpcId": site.vpc,
        "clusterSecurityGroupId": site.security_group,
        "nodeRoleArn": site.role_arn(iam.NODE_ROLE),
        "stackRelease": release.name,
        "nodePools": pools.states(site, made.problems),
    }
    if inputs.is_ready(CLUSTER_AUTH):
        secret = control_plane.kubeconfig_secret(site)
        told["secrets"] = [{"type": c.KUBECONFIG, "name": secret, "key": c.KUBECONFIG_KEY}]
    if inputs.is_ready(inside.STORAGE_CLASS):
        told["cache"] = {"storageClassName": c.EFS_STORAGE_CLASS}
    return {**last, **{key: value for key, value in told.items() if value}}


KIND = Kind(
    c.INFRA_API, c.EKS_CLUSTER, compose, (c.CLUSTER_READY, c.NODE_POOLS_READY), health=c.CLUSTER_READY
)
