"""EKSNodePool: what keeps a running group, what replaces it, and what the pool says of itself."""

from __future__ import annotations

import pytest

from builders import eks
from modelplane import contracts as c
from modelplane.core import Answer, Manifest

ZONES = list(eks.SUBNETS)
CLUSTER = {"apiVersion": c.EKS_API, "kind": "Cluster", "name": "lab"}
NET = {"apiVersion": c.INFRA_API, "kind": c.EKS_NETWORK, "name": "lab-network"}


def groups(answer: Answer) -> set[str]:
    return {key for key, x in answer.resources.items() if x.manifest["kind"] == "NodeGroup"}


def usages(answer: Answer) -> set[tuple[str, str]]:
    """What may not go, and before what, by kind."""
    found = set()
    for x in answer.resources.values():
        if x.manifest["kind"] == "Usage":
            found.add((x.manifest["spec"]["of"]["kind"], x.manifest["spec"]["by"]["kind"]))
    return found


# A change of each makes a new group; those EKS or EC2 fulfil in place do not.
CHANGES: list[tuple[Manifest, bool, str]] = [
    ({"instanceType": "p5en.48xlarge"}, True, "another machine"),
    ({"fabric": "EFA"}, True, "interfaces of a running instance cannot change"),
    ({"purchase": "Spot"}, True, "EKS never changes capacityType"),
    ({"capacityBlock": {"capacityReservationId": "cr-0b"}}, True, "nor that"),
    ({"reservation": {"id": "cr-0c"}}, True, "reserved capacity is other capacity"),
    ({"nodeRoleArn": eks.ROLE_ARN + "2"}, True, "EKS never changes the role"),
    ({"subnets": [{"id": "subnet-0f", "zone": "us-west-2a"}]}, True, "nor the subnets"),
    ({"diskSizeGb": 500}, False, "a new version of the template"),
    ({"localStorage": "RAID0"}, False, "a new version of the template"),
    ({"securityGroupIds": ["sg-0b"]}, False, "a new version of the template"),
    ({"tags": {"a": "b"}}, False, "tags change in place"),
    ({"labels": {"a": "b"}}, False, "labels change in place"),
    ({"taints": [{"key": "a", "effect": "NoSchedule"}]}, False, "taints change in place"),
    ({"version": "1.37"}, False, "nodes roll to the next version"),
    ({"maxNodeCount": 9}, False, "counts change in place"),
]


@pytest.mark.parametrize(("change", "new", "reason"), CHANGES, ids=[f"{next(iter(x[0]))}" for x in CHANGES])
def test_what_eks_refuses_in_place_makes_a_group_beside_the_old(
    change: Manifest, new: bool, reason: str
) -> None:
    found, before = eks.running(eks.node_pool())
    (old,) = groups(before)
    made: set[str] = set()
    # A group comes after its template, that one after its placement group.
    for _ in range(3):
        answer = eks.ask(eks.node_pool(**change), found)
        made = groups(answer)
        assert old in made, reason
        found = {**{k: x for k, x in eks.seen(answer).items() if k not in made}, **found}
    assert len(made) == (2 if new else 1), reason


