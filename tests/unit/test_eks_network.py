"""An EKS cluster's network: zones, ranges, gateways and routes, and what is wrong with somebody else's."""

from __future__ import annotations

from ipaddress import ip_network
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import eks
from modelplane import contracts as c
from modelplane.clouds.eks import ranges, zones
from modelplane.core import Answer, Manifest
from modelplane.facts import aws

NAMES = [f"us-west-2{x}" for x in "abcdef"]


def kinds(answer: Answer, kind: str) -> dict[str, Manifest]:
    return {key: x.manifest for key, x in answer.resources.items() if x.manifest["kind"] == kind}


def ask(observed: dict[str, Manifest] | None = None, **network: Any) -> Answer:
    return eks.ask(eks.network(network=network), observed)


def at_rest(**network: Any) -> dict[str, Manifest]:
    return eks.children(eks.at_rest(eks.network(network=network)), c.EKS_NETWORK)


@settings(max_examples=200)
@given(st.integers(16, 24), st.integers(2, 6), st.integers(0, 2**32 - 1))
def test_no_two_subnets_overlap_whatever_the_range_and_the_number_of_zones(
    prefix: int, count: int, address: int
) -> None:
    vpc = ip_network((address >> (32 - prefix) << (32 - prefix), prefix))
    count = min(count, ranges.slots(vpc))
    found = [ip_network(f(vpc, i)) for i in range(count) for f in (ranges.private, ranges.public)]
    assert all(x.subnet_of(vpc) and x.prefixlen <= ranges.SMALLEST for x in found)
    assert not [(a, b) for i, a in enumerate(found) for b in found[i + 1 :] if a.overlaps(b)]


ROOM = [
    ("10.0.0.0/16", 6, "the default takes all zones there can be"),
    ("10.0.0.0/22", 6, "the smallest that does"),
    ("10.0.0.0/24", 3, "the smallest of all"),
]


@pytest.mark.parametrize(("cidr", "count", "reason"), ROOM)
def test_each_zone_gets_a_public_and_a_private_subnet_of_its_own(cidr: str, count: int, reason: str) -> None:
    found = at_rest(cidr=cidr, zones=NAMES[:count])
    subnets = [x["spec"]["forProvider"] for x in found.values() if x["kind"] == "Subnet"]
    assert len({x["cidrBlock"] for x in subnets}) == 2 * count, reason
    assert {x["availabilityZone"] for x in subnets} == set(NAMES[:count])


def test_subnets_bear_the_tags_that_load_balancers_are_placed_by_and_the_users() -> None:
    answer = eks.ask(eks.network(network={"zones": NAMES[:2]}, tags={"team": "ml"}))
    for key, subnet in kinds(answer, "Subnet").items():
        tags = subnet["spec"]["forProvider"]["tags"]
        role = "elb" if "public" in key else "internal-elb"
        assert tags[f"kubernetes.io/role/{role}"] == "1"
        assert tags["team"] == "ml"


NAT = [
    ("PerZone", 3, 3, "a zone that is lost takes no other's way out"),
    ("Single", 1, 3, "cheaper, all go out by one"),
    ("None", 0, 0, "the owner has another way out"),
]


@pytest.mark.parametrize(("nat", "gateways", "routes", "reason"), NAT)
def test_private_subnets_go_out_by_the_gateways_asked_for(
    nat: str, gateways: int, routes: int, reason: str
) -> None:
    found = at_rest(nat=nat, zones=NAMES[:3])
    assert len([k for k in found if k.startswith("nat-gateway-")]) == gateways, reason
    ways = {
        x["status"]["atProvider"]["natGatewayId"] for k, x in found.items() if k.startswith("route-private-")
    }
    assert (len([k for k in found if k.startswith("route-private-")]), len(ways)) == (routes, gateways), (
        reason
    )


def test_a_gateway_stays_while_a_private_route_goes_through_it() -> None:
    found = at_rest(nat="PerZone", zones=NAMES[:2])
    answer = ask(found, nat="Single", zones=NAMES[:2])
    assert {"nat-gateway-us-west-2b", "nat-address-us-west-2b"} <= answer.resources.keys()
    assert eks.parameters(answer, "route-private-us-west-2b")["natGatewayIdRef"]["policy"] == {
        "resolve": "Always"
    }
    for key in ("a", "b"):
        route = found[f"route-private-us-west-2{key}"]
        route["status"]["atProvider"]["natGatewayId"] = found["nat-gateway-us-west-2a"]["status"][
            "atProvider"
        ]["id"]
    assert "nat-gateway-us-west-2b" not in ask(found, nat="Single", zones=NAMES[:2]).resources


def test_a_single_gateway_stays_in_its_zone_when_others_are_named_before_it() -> None:
    body = eks.network(network={"nat": "Single"}, poolZones=["us-west-2b"])
    found = eks.children(eks.at_rest(body), c.EKS_NETWORK)
    (before,) = [k for k in found if k.startswith("nat-gateway-")]
    answer = eks.ask(eks.network(network={"nat": "Single"}, poolZones=["us-west-2a", "us-west-2b"]), found)
    assert [k for k in answer.resources if k.startswith("nat-gateway-")] == [before]


