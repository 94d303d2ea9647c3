"""What clusters on EKS are refused at admission, and which of their fields never change."""

from __future__ import annotations

from typing import Any

import pytest

from contract.test_platform_admission import POOL, Case, named, refusals, with_spec

RESERVED = {**POOL, "zones": ["us-west-2a", "us-west-2b"], "reservation": {"id": "cr-0a"}}
BLOCK = {**POOL, "zones": ["us-west-2a", "us-west-2b"], "capacityBlock": {"capacityReservationId": "cr-0a"}}
GROUP = {"resourceGroupArn": "arn:aws:resource-groups:us-west-2:111122223333:group/g"}
ZONES = "cluster.eks.network"

REFUSED = [
    Case("inferenceclusters", "nodePools", [BLOCK], "a block is in one zone", "name that one zone"),
    Case("inferenceclusters", "nodePools", [RESERVED], "so is a reservation", "name that one zone"),
    Case(
        "inferenceclusters", "nodePools.0.zones", ["us-east-1a"], "another region", "zones of the EKS region"
    ),
    Case(
        "inferenceclusters",
        "nodePools.0.zones",
        ["us-west-2-lax-1a"],
        "no groups there",
        "zones of the EKS region",
    ),
    Case(
        "inferenceclusters",
        "nodePools.0.zones",
        ["use1-az3"],
        "EKS refuses it",
        "EKS takes no cluster subnets",
    ),
    Case("eksclusters", "nodePools.0.zones", ["us-east-1a"], "another region", "zones of the region"),
    Case("eksclusters", "nodePools.0.zones", ["use1-az3"], "EKS refuses it", "EKS takes no cluster subnets"),
    Case(
        "inferenceclusters",
        ZONES,
        {"zones": ["us-east-1a", "us-west-2a"]},
        "another region",
        "zones of the region",
    ),
    Case(
        "inferenceclusters",
        ZONES,
        {"zones": ["cac1-az3", "cac1-az1"]},
        "EKS refuses it",
        "takes no cluster subnets",
    ),
    Case("inferenceclusters", ZONES, {"zones": list("abcdefg")}, "six zones at most", "zones"),
    Case("inferenceclusters", ZONES, {"cidr": "10.0.0.0/8"}, "wider than AWS takes", "cidr"),
    Case("inferenceclusters", ZONES, {"cidr": "10.0.0.0/25"}, "no room for two zones", "cidr"),
    Case("inferenceclusters", "cluster.eks.kubernetesVersion", "1.33", "no stable DRA", "from 1.34 on"),
    Case("inferenceclusters", "cluster.eks.kubernetesVersion", "1.36.1", "no minor version", "from 1.34 on"),
    Case("inferenceclusters", "cluster.eks.access", {"publicCidrs": ["0.0.0.0"]}, "no range", "publicCidrs"),
    Case("inferenceclusters", ZONES, {"cidr": "10.0.256.0/16"}, "no address", "cidr"),
    Case(
        "inferenceclusters",
        "cluster.eks.access",
        {"publicCidrs": ["999.0.0.0/8"]},
        "no address",
        "publicCidrs",
    ),
    Case("inferenceclusters", "cluster.eks.access", {"adminPrincipals": ["me"]}, "no ARN", "adminPrincipals"),
    Case(
        "inferenceclusters",
        "nodePools.0.maxNodeCount",
        0,
        "EKS makes no group without a node",
        "maxNodeCount",
    ),
    Case("inferenceclusters", "nodePools.0.nodeCount", -1, "fewer than none", "nodeCount"),
    Case("inferenceclusters", "nodePools.0.localStorage", "RAID1", "no such layout", "localStorage"),
]

ADMITTED = [
    Case("inferenceclusters", "nodePools", [{**RESERVED, "reservation": GROUP}], "a group may span zones"),
    Case("inferenceclusters", "nodePools.0.zones", ["us-west-2a", "usw2-az2"], "names and IDs"),
    Case("inferenceclusters", "cluster.eks.network", {"zones": ["us-west-2a", "usw2-az2"]}, "names and IDs"),
    Case("inferenceclusters", "cluster.eks.kubernetesVersion", "1.40", "versions to come"),
    Case("eksclusters", "nodePools.0.zones", ["us-west-2a"], "one zone"),
]


@pytest.mark.parametrize("case", REFUSED, ids=named)
def test_what_eks_or_ec2_would_refuse_is_refused_here_with_the_field_named(case: Case) -> None:
    found = refusals(case.kind, with_spec(case.kind, case.where, case.value))
    assert any(case.says in line for line in found), (case.reason, found)


@pytest.mark.parametrize("case", ADMITTED, ids=named)
def test_what_eks_and_ec2_take_is_admitted(case: Case) -> None:
    assert refusals(case.kind, with_spec(case.kind, case.where, case.value)) == [], case.reason


def test_zones_of_other_sources_are_none_of_our_business() -> None:
    new = with_spec("inferenceclusters", "cluster", {"source": "GKE", "gke": {"region": "europe-west4"}})
    new["spec"]["nodePools"] = [{**POOL, "zones": ["europe-west4-a"]}]
    assert refusals("inferenceclusters", new) == []


EXISTING = {"vpcId": "vpc-0a", "privateSubnetIds": ["subnet-0a", "subnet-0b"]}
OTHER = {"vpcId": "vpc-0b", "privateSubnetIds": ["subnet-0c", "subnet-0d"]}
PAIR = ["us-west-2a", "us-west-2b"]
CHANGES: list[tuple[str, Any, Any, str, str]] = [
    ("region", "us-west-2", "eu-west-1", "region cannot change", "all of it is there"),
    ("network", {"cidr": "10.1.0.0/16"}, {"cidr": "10.2.0.0/16"}, "cidr cannot change", "AWS changes none"),
    ("network", {"cidr": "10.1.0.0/16"}, None, "cidr cannot change", "absent means another"),
    ("network", None, {"cidr": "10.0.0.0/16"}, "", "which is the default"),
    ("network", {"zones": PAIR}, {"zones": ["us-west-2a", "us-west-2c"]}, "zones cannot change", "subnets"),
    ("network", {"zones": PAIR}, None, "zones cannot change", "absent means others"),
    ("network", {"existing": EXISTING}, {"existing": OTHER}, "existing cannot change", "another VPC"),
    ("network", None, {"existing": EXISTING}, "existing cannot change", "from ours to another"),
    (
        "network",
        {"secondaryCidr": "100.64.0.0/16"},
        None,
        "secondaryCidr cannot change",
        "pods have addresses in it",
    ),
    ("network", None, {"secondaryCidr": "100.64.0.0/16"}, "", "a range is added at any time"),
    ("network", {"nat": "PerZone"}, {"nat": "Single"}, "", "routes change"),
]


@pytest.mark.parametrize("kind", ["inferenceclusters", "eksclusters"])
@pytest.mark.parametrize(
    ("field", "old", "new", "said", "reason"), CHANGES, ids=[f"{x[0]}-{x[4]}" for x in CHANGES]
)
def test_what_aws_never_changes_is_refused(
    kind: str, field: str, old: Any, new: Any, said: str, reason: str
) -> None:
    where = field if kind == "eksclusters" else f"cluster.eks.{field}"
    found = refusals(kind, with_spec(kind, where, new), with_spec(kind, where, old))
    assert any(said in line for line in found) if said else found == [], (reason, found)
