"""EKSCluster: upgrades step by step, pools that cannot be, what is told of it, and how large it grows."""

from __future__ import annotations

import copy

import pytest

from builders import eks
from modelplane import contracts as c
from modelplane.clouds.eks import versions
from modelplane.core import Manifest
from modelplane.sim.world import ref

STEPS: list[tuple[str, str, dict[str, list[str]], str, str, str]] = [
    ("1.36", "", {}, "1.36", "", "made at the version asked for"),
    ("1.36", "1.36", {}, "1.36", "", "there already"),
    ("1.36", "1.34", {"gpu": ["1.34"]}, "1.35", "goes from 1.34 to 1.35", "one minor at a time"),
    ("1.36", "1.35", {"gpu": ["1.35", "1.34"]}, "1.35", "waiting for pool gpu", "nodes first catch up"),
    (
        "1.36",
        "1.35",
        {"gpu": ["1.35"], "system": []},
        "1.36",
        "goes from 1.35 to 1.36",
        "a pool without nodes waits not",
    ),
    ("1.34", "1.36", {}, "1.36", "EKS never goes back", "no way down"),
]


@pytest.mark.parametrize(
    ("wanted", "runs", "nodes", "step", "said", "reason"), STEPS, ids=[x[5] for x in STEPS]
)
def test_an_upgrade_takes_one_step_after_the_other(
    wanted: str, runs: str, nodes: dict[str, list[str]], step: str, said: str, reason: str
) -> None:
    asked, message = versions.step(wanted, runs, nodes)
    assert asked == step, reason
    assert said in message


def test_a_played_upgrade_moves_the_control_plane_first_and_no_node_is_ahead_or_two_behind() -> None:
    world = eks.at_rest(eks.cluster(kubernetesVersion="1.34"))
    seen: list[tuple[int, int]] = []
    world = eks.edited(world, eks.cluster(kubernetesVersion="1.36"), passes=0)
    for _ in range(40):
        eks.edited(world, eks.cluster(kubernetesVersion="1.36"))
        plane = eks.one(world, "Cluster")["spec"]["forProvider"]["version"]
        for group in (o for r, o in world.objects.items() if r.kind == "NodeGroup"):
            behind = int(plane[2:]) - int(group["spec"]["forProvider"]["version"][2:])
            assert 0 <= behind <= 1
            seen.append((int(plane[2:]), behind))
    assert seen[-1] == (36, 0)
    assert {plane for plane, _ in seen} == {35, 36}
    proxy = eks.parameters(eks.again(world), "addon-kube-proxy")
    assert proxy["addonVersion"].startswith("v1.36.")


def test_no_step_follows_while_one_is_taken() -> None:
    world = eks.at_rest(eks.cluster(kubernetesVersion="1.34"))
    seen = eks.children(world, c.EKS_CLUSTER)
    seen["cluster"]["status"]["atProvider"]["status"] = "UPDATING"
    assert eks.parameters(eks.again(world, seen, kubernetesVersion="1.36"), "cluster")["version"] == "1.34"


@pytest.mark.parametrize(
    ("version", "said"), [("1.33", "needs 1.34 or newer"), ("1.36.2", "no Kubernetes minor")]
)
def test_a_version_that_cannot_be_is_refused_before_and_told_after_a_cluster_is_made(
    version: str, said: str
) -> None:
    # Admission refuses both; a definition of somebody's own may not.
    body = eks.cluster()
    body["spec"]["kubernetesVersion"] = version
    status, why, message = eks.condition(eks.ask(body), c.CLUSTER_READY)
    assert (status, why) == (False, c.REASON_INVALID_SPEC)
    assert said in message
    answer = eks.again(eks.at_rest(eks.cluster()), kubernetesVersion=version)
    assert eks.parameters(answer, "cluster")["version"] == "1.36"
    assert said in eks.condition(answer, c.CLUSTER_READY)[2]


BLOCK = {"capacityReservationId": "cr-0b"}
BAD_POOLS: list[tuple[Manifest, str]] = [
    ({"zones": ["us-east-1a"]}, "zones: us-east-1a is no zone of region us-west-2"),
    ({"zones": ["use1-az3"]}, "zones: use1-az3 takes no subnets of an EKS cluster"),
    ({"zones": ["usw2-az1"]}, "zones: usw2-az1 is none of the cluster's zones"),
    ({"capacityBlock": BLOCK}, "zones: a Capacity Block is in one zone; name that one zone"),
    (
        {"capacityBlock": BLOCK, "zones": ["us-west-2a", "us-west-2b"]},
        "zones: a Capacity Block is in one zone",
    ),
    ({"reservation": {"id": "cr-0c"}}, "zones: a capacity reservation is in one zone"),
]
THREE = {"zones": ["us-west-2a", "us-west-2b", "us-west-2c"]}


