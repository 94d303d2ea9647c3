"""Where `modelplane plan` says replicas land, what they displace, and why not elsewhere."""

from __future__ import annotations

import copy
from typing import Any

import pytest

import fleets
from builders.manifests import Manifest, cache, cluster, deployment, existing, gpu_class, member
from modelplane.api import definitions
from modelplane.core import paths
from modelplane.review.fleet import REPLICA, Fleet
from modelplane.review.forecast import GOES, NEW, STAYS, SURPLUS, Answer, forecast
from modelplane.sim.world import World

TAINT = {"key": "drain", "effect": "NoExecute"}


def fleet(*manifests: Manifest) -> Fleet:
    return Fleet.of([definitions.load().default(copy.deepcopy(m)) for m in manifests])


def running(*manifests: Manifest) -> list[Manifest]:
    """The objects of a fleet in which these have come to rest, as a control plane would list them."""
    found = fleet(*manifests)
    forecast(found)
    return list(found.world.objects.values())


def over(objects: list[Manifest], *changed: Manifest) -> Fleet:
    """That fleet with changed specs applied."""
    world = World.of(objects)
    for manifest in changed:
        world.apply(definitions.load().default(copy.deepcopy(manifest)))
    return Fleet(world)


def moves(answer: Answer) -> list[tuple[str, str]]:
    return [(r.cluster, r.change) for r in answer.replicas]


@pytest.mark.parametrize(
    "example", [name for name in fleets.FOLDERS if (fleets.EXAMPLES / name / "cluster.yaml").is_file()]
)
def test_a_cluster_is_foreseen_as_a_whole_play_leaves_it(example: str) -> None:
    documents = fleets.documents(example)
    played = {
        paths.name(o): o
        for r, o in fleets.played(example).final.objects.items()
        if r.kind == "InferenceCluster"
    }
    for found in fleet(*documents).world.of_kind("modelplane.ai/v1alpha1", "InferenceCluster"):
        at_rest = played[paths.name(found)]
        assert paths.is_true(found, "Ready")
        for one, other in zip(found["status"]["gpuPools"], at_rest["status"]["gpuPools"], strict=True):
            # What the scheduler goes by; zones and slices are for people, and known once nodes are there.
            for part in ("name", "nodes", "readyNodes", "devices"):
                assert one.get(part) == other.get(part), part
        for part in ("cache", "namespace", "providerConfigRef"):
            assert found["status"].get(part) == at_rest["status"].get(part), part
        assert bool(paths.text(found, "status", "gateway", "address"))


@pytest.mark.parametrize(
    "example", [name for name in fleets.FOLDERS if (fleets.EXAMPLES / name / "cluster.yaml").is_file()]
)
def test_replicas_land_where_a_whole_play_puts_them(example: str) -> None:
    played = fleets.played(example).final.objects
    wanted = {r.name: o["spec"]["clusterName"] for r, o in played.items() if r[:2] == REPLICA}
    found = forecast(fleet(*fleets.documents(example)))
    assert {r.name: r.cluster for a in found.answers for r in a.replicas} == wanted


def test_capacity_is_counted_before_and_after() -> None:
    found = forecast(fleet(gpu_class(), cluster(nodes=4), deployment(replicas=3)))
    (room,) = found.rooms
    assert (room.total, room.before, room.after) == (4, 4, 1)


def test_what_has_no_place_says_why_per_cluster_and_pool() -> None:
    found = forecast(fleet(gpu_class(), cluster(), cluster("south", taints=[TAINT]), deployment(replicas=3)))
    (answer,) = found.answers
    assert answer.missing == 1
    assert answer.says.startswith("InsufficientCapacity: 2 of 3 replicas placed")
    whys = {(w.cluster, w.pool): w.reason for w in answer.whys}
    assert "needs 1 node, 0 free, held by ml-team/qwen-" in whys["north", "gpu"]
    assert whys["south", ""] == "taint drain:NoExecute is not tolerated"