def test_the_old_group_goes_when_the_new_one_is_active_and_its_template_when_it_has_gone() -> None:
    found, before = eks.running(eks.node_pool())
    (old,) = groups(before)
    change = eks.node_pool(instanceType="p5en.48xlarge")
    found = {**eks.seen(eks.ask(change, found)), **found}
    answer = eks.ask(change, found)
    (new,) = groups(answer) - {old}
    for state in ("CREATING", "CREATE_FAILED", "DEGRADED"):
        waiting = eks.ask(change, {**found, new: eks.told(answer, new, status=state)})
        assert groups(waiting) == {old, new}, state
        assert "stays until 1 of 1 new node groups are active" in waiting.status["message"]
        assert waiting.ready is True, "the old one serves all the while"
    found[new] = eks.told(answer, new, status="ACTIVE")
    done = eks.ask(change, found)
    assert groups(done) == {new}
    template = old.replace("node-group", "launch-template")
    assert template in done.resources, "the group that uses it is only being deleted"
    # Crossplane deletes the group and observes it no more; it stands, and its nodes are drained.
    leaving = {
        **found[old],
        "metadata": {**found[old]["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"},
    }
    leaving["metadata"]["annotations"] = {c.RESOURCE_NAME_ANNOTATION: old}
    draining = eks.ask(change, {k: v for k, v in found.items() if k != old}, {"groups": [leaving]})
    assert template in draining.resources
    assert groups(draining) == {new}


def test_a_zone_that_is_dropped_keeps_its_group_until_all_others_serve() -> None:
    found, before = eks.running(eks.node_pool(subnets=ZONES[:2]))
    both = groups(before)
    (left,) = [k for k in both if "us-west-2b" in k]
    (stays,) = both - {left}
    assert groups(eks.ask(eks.node_pool(subnets=ZONES[:1]), found)) == {stays}
    broken = {**found, stays: eks.told(before, stays, status="DEGRADED")}
    assert groups(eks.ask(eks.node_pool(subnets=ZONES[:1]), broken)) == both


REFUSED: list[tuple[Manifest, str, str, str]] = [
    (
        {"instanceType": "p9.large"},
        "UnknownInstanceType",
        "instanceType: p9.large is not in",
        "aws_instances.yaml",
    ),
    (
        {"instanceType": "g7.2xlarge"},
        "UnsupportedInstanceType",
        "instanceType: g7.2xlarge cannot run",
        "driver",
    ),
    (
        {"instanceType": "g6.xlarge", "fabric": "EFA"},
        "NoEFA",
        "fabric: g6.xlarge has no EFA",
        "choose a type",
    ),
    (
        {"instanceType": "p6e-gb200.36xlarge", "localStorage": "RAID0"},
        "NoLocalDisks",
        "localStorage: p6e-gb200.36xlarge has no nvmeGb",
        "leave it None",
    ),
    (
        {"capacityBlock": {"capacityReservationId": "cr-0b"}, "subnets": ZONES[:2]},
        "OneZoneNeeded",
        "zones: a Capacity Block is in one zone",
        "name that one zone",
    ),
    (
        {"reservation": {"id": "cr-0b"}, "subnets": ZONES[:2]},
        "OneZoneNeeded",
        "zones: a capacity reservation is in one zone",
        "name that one zone",
    ),
]


@pytest.mark.parametrize(
    ("change", "reason", "said", "step"), REFUSED, ids=[f"{x[1]}-{x[2][:12]}" for x in REFUSED]
)
def test_a_pool_that_cannot_be_names_itself_and_the_field_and_keeps_what_runs(
    change: Manifest, reason: str, said: str, step: str
) -> None:
    found, before = eks.running(eks.node_pool())
    for observed in ({}, found):
        answer = eks.ask(eks.node_pool(**change), observed)
        status, why, message = eks.condition(answer, c.ACCEPTED)
        assert (status, why) == (False, reason)
        assert message.startswith("pool gpu: ")
        assert said in message
        assert step in message
        assert answer.resources.keys() == observed.keys()
    assert groups(before)


LACKS: list[tuple[Manifest, str]] = [
    ({"securityGroupIds": None}, "the security group"),
    ({"nodeRoleArn": None}, "the role of the nodes"),
    ({"subnets": None}, "the subnets"),
    ({"subnets": []}, "the subnets"),
]


@pytest.mark.parametrize(("change", "said"), LACKS, ids=[f"{x[0]}" for x in LACKS])
def test_no_template_is_made_before_its_cluster_told_all_and_none_goes_with_it(
    change: Manifest, said: str
) -> None:
    answer = eks.ask(eks.node_pool(**change))
    assert answer.resources == {}
    assert said in eks.condition(answer, c.NODES_READY)[2]
    found, _ = eks.running(eks.node_pool())
    assert eks.ask(eks.node_pool(**change), found).resources.keys() == found.keys()


def test_a_group_waits_for_the_number_of_its_template_and_keeps_its_own() -> None:
    found, answer = eks.running(eks.node_pool())
    (key,) = groups(answer)
    assert not groups(eks.ask(eks.node_pool()))
    (template,) = [k for k in found if k.startswith("launch-template-")]
    del found[template]["status"]["atProvider"]["latestVersion"]
    kept = eks.ask(eks.node_pool(), found)
    assert eks.parameters(kept, key)["launchTemplate"] == eks.parameters(answer, key)["launchTemplate"]


def test_a_pool_without_nodes_is_parked_and_makes_nothing() -> None:
    answer = eks.ask(eks.node_pool(nodeCount=0, minNodeCount=0, maxNodeCount=0))
    assert eks.condition(answer, c.NODES_READY)[1] == "Parked"
    assert not [k for k in answer.resources if k != "nodes"]


def test_template_cluster_and_network_outlive_the_group_by_leaf_usages() -> None:
    _, answer = eks.running(eks.node_pool(outlivedBy=[CLUSTER, NET]))
    assert usages(answer) == {
        ("LaunchTemplate", "NodeGroup"),
        ("Cluster", "NodeGroup"),
        (c.EKS_NETWORK, "NodeGroup"),
    }
