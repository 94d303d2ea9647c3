"""The EKS control plane: its key, its logs, itself, and who may reach it."""

from collections.abc import Iterator

from modelplane import contracts as c
from modelplane import names
from modelplane.clouds.eks import iam
from modelplane.clouds.eks.site import CLUSTER, CLUSTER_AUTH, Site, serving
from modelplane.core import paths
from modelplane.core.builders import WITHOUT_DELETE
from modelplane.core.paths import Manifest
from modelplane.core.plan import Desired, Waiting

KEY, KEY_ALIAS, LOG_GROUP = "key", "key-alias", "log-group"
_NO_KEY = "None"
_ADMIN = "aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"
# Access entries and their policies go with the cluster at AWS: removing them first would lock out whoever
# takes it down. They are deleted one by one only when their principal leaves the spec.
_ENTRY, _POLICY = "access-entry-", "access-policy-"


def key_arn(site: Site) -> str:
    """Return the ARN of the key for Secrets; empty for none, and while ours has not told it."""
    asked = site.spec.encryption.kms_key
    if asked == c.MANAGED:
        return site.seen(KEY, "arn") or _as_made(site, "encryptionConfig", "provider", "keyArn")
    return "" if asked == _NO_KEY else asked


def _as_made(site: Site, *path: str) -> str:
    return paths.text(site.inputs.observed.get(CLUSTER), "spec", "forProvider", *path)


def kubeconfig_secret(site: Site) -> str:
    """Return the name of the Secret with the cluster's kubeconfig."""
    return site.aws.name("kubeconfig")


def resources(site: Site, version: str, unfit: str) -> Iterator[Desired | Waiting]:
    """Yield the control plane at a version; `unfit` says why its network cannot carry one, if it cannot."""
    if site.spec.encryption.kms_key == c.MANAGED:
        yield from _key(site)
    log_group = {"retentionInDays": site.spec.logging.retention_days}
    yield Desired(
        LOG_GROUP,
        site.aws.resource(
            c.LOGS_API, "Group", LOG_GROUP, log_group, external_name=f"/aws/eks/{site.aws.cluster}/cluster"
        ),
        # EKS makes a group without an end by itself where there is none, and writes to it to the last.
        outlives=(CLUSTER,),
    )
    yield _cluster(site, version, unfit)
    yield _auth(site)
    yield from _principals(site)


def _key(site: Site) -> Iterator[Desired]:
    parameters = {
        "description": f"Secrets of EKS cluster {site.aws.cluster}",
        "enableKeyRotation": True,
        "deletionWindowInDays": 30,
    }
    yield Desired(KEY, site.aws.resource(c.KMS_API, "Key", KEY, parameters), outlives=(CLUSTER,))
    alias = {"targetKeyIdRef": {"name": site.aws.name(KEY)}}
    resource = site.aws.resource(
        c.KMS_API, "Alias", KEY_ALIAS, alias, external_name=f"alias/{site.aws.cluster}"
    )
    yield Desired(KEY_ALIAS, resource)


def _cluster(site: Site, version: str, unfit: str) -> Desired | Waiting:
    arn = key_arn(site)
    if not arn and site.spec.encryption.kms_key != _NO_KEY:
        return Waiting(CLUSTER, "the ARN of its key")
    subnets = _subnets(site)
    if not subnets:
        return Waiting(CLUSTER, "the private subnets of its network")
    access, log_types = site.spec.access, sorted(site.spec.logging.types)
    parameters: Manifest = {
        "accessConfig": {
            "authenticationMode": "API",
            "bootstrapClusterCreatorAdminPermissions": _creator_is_admin(site),
        },
        # What EKS would plant unasked would have to be taken over by our add-ons.
        "bootstrapSelfManagedAddons": False,
        "deletionProtection": site.spec.deletion_protection,
        "enabledClusterLogTypes": log_types,
        "roleArnRef": {"name": site.aws.name(iam.CLUSTER_ROLE)},
        "upgradePolicy": {"supportType": site.spec.support_type},
        "version": version,
        "vpcConfig": {
            "endpointPrivateAccess": True,
            "endpointPublicAccess": bool(access.public_cidrs),
            "publicAccessCidrs": sorted(access.public_cidrs),
            "subnetIds": subnets,
        },
    }
    if not access.public_cidrs:
        del parameters["vpcConfig"]["publicAccessCidrs"]
    if arn:
        parameters["encryptionConfig"] = {"provider": {"keyArn": arn}, "resources": ["secrets"]}
    manifest = site.aws.resource(c.EKS_API, "Cluster", CLUSTER, parameters)
    # The cluster bears its name at EKS here too: references and the autoscaler's tags go by it.
    manifest["metadata"]["name"] = site.aws.cluster
    return Desired(
        CLUSTER,
        manifest,
        serving(site.inputs.observed.get(CLUSTER)),
        after=(iam.CLUSTER_ROLE, LOG_GROUP),
        outlives=(CLUSTER_AUTH,),
        blocked=unfit,
    )


