"""What AWS resources report through their provider, when, and how they fail.

Sources: provider-upjet-aws v2.6.0 and upjet (conditions), the EKS and EC2 API references (states). Deletion
has a module of its own.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from modelplane import contracts as c
from modelplane import names
from modelplane.core import Manifest, paths
from modelplane.facts import aws as facts
from modelplane.sim.remote import condition
from modelplane.sim.world import Ref, World

SYNCED = condition("Synced", "ReconcileSuccess")
AVAILABLE = condition("Ready", "Available")
CREATING = condition("Ready", "Creating", true=False)
# AWS ends a call that ran on with an error; Ready says nothing of it.
FAILED = "Failed"
# The node group exists, and EKS could not make its nodes.
CREATE_FAILED = "CreateFailed"
# The provider will not send an update that AWS could only fulfil by another resource.
REFUSED = "Refused"

_ACCOUNT = "111122223333"
_PREFIX = {
    "VPC": "vpc",
    "Subnet": "subnet",
    "SecurityGroup": "sg",
    "LaunchTemplate": "lt",
    "NATGateway": "nat",
    "EIP": "eipalloc",
    "InternetGateway": "igw",
    "RouteTable": "rtb",
    "FileSystem": "fs",
}
Extra = Callable[[Manifest, World], Manifest]
Why = Callable[[Manifest, World], str]


@dataclass(frozen=True, slots=True)
class AwsRule:
    """How a kind of AWS resource behaves.

    Attributes:
        after: passes until it is there, and works where it has a state of its own.
        more: what it reports beside ID and ARN.
        states: whether it reports EKS's word for its state.
        missing: what it refers to and is not there yet; empty where all is.
        reports: which of its ID and ARN the provider's API has (its CRD, status.atProvider).
    """

    after: int = 1
    more: Extra = lambda _, __: {}
    states: bool = False
    missing: Why = lambda _, __: ""
    reports: tuple[str, ...] = ("id", "arn")


def identity(obj: Manifest) -> str:
    """Return the ID that AWS gives a resource, from its name; one that is only looked at has its own."""
    given = paths.text(obj, "metadata", "annotations", c.EXTERNAL_NAME_ANNOTATION)
    if given:
        return given
    kind = paths.text(obj, "kind")
    if kind not in _PREFIX:
        return paths.name(obj)
    return f"{_PREFIX[kind]}-{names.digest(paths.name(obj), length=17)}"


def arn(obj: Manifest) -> str:
    """Return an ARN of the resource in an account of the documentation's."""
    service = paths.text(obj, "apiVersion").partition(".")[0]
    kind = paths.text(obj, "kind").lower()
    region = "" if service == "iam" else paths.text(obj, "spec", "forProvider", "region")
    return f"arn:aws:{service}:{region}:{_ACCOUNT}:{kind}/{identity(obj)}"


def report(rule: AwsRule, obj: Manifest, age: int, world: World) -> Manifest | None:
    """Return the status of a resource of that age in passes."""
    if why := rule.missing(obj, world):
        return {"conditions": [CREATING, condition("Synced", "ReconcileError", why, true=False)]}
    if age < 1:
        return {"conditions": [CREATING, SYNCED]}
    works = age >= rule.after
    at: Manifest = {k: v for k, v in (("id", identity(obj)), ("arn", arn(obj))) if k in rule.reports}
    if rule.states:
        at["status"] = "ACTIVE" if works else "CREATING"
    if works:
        at.update(rule.more(obj, world))
    # With a state of its own Ready is True as soon as the resource exists: that is the trap.
    ready = AVAILABLE if works or rule.states else CREATING
    done = condition("LastAsyncOperation", "Success") if works else condition("LastAsyncOperation", "Ongoing")
    return {"atProvider": at, "conditions": [done, ready, SYNCED]}


def failed(obj: Manifest, message: str) -> Manifest:
    """Return the status after a call that AWS refused in the end."""
    said = message or f"async create failed: failed to create the resource: {obj['kind']}: AccessDenied"
    kept = {k: v for k, v in paths.mapping(obj, "status").items() if k != "conditions"}
    last = condition("LastAsyncOperation", "AsyncCreateFailure", said, true=False)
    return {**kept, "conditions": [last, dict(paths.condition(obj, "Ready") or CREATING), SYNCED]}


def create_failed(obj: Manifest, message: str) -> Manifest:
    """Return the status of a node group whose nodes EKS could not make: Ready is True all the same."""
    said = message or (
        "unexpected state 'CREATE_FAILED', wanted target 'ACTIVE'. last error: AsgInstanceLaunchFailures: "
        "Could not launch On-Demand Instances. InsufficientInstanceCapacity"
    )
    at = {"id": identity(obj), "arn": arn(obj), "status": "CREATE_FAILED"}
    last = condition("LastAsyncOperation", "AsyncCreateFailure", said, true=False)
    return {"atProvider": at, "conditions": [last, AVAILABLE, SYNCED]}