@pytest.mark.parametrize(("change", "said"), BAD_POOLS, ids=[x[1] for x in BAD_POOLS])
def test_a_pool_that_cannot_be_is_named_with_its_field_and_holds_nothing_else_up(
    change: Manifest, said: str
) -> None:
    """Admission refuses some of them; a definition of somebody's own may not."""
    world = eks.at_rest(eks.cluster(eks.pool(), network=THREE))
    pools = [eks.pool(), eks.pool("odd", **change)]
    answer = eks.again(world, nodePools=pools)
    assert eks.condition(answer, c.CLUSTER_READY)[0] is True
    status, why, message = eks.condition(answer, c.NODE_POOLS_READY)
    assert (status, why) == (False, "InvalidNodePool")
    assert message.startswith("pool odd: ")
    assert said in message
    (told,) = [x for x in answer.status["nodePools"] if x["name"] == "odd"]
    assert told["message"] == message
    assert "pool-odd" not in answer.resources
    # The same edit of a pool that runs leaves it as it is.
    running = eks.at_rest(eks.cluster(eks.pool(), eks.pool("odd"), network=THREE))
    before = eks.one(running, c.EKS_NODE_POOL, "odd")["spec"]
    assert eks.again(running, nodePools=pools).resources["pool-odd"].manifest["spec"] == before


@pytest.mark.parametrize(
    "change", [{"instanceType": "p9.large"}, {"fabric": "EFA", "instanceType": "g6.xlarge"}]
)
def test_what_a_pool_cannot_run_stands_in_the_clusters_status_once(change: Manifest) -> None:
    world = eks.at_rest(eks.cluster(eks.pool(), eks.pool("odd", **change), network=THREE))
    (told,) = [x for x in eks.one(world, c.EKS_CLUSTER)["status"]["nodePools"] if x["name"] == "odd"]
    assert told["message"].count("pool odd: ") == 1
    assert change["instanceType"] in told["message"]
    running = eks.at_rest(eks.cluster(eks.pool(), eks.pool("odd"), network=THREE))
    groups = {r for r in running.objects if r.kind == "NodeGroup"}
    after = eks.edited(running, eks.cluster(eks.pool(), eks.pool("odd", **change), network=THREE), passes=6)
    assert groups <= after.objects.keys() - after.deleting.keys()


def test_a_pools_problem_is_said_once_however_many_passes_it_lasts() -> None:
    """It was put before the last message with every pass, for ever."""
    world = eks.at_rest(eks.cluster(eks.pool(), eks.pool("odd", reservation={"id": "cr-0c"}), network=THREE))
    (told,) = [x for x in eks.one(world, c.EKS_CLUSTER)["status"]["nodePools"] if x["name"] == "odd"]
    assert told["message"].count("pool odd: ") == 1


def test_a_pools_bad_zone_is_not_handed_to_the_network_of_all() -> None:
    pools = [eks.pool("a", zones=["us-west-2b"]), eks.pool("b", zones=["us-east-1a"])]
    answer = eks.ask(eks.cluster(*pools))
    assert answer.resources["network"].manifest["spec"]["poolZones"] == ["us-west-2b"]


def test_a_cluster_is_not_asked_for_in_a_network_that_eks_would_refuse() -> None:
    world = eks.at_rest(eks.cluster())
    seen = eks.children(world, c.EKS_CLUSTER)
    unfit = {"type": c.NETWORK_READY, "status": "False", "reason": "UnsuitableNetwork", "message": "one zone"}
    seen["network"]["status"]["conditions"] = [unfit]
    assert "cluster" in eks.again(world, seen).resources
    assert "one zone" in eks.condition(eks.again(world, seen), c.CLUSTER_READY)[2]
    del seen["cluster"]
    assert eks.again(world, seen).held_back["cluster"] == "one zone"


def test_the_systems_nodes_stay_in_their_zones_when_others_come() -> None:
    world = eks.at_rest(eks.cluster(eks.pool(zones=["us-west-2c"])))
    had = eks.one(world, c.EKS_NODE_POOL, "system")["spec"]["subnets"]
    pools = [eks.pool(zones=["us-west-2c"]), eks.pool("first", zones=["us-west-2a"])]
    after = eks.edited(world, eks.cluster(*pools), passes=15)
    assert eks.one(after, c.EKS_NODE_POOL, "first")
    assert eks.one(after, c.EKS_NODE_POOL, "system")["spec"]["subnets"] == had


FAILURES = [
    ("cluster", "LastAsyncOperation", "UnsupportedAddonModificationException"),
    ("addon-coredns", "LastAsyncOperation", "CREATE_FAILED"),
    ("file-system", "Synced", "refuse to update the external resource"),
]


@pytest.mark.parametrize(("key", "type_", "message"), FAILURES, ids=[x[0] for x in FAILURES])
def test_what_a_serving_cluster_was_refused_is_told_and_it_keeps_serving(
    key: str, type_: str, message: str
) -> None:
    world = eks.at_rest(eks.cluster())
    seen = eks.children(world, c.EKS_CLUSTER)
    said = {"type": type_, "status": "False", "reason": "ReconcileError", "message": message}
    others = [x for x in seen[key]["status"]["conditions"] if x["type"] != type_]
    seen[key]["status"]["conditions"] = [*others, said]
    status, _, told = eks.condition(eks.again(world, seen), c.CLUSTER_READY)
    assert status is True
    assert f"{key}: {message}" in told


