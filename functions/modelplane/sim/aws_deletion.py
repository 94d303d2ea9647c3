"""What AWS refuses to delete while it is in use, and what stays behind for good where the order is wrong.

A refusal is repeated by the provider until it ends, so it is only a reason to wait. What AWS does not refuse
is the other table: each line is an edge of the deletion order, and a leak says that it was broken.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from modelplane import contracts as c
from modelplane.core import Manifest, paths
from modelplane.sim import reach
from modelplane.sim.aws import cluster_of, identity, named, owned
from modelplane.sim.world import World, ref

Why = Callable[[Manifest, World], str]


def _has_groups(obj: Manifest, world: World) -> str:
    found = next(owned(world, c.EKS_API, "NodeGroup", cluster_of(obj)), None)
    return f"ResourceInUseException: Cluster has nodegroups attached ({ref(found)})" if found else ""


def _has(kind: tuple[str, str], why: str) -> Why:
    def held(obj: Manifest, world: World) -> str:
        found = next(owned(world, *kind, cluster_of(obj)), None)
        return f"{why} ({ref(found)})" if found else ""

    return held


def _in_vpc(obj: Manifest, world: World) -> str:
    """A VPC goes last; its subnets, groups, gateways and tables are its dependents."""
    for kind in ("Subnet", "SecurityGroup", "NATGateway", "InternetGateway", "RouteTable"):
        for found in owned(world, c.EC2_API, kind, cluster_of(obj)):
            if may_delete(found):
                return f"DependencyViolation: has dependencies ({ref(found)})"
    return ""


def _in_subnet(obj: Manifest, world: World) -> str:
    """A subnet stays while nodes, control plane, mount target or NAT gateway have an interface in it."""
    mine = identity(obj)
    for group in owned(world, c.EKS_API, "NodeGroup", cluster_of(obj)):
        if mine in paths.items(group, "spec", "forProvider", "subnetIds"):
            return f"DependencyViolation: interfaces of {ref(group)}"
    for cluster in owned(world, c.EKS_API, "Cluster", cluster_of(obj)):
        if mine in paths.items(cluster, "spec", "forProvider", "vpcConfig", "subnetIds"):
            return f"DependencyViolation: interfaces of {ref(cluster)}"
    for target in owned(world, c.EFS_API, "MountTarget", cluster_of(obj)):
        if paths.text(target, "spec", "forProvider", "subnetId") == mine:
            return f"DependencyViolation: interface of {ref(target)}"
    for gateway in owned(world, c.EC2_API, "NATGateway", cluster_of(obj)):
        if named(gateway, "subnetIdRef") == paths.name(obj):
            return f"DependencyViolation: interface of {ref(gateway)}"
    return ""


def _address_used(obj: Manifest, world: World) -> str:
    for gateway in owned(world, c.EC2_API, "NATGateway", cluster_of(obj)):
        if named(gateway, "allocationIdRef") == paths.name(obj):
            return f"AuthFailure: address is in use by {ref(gateway)}"
    return ""


def _in_security_group(obj: Manifest, world: World) -> str:
    mine = identity(obj)
    for template in owned(world, c.EC2_API, "LaunchTemplate", cluster_of(obj)):
        if mine in str(template["spec"]) and any(owned(world, c.EKS_API, "NodeGroup", cluster_of(obj))):
            return f"DependencyViolation: nodes of {ref(template)} use it"
    for target in owned(world, c.EFS_API, "MountTarget", cluster_of(obj)):
        for found in paths.mappings(target, "spec", "forProvider", "securityGroupsRefs"):
            if paths.name({"metadata": found}) == paths.name(obj):
                return f"DependencyViolation: {ref(target)} uses it"
    return ""


def may_delete(obj: Mapping[str, Any]) -> bool:
    """Tell whether a provider may delete the resource at AWS when it leaves."""
    policies = paths.items(obj, "spec", "managementPolicies") or ["*"]
    return "*" in policies or "Delete" in policies


HELD: dict[tuple[str, str], Why] = {
    (c.EC2_API, "VPC"): _in_vpc,
    (c.EC2_API, "Subnet"): _in_subnet,
    (c.EC2_API, "InternetGateway"): _has((c.EC2_API, "EIP"), "DependencyViolation: mapped public addresses"),
    (c.EC2_API, "EIP"): _address_used,
    (c.EC2_API, "SecurityGroup"): _in_security_group,
    (c.EC2_API, "PlacementGroup"): _has(
        (c.EKS_API, "NodeGroup"), "InvalidPlacementGroup.InUse: instances are in it"
    ),
    (c.EKS_API, "Cluster"): _has_groups,
    (c.EFS_API, "FileSystem"): _has((c.EFS_API, "MountTarget"), "FileSystemInUse: has mount targets"),
}


@dataclass(frozen=True, slots=True)
class Edge:
    """One order that AWS does not keep.

    Attributes:
        name: of the edge.
        of: kind of what must not go first.
        by: kind of what needs it until it is gone.
        what: what is left behind, or hangs, where it did go first.
        key: how the composed key of `of` begins; empty for all of the kind.
        same: whether this `by` needs this `of`; without it all of one cluster belong together.
    """

    name: str
    of: tuple[str, str]
    by: tuple[str, str]
    what: str
    key: str = ""
    same: Callable[[Manifest, Manifest], bool] = lambda _, __: True


_GROUP, _CLUSTER, _AUTH = (c.EKS_API, "NodeGroup"), (c.EKS_API, "Cluster"), (c.EKS_API, "ClusterAuth")
_ROLE, _ADDON = (c.IAM_API, "Role"), (c.EKS_API, "Addon")


def _its_template(template: Manifest, group: Manifest) -> bool:
    return paths.text(group, "spec", "forProvider", "launchTemplate", "id") == identity(template)


EDGES = (
    Edge("role-node", _ROLE, _GROUP, "interfaces of nodes, state available", "role-node"),
    Edge("role-cni", _ROLE, _GROUP, "interfaces of nodes, state available", "role-cni"),
    Edge(
        "role-cluster", _ROLE, _CLUSTER, "interfaces and load balancers of the control plane", "role-cluster"
    ),
    Edge("vpc-cni", _ADDON, _GROUP, "interfaces of nodes, state available", "addon-vpc-cni"),
    Edge(
        "pod-identity", _ADDON, _GROUP, "interfaces of nodes, state available", "addon-eks-pod-identity-agent"
    ),
    Edge("nat", (c.EC2_API, "NATGateway"), _GROUP, "nodes that cannot be drained"),
    Edge("route", (c.EC2_API, "Route"), _GROUP, "nodes that cannot be drained"),
    Edge("association", (c.EC2_API, "RouteTableAssociation"), _GROUP, "nodes that cannot be drained"),
    Edge("template", (c.EC2_API, "LaunchTemplate"), _GROUP, "a degraded node group", same=_its_template),
    Edge("key", (c.KMS_API, "Key"), _CLUSTER, "a broken cluster"),
    Edge("log-group", (c.LOGS_API, "Group"), _CLUSTER, "a log group without an end"),
    Edge("mount-target", (c.EFS_API, "MountTarget"), _GROUP, "pods that hang on a dead mount"),
    Edge(
        "nfs",
        (c.EC2_API, "SecurityGroupIngressRule"),
        _GROUP,
        "pods that hang on a dead mount",
        "file-system",
    ),
    Edge("ebs-role", _ROLE, _GROUP, "volumes", "role-ebs-csi"),
    Edge("efs-role", _ROLE, _GROUP, "access points", "role-efs-csi"),
    Edge("access-entry", (c.EKS_API, "AccessEntry"), _AUTH, "a cluster that nobody may reach"),
    Edge("access-policy", (c.EKS_API, "AccessPolicyAssociation"), _AUTH, "a cluster that nobody may reach"),
)


def held(obj: Manifest, world: World) -> str:
    """Return why a deleted resource stays; one that the provider may not delete leaves at once."""
    if not may_delete(obj):
        return ""
    why = HELD.get((paths.text(obj, "apiVersion"), paths.text(obj, "kind")))
    return why(obj, world) if why else ""


def leaves(obj: Manifest, world: World) -> str:
    """Return what is left behind since the resource went before what needed it; empty where nothing did."""
    if not may_delete(obj) or paths.labels(obj).get(c.CLUSTER_LABEL) is None:
        return ""
    for edge in EDGES:
        if user := _broken(edge, obj, world):
            return f"{ref(obj)} left {edge.what}: {user} still stood (edge {edge.name})"
    return _load_balancers(obj, world)


def _broken(edge: Edge, obj: Manifest, world: World) -> str:
    kind = paths.text(obj, "apiVersion"), paths.text(obj, "kind")
    key = paths.text(obj, "metadata", "annotations", c.RESOURCE_NAME_ANNOTATION)
    if kind != edge.of or not key.startswith(edge.key):
        return ""
    users = (user for user in owned(world, *edge.by, cluster_of(obj)) if edge.same(obj, user))
    return next((str(ref(user)) for user in users), "")


def _load_balancers(obj: Manifest, world: World) -> str:
    """A system node that goes before what its controllers made: load balancers, their groups and volumes."""
    kind = paths.text(obj, "apiVersion"), paths.text(obj, "kind")
    if kind != _GROUP or paths.labels(obj).get(c.POOL_LABEL) != c.SYSTEM_POOL:
        return ""
    others = [g for g in owned(world, *_GROUP, cluster_of(obj)) if g is not obj and _is_system(g)]
    if others:
        return ""
    for auth in owned(world, *_AUTH, cluster_of(obj)):
        secret = paths.namespace(auth), paths.text(auth, "spec", "writeConnectionSecretToRef", "name")
        for consumer in reach.consumers(world, secret):
            if may_delete(consumer):
                return (
                    f"{ref(obj)} left load balancers and volumes: {ref(consumer)} still stood (edge system)"
                )
    return ""


def _is_system(group: Mapping[str, Any]) -> bool:
    return paths.labels(group).get(c.POOL_LABEL) == c.SYSTEM_POOL