def refused(obj: Manifest, message: str) -> Manifest:
    """Return the status of a resource whose update would replace it."""
    said = message or (
        "refuse to update the external resource because the following update requires replacing it: cannot "
        'change the value of the argument "subnet_ids"'
    )
    kept = {k: v for k, v in paths.mapping(obj, "status").items() if k != "conditions"}
    return {**kept, "conditions": [AVAILABLE, condition("Synced", "ReconcileError", said, true=False)]}


def owned(world: World, api: str, kind: str, label: object) -> Iterator[Manifest]:
    """Yield the resources of a kind that belong to one cluster."""
    for obj in world.of_kind(api, kind):
        if paths.labels(obj).get(c.CLUSTER_LABEL) == label:
            yield obj


def cluster_of(obj: Mapping[str, Any]) -> object:
    return paths.labels(obj).get(c.CLUSTER_LABEL)


def named(obj: Mapping[str, Any], *path: str) -> str:
    return paths.text(obj, "spec", "forProvider", *path, "name")


def _referred(*refs: tuple[str, str, str]) -> Why:
    """Say which referred resource has not been created; each is (field, API version, kind)."""

    def missing(obj: Manifest, world: World) -> str:
        for field, api, kind in refs:
            name = named(obj, field)
            target = Ref(api, kind, paths.namespace(obj), name)
            if name and not paths.text(world.objects.get(target), "status", "atProvider", "id"):
                return f"cannot resolve references: {kind} {name} has no ID yet"
        return ""

    return missing


def _subnet(obj: Manifest, _: World) -> Manifest:
    """A subnet reports both words for its zone, whichever it was asked by."""
    spec = paths.mapping(obj, "spec", "forProvider")
    region = paths.text(spec, "region")
    known = facts.regions().get(region)
    ids = known.zones if known else tuple(f"xx1-az{n}" for n in range(1, 7))
    zone_id, name = paths.text(spec, "availabilityZoneId"), paths.text(spec, "availabilityZone")
    if not zone_id and not name:
        zone_id = ids[int(names.digest(identity(obj)), 16) % 2]
    if not zone_id:
        # In this account names and IDs are out of step by one, as they are in many.
        zone_id = ids[(ord(name[-1]) - ord("a") + 1) % len(ids)]
    if not name:
        name = f"{region}{chr(ord('a') + (ids.index(zone_id) - 1) % len(ids))}" if zone_id in ids else region
    vpc = _vpc_of(obj) or "vpc-0a1b"
    return {"availabilityZone": name, "availabilityZoneId": zone_id, "vpcId": vpc}


def _vpc_of(obj: Manifest) -> str:
    name = named(obj, "vpcIdRef")
    return f"vpc-{names.digest(name, length=17)}" if name else ""


def _route(obj: Manifest, world: World) -> Manifest:
    name = named(obj, "natGatewayIdRef")
    gateway = world.objects.get(Ref(c.EC2_API, "NATGateway", paths.namespace(obj), name))
    return {"natGatewayId": identity(gateway)} if gateway else {}


def _cluster(obj: Manifest, _: World) -> Manifest:
    name = paths.name(obj)
    spec = paths.mapping(obj, "spec", "forProvider")
    return {
        "version": paths.text(spec, "version"),
        "endpoint": f"https://{names.digest(name).upper()}.eks.example.org",
        "certificateAuthority": [{"data": "Zm9v"}],
        "vpcConfig": {
            **paths.mapping(spec, "vpcConfig"),
            "clusterSecurityGroupId": f"sg-{names.digest(name, 'cluster', length=17)}",
        },
    }


def _template(obj: Manifest, _: World) -> Manifest:
    # Each change of what is asked for is a new version.
    return {"latestVersion": paths.integer(obj, "metadata", "generation", default=1)}


def desired_size(group: Mapping[str, Any]) -> int:
    """Return the nodes a group has: what is held, else what it has, else what it started with."""
    held = paths.integer(group, "spec", "forProvider", "scalingConfig", "desiredSize")
    has = paths.integer(group, "status", "atProvider", "scalingConfig", "desiredSize")
    start = paths.integer(group, "spec", "initProvider", "scalingConfig", "desiredSize", default=0) or 0
    return held if held is not None else has if has is not None else start


def _group(obj: Manifest, _: World) -> Manifest:
    spec = paths.mapping(obj, "spec", "forProvider")
    return {
        "version": paths.text(spec, "version"),
        "launchTemplate": dict(paths.mapping(spec, "launchTemplate")),
        "scalingConfig": {**paths.mapping(spec, "scalingConfig"), "desiredSize": desired_size(obj)},
        "resources": [{"autoscalingGroups": [{"name": f"eks-{paths.name(obj)}"}]}],
    }


