"""Where replicas go, what moves them and what does not. Case ids are those of the collected bug reports."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from builders import scheduling as b
from modelplane import contracts as c
from modelplane.core import Answer, Manifest

NORTH, SOUTH = b.cluster(labels={"climate": "cold"}), b.cluster("south", labels={"climate": "warm"})
DRAIN = b.taint(effect=c.NO_EXECUTE)
TOLERATED = [{"key": "maintenance", "operator": "Equal", "value": "yes"}]


def settled(fleet: b.Fleet, xr: Manifest, passes: int = 4) -> Answer:
    """The answer once what is composed serves."""
    for _ in range(passes):
        fleet.apply(xr)
    return fleet.ask(xr)


# --- where new replicas go -----------------------------------------------------------------------

BARRED = [
    (b.cluster(ready=False), {}, "north: the cluster is not Ready", "C17: a cluster still being built"),
    (b.cluster(gateway=None), {}, "north: the cluster has no gateway address yet", "C17: no address"),
    (b.cluster(taints=[b.taint()]), {}, "taint maintenance=yes:NoSchedule is not tolerated", "a taint"),
    (b.cluster(taints=[DRAIN]), {}, "north: taint maintenance=yes:NoExecute is not tolerated", "a drain"),
    (NORTH, {"selector": {"climate": "warm"}}, "the cluster selector asks for climate=warm", "other labels"),
    (b.cluster(caches=False), {"cache": "weights"}, "no storage class for ModelCache", "no cache class"),
    (b.cluster("north", b.pool("gpu", 4, b.device(memory="20Gi"))),
     {"engines": [b.engine("main", b.member(requests=[b.request(
         cel='device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("40Gi")) >= 0')]))]},
     "north/gpu engine main, Standalone: the selectors of request gpu are true of 0 of 4", "C24: memory"),
    (b.cluster("north", b.pool("gpu", 1)), {"engines": [b.gang()]},
     "north/gpu needs 2 nodes, 1 free", "too few nodes for a gang"),
    (b.cluster("north", b.pool("gpu", 4, b.device(count=2))), {"engines": [b.gang()]},
     "a pod wants 4 for gpu, a node has 2 gpu", "too few devices on a node"),
    (b.cluster("north", b.pool("gpu", 4, readyNodes=1)), {"engines": [b.gang()]},
     "north/gpu needs 2 nodes, 1 free", "C28: a node that is not ready is no capacity"),
    (b.cluster("north", b.pool("gpu", 4, b.nic("gpu", 4, driver="gpu.nvidia.com"))), {},
     "no member would claim a device there", "synthetic devices alone run nothing"),
]  # fmt: skip


@pytest.mark.parametrize(("cluster", "ask", "says", "reason"), BARRED, ids=[row[3] for row in BARRED])
def test_a_cluster_that_cannot_take_a_replica_says_why(
    cluster: Manifest, ask: dict[str, Any], says: str, reason: str
) -> None:
    engines = ask.get("engines", ())
    xr = b.deployment(*engines, **{k: v for k, v in ask.items() if k != "engines"})
    answer = b.Fleet(cluster, b.cache()).ask(xr)
    assert b.placed(answer) == [], reason
    assert b.condition(answer)[0] is False
    assert says in b.condition(answer)[2], reason
    assert answer.ready is False


def test_each_cluster_names_its_own_cause_in_a_message_that_does_not_change() -> None:
    """C24: not ready, tainted and too small are counted, the same way every time."""
    small = b.cluster("c", b.pool("gpu", 4, b.device(count=0)))
    clusters = [b.cluster("a", ready=False), b.cluster("b", taints=[b.taint()]), small]
    xr = b.deployment(replicas=3)
    answer = b.Fleet(*clusters).ask(xr)
    assert b.condition(answer)[2] == (
        "0 of 3 replicas placed; 3 without a place: 3 clusters, of them 1 no matching devices, 1 not ready, "
        "1 a taint that is not tolerated: c/gpu engine main, Standalone: its nodes carry no devices; "
        "a: the cluster is not Ready; b: taint maintenance=yes:NoSchedule is not tolerated"
    )
    assert b.Fleet(*reversed(clusters)).ask(xr) == answer
    rows = [(w["cluster"], w.get("pool")) for w in answer.status["unschedulable"]]
    assert rows == [("c", "gpu"), ("a", None), ("b", None)]


SPREAD = [
    ({"replicas": 3}, {"north": 2, "south": 1}, "C13: spread before packing"),
    ({"replicas": 3, "policy": "Pack"}, {"north": 3}, "Pack fills one cluster first"),
    ({"replicas": 18, "policy": "Pack"}, {"north": 16, "south": 2}, "and then the next"),
    ({"replicas": 32}, {"north": 16, "south": 16}, "capacity counts devices"),
    ({"replicas": 33}, {"north": 16, "south": 16}, "and never more than there are"),
]  # fmt: skip


@pytest.mark.parametrize(("ask", "where", "reason"), SPREAD, ids=[row[2] for row in SPREAD])
def test_replicas_are_spread_or_packed(ask: dict[str, Any], where: dict[str, int], reason: str) -> None:
    xr = b.deployment(**ask)
    answer = b.Fleet(NORTH, SOUTH).ask(xr)
    assert b.where(answer) == where, reason
    assert b.Fleet(SOUTH, NORTH).ask(xr) == answer
    assert len({r.manifest["metadata"]["name"] for r in answer.resources.values()}) == sum(where.values())


CAPACITY = [
    (1, [1, 1, 1, 1], 4, "C25: four single-GPU replicas share a node of four"),
    (1, [4, 1], 1, "C25: four and one do not"),
    (1, [2, 2], 2, "two of two share it"),
    (1, [3, 2], 1, "three and two do not"),
    (2, [3, 2], 2, "but on two nodes they do"),
    (2, [3, 3, 2], 2, "two nodes with one device left each are not two devices"),
]  # fmt: skip


@pytest.mark.parametrize(("nodes", "gpus", "placed", "reason"), CAPACITY, ids=[row[3] for row in CAPACITY])
def test_devices_are_counted_per_node(nodes: int, gpus: list[int], placed: int, reason: str) -> None:
    fleet = b.Fleet(b.cluster("north", b.pool("gpu", nodes)))
    answers = [
        fleet.apply(b.deployment(b.engine("main", b.member(gpus=n)), name=f"d{at}"))
        for at, n in enumerate(gpus)
    ]
    assert sum(len(b.placed(a)) for a in answers) == placed, reason


EIGHT = [
    ([4, 4], 2, "two pods of four GPUs share a node of eight"),
    ([5, 5], 1, "two of five do not"),
    ([5, 3], 2, "five and three do"),
    ([5, 4], 1, "five and four do not"),
    ([2, 2, 2, 2], 4, "four of two do"),
    ([8, 1], 1, "a whole node is whole"),
]  # fmt: skip


@pytest.mark.parametrize(("gpus", "placed", "reason"), EIGHT, ids=[row[2] for row in EIGHT])
@pytest.mark.parametrize("nodes", [1, 3])
def test_pods_share_a_node_of_eight_gpus_where_they_fit(
    nodes: int, gpus: list[int], placed: int, reason: str
) -> None:
    """Beside other nodes that are full: what is free on two of them is not free on one."""
    full = [b.held(gpus=8, name=f"full{n}") for n in range(nodes - 1)]
    fleet = b.Fleet(b.cluster("north", b.pool("gpu", nodes, b.device(count=8))), *full)
    answers = [
        fleet.apply(b.deployment(b.engine("main", b.member(gpus=n)), name=f"d{at}"))
        for at, n in enumerate(gpus)
    ]
    assert sum(len(b.placed(a)) for a in answers) == placed, reason


ENGINES = [
    ([b.engine("main", copies=4)], [b.pool("gpu", 1)], 1, "copies share a node"),
    ([b.engine("main", copies=5)], [b.pool("gpu", 1)], 0, "but all of them must fit"),
    ([b.gang(gpus=2)], [b.pool("gpu", 1)], 1, "a gang's pods may share a node"),
    ([b.gang(gpus=4, workers=3)], [b.pool("gpu", 3)], 0, "workers are pods of their own"),
    ([b.gang(gpus=4)], [b.pool("x", 1), b.pool("y", 1)], 0, "an engine stays on one pool"),
    ([b.engine("a", b.member(gpus=4)), b.engine("z", b.member(gpus=4))], [b.pool("x", 1), b.pool("y", 1)], 1,
     "engines of a replica may use two"),
    ([b.engine("a", b.member(gpus=4)), b.engine("z", b.member(gpus=4))], [b.pool("x", 1)], 0,
     "together they must fit"),
    ([b.engine("main", b.member("Leader", gpus=0), b.member("Worker", gpus=4, nodes=1))], [b.pool("x", 1)], 1,
     "a member that claims nothing rides free"),
    ([b.engine("a", b.member(gpus=1)),
      b.engine("z", b.member(gpus=2, requests=[b.request(count=2, cel='device.capacity["gpu.nvidia.com"]'
       '.memory.isGreaterThan(quantity("90Gi"))')]))],
     [b.pool("big", 1, b.device(count=2, memory="141Gi")), b.pool("small", 1, b.device(count=1))], 1,
     "an engine gives way to one that has no other pool"),
]  # fmt: skip


@pytest.mark.parametrize(("engines", "pools", "placed", "reason"), ENGINES, ids=[row[3] for row in ENGINES])
def test_engines_of_a_replica_go_together(
    engines: list[Manifest], pools: list[Manifest], placed: int, reason: str
) -> None:
    answer = b.Fleet(b.cluster("north", *pools)).ask(b.deployment(*engines))
    assert len(b.placed(answer)) == placed, reason


def test_a_member_that_can_claim_is_not_put_where_it_would_claim_nothing() -> None:
    nic = 'device.driver == "nic.example.org"'
    worker = b.member("Worker", requests=[b.request("nic", 1, nic)])
    engine = b.engine("main", b.member("Leader", gpus=1), worker)
    dra_nic = b.device("nic", 1, driver="nic.example.org", deviceClassName="nic.example.org")
    steers, claims = b.pool("a", 4, b.device(), b.nic()), b.pool("b", 4, b.device(), dra_nic)
    both = b.Fleet(b.cluster("north", steers, claims)).ask(b.deployment(engine))
    assert b.replica(both)["spec"]["engines"][0]["members"][1]["nodePoolName"] == "b"
    alone = b.Fleet(b.cluster("north", steers)).ask(b.deployment(engine))
    assert "deviceRequests" not in b.replica(alone)["spec"]["engines"][0]["members"][1]


def test_what_others_hold_is_not_free_and_they_are_named() -> None:
    fleet = b.Fleet(b.cluster("north", b.pool("gpu", 2)), b.held(name="bulky"))
    answer = fleet.ask(b.deployment(b.gang()))
    assert b.placed(answer) == []
    assert "north/gpu needs 2 nodes, 1 free, held by others/bulky" in b.condition(answer)[2]


HELD = [
    (b.held(to="gone"), True, "a pool that is no longer published costs nothing"),
    (b.held(deletionTimestamp="2026-01-01T00:00:00Z"), False, "one on its way out still holds its devices"),
    (b.held(gpus=9), False, "one that claims more than a node has holds the whole node"),
    (b.held(on="south"), True, "another cluster's pool of one name is another pool"),
]  # fmt: skip


@pytest.mark.parametrize(("other", "room", "reason"), HELD, ids=[row[2] for row in HELD])
def test_the_ledger_charges_what_is_held(other: Manifest, room: bool, reason: str) -> None:
    fleet = b.Fleet(b.cluster("north", b.pool("gpu", 1)), other)
    assert bool(b.placed(fleet.ask(b.deployment(b.engine("main", b.member(gpus=1)))))) is room, reason


def test_a_cache_and_a_selector_are_both_obeyed() -> None:
    """C18: a replica never lands where its cache is not staged, and the message speaks of the footprint."""
    xr = b.deployment(b.gang(), cache="weights")
    assert b.where(b.Fleet(NORTH, SOUTH, b.cache(climate="cold")).ask(xr)) == {"north": 1}
    full = b.cluster("north", b.pool("gpu", 1), labels={"climate": "cold"})
    answer = b.Fleet(full, SOUTH, b.cache(climate="cold")).ask(xr)
    assert b.placed(answer) == []
    assert "south: ModelCache weights is staged only where climate=cold" in b.condition(answer)[2]
    contrary = b.deployment(cache="weights", selector={"climate": "warm"})
    nothing = b.Fleet(NORTH, SOUTH, b.cache(climate="cold")).ask(contrary)
    assert b.placed(nothing) == [], "climate=warm and climate=cold together match no cluster"


def test_teams_of_one_name_do_not_share_a_place() -> None:
    fleet = b.Fleet(b.cluster("north", b.pool("gpu", 1)))
    big = b.engine("main", b.member(gpus=4))
    assert b.placed(settled(fleet, b.deployment(big, namespace="a"))) == ["north/0"]
    answer = fleet.ask(b.deployment(big, namespace="b"))
    assert b.placed(answer) == []
    assert "held by a/heron-" in b.condition(answer)[2]


# --- scaling -------------------------------------------------------------------------------------


def test_scaling_down_takes_from_the_fullest_cluster_and_the_highest_index() -> None:
    """C13: three replicas on two clusters; the fuller one loses its highest index, then the later name."""
    fleet = b.Fleet(NORTH, SOUTH)
    assert b.placed(settled(fleet, b.deployment(replicas=3))) == ["north/0", "north/1", "south/0"]
    assert b.placed(fleet.apply(b.deployment(replicas=2))) == ["north/0", "south/0"]
    assert b.placed(fleet.apply(b.deployment(replicas=1))) == ["north/0"]
    parked = fleet.apply(b.deployment(replicas=0))
    assert b.placed(parked) == []
    assert b.condition(parked)[:2] == (True, "Parked")


def test_scaling_down_takes_first_what_does_not_serve() -> None:
    fleet = b.Fleet(NORTH, SOUTH)
    settled(fleet, b.deployment(replicas=3))
    fleet.observed(b.deployment())["replica-south-0"]["status"] = b.state(False)
    assert b.placed(fleet.ask(b.deployment(replicas=2))) == ["north/0", "north/1"]


def test_the_lowest_free_index_is_used_again() -> None:
    fleet = b.Fleet(NORTH)
    settled(fleet, b.deployment(replicas=3))
    del fleet.observed(b.deployment())["replica-north-1"]
    assert b.placed(fleet.ask(b.deployment(replicas=3))) == ["north/0", "north/1", "north/2"]


# --- what does not move a replica ----------------------------------------------------------------

Change = Callable[[Manifest], None]


def _pools(cluster: Manifest, value: Any) -> None:
    cluster["status"]["gpuPools"] = value


def _devices(cluster: Manifest, *devices: Manifest) -> None:
    cluster["status"]["gpuPools"][0]["devices"] = list(devices)


UNMOVED: list[tuple[Change | None, str]] = [
    (lambda x: x["status"].update(b.state(False)), "C11: its cluster is not Ready"),
    (lambda x: x["status"].pop("gateway"), "its cluster has no address"),
    (lambda x: x["metadata"].update(labels={"climate": "warm"}), "its cluster is relabelled"),
    (lambda x: x["spec"].update(taints=[b.taint()]), "C20: a NoSchedule taint"),
    (lambda x: _pools(x, []), "the list of pools is emptied"),
    (lambda x: x.pop("status"), "the whole status is gone"),
    (_devices, "the pool publishes no devices"),
    (lambda x: _devices(x, b.device(count=1, driver="other.example.org")), "a class edit"),
    (lambda x: x["status"]["gpuPools"][0].update(nodes=0), "the pool shrinks"),
    (lambda x: x["status"]["gpuPools"][0].update(readyNodes=0), "C28: nodes are lost"),
    (lambda x: x["metadata"].update(name="renamed"), "its cluster is not in view under its name"),
    (None, "its cluster is not in view at all"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "reason"), UNMOVED, ids=[row[1] for row in UNMOVED])
def test_a_replica_stays_where_it_is(change: Change | None, reason: str) -> None:
    xr = b.deployment(selector={"climate": "cold"})
    fleet = b.Fleet(copy.deepcopy(NORTH), b.cluster("south", labels={"climate": "cold"}))
    before = settled(fleet, xr)
    clusters = copy.deepcopy(fleet.clusters)
    if change is None:
        del clusters[0]
    else:
        change(clusters[0])
    answer = fleet.ask(xr, clusters=clusters)
    assert b.placed(answer) == ["north/0"], reason
    after, was = b.replica(answer), b.replica(before)
    assert after["spec"]["engines"] == was["spec"]["engines"], reason
    assert after["metadata"]["name"] == was["metadata"]["name"], reason
    assert set(before.resources) <= set(answer.resources), reason


@pytest.mark.parametrize("lost", ["clusters", "all_replicas", "cache"])
def test_a_lost_requirement_drops_nothing(lost: str) -> None:
    fleet, xr = b.Fleet(NORTH, SOUTH, b.cache()), b.deployment(replicas=3, cache="weights")
    before = settled(fleet, xr)
    assert set(fleet.ask(xr, **{lost: []}).resources) == set(before.resources)


@pytest.mark.parametrize("lost", ["clusters", "cache"])
def test_losing_sight_while_a_replacement_starts_costs_neither(lost: str) -> None:
    fleet, xr = b.Fleet(NORTH, SOUTH, b.cache()), b.deployment(cache="weights")
    settled(fleet, xr)
    drained(fleet, DRAIN)
    assert b.placed(fleet.apply(xr, ready=None)) == ["north/0", "south/0"]
    answer = fleet.ask(xr, **{lost: []})
    assert b.placed(answer) == ["north/0", "south/0"]
    assert answer.status["replicas"]["unschedulable"] == 0


def test_scaling_down_works_without_the_cache_and_parking_without_the_fleet() -> None:
    fleet, xr = b.Fleet(NORTH, SOUTH, b.cache()), b.deployment(replicas=3, cache="weights")
    settled(fleet, xr)
    fewer, parked = (b.deployment(replicas=n, cache="weights") for n in (1, 0))
    assert b.placed(fleet.ask(fewer, cache=[])) == ["north/0"]
    assert len(b.placed(fleet.ask(fewer, clusters=[]))) == 3, "who is surplus cannot be told"
    assert b.placed(fleet.ask(parked, clusters=[])) == []


# --- what moves it -------------------------------------------------------------------------------


def drained(fleet: b.Fleet, *taints: Manifest) -> None:
    fleet.clusters[0] = {**fleet.clusters[0], "spec": {**fleet.clusters[0]["spec"], "taints": list(taints)}}


def test_a_drained_cluster_is_left_once_the_replacement_serves() -> None:
    """C20: NoExecute moves a replica; with room elsewhere it serves until the other one does."""
    fleet, xr = b.Fleet(NORTH, SOUTH), b.deployment()
    settled(fleet, xr)
    drained(fleet, DRAIN)
    moving = fleet.ask(xr)
    assert b.placed(moving) == ["north/0", "south/0"]
    name = b.replica_name()
    assert (
        f"{name} stays until its replacement serves: taint maintenance=yes:NoExecute"
        in b.condition(moving)[2]
    )
    fleet.apply(xr, ready=None)
    assert b.placed(fleet.apply(xr, ready=None)) == ["north/0", "south/0"], "the new one does not serve yet"
    fleet.observed(xr)["replica-south-0"]["status"] = b.state(True)
    assert b.placed(fleet.apply(xr)) == ["south/0"]


def test_a_drain_does_not_wait_for_a_replica_that_was_there_before() -> None:
    east = b.cluster("east", b.pool("gpu", 1))
    fleet, xr = b.Fleet(NORTH, SOUTH, east), b.deployment(replicas=3, policy="Spread")
    settled(fleet, xr)
    fleet.observed(xr)["replica-south-0"]["status"] = b.state(False)
    drained(fleet, DRAIN)
    fleet.apply(xr, ready=None)
    new = next(p for p in b.placed(fleet.ask(xr)) if p not in ("east/0", "north/0", "south/0"))
    assert "north/0" in b.placed(fleet.apply(xr, ready=None)), "its replacement does not serve yet"
    fleet.observed(xr)["replica-" + new.replace("/", "-")]["status"] = b.state(True)
    assert sorted(b.placed(fleet.ask(xr))) == sorted(["east/0", "south/0", new])


def test_of_two_that_move_the_first_replacement_to_serve_lets_one_go() -> None:
    fleet, xr = b.Fleet(NORTH), b.deployment(replicas=2)
    settled(fleet, xr)
    drained(fleet, DRAIN)
    fleet.clusters.append(SOUTH)
    fleet.apply(xr, ready=None)
    marks = [
        fleet.observed(xr)[key]["metadata"]["annotations"][c.REPLACES_ANNOTATION]
        for key in ("replica-south-0", "replica-south-1")
    ]
    assert marks == [b.replica_name(), b.replica_name(index=1)]
    for serves, stays in (("south-1", "north/0"), ("south-0", "north/1")):
        one = copy.deepcopy(fleet)
        one.observed(xr)[f"replica-{serves}"]["status"] = b.state(True)
        for _ in range(3):
            assert b.placed(one.apply(xr, ready=None)) == [stays, "south/0", "south/1"]
        for key in ("replica-south-0", "replica-south-1"):
            one.observed(xr)[key]["status"] = b.state(True)
        answer = settled(one, xr)
        assert b.placed(answer) == ["south/0", "south/1"]
        assert c.REPLACES_ANNOTATION not in b.replica(answer, "south/0")["metadata"]["annotations"]


def test_a_mark_that_somebody_takes_off_lets_nobody_go() -> None:
    fleet, xr = b.Fleet(NORTH, SOUTH), b.deployment()
    settled(fleet, xr)
    drained(fleet, DRAIN)
    fleet.apply(xr, ready=None)
    del fleet.observed(xr)["replica-south-0"]["metadata"]["annotations"]
    answer = fleet.ask(xr)
    assert b.placed(answer) == ["north/0", "south/0"]
    marked = b.replica(answer, "south/0")["metadata"]["annotations"]
    assert marked[c.REPLACES_ANNOTATION] == b.replica_name()


@pytest.mark.parametrize(("first", "second"), [("a", "z"), ("z", "a")])
def test_a_drain_that_is_called_off_keeps_the_one_that_serves(first: str, second: str) -> None:
    fleet, xr = b.Fleet(b.cluster(first)), b.deployment()
    settled(fleet, xr)
    drained(fleet, DRAIN)
    fleet.clusters.append(b.cluster(second))
    assert sorted(b.where(fleet.apply(xr, ready=None))) == ["a", "z"]
    fleet.clusters = [b.cluster(first), b.cluster(second)]
    assert b.placed(fleet.ask(xr)) == [f"{first}/0"]


def test_a_drained_replica_with_nowhere_to_go_leaves_a_gap_that_is_explained() -> None:
    fleet, xr = b.Fleet(NORTH), b.deployment()
    settled(fleet, xr)
    drained(fleet, DRAIN)
    answer = fleet.ask(xr)
    assert b.placed(answer) == []
    assert "north: taint maintenance=yes:NoExecute is not tolerated" in b.condition(answer)[2]


TOLERATIONS = [
    ([{"key": "maintenance", "operator": "Equal", "value": "yes"}], True, "key and value"),
    ([{"key": "maintenance", "operator": "Exists"}], True, "the key alone"),
    ([{"operator": "Exists"}], True, "C20: every key"),
    ([{"operator": "Exists", "effect": "NoExecute"}], True, "every key of this effect"),
    ([{"operator": "Exists", "effect": "NoSchedule"}], False, "NoSchedule does not cover NoExecute"),
    ([{"key": "maintenance", "operator": "Equal", "value": "no"}], False, "another value"),
    ([{"key": "maintenance", "operator": "Equal"}], False, "an absent value is an empty one"),
    ([{"key": "other", "operator": "Exists"}], False, "another key"),
    ([], False, "none"),
]  # fmt: skip


@pytest.mark.parametrize(("tolerations", "stays", "reason"), TOLERATIONS, ids=[row[2] for row in TOLERATIONS])
def test_a_tolerated_drain_moves_nothing(tolerations: list[Manifest], stays: bool, reason: str) -> None:
    xr = b.deployment(tolerations=tolerations)
    fleet = b.Fleet(NORTH, SOUTH)
    settled(fleet, xr)
    drained(fleet, DRAIN)
    assert b.placed(settled(fleet, xr)) == (["north/0"] if stays else ["south/0"]), reason


def test_one_untolerated_taint_among_tolerated_ones_repels() -> None:
    fleet = b.Fleet(b.cluster(taints=[b.taint(), b.taint("other")]), SOUTH)
    assert b.where(fleet.ask(b.deployment(tolerations=TOLERATED))) == {"south": 1}


def test_a_pool_taken_out_of_the_spec_is_left() -> None:
    fleet = b.Fleet(b.cluster("north", b.pool("old", 1), b.pool("new", 1)))
    xr = b.deployment(b.engine("main", b.member(gpus=4)))
    assert b.replica(settled(fleet, xr))["spec"]["engines"][0]["members"][0]["nodePoolName"] == "old"
    fleet.clusters = [b.cluster("north", b.pool("new", 1))]
    assert b.placed(fleet.apply(xr, ready=None)) == ["north/0", "north/1"]
    answer = settled(fleet, xr)
    assert b.placed(answer) == ["north/1"]
    assert b.replica(answer, "north/1")["spec"]["engines"][0]["members"][0]["nodePoolName"] == "new"


# --- template changes in place -------------------------------------------------------------------

MAIN, BIG = b.member(gpus=1), b.member(gpus=4)
NEW_IMAGE = {"spec": {"containers": [{"name": "engine", "image": "example.org/engine:2"}]}}

IN_PLACE = [
    ([b.engine("main", b.member(gpus=1, template=NEW_IMAGE))], ["north/0"], "a new image"),
    ([b.engine("main", b.member(gpus=4))], ["north/0"], "more devices where there is room"),
    ([b.engine("main", copies=2)], ["north/0"], "more copies"),
    ([b.engine("main", b.member()), b.engine("side", b.member())], ["north/0"], "one engine more"),
    ([b.engine("other", b.member())], ["north/0"], "another engine"),
    ([b.gang(gpus=1)], ["north/0"], "a single pod becomes a gang"),
]  # fmt: skip


@pytest.mark.parametrize(("engines", "placed", "reason"), IN_PLACE, ids=[row[2] for row in IN_PLACE])
def test_a_new_template_is_applied_where_the_replica_is(
    engines: list[Manifest], placed: list[str], reason: str
) -> None:
    fleet = b.Fleet(NORTH, SOUTH)
    settled(fleet, b.deployment())
    answer = fleet.ask(b.deployment(*engines))
    assert b.placed(answer) == placed, reason
    spec = b.replica(answer)["spec"]
    assert [e["name"] for e in spec["engines"]] == [e["name"] for e in engines], reason
    written = [m["template"] for e in spec["engines"] for m in e["members"]]
    assert written == [m["template"] for e in b.deployment(*engines)["spec"]["template"]["spec"]["engines"]
                       for m in e["members"]], reason  # fmt: skip


def test_a_template_that_outgrows_its_pool_moves_once_the_new_place_serves() -> None:
    fleet = b.Fleet(b.cluster("north", b.pool("gpu", 1)), b.cluster("south", b.pool("gpu", 2)))
    settled(fleet, b.deployment())
    grown = b.deployment(b.gang())
    moving = fleet.apply(grown, ready=None)
    assert b.placed(moving) == ["north/0", "south/0"]
    assert len(b.replica(moving)["spec"]["engines"][0]["members"]) == 1, "the old one runs what it ran"
    assert b.placed(settled(fleet, grown)) == ["south/0"]


def test_a_template_that_fits_nowhere_leaves_what_runs_and_says_so() -> None:
    fleet = b.Fleet(b.cluster("north", b.pool("gpu", 1)))
    settled(fleet, b.deployment())
    answer = settled(fleet, b.deployment(b.gang()))
    assert b.placed(answer) == ["north/0"]
    assert len(b.replica(answer)["spec"]["engines"][0]["members"]) == 1
    status, reason, message = b.condition(answer)
    assert (status, reason, answer.ready) == (False, "InsufficientCapacity", False)
    assert "0 of 1 replicas placed" in message
    assert f"{b.replica_name()} stays until its replacement serves: its pool has no room" in message


def test_growing_never_takes_what_a_sibling_holds() -> None:
    fleet = b.Fleet(b.cluster("north", b.pool("gpu", 1)))
    two = b.engine("main", b.member(gpus=2))
    settled(fleet, b.deployment(two, replicas=2))
    answer = settled(fleet, b.deployment(b.engine("main", BIG), replicas=2))
    counts = [
        b.replica(answer, place)["spec"]["engines"][0]["members"][0]["deviceRequests"][0]["count"]
        for place in b.placed(answer)
    ]
    assert counts == [2, 2], "four devices stay with the two that hold them"


def test_a_new_cache_that_is_not_staged_there_moves_the_replica() -> None:
    fleet = b.Fleet(NORTH, SOUTH, b.cache("warm", climate="warm"))
    settled(fleet, b.deployment())
    assert b.placed(settled(fleet, b.deployment(cache="warm"))) == ["south/0"]


# --- rolling -------------------------------------------------------------------------------------

ROLLING = [
    ({"type": "Rolling", "maxSurge": 1, "maxUnavailable": 0}, 3, 4, "one more at a time"),
    ({"type": "Rolling", "maxSurge": 3, "maxUnavailable": 0}, 3, 6, "all at once beside the old ones"),
    ({"type": "Rolling", "maxSurge": 0, "maxUnavailable": 1}, 2, 3, "one fewer at a time"),
    ({"type": "Rolling", "maxSurge": 1, "maxUnavailable": 2}, 1, 4, "both"),
]  # fmt: skip


@pytest.mark.parametrize(("strategy", "least", "most", "reason"), ROLLING, ids=[row[3] for row in ROLLING])
def test_rolling_stays_within_its_bounds_and_ends(
    strategy: dict[str, Any], least: int, most: int, reason: str
) -> None:
    fleet = b.Fleet(NORTH, SOUTH)
    settled(fleet, b.deployment(replicas=3, strategy=strategy))
    changed = b.deployment(b.engine("main", b.member(template=NEW_IMAGE)), replicas=3, strategy=strategy)
    for _ in range(12):
        answer = fleet.apply(changed, ready=None)
        replicas = [o for o in fleet.observed(changed).values() if o["kind"] == "ModelReplica"]
        serving = [o for o in replicas if o.get("status") == b.state(True)]
        assert len(replicas) <= most, reason
        assert len(serving) >= least, reason
        for o in replicas:
            o["status"] = b.state(True)
    images = [
        b.replica(answer, p)["spec"]["engines"][0]["members"][0]["template"]["spec"]["containers"][0]["image"]
        for p in b.placed(answer)
    ]
    assert images == ["example.org/engine:2"] * 3, reason
    assert b.condition(fleet.ask(changed))[:2] == (True, "ReplicasCreated")


def test_a_rollout_that_never_serves_keeps_the_old_ones() -> None:
    strategy = {"type": "Rolling", "maxSurge": 1, "maxUnavailable": 0}
    fleet = b.Fleet(NORTH)
    settled(fleet, b.deployment(replicas=2, strategy=strategy))
    bad = b.deployment(b.engine("main", b.member(template=NEW_IMAGE)), replicas=2, strategy=strategy)
    for _ in range(5):
        answer = fleet.apply(bad, ready=None)
    assert b.placed(answer) == ["north/0", "north/1", "north/2"]
    assert "stays until its replacement serves: it runs an older template" in b.condition(answer)[2]


def test_a_rollout_without_room_says_so_and_waits() -> None:
    strategy = {"type": "Rolling", "maxSurge": 1, "maxUnavailable": 0}
    fleet = b.Fleet(b.cluster("north", b.pool("gpu", 1)))
    settled(fleet, b.deployment(b.engine("main", BIG), strategy=strategy))
    changed = b.deployment(b.engine("main", {**BIG, "template": NEW_IMAGE}), strategy=strategy)
    answer = settled(fleet, changed)
    assert b.placed(answer) == ["north/0"]
    assert (
        "no room to surge: 1 cluster, of them 1 no room: north/gpu needs 1 node, 0 free"
        in b.condition(answer)[2]
    )


# --- two at once ---------------------------------------------------------------------------------


def race(ready: dict[str, bool], nodes: int = 1) -> tuple[b.Fleet, dict[str, Manifest]]:
    """Two deployments that took the last node without seeing each other."""
    fleet = b.Fleet(
        b.cluster("north", b.pool("gpu", nodes)), b.cluster("south", b.pool("gpu", 1), ready=False)
    )
    asks = {name: b.deployment(b.engine("main", BIG), name=name) for name in ready}
    blind = {name: b.Fleet(*fleet.clusters) for name in asks}
    for at, (name, xr) in enumerate(asks.items()):
        blind[name].apply(xr, ready=ready[name])
        found = blind[name].observed(xr)
        for obj in found.values():
            obj["metadata"]["creationTimestamp"] = f"2026-01-01T00:00:0{at}Z"
        fleet.composed["lab", name] = found
    return fleet, asks


RACES = [
    ({"early": False, "late": False}, {"early"}, "the older one stays"),
    ({"zebra": False, "aardvark": False}, {"zebra"}, "whatever its name"),
    ({"early": False, "late": True}, {"late"}, "who serves stays"),
    ({"early": True, "late": True}, {"early", "late"}, "two that serve are not touched"),
]  # fmt: skip


@pytest.mark.parametrize(("ready", "stays", "reason"), RACES, ids=[row[2] for row in RACES])
def test_two_that_took_one_node_settle_it(ready: dict[str, bool], stays: set[str], reason: str) -> None:
    fleet, asks = race(ready)
    answers = {name: fleet.ask(xr) for name, xr in asks.items()}
    assert {name for name, a in answers.items() if b.placed(a)} == stays, reason
    for name in asks.keys() - stays:
        assert b.condition(answers[name])[:2] == (False, "InsufficientCapacity"), reason


def test_the_loser_of_a_race_goes_where_there_is_room() -> None:
    fleet, asks = race({"early": False, "late": False})
    fleet.clusters[1] = b.cluster("south", b.pool("gpu", 1))
    assert b.placed(fleet.ask(asks["early"])) == ["north/0"]
    assert b.placed(fleet.ask(asks["late"])) == ["south/0"]


def test_lost_nodes_are_no_race() -> None:
    fleet, asks = race({"early": False, "late": False}, nodes=2)
    fleet.clusters[0]["status"]["gpuPools"][0]["readyNodes"] = 1
    assert [b.placed(fleet.ask(xr)) for xr in asks.values()] == [["north/0"], ["north/0"]]


def test_a_pool_too_small_for_one_deployment_alone_is_no_race() -> None:
    fleet, xr = b.Fleet(b.cluster("north", b.pool("gpu", 2))), b.deployment(b.engine("main", BIG), replicas=2)
    fleet.apply(xr, ready=False)
    fleet.clusters = [b.cluster("north", b.pool("gpu", 1))]
    assert b.placed(fleet.ask(xr)) == ["north/0", "north/1"]
