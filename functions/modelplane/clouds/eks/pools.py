"""An EKSCluster's pools: the system's own, and what each EKSNodePool is asked for."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from modelplane import contracts as c
from modelplane import names
from modelplane.api.eks import NamedPool, Pool
from modelplane.clouds.eks import addons, iam, inside, storage, versions, zones
from modelplane.clouds.eks.site import CLUSTER, CLUSTER_AUTH, NETWORK, Site
from modelplane.core import paths
from modelplane.core.paths import Manifest
from modelplane.core.plan import Desired, Waiting

EFA_GROUP, EFA_IN, EFA_OUT = "efa-security-group", "efa-ingress", "efa-egress"
SYSTEM = "pool-system"
_SYSTEM_TYPE, _SYSTEM_ZONES = "m6i.xlarge", 2
_UNTOLD = "the network has not told its subnets yet"
_HANDED_DOWN = {
    "instance_type",
    "role",
    "disk_size_gb",
    "node_count",
    "min_node_count",
    "max_node_count",
    "gpu",
    "fabric",
    "capacity_block",
    "purchase",
    "reservation",
    "local_storage",
    "taints",
    "labels",
}


def key_of(pool: str) -> str:
    """Return the composed key of a pool."""
    return f"pool-{pool}"


def all_pools(site: Site) -> list[NamedPool]:
    """Return the spec's pools and, where it has none of that name, the system's: two nodes in two zones."""
    given = list(site.spec.node_pools)
    if any(pool.name == c.SYSTEM_POOL for pool in given):
        return given
    system = NamedPool(
        name=c.SYSTEM_POOL,
        role=c.SYSTEM_ROLE,
        instance_type=_SYSTEM_TYPE,
        node_count=2,
        min_node_count=2,
        max_node_count=4,
    )
    return [system, *given]


@dataclass
class Pools:
    """What became of the pools.

    Attributes:
        resources: their composites, and what they share.
        problems: by pool, why it is not made or changed as asked.
    """

    resources: list[Desired | Waiting] = field(default_factory=list)
    problems: dict[str, str] = field(default_factory=dict)


def resources(site: Site) -> Pools:
    """Return the pools' composites; one in doubt stays as it is."""
    found = Pools()
    wanted = all_pools(site)
    efa = any(pool.fabric == c.FABRIC_EFA for pool in wanted) or EFA_GROUP in site.inputs.observed
    if efa:
        found.resources += _efa(site)
    for pool in wanted:
        key = key_of(pool.name)
        subnets = _zone_fault(site, pool) or _subnets(site, pool)
        if isinstance(subnets, str):
            if subnets != _UNTOLD:
                found.problems[pool.name] = f"pool {pool.name}: {subnets}"
            found.resources.append(Waiting(key, subnets))
            continue
        found.resources.append(_pool(site, pool, subnets))
    return found


def _efa(site: Site) -> list[Desired | Waiting]:
    """Return the group of EFA interfaces: everything, to and from itself only (EC2 User Guide, efa)."""
    found = [storage.security_group(site, EFA_GROUP, "EFA traffic between nodes of the cluster")]
    itself = {"name": site.aws.name(EFA_GROUP)}
    for key, kind in ((EFA_IN, "SecurityGroupIngressRule"), (EFA_OUT, "SecurityGroupEgressRule")):
        parameters = {
            "ipProtocol": "-1",
            "referencedSecurityGroupIdRef": itself,
            "securityGroupIdRef": itself,
        }
        found.append(Desired(key, site.aws.resource(c.EC2_API, kind, key, parameters), after=(EFA_GROUP,)))
    return found


def network_zones(site: Site) -> list[str]:
    """Return the zones that pools bring to a network whose owner names none.

    One that cannot be used is told of its own pool; here it would hold up the network of all.
    """
    found = [
        zone for pool in all_pools(site) for zone in pool.zones if not zones.fault(zone, site.spec.region)
    ]
    return list(dict.fromkeys(found))[: zones.MOST]


def _zone_fault(site: Site, pool: NamedPool) -> str:
    found = (why for zone in pool.zones if (why := zones.fault(zone, site.spec.region)))
    return next((f"zones: {why}" for why in found), "")


def one_zone_fault(pool: Pool, zone_count: int) -> str:
    """Return why a pool cannot span that many zones: what it runs in was bought in one."""
    if zone_count <= 1:
        return ""
    if pool.capacity_block is not None:
        return "zones: a Capacity Block is in one zone; name that one zone"
    if pool.reservation is not None and pool.reservation.id:
        return "zones: a capacity reservation is in one zone; name that one zone, or a group of reservations"
    return ""


