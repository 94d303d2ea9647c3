"""A pool's templates and node groups: what is asked of EC2 and EKS for each kind of pool."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from builders import eks
from modelplane import contracts as c
from modelplane.clouds.eks import scaling
from modelplane.core import Manifest
from modelplane.facts import aws

ZONES = list(eks.SUBNETS)


def asked(kind: str, **spec: Any) -> list[Manifest]:
    """What a pool asks for of a kind once its cluster stands, zone by zone."""
    _, answer = eks.running(eks.node_pool(**spec))
    found = [x.manifest for x in answer.resources.values() if x.manifest["kind"] == kind]
    return [
        x["spec"]["forProvider"] for x in sorted(found, key=lambda x: x["metadata"]["labels"][c.ZONE_LABEL])
    ]


def template(**spec: Any) -> Manifest:
    (found,) = asked("LaunchTemplate", **spec)
    return found


def group(**spec: Any) -> Manifest:
    (found,) = asked("NodeGroup", **spec)
    return found


# The layouts that EC2 documents, by type: interfaces in all, and whether the first card has EFA.
LAYOUTS = [
    ("p4d.24xlarge", 5, True),
    ("p5.48xlarge", 33, True),
    ("p5en.48xlarge", 17, True),
    ("p6-b200.48xlarge", 9, True),
    ("p6-b300.48xlarge", 17, False),
    ("g6e.48xlarge", 5, True),
    ("g7e.24xlarge", 3, True),
    ("g5.8xlarge", 2, True),
]


@pytest.mark.parametrize(("name", "count", "first"), LAYOUTS, ids=[x[0] for x in LAYOUTS])
def test_efa_nodes_have_a_plain_interface_and_rdma_alone_on_every_card_that_can(
    name: str, count: int, first: bool
) -> None:
    found = template(instanceType=name, fabric="EFA")["networkInterfaces"]
    assert len(found) == count
    plain, *efa = found
    assert (plain["interfaceType"], plain["networkCardIndex"], plain["deviceIndex"]) == ("interface", 0, 0)
    assert {x["interfaceType"] for x in efa} == {"efa-only"}
    assert [x["networkCardIndex"] for x in efa] == list(aws.instance_types()[name].efa_cards)
    assert [x["deviceIndex"] for x in efa] == [1 if first and i == 0 else 0 for i in range(len(efa))]
    assert all(x["securityGroups"] == ["sg-0a", "sg-0e"] for x in found)


def test_every_template_is_closed_encrypted_and_tagged() -> None:
    found = template(tags={"team": "ml"})
    assert found["metadataOptions"] == {
        "httpEndpoint": "enabled",
        "httpPutResponseHopLimit": 1,
        "httpTokens": "required",
    }
    (root,) = found["blockDeviceMappings"]
    assert (root["ebs"]["encrypted"], root["ebs"]["volumeType"]) == ("true", "gp3")
    # EKS adds its own group only where the template names none.
    assert found["vpcSecurityGroupIds"] == ["sg-0a"]
    assert {x["resourceType"] for x in found["tagSpecifications"]} == {
        "instance",
        "network-interface",
        "volume",
    }
    assert all(x["tags"]["team"] == "ml" for x in found["tagSpecifications"])
    # The rules of a managed group's template (EKS User Guide, launch-templates).
    assert not {"iamInstanceProfile", "imageId", "instanceInitiatedShutdownBehavior"} & found.keys()


def test_the_instances_own_disks_hold_images_and_logs_where_asked() -> None:
    assert "userData" not in template()
    text = base64.b64decode(template(localStorage="RAID0")["userData"]).decode()
    assert "Content-Type: application/node.eks.aws" in text
    assert "strategy: RAID0" in text


BLOCK = {"capacityBlock": {"capacityReservationId": "cr-0b"}}
ARN = "arn:aws:resource-groups:us-west-2:111122223333:group/g"
PURCHASES: list[tuple[Manifest, str, Manifest, bool, str]] = [
    ({}, "ON_DEMAND", {}, True, "the default"),
    ({"purchase": "Spot"}, "SPOT", {}, True, "EKS makes the market itself"),
    (BLOCK, "CAPACITY_BLOCK", {"capacityReservationId": "cr-0b"}, False, "stands where it was bought"),
    (
        {"reservation": {"id": "cr-0c"}},
        "ON_DEMAND",
        {"capacityReservationId": "cr-0c"},
        False,
        "one reservation",
    ),
    (
        {"reservation": {"resourceGroupArn": ARN}},
        "ON_DEMAND",
        {"capacityReservationResourceGroupArn": ARN},
        False,
        "a group of them",
    ),
]


@pytest.mark.parametrize(
    ("spec", "capacity", "target", "placed", "reason"), PURCHASES, ids=[x[4] for x in PURCHASES]
)
def test_how_instances_are_bought(
    spec: Manifest, capacity: str, target: Manifest, placed: bool, reason: str
) -> None:
    made = template(**spec, fabric="EFA")
    assert group(**spec, fabric="EFA")["capacityType"] == capacity
    only = made.get("capacityReservationSpecification", {})
    assert only.get("capacityReservationTarget", {}) == target, reason
    assert only.get("capacityReservationPreference", "") == ("capacity-reservations-only" if target else "")
    assert ("instanceMarketOptions" in made) is (capacity == "CAPACITY_BLOCK")
    # A placement group of ours would ask for capacity beside the reserved.
    assert ("placement" in made) is placed
    assert len(asked("PlacementGroup", **spec, fabric="EFA")) == int(placed)


def test_a_group_names_its_template_by_number_and_leaves_to_it_what_cannot_change() -> None:
    found = group()
    assert found["launchTemplate"]["version"] == "3"
    assert not {"instanceTypes", "diskSize", "remoteAccess", "releaseVersion"} & found.keys()
    assert found["updateConfig"] == {"maxUnavailable": 1, "updateStrategy": "MINIMAL"}
    assert found["nodeRepairConfig"] == {"enabled": True}
    assert found["version"] == "1.36"


AMIS = [
    ({}, "AL2023_x86_64_NVIDIA", "GPU nodes have the driver"),
    (
        {"role": "System", "instanceType": "m6i.xlarge", "gpu": None},
        "AL2023_x86_64_STANDARD",
        "others do not",
    ),
    (
        {"role": "System", "instanceType": "m7g.large", "gpu": None},
        "AL2023_ARM_64_STANDARD",
        "a g is for Graviton",
    ),
    (
        {"role": "System", "instanceType": "g6.xlarge", "gpu": None},
        "AL2023_x86_64_STANDARD",
        "but not that one",
    ),
]


@pytest.mark.parametrize(("spec", "ami", "reason"), AMIS, ids=[x[2] for x in AMIS])
def test_the_image_follows_role_and_processor(spec: Manifest, ami: str, reason: str) -> None:
    assert group(**spec)["amiType"] == ami, reason


def test_labels_and_taints_are_ours_beside_the_users() -> None:
    found = group(
        fabric="EFA",
        labels={"tier": "batch"},
        taints=[
            {"key": "spot", "effect": "NoExecute"},
            {"key": "nvidia.com/gpu", "value": "x", "effect": "NoSchedule"},
        ],
    )
    assert found["labels"] == {
        c.POOL_LABEL: "gpu",
        c.GPU_LABEL: "nvidia-h100",
        "nvidia.com/gpu.present": "true",
        "k8s.amazonaws.com/accelerator": "nvidia-h100",
        "vpc.amazonaws.com/efa.present": "true",
        "tier": "batch",
    }
    assert found["taint"] == [
        {"key": "nvidia.com/gpu", "value": "true", "effect": "NO_SCHEDULE"},
        {"key": "spot", "effect": "NO_EXECUTE"},
    ]
    assert "taint" not in group(role="System", instanceType="m6i.xlarge", gpu=None)


COUNTS: list[tuple[int, int, int, list[tuple[int, int, int]], str]] = [
    (4, 4, 4, [(2, 2, 2), (1, 1, 1), (1, 1, 1)], "fixed: the first zones get what remains"),
    (3, 0, 8, [(1, 0, 3), (1, 0, 3), (1, 0, 2)], "growing: sums are the pool's"),
    (1, 1, 6, [(1, 1, 2), (0, 0, 2), (0, 0, 2)], "a floor in one zone"),
    (2, 2, 2, [(1, 1, 1), (1, 1, 1)], "a zone without nodes has no group"),
]


@pytest.mark.parametrize(("start", "low", "high", "zones", "reason"), COUNTS, ids=[x[4] for x in COUNTS])
def test_each_zone_has_one_group_and_their_counts_are_the_pools(
    start: int, low: int, high: int, zones: list[tuple[int, int, int]], reason: str
) -> None:
    answer = eks.running(eks.node_pool(nodeCount=start, minNodeCount=low, maxNodeCount=high, subnets=ZONES))[
        1
    ]
    found = []
    for x in answer.resources.values():
        if x.manifest["kind"] == "NodeGroup":
            spec = x.manifest["spec"]
            assert len(spec["forProvider"]["subnetIds"]) == 1
            # Held by nobody but the autoscaler: only started with, and never filled in late.
            assert "desiredSize" not in spec["forProvider"]["scalingConfig"]
            assert "LateInitialize" not in spec["managementPolicies"]
            bounds = spec["forProvider"]["scalingConfig"]
            found.append(
                (spec["initProvider"]["scalingConfig"]["desiredSize"], bounds["minSize"], bounds["maxSize"])
            )
    assert sorted(found) == sorted(zones), reason


def test_a_capacity_block_has_no_floor_that_would_fight_its_end() -> None:
    assert group(**BLOCK, nodeCount=2)["scalingConfig"] == {"minSize": 0, "maxSize": 2}


LIVE: list[tuple[tuple[int, int], Manifest, int | None, str]] = [
    ((2, 8), {}, None, "not made yet: EKS starts with the first number"),
    ((2, 8), {"desiredSize": 5, "minSize": 2, "maxSize": 8}, None, "the autoscaler's"),
    (
        (6, 8),
        {"desiredSize": 5, "minSize": 2, "maxSize": 8},
        6,
        "EKS refuses a floor above what is asked for",
    ),
    ((2, 4), {"desiredSize": 5, "minSize": 2, "maxSize": 8}, 4, "and a ceiling below it"),
    (
        (2, 9),
        {"desiredSize": 5, "minSize": 2, "maxSize": 8},
        5,
        "the provider would send the first number again",
    ),
    ((2, 8), {"desiredSize": 5}, None, "bounds that nobody told are no change"),
    ((0, 0), {"desiredSize": 2, "minSize": 0, "maxSize": 8}, 0, "parked"),
    ((0, 0), {"desiredSize": 0, "minSize": 0, "maxSize": 1}, None, "and empty"),
]


@pytest.mark.parametrize(("bounds", "seen", "desired", "reason"), LIVE, ids=[x[3] for x in LIVE])
def test_the_number_of_nodes_is_named_only_while_bounds_change(
    bounds: tuple[int, int], seen: Manifest, desired: int | None, reason: str
) -> None:
    held, start = scaling.settings(scaling.Counts(2, *bounds), seen)
    assert held.get("desiredSize") == desired, reason
    assert held["maxSize"] >= 1
    assert start == {"desiredSize": 2}


def test_naming_a_zone_takes_no_other_zones_only_node() -> None:
    one = {"nodeCount": 1, "minNodeCount": 1, "maxNodeCount": 1}
    found, before = eks.running(eks.node_pool(**one, subnets=[ZONES[1]]))
    (key,) = [k for k in before.resources if k.startswith("node-group-")]
    for subnets in ([ZONES[0], ZONES[1]], [ZONES[1], ZONES[0]]):
        answer = eks.ask(eks.node_pool(**one, subnets=subnets), found)
        assert [k for k in answer.resources if k.startswith("node-group-")] == [key]
        assert "desiredSize" not in eks.parameters(answer, key)["scalingConfig"]
