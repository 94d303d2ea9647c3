"""Shared storage: an encrypted EFS file system that every zone mounts over TLS."""

from collections.abc import Iterator

from modelplane import contracts as c
from modelplane.clouds.eks.aws import document
from modelplane.clouds.eks.site import CLUSTER, Site
from modelplane.core.builders import WITHOUT_DELETE
from modelplane.core.paths import Manifest
from modelplane.core.plan import Desired, Waiting

FILE_SYSTEM, POLICY = "file-system", "file-system-policy"
GROUP, RULE = "file-system-security-group", "file-system-ingress"
_NFS = 2049


def resources(site: Site) -> Iterator[Desired | Waiting]:
    """Yield the file system, and a mount target per zone as soon as its subnets are known."""
    parameters = {
        "creationToken": site.aws.cluster,
        "encrypted": True,
        "performanceMode": "generalPurpose",
        "throughputMode": "elastic",
    }
    yield Desired(FILE_SYSTEM, site.aws.resource(c.EFS_API, "FileSystem", FILE_SYSTEM, parameters))
    policy = {"fileSystemIdRef": {"name": site.aws.name(FILE_SYSTEM)}, "policy": _tls_only()}
    # It goes with the file system.
    resource = site.aws.resource(c.EFS_API, "FileSystemPolicy", POLICY, policy, policies=WITHOUT_DELETE)
    yield Desired(POLICY, resource, after=(FILE_SYSTEM,))
    yield security_group(site, GROUP, "NFS from the cluster to its EFS file system")
    yield _ingress(site)
    yield from _targets(site)


def security_group(site: Site, key: str, description: str) -> Desired | Waiting:
    """Return a security group in the cluster's VPC; it waits until that is known."""
    if not site.vpc:
        return Waiting(key, "the ID of the VPC")
    name = site.aws.name(key)
    parameters = {"description": description, "name": name, "vpcId": site.vpc}
    return Desired(key, site.aws.resource(c.EC2_API, "SecurityGroup", key, parameters))


def _ingress(site: Site) -> Desired | Waiting:
    if not site.security_group:
        return Waiting(RULE, "the cluster's security group")
    parameters = {
        "fromPort": _NFS,
        "ipProtocol": "tcp",
        "referencedSecurityGroupId": site.security_group,
        "securityGroupIdRef": {"name": site.aws.name(GROUP)},
        "toPort": _NFS,
    }
    # It goes with its group: gone before the last unmount, pods would hang on a dead server.
    resource = site.aws.resource(
        c.EC2_API, "SecurityGroupIngressRule", RULE, parameters, policies=WITHOUT_DELETE
    )
    return Desired(RULE, resource, after=(GROUP,))


def target_key(zone: str) -> str:
    """Return the composed key of a zone's mount target."""
    return f"mount-target-{zone}"


def _targets(site: Site) -> Iterator[Desired | Waiting]:
    known = {target_key(str(subnet["zone"])): str(subnet["id"]) for subnet in site.per_zone()}
    for key in sorted({*known, *(k for k in site.inputs.observed if k.startswith(target_key("")))}):
        if key not in known:
            yield Waiting(key, "the subnet of its zone")
            continue
        parameters = {
            "fileSystemIdRef": {"name": site.aws.name(FILE_SYSTEM)},
            "securityGroupsRefs": [{"name": site.aws.name(GROUP)}],
            "subnetId": known[key],
        }
        resource = site.aws.resource(c.EFS_API, "MountTarget", key, parameters)
        yield Desired(key, resource, after=(FILE_SYSTEM, GROUP), outlives=(CLUSTER,))


def _tls_only() -> str:
    everyone = {"AWS": "*"}
    mounts: Manifest = {
        "Effect": "Allow",
        "Principal": everyone,
        "Action": [
            "elasticfilesystem:ClientMount",
            "elasticfilesystem:ClientRootAccess",
            "elasticfilesystem:ClientWrite",
        ],
        "Condition": {"Bool": {"elasticfilesystem:AccessedViaMountTarget": "true"}},
    }
    plain: Manifest = {
        "Effect": "Deny",
        "Principal": everyone,
        "Action": "*",
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
    }
    return document(mounts, plain)
