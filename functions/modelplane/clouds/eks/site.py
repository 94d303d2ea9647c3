"""What the parts of one EKSCluster are composed with: its spec, and the values that only AWS can tell."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from modelplane import contracts as c
from modelplane import names
from modelplane.api.eks import EKSClusterSpec, Network
from modelplane.clouds.eks import network
from modelplane.clouds.eks.aws import Aws
from modelplane.clouds.eks.report import ACTIVE
from modelplane.core import Inputs, Ready, paths

CLUSTER = "cluster"
CLUSTER_AUTH = "cluster-auth"
NETWORK = "network"
# A cluster or node group that is being updated serves all the while.
_SERVING = (ACTIVE, "UPDATING")


def serving(observed: Mapping[str, Any] | None) -> Ready:
    """Return the readiness rule of what EKS has a state for; Ready alone only says that it exists."""
    here = paths.text(observed, "status", "atProvider", "status")
    return Ready.at("status", "atProvider", "status", value=here if here in _SERVING else ACTIVE)


@dataclass(frozen=True, slots=True)
class Site:
    """One EKSCluster.

    Attributes:
        inputs: of the pass.
        spec: of the cluster.
        aws: the envelope of its resources.
    """

    inputs: Inputs
    spec: EKSClusterSpec
    aws: Aws

    @classmethod
    def of(cls, inputs: Inputs, spec: EKSClusterSpec) -> "Site":
        """Return the site of a composite."""
        label = paths.labels(inputs.composite).get(c.CLUSTER_LABEL)
        aws = Aws(
            cluster=names.eks_cluster(inputs.namespace, inputs.name),
            label=label if isinstance(label, str) and label else names.label_value(inputs.name),
            region=spec.region,
            credentials=spec.credentials,
            tags=spec.tags,
            boundary=spec.access.permissions_boundary_arn,
        )
        return cls(inputs, spec, aws)

    @property
    def asked_network(self) -> Network:
        """The network asked for; v0.4's `networking` decides instead where it is given."""
        return self.spec.network or Network()

    def seen(self, key: str, *path: str) -> str:
        """Return a text that AWS has said of a resource; empty where it has not."""
        return paths.text(self.inputs.observed.get(key), "status", "atProvider", *path)

    def role_arn(self, key: str) -> str:
        """Return the ARN of one of the cluster's roles; empty until it is known."""
        return self.seen(key, "arn")

    @property
    def security_group(self) -> str:
        """ID of the group that EKS makes for control plane and nodes; empty until it is known."""
        return self.seen(CLUSTER, "vpcConfig", "clusterSecurityGroupId")

    @property
    def vpc(self) -> str:
        """ID of the VPC; empty until it is known."""
        return paths.text(self.inputs.observed.get(NETWORK), "status", "vpcId")

    def subnets(self, tier: str = network.PRIVATE) -> list[Mapping[str, Any]]:
        """Return the subnets of a tier that the network has told of."""
        told = paths.mappings(self.inputs.observed.get(NETWORK), "status", "subnets")
        return [x for x in told if x.get("tier") == tier and paths.text(x, "id") and paths.text(x, "zone")]

    def per_zone(self, tier: str = network.PRIVATE) -> list[Mapping[str, Any]]:
        """Return one subnet of each zone: a second one there adds nothing but addresses."""
        found: dict[str, Mapping[str, Any]] = {}
        for subnet in sorted(self.subnets(tier), key=lambda x: (str(x["zone"]), str(x["id"]))):
            found.setdefault(paths.text(subnet, "zoneId") or str(subnet["zone"]), subnet)
        return list(found.values())

    @property
    def whole_network(self) -> bool:
        """Whether the network has told of its subnets, which it does of all at once."""
        return bool(self.subnets())