def _addon(obj: Manifest, world: World) -> Manifest:
    asked = paths.text(obj, "spec", "forProvider", "addonVersion")
    before = paths.text(obj, "status", "atProvider", "addonVersion")
    cluster = next(owned(world, c.EKS_API, "Cluster", cluster_of(obj)), {})
    default = f"v{paths.text(cluster, 'spec', 'forProvider', 'version') or '1'}.0-eksbuild.1"
    return {"addonVersion": asked or before or default}


def _no_cluster(obj: Manifest, world: World) -> str:
    """Say why EKS refuses what belongs to a cluster: it is not active."""
    for cluster in owned(world, c.EKS_API, "Cluster", cluster_of(obj)):
        if paths.text(cluster, "status", "atProvider", "status") == "ACTIVE":
            return ""
    return "ResourceNotFoundException: No cluster found for this name"


_NO_ARN = ("id",)
_VPC = ("vpcIdRef", c.EC2_API, "VPC")
_FILES = ("fileSystemIdRef", c.EFS_API, "FileSystem")
_TABLE = ("routeTableIdRef", c.EC2_API, "RouteTable")

RULES: dict[tuple[str, str], AwsRule] = {
    (c.EC2_API, "VPC"): AwsRule(),
    (c.EC2_API, "VPCIPv4CidrBlockAssociation"): AwsRule(missing=_referred(_VPC), reports=_NO_ARN),
    (c.EC2_API, "DefaultSecurityGroup"): AwsRule(missing=_referred(_VPC)),
    (c.EC2_API, "Subnet"): AwsRule(more=_subnet, missing=_referred(_VPC)),
    (c.EC2_API, "InternetGateway"): AwsRule(missing=_referred(_VPC)),
    (c.EC2_API, "EIP"): AwsRule(),
    (c.EC2_API, "NATGateway"): AwsRule(
        after=2,
        reports=_NO_ARN,
        missing=_referred(("allocationIdRef", c.EC2_API, "EIP"), ("subnetIdRef", c.EC2_API, "Subnet")),
    ),
    (c.EC2_API, "RouteTable"): AwsRule(missing=_referred(_VPC)),
    (c.EC2_API, "Route"): AwsRule(
        more=_route,
        reports=_NO_ARN,
        missing=_referred(
            _TABLE,
            ("natGatewayIdRef", c.EC2_API, "NATGateway"),
            ("gatewayIdRef", c.EC2_API, "InternetGateway"),
        ),
    ),
    (c.EC2_API, "RouteTableAssociation"): AwsRule(
        missing=_referred(_TABLE, ("subnetIdRef", c.EC2_API, "Subnet")), reports=_NO_ARN
    ),
    (c.EC2_API, "SecurityGroup"): AwsRule(),
    (c.EC2_API, "SecurityGroupIngressRule"): AwsRule(
        missing=_referred(("securityGroupIdRef", c.EC2_API, "SecurityGroup"))
    ),
    (c.EC2_API, "SecurityGroupEgressRule"): AwsRule(
        missing=_referred(("securityGroupIdRef", c.EC2_API, "SecurityGroup"))
    ),
    (c.EC2_API, "PlacementGroup"): AwsRule(),
    (c.EC2_API, "LaunchTemplate"): AwsRule(more=_template),
    (c.IAM_API, "Role"): AwsRule(),
    (c.KMS_API, "Key"): AwsRule(),
    (c.KMS_API, "Alias"): AwsRule(missing=_referred(("targetKeyIdRef", c.KMS_API, "Key"))),
    (c.LOGS_API, "Group"): AwsRule(),
    (c.EKS_API, "Cluster"): AwsRule(
        after=3,
        more=_cluster,
        states=True,
        missing=_referred(("roleArnRef", c.IAM_API, "Role")),
    ),
    (c.EKS_API, "ClusterAuth"): AwsRule(missing=_no_cluster, reports=()),
    (c.EKS_API, "AccessEntry"): AwsRule(missing=_no_cluster, reports=_NO_ARN),
    (c.EKS_API, "AccessPolicyAssociation"): AwsRule(missing=_no_cluster, reports=_NO_ARN),
    (c.EKS_API, "Addon"): AwsRule(more=_addon, missing=_no_cluster),
    (c.EKS_API, "PodIdentityAssociation"): AwsRule(missing=_no_cluster, reports=_NO_ARN),
    (c.EKS_API, "NodeGroup"): AwsRule(after=2, more=_group, states=True, missing=_no_cluster),
    (c.EFS_API, "FileSystem"): AwsRule(),
    (c.EFS_API, "FileSystemPolicy"): AwsRule(missing=_referred(_FILES), reports=_NO_ARN),
    (c.EFS_API, "MountTarget"): AwsRule(after=2, missing=_referred(_FILES), reports=_NO_ARN),
}