def test_pods_get_the_second_range_only_where_they_are_to() -> None:
    second = {"secondaryCidr": "100.64.0.0/16", "zones": NAMES[:2]}
    assert not [k for k in at_rest(**second) if "pods" in k]
    found = at_rest(**second, podsInSecondary=True)
    pods = [x["spec"]["forProvider"]["cidrBlock"] for k, x in found.items() if k.startswith("subnet-pods")]
    assert sorted(pods) == ["100.64.0.0/19", "100.64.32.0/19"]
    assert "route-table-association-pods-us-west-2a" in found


@pytest.mark.parametrize("region", aws.regions())
def test_without_zones_every_known_region_gets_zones_by_id_that_eks_takes(region: str) -> None:
    answer = eks.ask(eks.network(region=region))
    found = {x["spec"]["forProvider"]["availabilityZoneId"] for x in kinds(answer, "Subnet").values()}
    assert zones.FEWEST <= len(found) <= zones.USUAL
    assert not found & aws.refused_zones()


def test_a_later_zone_of_a_pool_moves_no_subnet() -> None:
    found = eks.children(eks.at_rest(eks.network(poolZones=["us-west-2c"])), c.EKS_NETWORK)
    answer = eks.ask(eks.network(poolZones=["us-west-2a", "us-west-2c"]), found)
    for key, subnet in found.items():
        if subnet["kind"] == "Subnet":
            assert eks.parameters(answer, key)["cidrBlock"] == subnet["spec"]["forProvider"]["cidrBlock"]
    assert eks.ask(eks.network(), found).resources.keys() >= {k for k in found if k.startswith("subnet-")}


BAD: list[tuple[Manifest, str, str]] = [
    (
        {"network": {"zones": ["us-east-1a", "us-west-2b"]}},
        "us-east-1a is no zone of region us-west-2",
        "elsewhere",
    ),
    (
        {"network": {"zones": ["use1-az1", "usw2-az1"]}},
        "use1-az1 is not in region us-west-2",
        "an ID of elsewhere",
    ),
    (
        {"network": {"zones": ["us-west-2-lax-1a", "us-west-2b"]}},
        "is no zone of region",
        "no groups in Local Zones",
    ),
    (
        {"region": "us-east-1", "network": {"zones": ["use1-az3", "use1-az1"]}},
        "use1-az3 takes no subnets of an EKS cluster",
        "EKS refuses it",
    ),
    ({"region": "xx-moon-1"}, "is not in our table of zones: name at least 2", "nobody knows its zones"),
    ({"network": {"cidr": "10.0.0.1/16"}}, "spec.network.cidr", "host bits"),
    ({"network": {"cidr": "999.0.0.0/16"}}, "spec.network.cidr", "no address"),
    (
        {"network": {"cidr": "10.0.0.0/24", "zones": NAMES[:4]}},
        "10.0.0.0/24 has room for 3 zones and 4 are needed",
        "too small",
    ),
    (
        {"network": {"cidr": "10.0.0.0/16", "secondaryCidr": "10.0.64.0/20"}},
        "spec.network.secondaryCidr: 10.0.64.0/20 overlaps the VPC's own range 10.0.0.0/16",
        "two ranges of one VPC",
    ),
    (
        {"networking": {"vpcCidr": "10.0.0.0/16", "subnetCidrs": ["10.0.0.0/20", "10.0.0.0/20"]}},
        "10.0.0.0/20 overlaps 10.0.0.0/20",
        "v0.4 let them collide",
    ),
    (
        {"networking": {"vpcCidr": "10.0.0.0/16", "subnetCidrs": ["10.0.0.0/20", "10.9.0.0/20"]}},
        "10.9.0.0/20 is not inside vpcCidr 10.0.0.0/16",
        "v0.4 asked AWS",
    ),
    (
        {"networking": {"vpcCidr": "10.0.0.0/16", "subnetCidrs": ["10.0.0.0/17", "10.0.128.0/17"]}},
        "has no room for 2 private subnets",
        "the public ones take all",
    ),
]


@pytest.mark.parametrize(("spec", "said", "reason"), BAD, ids=[x[2] for x in BAD])
def test_a_network_that_cannot_be_says_why_and_loses_nothing(spec: Manifest, said: str, reason: str) -> None:
    status, why, message = eks.condition(eks.ask(eks.network(**spec)), c.NETWORK_READY)
    assert (status, why) == (False, c.REASON_INVALID_SPEC), reason
    assert said in message
    standing = at_rest(zones=NAMES[:2])
    assert eks.ask(eks.network(**spec), standing).resources.keys() >= standing.keys()


