"""What the platform kinds admit and refuse, judged by the shipped XRDs as an API server would."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest

from contract.xrds import ROOT, load, schema_of
from modelplane.api.schema import Schema

Tree = dict[str, Any]

POOL: Tree = {"name": "gpu", "className": "l4"}
EKS_POOL: Tree = {
    "name": "gpu",
    "role": "GPU",
    "instanceType": "g6.8xlarge",
    "gpu": {"acceleratorType": "nvidia-l4"},
}
VALID: dict[str, Tree] = {
    "inferenceclasses": {
        "devices": [{"name": "gpu", "driver": "gpu.nvidia.com", "deviceClassName": "gpu.nvidia.com"}]
    },
    "inferenceclusters": {
        "cluster": {"source": "EKS", "eks": {"region": "us-west-2"}},
        "nodePools": [POOL],
    },
    "inferencegateways": {"backend": "Traefik", "traefik": {"version": "40.2.0"}},
    "eksclusters": {"region": "us-west-2", "nodePools": [EKS_POOL]},
    "eksnodepools": {
        "clusterName": "mp-lab",
        "poolName": "gpu",
        "region": "us-west-2",
        **{key: value for key, value in EKS_POOL.items() if key != "name"},
    },
    "servingstacks": {
        "cloud": "EKS",
        "secrets": [{"type": "Kubeconfig", "name": "lab-kubeconfig", "key": "kubeconfig"}],
    },
}
EXISTING: Tree = {"source": "Existing", "existing": {"secretRef": {"name": "lab"}}}


@dataclass(frozen=True)
class Case:
    """A change to a valid spec: `where` is a dotted path, `value` None takes the field away."""

    kind: str
    where: str
    value: Any
    reason: str
    says: str = ""


@cache
def schema(kind: str) -> Schema:
    """The schema of one shipped XRD, compiled once."""
    return Schema(schema_of(load(ROOT / "apis" / f"{kind}.yaml")))


def with_spec(kind: str, where: str = "", value: Any = None) -> Tree:
    """A valid object of the kind with one field set or, for None, taken away."""
    spec = copy.deepcopy(VALID[kind])
    *parents, last = where.split(".") if where else [""]
    node: Any = spec
    for part in parents:
        node = node[int(part)] if part.isdigit() else node.setdefault(part, {})
    if where and value is None:
        node.pop(last, None)
    elif where:
        node[last] = value
    return {"metadata": {"name": "it"}, "spec": spec}


def refusals(kind: str, new: Tree, old: Tree | None = None) -> list[str]:
    """Why the server would refuse the object; empty when it would take it."""
    judge = schema(kind)
    before = judge.default(old) if old else None
    return [f"{it.path}: {it.message}" for it in judge.check(judge.default(new), before)]


REFUSED = [
    Case(
        "inferenceclasses", "provisioning", {"provider": "EKS"}, "a union without its block", "eks is missing"
    ),
    Case(
        "inferenceclasses",
        "devices.0.deviceClassName",
        None,
        "DRA needs a class",
        "deviceClassName is missing",
    ),
    Case(
        "inferenceclasses",
        "devices.0.attributes",
        {"a": {"int": 1, "bool": True}},
        "two types",
        "exactly one",
    ),
    Case("inferenceclasses", "devices.0.attributes", {"a": {}}, "no type at all", "exactly one"),
    Case("inferenceclusters", "cluster", {"source": "EKS"}, "a union without its block", "eks is missing"),
    Case("inferenceclusters", "cluster", {"source": "GKE"}, "holds for clouds not built", "gke is missing"),
    Case("inferenceclusters", "cluster", {"source": "Existing"}, "and for Existing", "existing is missing"),
    Case("inferenceclusters", "nodePools", None, "the composed cluster needs a pool", "nodePools is missing"),
    Case(
        "inferenceclusters", "nodePools.0.name", "system", "the added pool has that name", "system is taken"
    ),
    Case("inferenceclusters", "nodePools.0.name", "a/b", "no node label value", "nodePools[0].name"),
    Case("inferenceclusters", "nodePools.0.minNodeCount", 0.5, "half a node", "integer"),
    Case(
        "inferenceclusters",
        "nodePools.0.fabric",
        {"infiniband": {"fabric": "f"}},
        "type is None",
        "infiniband",
    ),
    Case("inferenceclusters", "nodePools.0.purchase", "Reservation", "which one is not said", "purchase"),
    Case("inferenceclusters", "nodePools.0.reservation", {}, "neither ID nor group", "exactly one"),
    Case("inferenceclusters", "nodePools.0.labels", {"modelplane.ai/pool": "x"}, "ours", "reserved"),
    Case("inferenceclusters", "nodePools.0.labels", {"-bad-/x": "x"}, "no label name", "label name"),
    Case(
        "inferenceclusters",
        "nodePools.0.taints",
        [{"key": "modelplane.ai/x", "effect": "NoExecute"}],
        "ours",
        "reserved",
    ),
    Case("inferenceclusters", "cluster.eks.network", {"podsInSecondary": True}, "no range", "secondaryCidr"),
    Case("inferenceclusters", "cluster.eks.network", {"zones": ["us-west-2a"]}, "EKS asks for two", "zones"),
    Case(
        "inferenceclusters",
        "cluster.eks.network.existing",
        {"vpcId": "vpc-1"},
        "no subnets",
        "privateSubnetIds",
    ),
    Case("inferenceclusters", "cluster.eks.tags", {"aws:name": "x"}, "AWS keeps that prefix", "aws:"),
    Case(
        "inferenceclusters", "cluster.eks.encryption", {"kmsKey": "my-key"}, "neither word nor ARN", "kmsKey"
    ),
    Case("inferenceclusters", "nodepools", [POOL], "a misspelt field is not dropped", "nodePools"),
    Case("inferencegateways", "traefik", None, "a union without its block", "traefik is missing"),
    Case("inferencegateways", "traefik.loadBalancer", "MetalLB", "no addresses", "metallb is missing"),
    Case("inferencegateways", "tls", {}, "HTTPS with no certificate", "exactly one"),
    Case(
        "inferencegateways",
        "tls",
        {"issuerRef": {"name": "ca"}},
        "a certificate for what",
        "hostname is missing",
    ),
    Case("eksclusters", "nodePools.0.gpu", None, "role GPU", "gpu is missing"),
    Case("eksclusters", "nodePools.0.minNodeCount", 9, "the default ceiling is 8", "above maxNodeCount"),
    Case("eksnodepools", "minNodeCount", 9, "the default ceiling is 8", "above maxNodeCount"),
    Case(
        "eksnodepools",
        "capacityBlock",
        {"capacityReservationId": "block"},
        "no reservation ID",
        "capacityReservationId",
    ),
    Case("servingstacks", "secrets.0.type", "AWSWebIdentityCredentials", "no kubeconfig", "type Kubeconfig"),
]
BOUNDED = {"name": "gpu", "className": "l4", "minNodeCount": 3, "maxNodeCount": 2}
NEBIUS_POOL = {"name": "gpu", "className": "h100", "fabric": {"type": "InfiniBand"}}
TWICE = {
    "name": "gpu",
    "className": "l4",
    "capacityBlock": {"capacityReservationId": "cr-0a"},
    "reservation": {"id": "cr-0b"},
}
REFUSED += [
    Case("inferenceclusters", "nodePools", [BOUNDED], "floor over ceiling", "above maxNodeCount"),
    Case("inferenceclusters", "nodePools", [TWICE], "nodes run in one of them", "exclude each other"),
    Case("inferenceclusters", "nodePools", [POOL, POOL], "pools are told apart by name", "uplicate"),
]

ADMITTED = [
    Case(
        "inferenceclasses", "devices", [{"name": "nic", "driver": "x", "claim": "Synthetic"}], "never claimed"
    ),
    Case("inferenceclasses", "devices.0.attributes", {"a": {"bool": False}}, "false is a value"),
    Case("inferenceclusters", "nodePools.0.fabric", {"type": "EFA"}, "the fabric of EKS"),
    Case("inferenceclusters", "nodePools.0.zones", [], "v0.4 bounded zones nowhere"),
    Case("inferenceclusters", "cluster.gke", {"region": "x"}, "blocks of other sources are ignored"),
    Case(
        "inferenceclusters",
        "nodePools.0.capacityBlock",
        {"capacityReservationId": "cr-0a"},
        "implies purchase",
    ),
    Case("inferenceclusters", "cluster.eks.access", {"publicCidrs": []}, "the public endpoint is off"),
    Case(
        "inferenceclusters",
        "components",
        {"kai": {"values": {"a": [1, {"b": None}]}}},
        "the chart's own shape",
    ),
    Case("eksclusters", "nodePools.0.name", "system", "v0.4 refused no name here"),
    Case("eksclusters", "networking", {"vpcCidr": "10.1.0.0/16"}, "the v0.4 block alone"),
    Case("inferencegateways", "tls", {"secretRef": {"name": "cert"}}, "a given certificate"),
    Case("servingstacks", "gateway", {"listeners": []}, "an empty list means the default"),
]


def named(case: Case) -> str:
    return f"{case.kind}-{case.where}-{case.reason}"


@pytest.mark.parametrize("kind", VALID)
def test_the_smallest_object_is_admitted_and_no_rule_is_left_out(kind: str) -> None:
    assert schema(kind).unsupported == []
    assert refusals(kind, with_spec(kind)) == []


@pytest.mark.parametrize("case", REFUSED, ids=named)
def test_what_cannot_work_is_refused_with_the_field_named(case: Case) -> None:
    found = refusals(case.kind, with_spec(case.kind, case.where, case.value))
    assert any(case.says in line for line in found), (case.reason, found)


@pytest.mark.parametrize("case", ADMITTED, ids=named)
def test_what_can_work_is_admitted(case: Case) -> None:
    assert refusals(case.kind, with_spec(case.kind, case.where, case.value)) == [], case.reason


@pytest.mark.parametrize("kind", ["inferenceclusters", "servingstacks"])
@pytest.mark.parametrize(
    ("old", "new", "refused", "reason"),
    [
        ("Dynamo", "Dynamo", False, "nothing changes"),
        (None, "Standard", False, "absent always meant Standard"),
        ("Standard", None, False, "and still does"),
        ("Standard", "Dynamo", True, "a running cluster cannot turn"),
        (None, "Dynamo", True, "nor one that named no stack"),
        ("Dynamo", None, True, "a re-applied manifest that lost the line would turn it"),
    ],
)
def test_the_stack_never_changes(
    kind: str, old: str | None, new: str | None, refused: bool, reason: str
) -> None:
    found = refusals(kind, with_spec(kind, "stack", new), with_spec(kind, "stack", old))
    assert any("spec.stack cannot change" in line for line in found) is refused, (reason, found)


@pytest.mark.parametrize(
    ("old", "new", "refused", "reason"),
    [
        (None, "None", True, "absent is a key of our own, and EKS takes none away"),
        ("None", "Managed", False, "EKS adds one to a cluster without"),
        ("None", None, False, "which absent does too"),
        ("Managed", None, False, "absent means the same"),
        ("Managed", "arn:aws:kms:us-west-2:000000000000:key/k", True, "EKS exchanges none"),
    ],
)
def test_a_key_is_added_but_never_taken_away(
    old: str | None, new: str | None, refused: bool, reason: str
) -> None:
    path = "cluster.eks.encryption.kmsKey"
    found = refusals(
        "inferenceclusters",
        with_spec("inferenceclusters", path, new),
        with_spec("inferenceclusters", path, old),
    )
    assert any("kmsKey cannot be changed" in line for line in found) is refused, (reason, found)


def test_an_existing_cluster_may_call_a_pool_system_and_may_have_none() -> None:
    new = with_spec("inferenceclusters", "cluster", EXISTING)
    new["spec"]["nodePools"] = [{**POOL, "name": "system"}]
    assert refusals("inferenceclusters", new) == []
    del new["spec"]["nodePools"]
    assert refusals("inferenceclusters", new) == []


def test_infiniband_on_nebius_names_its_fabric() -> None:
    new = with_spec("inferenceclusters", "cluster", {"source": "Nebius", "nebius": {}})
    new["spec"]["nodePools"] = [NEBIUS_POOL]
    assert any("fabric.infiniband is missing" in line for line in refusals("inferenceclusters", new))


def test_an_empty_stack_reads_back_standard() -> None:
    assert schema("inferenceclusters").default(with_spec("inferenceclusters"))["spec"]["stack"] == "Standard"