def _system_zones(site: Site, known: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """Return two zones for the system's nodes: those they have, whatever zones came later."""
    had = paths.mappings(site.inputs.observed.get(SYSTEM), "spec", "subnets")
    ids = {paths.text(subnet, "id") for subnet in had}
    return sorted(known, key=lambda subnet: subnet["id"] not in ids)[:_SYSTEM_ZONES]


def _subnets(site: Site, pool: NamedPool) -> list[Manifest] | str:
    """Return the subnets of a pool's zones, or why it has none."""
    known = site.per_zone()
    if not site.whole_network or not known:
        return _UNTOLD
    if not pool.zones:
        if why := one_zone_fault(pool, len(known)):
            return why
        chosen = _system_zones(site, known) if pool.name == c.SYSTEM_POOL else known
        return [{"id": subnet["id"], "zone": subnet["zone"]} for subnet in chosen]
    found: dict[str, Manifest] = {}
    for zone in pool.zones:
        match = next((x for x in known if zone in (x["zone"], x.get("name"), x.get("zoneId"))), None)
        if match is None:
            there = ", ".join(str(x["zone"]) for x in known)
            return f"zones: {zone} is none of the cluster's zones, which are {there}; name one of them"
        found.setdefault(str(match["id"]), {"id": match["id"], "zone": match["zone"]})
    return one_zone_fault(pool, len(found)) or list(found.values())


def _pool(site: Site, pool: NamedPool, subnets: Sequence[Mapping[str, Any]]) -> Desired | Waiting:
    key = key_of(pool.name)
    groups = [site.security_group]
    if pool.fabric == c.FABRIC_EFA:
        groups.append(site.seen(EFA_GROUP, "id"))
    role, version = site.role_arn(iam.NODE_ROLE), _version(site, key)
    needs = {
        "the cluster's security group": groups[0],
        "the security group for EFA": groups[-1],
        "the ARN of the nodes' role": role,
        "the control plane's version": version,
    }
    if lacks := next((what for what, value in needs.items() if not value), ""):
        return Waiting(key, lacks)
    spec: Manifest = {
        "clusterName": site.aws.cluster,
        "poolName": pool.name,
        "region": site.spec.region,
        "version": version,
        "credentials": site.spec.credentials.model_dump(by_alias=True),
        "nodeRoleArn": role,
        "securityGroupIds": groups,
        "subnets": copy.deepcopy(list(subnets)),
        "outlivedBy": _outliving(site),
        "providerConfigName": inside.config_name(site),
        "tags": dict(site.spec.tags),
        **pool.model_dump(by_alias=True, include=_HANDED_DOWN, exclude_none=True, exclude_unset=True),
        # Defaults the pool's own definition would write; sent, so that the counts say what was meant.
        "nodeCount": pool.node_count,
        "minNodeCount": pool.min_node_count,
        "maxNodeCount": pool.max_node_count,
    }
    manifest: Manifest = {
        "apiVersion": c.INFRA_API,
        "kind": c.EKS_NODE_POOL,
        "metadata": {
            "name": names.child(site.inputs.name, "pool", pool.name),
            "labels": {c.CLUSTER_LABEL: site.aws.label, c.POOL_LABEL: names.label_value(pool.name)},
        },
        "spec": {name: value for name, value in spec.items() if value or value == 0},
    }
    if pool.name == c.SYSTEM_POOL:
        before = [addon.key for addon in addons.BEFORE_NODES]
        # Its groups may be exchanged while the kubeconfig lives, and a Usage between two things that live on
        # cannot be withdrawn: so the pool is held, not one of its groups.
        return Desired(key, manifest, after=(CLUSTER, NETWORK, *before), outlives=(CLUSTER_AUTH,))
    return Desired(key, manifest, after=(SYSTEM, NETWORK))


def _version(site: Site, key: str) -> str:
    """Return the version for nodes: the control plane's once it runs it, never a newer one."""
    return site.seen(CLUSTER, "version") or paths.text(site.inputs.observed.get(key), "spec", "version")


def _outliving(site: Site) -> list[Manifest]:
    """Return what a node group's nodes are taken down with: the API, and the way to it and to AWS."""
    network_name = names.child(site.inputs.name, "network")
    return [
        {"apiVersion": c.EKS_API, "kind": "Cluster", "name": site.aws.cluster},
        {"apiVersion": c.INFRA_API, "kind": c.EKS_NETWORK, "name": network_name},
    ]


def node_versions(site: Site) -> dict[str, list[str]]:
    """Return the versions of the node groups that are told, by pool."""
    found = {}
    for pool in all_pools(site):
        groups = paths.mappings(site.inputs.observed.get(key_of(pool.name)), "status", "nodeGroups")
        told = [paths.text(group, "version") for group in groups]
        found[pool.name] = [version for version in told if versions.minor(version) is not None]
    return found


def states(site: Site, problems: Mapping[str, str]) -> list[Manifest]:
    """Return `status.nodePools`: what each pool says of itself, the last known where it says nothing."""
    last = {
        paths.text(entry, "name"): entry
        for entry in paths.mappings(site.inputs.composite, "status", "nodePools")
    }
    listed = []
    for pool in all_pools(site):
        seen = paths.mapping(site.inputs.observed.get(key_of(pool.name)), "status")
        told = seen if paths.text(seen, "status") else last.get(pool.name, {})
        entry: Manifest = {"name": pool.name}
        if state := paths.text(told, "status"):
            entry["status"] = state
        # Never the last message: with the problem before it, it would grow by itself with every pass.
        said = [problems.get(pool.name, ""), paths.text(seen, "message") or _why(site, pool.name)]
        if message := "; ".join(text for text in said if text):
            entry["message"] = message
        if zones := [z for z in paths.items(told, "zones") if isinstance(z, str)]:
            entry["zones"] = zones
        for count in ("readyNodes", "slices"):
            if (number := paths.integer(told, count)) is not None:
                entry[count] = number
        listed.append(entry)
    return listed


def _why(site: Site, pool: str) -> str:
    observed = site.inputs.observed.get(key_of(pool))
    for type_ in (c.ACCEPTED, c.NODES_READY):
        found = paths.condition(observed, type_)
        if found.get("status") == "False":
            return paths.text(found, "message")
    return ""