def test_a_name_that_means_a_refused_zone_here_carries_no_subnet_of_the_cluster() -> None:
    world = eks.at_rest(eks.network(region="us-east-1", network={"zones": ["us-east-1a", "us-east-1b"]}))
    found = eks.children(world, c.EKS_NETWORK)
    key = "subnet-private-us-east-1a"
    found[key]["status"]["atProvider"]["availabilityZoneId"] = "use1-az3"
    body = eks.network(region="us-east-1", network={"zones": ["us-east-1a", "us-east-1b"]})
    answer = eks.ask(body, found)
    status, why, message = eks.condition(answer, c.NETWORK_READY)
    assert (status, why) == (False, "UnsuitableNetwork")
    assert "us-east-1a is use1-az3 in this account" in message
    assert found[key]["status"]["atProvider"]["id"] not in str(answer.status)
    # It came by a pool, and the pool names another zone now: nothing can stand in it, so it goes.
    later = eks.ask(eks.network(region="us-east-1", poolZones=["us-east-1b"]), found)
    assert key not in later.resources
    assert eks.condition(later, c.NETWORK_READY)[1] != "UnsuitableNetwork"


def test_two_names_of_one_zone_are_told_apart_by_what_aws_says() -> None:
    found = at_rest(zones=["us-west-2a", "us-west-2b"])
    for key in ("subnet-private-us-west-2a", "subnet-private-us-west-2b"):
        found[key]["status"]["atProvider"]["availabilityZoneId"] = "usw2-az1"
    message = eks.condition(ask(found, zones=["us-west-2a", "us-west-2b"]), c.NETWORK_READY)[2]
    assert "us-west-2a and us-west-2b are one zone, usw2-az1" in message


OURS = {"vpcId": "vpc-0a1b", "privateSubnetIds": ["subnet-0a", "subnet-0d"], "publicSubnetIds": ["subnet-0c"]}


def test_an_existing_vpc_is_only_looked_at() -> None:
    answer = ask(existing=OURS)
    assert {x.manifest["kind"] for x in answer.resources.values()} == {"VPC", "Subnet"}
    assert eks.condition(ask(at_rest(existing=OURS), existing=OURS), c.NETWORK_READY)[0] is True
    for composed in answer.resources.values():
        assert composed.manifest["spec"]["managementPolicies"] == ["Observe"]
        assert composed.manifest["spec"]["forProvider"] == {"region": eks.REGION}


def test_a_cluster_never_moves_to_another_vpc() -> None:
    own, theirs = at_rest(zones=NAMES[:2]), at_rest(existing=OURS)
    for found, wanted in ((own, {"existing": OURS}), (theirs, {"zones": NAMES[:2]})):
        answer = ask(found, **wanted)
        assert answer.resources.keys() == found.keys()
        assert "cannot move; restore it" in eks.condition(answer, c.NETWORK_READY)[2]


def test_a_zone_that_is_named_no_more_keeps_its_subnets_and_routes() -> None:
    found = at_rest(zones=NAMES[:3])
    assert ask(found, zones=NAMES[:2]).resources.keys() == found.keys()


def test_pods_keep_the_second_range_and_its_routes_when_later_ones_get_the_first() -> None:
    second = {"secondaryCidr": "100.64.0.0/16", "zones": NAMES[:2]}
    found = at_rest(**second, podsInSecondary=True)
    assert ask(found, **second).resources.keys() == found.keys()
    assert ask(found, zones=NAMES[:2]).resources.keys() == found.keys()


EXISTING = [
    ("look-private-subnet-0a", {"vpcId": "vpc-0f"}, "subnet-0a is in vpc-0f, not in vpc-0a1b"),
    ("vpc", {"enableDnsHostnames": False}, "vpc-0a1b has enableDnsHostnames off"),
    ("vpc", {"enableDnsSupport": False}, "vpc-0a1b has enableDnsSupport off"),
    ("look-private-subnet-0a", {"availabilityZoneId": "usw1-az2"}, "is in usw1-az2, which takes no subnets"),
    ("both", {"availabilityZoneId": "usw2-az1"}, "all are in one zone and EKS asks for two"),
]


@pytest.mark.parametrize(("key", "says", "said"), EXISTING, ids=[x[2] for x in EXISTING])
def test_an_existing_vpc_that_cannot_carry_a_cluster_says_why(key: str, says: Manifest, said: str) -> None:
    found = at_rest(existing=OURS)
    keys = ["look-private-subnet-0a", "look-private-subnet-0d"] if key == "both" else [key]
    for name in keys:
        found[name]["status"]["atProvider"] |= says
    status, why, message = eks.condition(ask(found, existing=OURS), c.NETWORK_READY)
    assert (status, why) == (False, "UnsuitableNetwork")
    assert said in message


def test_a_lost_look_leaves_what_was_told_of_the_subnets() -> None:
    world = eks.at_rest(eks.network(network={"zones": NAMES[:2]}))
    body, found = eks.one(world, c.EKS_NETWORK), eks.children(world, c.EKS_NETWORK)
    found["subnet-private-us-west-2a"]["status"] = {}
    del found["vpc"]["status"]
    answer = eks.ask(body, found)
    assert answer.status["subnets"] == body["status"]["subnets"]
    assert answer.status["vpcId"] == body["status"]["vpcId"]
