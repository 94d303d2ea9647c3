"""One envelope for every AWS resource of a cluster: name, labels, tags, region and credentials."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from modelplane import contracts as c
from modelplane import names
from modelplane.api.eks import Credentials
from modelplane.core.paths import Manifest

# Kinds that take no tags, and IAM, which knows no regions (provider-upjet-aws v2.6.0, package/crds).
_TAGLESS = {
    "Route",
    "RouteTableAssociation",
    "VPCIPv4CidrBlockAssociation",
    "Alias",
    "MountTarget",
    "FileSystemPolicy",
    "AccessPolicyAssociation",
    "ClusterAuth",
}
_ISO = {"us-iso-": "aws-iso", "us-isob-": "aws-iso-b", "eu-isoe-": "aws-iso-e", "us-isof-": "aws-iso-f"}


def partition(region: str) -> str:
    """Return the partition of a region: the second part of every ARN there."""
    if region.startswith("cn-"):
        return "aws-cn"
    if region.startswith("us-gov-"):
        return "aws-us-gov"
    return next((found for prefix, found in _ISO.items() if region.startswith(prefix)), "aws")


def document(*statements: Manifest) -> str:
    """Return an IAM policy document; always the same text for the same statements."""
    return json.dumps({"Version": "2012-10-17", "Statement": list(statements)}, sort_keys=True)


@dataclass(frozen=True, slots=True)
class Aws:
    """What every AWS resource of one cluster shares.

    Attributes:
        cluster: the cluster's name at EKS.
        label: value of the cluster label.
        region: of all of them.
        credentials: the provider config.
        tags: the user's.
        boundary: ARN of the policy that bounds every role; empty for none.
    """

    cluster: str
    label: str
    region: str
    credentials: Credentials
    tags: Mapping[str, str] = field(default_factory=dict)
    boundary: str = ""

    def name(self, *parts: str) -> str:
        """Return the name of one of the cluster's resources."""
        return names.of_cluster(self.cluster, *parts)

    def arn(self, service: str, rest: str) -> str:
        """Return an ARN without region and with the account that `rest` begins with."""
        return f"arn:{partition(self.region)}:{service}::{rest}"

    def all_tags(self, name: str = "") -> dict[str, str]:
        """Return the user's tags beside ours; a Name of the user's own stands."""
        ours = {c.CLUSTER_LABEL: self.cluster}
        return {**({"Name": name} if name else {}), **self.tags, **ours}

    def resource(
        self,
        api: str,
        kind: str,
        key: str,
        for_provider: Mapping[str, Any],
        *,
        labels: Mapping[str, str] | None = None,
        tags: Mapping[str, str] | None = None,
        policies: Sequence[str] | None = None,
        external_name: str = "",
    ) -> Manifest:
        """Return a managed resource.

        Args:
            api: its API version.
            kind: its kind.
            key: its composed key, from which its name derives.
            for_provider: its parameters, without region and tags.
            labels: beside the cluster's and the key.
            tags: beside the user's and ours; the kinds without tags get none.
            policies: what the provider may do with it; None for everything.
            external_name: where it is not the name and not AWS's choice.
        """
        name = self.name(key)
        parameters = dict(for_provider)
        if api != c.IAM_API:
            parameters["region"] = self.region
        if kind not in _TAGLESS and (policies is None or "Create" in policies):
            parameters["tags"] = {**self.all_tags(name), **(tags or {})}
        spec: Manifest = {
            "forProvider": parameters,
            "providerConfigRef": {"kind": self.credentials.type, "name": self.credentials.name},
        }
        if policies is not None:
            spec["managementPolicies"] = list(policies)
        metadata: Manifest = {
            "name": name,
            "labels": {
                c.CLUSTER_LABEL: self.label,
                c.RESOURCE_LABEL: names.label_value(key),
                **(labels or {}),
            },
        }
        if external_name:
            metadata["annotations"] = {c.EXTERNAL_NAME_ANNOTATION: external_name}
        return {"apiVersion": api, "kind": kind, "metadata": metadata, "spec": spec}