def test_a_drain_says_what_goes_and_where_it_comes_back() -> None:
    base = [gpu_class(), cluster("north"), cluster("south", nodes=0)]
    there = running(*base, deployment())
    found = forecast(over(there, cluster("north", taints=[TAINT]), _grown(there, "south", 2)))
    (answer,) = found.answers
    assert moves(answer) == [("north", GOES), ("south", NEW)]
    assert answer.replicas[0].why == "taint drain:NoExecute drains north"


def _grown(objects: list[Manifest], name: str, nodes: int) -> Manifest:
    """A cluster of the fleet whose pool has so many nodes now."""
    found = copy.deepcopy(next(o for o in objects if paths.name(o) == name))
    for pool in found["status"]["gpuPools"]:
        pool["nodes"] = pool["readyNodes"] = nodes
    return found


ROWS: list[tuple[str, dict[str, Any], list[tuple[str, str]]]] = [
    ("nothing changed", {"replicas": 2}, [("north", STAYS), ("north", STAYS)]),
    ("scaled down", {"replicas": 1}, [("north", GOES), ("north", STAYS)]),
    ("parked", {"replicas": 0}, [("north", GOES), ("north", GOES)]),
    ("scaled up", {"replicas": 3}, [("north", NEW), ("north", STAYS), ("north", STAYS)]),
]


@pytest.mark.parametrize(("reason", "spec", "wanted"), ROWS, ids=[r[0] for r in ROWS])
def test_what_runs_is_told_from_what_comes(
    reason: str, spec: dict[str, Any], wanted: list[tuple[str, str]]
) -> None:
    there = running(gpu_class(), cluster(nodes=4), deployment(replicas=2))
    (answer,) = forecast(over(there, deployment(**spec))).answers
    assert sorted(moves(answer)) == sorted(wanted), reason
    assert {r.why for r in answer.replicas if r.change == GOES} <= {SURPLUS}


def test_a_template_that_no_longer_fits_moves_the_replica() -> None:
    classes = [gpu_class(), gpu_class("big", count=4)]
    there = running(*classes, cluster("north"), cluster("west", class_name="big"), deployment())
    (answer,) = forecast(over(there, deployment(member(count=4)))).answers
    assert moves(answer) == [("north", GOES), ("west", NEW)]
    assert "a pod wants 4 for gpu, a node has 1 gpu" in answer.replicas[0].why


def test_two_that_want_the_last_room_are_settled_by_name() -> None:
    found = forecast(fleet(gpu_class(), cluster(nodes=1), deployment(name="b"), deployment(name="a")))
    assert [(a.deployment.name, a.missing) for a in found.answers] == [("a", 0), ("b", 1)]


def test_a_selector_that_does_not_compile_moves_nothing_and_says_so() -> None:
    there = running(gpu_class(), cluster(), deployment())
    (answer,) = forecast(over(there, deployment(member(cel="device.nope(")))).answers
    assert moves(answer) == [("north", STAYS)]
    assert answer.says.startswith("InvalidNodeSelector: engine qwen, Standalone, device request gpu")


def test_a_cluster_that_never_stands_takes_nothing() -> None:
    found = fleet(cluster(class_name="gone"), deployment())
    assert "InferenceClass gone does not exist" in found.failing["north"][0].message
    (answer,) = forecast(found).answers
    assert answer.missing == 1


def test_a_cache_bounds_where_replicas_land() -> None:
    found = forecast(
        fleet(
            gpu_class(),
            cluster("north"),
            existing("west"),
            cache(labels={"a": "b"}),
            deployment(cache="qwen"),
        )
    )
    (answer,) = found.answers
    assert {w.reason for w in answer.whys} == {"ModelCache qwen is staged only where a=b"}


def test_a_fleet_of_objects_that_say_nothing_is_no_error() -> None:
    junk: list[Manifest] = [
        {
            "apiVersion": "modelplane.ai/v1alpha1",
            "kind": kind,
            "metadata": {"name": "x", "namespace": "y"},
            "spec": spec,
        }
        for kind in ("ModelReplica", "ModelEndpoint", "ModelCache", "InferenceClass")
        for spec in ({}, {"engines": 3, "devices": "x", "clusterName": []})
    ]
    assert forecast(Fleet(World.of(junk))).answers == ()