def _creator_is_admin(site: Site) -> bool:
    """Return whether the creator becomes administrator: decided once, EKS neither changes nor tells it."""
    made = paths.at(
        site.inputs.observed.get(CLUSTER),
        "spec",
        "forProvider",
        "accessConfig",
        "bootstrapClusterCreatorAdminPermissions",
    )
    return made if isinstance(made, bool) else not site.spec.access.admin_principals


def _subnets(site: Site) -> list[str]:
    """Return the private subnets: those it was made with, since EKS lets it leave no zone."""
    made = paths.items(site.inputs.observed.get(CLUSTER), "spec", "forProvider", "vpcConfig", "subnetIds")
    if made and all(isinstance(subnet, str) for subnet in made):
        return made
    return sorted(str(subnet["id"]) for subnet in site.subnets()) if site.whole_network else []


def _auth(site: Site) -> Desired:
    parameters = {"clusterNameRef": {"name": site.aws.cluster}, "refreshPeriod": "10m0s"}
    manifest = site.aws.resource(
        c.EKS_API, "ClusterAuth", CLUSTER_AUTH, parameters, labels={c.ROLE_LABEL: c.ROLE_LIFELINE}
    )
    manifest["spec"]["writeConnectionSecretToRef"] = {"name": kubeconfig_secret(site)}
    return Desired(CLUSTER_AUTH, manifest, after=(CLUSTER,))


def _principals(site: Site) -> Iterator[Desired]:
    observed, wanted = site.inputs.observed, set()
    for principal in sorted(set(site.spec.access.admin_principals)):
        mark = names.digest(principal)
        wanted.add(mark)
        yield _entry(site, mark, principal, delete=False)
        yield _policy(site, mark, principal, delete=False)
    for key in sorted(observed):
        for prefix, make in ((_ENTRY, _entry), (_POLICY, _policy)):
            mark = key.removeprefix(prefix)
            principal = paths.text(observed[key], "spec", "forProvider", "principalArn")
            policies = paths.items(observed[key], "spec", "managementPolicies")
            # First it may be deleted, then it is left out: in one step it would stay at AWS.
            if key.startswith(prefix) and mark not in wanted and principal and "Delete" not in policies:
                yield make(site, mark, principal, delete=True)


def _entry(site: Site, mark: str, principal: str, *, delete: bool) -> Desired:
    key = f"{_ENTRY}{mark}"
    parameters = {"clusterName": site.aws.cluster, "principalArn": principal, "type": "STANDARD"}
    policies = [*WITHOUT_DELETE, "Delete"] if delete else WITHOUT_DELETE
    resource = site.aws.resource(c.EKS_API, "AccessEntry", key, parameters, policies=policies)
    return Desired(key, resource, after=(CLUSTER,))


def _policy(site: Site, mark: str, principal: str, *, delete: bool) -> Desired:
    key = f"{_POLICY}{mark}"
    parameters = {
        "accessScope": {"type": "cluster"},
        "clusterName": site.aws.cluster,
        "policyArn": site.aws.arn("eks", _ADMIN),
        "principalArn": principal,
    }
    policies = [*WITHOUT_DELETE, "Delete"] if delete else WITHOUT_DELETE
    resource = site.aws.resource(c.EKS_API, "AccessPolicyAssociation", key, parameters, policies=policies)
    entry = f"{_ENTRY}{mark}"
    return Desired(key, resource, after=(entry,) if delete is False else ())
