"""EKS add-ons: what each needs before it can work, and the role its pods take.

They run in the cluster and go with it at AWS, so none is deleted on its own: a CNI or CSI driver that left
before the nodes would strand network interfaces and volumes.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from modelplane import contracts as c
from modelplane.clouds.eks import iam, network
from modelplane.clouds.eks.site import CLUSTER, Site
from modelplane.core import paths
from modelplane.core.paths import Manifest
from modelplane.core.plan import Desired, Waiting
from modelplane.facts import aws

# No version is sent unless one has to move: filled in late, the default of the day would be ours to keep.
_POLICIES = ("Create", "Observe", "Update")
_KUBE_PROXY = "kube-proxy"


@dataclass(frozen=True, slots=True)
class Addon:
    """An add-on.

    Attributes:
        name: at EKS.
        role: composed key of the role its pods take; empty where they call no AWS API.
        account: the service account that takes it, in kube-system.
        nodes: whether it comes up only on nodes; the others are DaemonSets, which are whole without any.
    """

    name: str
    role: str = ""
    account: str = ""
    nodes: bool = False

    @property
    def key(self) -> str:
        """Its composed key."""
        return f"addon-{self.name}"


CNI = Addon("vpc-cni", iam.CNI_ROLE, "aws-node")
BEFORE_NODES = (CNI, Addon(_KUBE_PROXY), Addon("eks-pod-identity-agent"))
AFTER_NODES = (
    Addon("coredns", nodes=True),
    Addon("aws-ebs-csi-driver", iam.EBS_ROLE, "ebs-csi-controller-sa", nodes=True),
    Addon("aws-efs-csi-driver", iam.EFS_ROLE, "efs-csi-controller-sa", nodes=True),
    Addon("metrics-server", nodes=True),
    # What node repair acts on: it knows the faults that an NVIDIA driver reports.
    Addon("eks-node-monitoring-agent", nodes=True),
)


def resources(site: Site, system_pool: str) -> Iterator[Desired | Waiting]:
    """Yield all add-ons; those that need nodes wait for the system pool."""
    for addon in (*BEFORE_NODES, *AFTER_NODES):
        yield _addon(site, addon, (system_pool,) if addon.nodes else (CLUSTER,))


def _addon(site: Site, addon: Addon, after: tuple[str, ...]) -> Desired | Waiting:
    parameters: Manifest = {
        "addonName": addon.name,
        "clusterName": site.aws.cluster,
        "resolveConflictsOnCreate": "OVERWRITE",
        "resolveConflictsOnUpdate": "OVERWRITE",
    }
    if addon.role:
        if not (arn := site.role_arn(addon.role)):
            return Waiting(addon.key, f"the ARN of {addon.role}")
        parameters["podIdentityAssociation"] = [{"serviceAccount": addon.account, "roleArn": arn}]
    values = _values(site, addon)
    if values is None:
        return Waiting(addon.key, "the subnets for pods and the cluster's security group")
    if values:
        parameters["configurationValues"] = json.dumps(values, sort_keys=True)
    if version := _version(site, addon):
        parameters["addonVersion"] = version
    resource = site.aws.resource(c.EKS_API, "Addon", addon.key, parameters, policies=_POLICIES)
    return Desired(addon.key, resource, after=after)


def _values(site: Site, addon: Addon) -> Manifest | None:
    if addon is CNI:
        return _cni(site)
    if addon.role == iam.EBS_ROLE:
        tags = {**site.spec.tags, c.CLUSTER_LABEL: site.aws.cluster}
        return {"controller": {"extraVolumeTags": tags}}
    return {}


def _cni(site: Site) -> Manifest | None:
    # Without it the teams' network policies are admitted and enforce nothing.
    values: Manifest = {"enableNetworkPolicy": "true"}
    net = site.asked_network
    if not net.secondary_cidr or not net.pods_in_secondary:
        return values
    entries: Mapping[str, Manifest] = {
        paths.text(subnet, "name"): {"id": subnet["id"], "securityGroups": [site.security_group]}
        for subnet in site.subnets(network.PODS)
    }
    if not entries or not site.whole_network or not site.security_group or "" in entries:
        return None
    values["env"] = {
        "AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG": "true",
        "ENI_CONFIG_LABEL_DEF": "topology.kubernetes.io/zone",
    }
    values["eniConfig"] = {
        "create": True,
        "region": site.spec.region,
        "subnets": dict(sorted(entries.items())),
    }
    return values


def _version(site: Site, addon: Addon) -> str:
    """Return the version to ask for: none, but for a kube-proxy that an upgrade left behind."""
    observed = site.inputs.observed.get(addon.key)
    asked = paths.text(observed, "spec", "forProvider", "addonVersion")
    if addon.name != _KUBE_PROXY:
        return asked
    cluster = site.seen(CLUSTER, "version")
    runs = site.seen(addon.key, "addonVersion")
    if not cluster or not runs or runs.startswith(f"v{cluster}."):
        return asked
    return aws.addon_versions()[_KUBE_PROXY].get(cluster, asked)