def test_another_region_is_refused_and_nothing_goes() -> None:
    world = eks.at_rest(eks.cluster())
    answer = eks.again(world, region="eu-west-1")
    assert eks.condition(answer, c.CLUSTER_READY)[1] == "RegionChanged"
    assert answer.resources.keys() == eks.children(world, c.EKS_CLUSTER).keys()


# v0.4's EKSCluster with all its fields, and the least it admits.
V04: list[tuple[Manifest, str]] = [
    (
        {
            "kubernetesVersion": "1.36",
            "credentials": {"type": "ProviderConfig", "name": "aws"},
            "networking": {"vpcCidr": "10.7.0.0/16", "subnetCidrs": ["10.7.0.0/20", "10.7.16.0/20"]},
        },
        "all of it",
    ),
    ({}, "the least"),
]


@pytest.mark.parametrize(("spec", "reason"), V04, ids=[x[1] for x in V04])
def test_a_v04_cluster_comes_up_unchanged(spec: Manifest, reason: str) -> None:
    system = {"name": "system", "role": "System", "instanceType": "m5.xlarge", "nodeCount": 2}
    block = eks.pool("block", zones=["us-west-2a"], capacityBlock=BLOCK, fabric="EFA")
    body = eks.cluster(system, eks.pool("gpu", diskSizeGb=200), block, **copy.deepcopy(spec))
    world = eks.at_rest(body)
    conditions = {x["type"]: x["status"] for x in world.objects[ref(body)]["status"]["conditions"]}
    assert conditions[c.READY] == conditions[c.NODE_POOLS_READY] == "True", reason
    assert len([r for r in world.objects if r.kind == c.EKS_NODE_POOL]) == 3
    vpc = eks.one(world, "VPC")
    assert vpc["spec"]["forProvider"]["cidrBlock"] == spec.get("networking", {}).get("vpcCidr", "10.0.0.0/16")
    assert vpc["spec"]["providerConfigRef"]["name"] == spec.get("credentials", {}).get("name", "default")
    assert eks.parameters(eks.again(world), "cluster")["vpcConfig"]["publicAccessCidrs"] == ["0.0.0.0/0"]


def test_a_cluster_in_an_existing_vpc_comes_up_and_owns_nothing_of_it() -> None:
    existing = {"vpcId": "vpc-0a1b", "privateSubnetIds": ["subnet-0a", "subnet-0d"]}
    world = eks.at_rest(eks.cluster(network={"existing": existing}))
    conditions = eks.one(world, c.EKS_CLUSTER)["status"]["conditions"]
    assert {x["type"]: x["status"] for x in conditions}[c.READY] == "True"
    assert eks.parameters(eks.again(world), "cluster")["vpcConfig"]["subnetIds"] == ["subnet-0a", "subnet-0d"]
    theirs = [o for r, o in world.objects.items() if r.kind in ("VPC", "Subnet")]
    assert [x["spec"]["managementPolicies"] for x in theirs] == [["Observe"]] * 3
    assert not [
        r for r in world.objects if r.kind in ("NATGateway", "RouteTable", "InternetGateway", "Route")
    ]


# EC2, EKS and IAM: their API references. A name that is cut off could be another's.
LIMITS = {"Cluster": 100, "NodeGroup": 63, "Role": 64, "LaunchTemplate": 128, "PlacementGroup": 255}


def test_names_stay_within_what_aws_takes_and_apart() -> None:
    pools = [eks.pool(name, fabric="EFA") for name in ("p" * 40, "p" * 39 + "q")]
    world = eks.at_rest(eks.cluster(*pools, name="c" * 63))
    for kind, limit in LIMITS.items():
        names = [r.name for r in world.objects if r.kind == kind]
        assert names
        assert max(map(len, names)) <= limit, kind
    assert len([r for r in world.objects if r.kind == "NodeGroup"]) == 6


def test_no_composite_of_the_largest_cluster_has_a_hundred_resources() -> None:
    """Six zones, eight EFA pools in all of them, twelve principals, pods in a second range."""
    zones = [f"us-gov-west-1{x}" for x in "abcdef"]
    principals = [f"arn:aws:iam::111122223333:role/r{n}" for n in range(12)]
    pools = [eks.pool(f"p{n}", fabric="EFA", nodeCount=6, minNodeCount=6, maxNodeCount=6) for n in range(8)]
    world = eks.at_rest(
        eks.cluster(
            *pools,
            region="us-gov-west-1",
            network={"zones": zones, "secondaryCidr": "100.64.0.0/16", "podsInSecondary": True},
            access={"adminPrincipals": principals},
        )
    )
    sizes = {
        owner.kind: len(found) for owner, found in world.children.items() if owner.kind.startswith("EKS")
    }
    assert set(sizes) == {c.EKS_CLUSTER, c.EKS_NETWORK, c.EKS_NODE_POOL}
    largest = max(len(found) for found in world.children.values())
    assert largest < 100, sizes
