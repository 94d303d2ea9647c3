"""ModelDeployment: what a placement becomes, what it says, and what keeps running."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from builders import scheduling as b
from modelplane import contracts as c
from modelplane import names
from modelplane.api import definitions
from modelplane.core import Manifest
from modelplane.kinds import model_deployment
from modelplane.kinds.registry import KINDS

KIND = model_deployment.KIND


def test_it_is_registered_and_asks_for_the_whole_fleet() -> None:
    assert KINDS[c.API, "ModelDeployment"] is KIND
    assert KIND.ttl == 60
    found = {r.name: r for r in KIND.requires(b.deployment(cache="weights", selector={"climate": "cold"}))}
    assert set(found) == {"clusters", "all-replicas", "cache"}
    # A selector here would hide the cluster of a running replica as soon as a label changes.
    assert (found["clusters"].match_labels, found["clusters"].match_name) == (None, None)
    assert (found["all-replicas"].namespace, found["all-replicas"].match_labels) == (None, None)
    assert (found["cache"].match_name, found["cache"].namespace) == ("weights", "lab")


@pytest.mark.parametrize("junk", [{}, {"spec": None}, {"spec": {"template": 7}}, {"metadata": []}])
def test_requirements_never_raise_on_junk(junk: Manifest) -> None:
    assert [r.name for r in KIND.requires(junk)] == ["clusters", "all-replicas"]


def test_a_replica_carries_the_engines_their_pool_and_their_claims() -> None:
    nic = 'device.driver == "nic.example.org"'
    worker = b.member("Worker", nodes=2, requests=[b.request(count=4), b.request("fast", 1, nic)])
    engine = b.engine("main", b.member("Leader", gpus=4), worker, copies=1, port=9000)
    xr = b.deployment(engine, labels={"app": "chat"}, serving={"mode": "Unified", "kvBlockSize": 32})
    fleet = b.Fleet(b.cluster("north", b.pool("gpu", 4, b.device(), b.nic())))
    answer = fleet.ask(xr)
    found = b.replica(answer)
    name = names.replica("heron", "north", 0)
    assert found["metadata"] == {
        "name": name,
        "namespace": "lab",
        "labels": {
            "app": "chat",
            "modelplane.ai/deployment": "heron",
            "modelplane.ai/cluster": "north",
            "modelplane.ai/replica-index": "0",
        },
        "annotations": found["metadata"]["annotations"],
    }
    assert set(found["metadata"]["annotations"]) == {c.REVISION_ANNOTATION}
    spec = found["spec"]
    assert (spec["clusterName"], spec["labels"]) == ("north", {"app": "chat"})
    assert spec["serving"] == {"mode": "Unified", "kvBlockSize": 32}
    (placed,) = spec["engines"]
    assert (placed["name"], placed["copies"], placed["port"]) == ("main", 1, 9000)
    leader, workers = placed["members"]
    claim = {"name": "gpu", "deviceClassName": "gpu.nvidia.com", "count": 4, "selectors": [{"cel": b.GPU}]}
    assert leader["deviceRequests"] == workers["deviceRequests"] == [claim]
    assert leader["nodePoolName"] == workers["nodePoolName"] == "gpu"
    assert workers["worker"] == {"nodes": 2}
    assert "nodeSelector" not in leader
    assert leader["template"] == xr["spec"]["template"]["spec"]["engines"][0]["members"][0]["template"]
    assert definitions.judge(found) == []


def test_managed_labels_win_over_the_templates() -> None:
    xr = b.deployment(labels={"modelplane.ai/deployment": "other", "tier": "gold"})
    labels = b.replica(b.Fleet(b.cluster()).ask(xr))["metadata"]["labels"]
    assert (labels["modelplane.ai/deployment"], labels["tier"]) == ("heron", "gold")


def test_prefill_and_decode_go_to_one_cluster_with_their_phases() -> None:
    engines = [b.engine("fill", phase="Prefill"), b.engine("gen", phase="Decode", copies=2)]
    xr = b.deployment(*engines, serving={"mode": "PrefillDecode"}, cache="weights")
    fleet = b.Fleet(b.cluster(), b.cache())
    spec = b.replica(fleet.ask(xr))["spec"]
    assert [(e["name"], e["phase"], e["copies"]) for e in spec["engines"]] == [
        ("fill", "Prefill", 1),
        ("gen", "Decode", 2),
    ]
    assert spec["serving"] == {"mode": "PrefillDecode"}
    assert spec["modelCacheRef"] == {"name": "weights"}


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("192.0.2.10", "192.0.2.10"),
        ("2001:db8::7", "[2001:db8::7]"),
        ("lb.example.org", "lb.example.org"),
    ],
)
def test_an_endpoint_comes_with_readiness_and_an_address(address: str, host: str) -> None:
    """C71: no traffic to a replica that is still loading, and then with the labels people select by."""
    fleet, xr = b.Fleet(b.cluster(gateway=address)), b.deployment(labels={"app": "chat"})
    first = fleet.apply(xr, ready=False)
    assert set(first.resources) == {"replica-north-0"}
    assert set(fleet.apply(xr, ready=True).resources) == {"replica-north-0"}
    answer = fleet.ask(xr)
    endpoint = answer.resources["endpoint-north-0"].manifest
    name = b.replica_name()
    assert endpoint["metadata"]["name"] == name == b.replica(answer)["metadata"]["name"]
    assert endpoint["metadata"]["labels"] == b.replica(answer)["metadata"]["labels"]
    assert endpoint["spec"] == {"url": f"http://{host}/lab/{name}/v1", "rewritePath": f"/lab/{name}/"}
    assert definitions.judge(dict(endpoint)) == []


ENDPOINTS = [
    ({"ready": False}, None, False, "a replica that says it is not ready takes no requests"),
    (None, None, True, "a replica that says nothing keeps its endpoint"),
    ({"ready": True}, {"gateway": None}, True, "an address that is not in view takes nothing away"),
    ({"ready": True}, "gone", True, "nor does a cluster that is not in view"),
]  # fmt: skip


@pytest.mark.parametrize(("replica", "cluster", "stays", "reason"), ENDPOINTS, ids=[r[3] for r in ENDPOINTS])
def test_an_endpoint_goes_only_when_its_replica_is_unready(
    replica: Any, cluster: Any, stays: bool, reason: str
) -> None:
    fleet, xr = b.Fleet(b.cluster()), b.deployment()
    for _ in range(3):
        fleet.apply(xr)
    observed = fleet.observed(xr)["replica-north-0"]
    if replica is None:
        del observed["status"]
    else:
        observed["status"] = b.state(**replica)
    clusters = [] if cluster == "gone" else [b.cluster(**(cluster or {}))]
    answer = fleet.ask(xr, clusters=clusters)
    assert ("endpoint-north-0" in answer.resources) is stays, reason
    assert "replica-north-0" in answer.resources, reason


def test_partial_is_never_reported_as_complete() -> None:
    fleet, xr = b.Fleet(b.cluster("north", b.pool("gpu", 1))), b.deployment(b.gang(workers=1), replicas=3)
    fleet = b.Fleet(b.cluster("north", b.pool("gpu", 2)))
    fleet.apply(xr)
    answer = fleet.apply(xr)
    assert answer.ready is False
    assert b.condition(answer)[:2] == (False, "InsufficientCapacity")
    says = "1 of 3 replicas placed; 2 without a place: 1 cluster, of them 1 no room: "
    assert b.condition(answer)[2].startswith(says + "north/gpu needs 2 nodes, 0 free, held by lab/")
    assert b.condition(answer, c.REPLICAS_READY)[:2] == (False, "ModelStarting")
    assert answer.status["replicas"] == {"total": 1, "ready": 1, "unschedulable": 2}
    assert answer.status["unschedulable"][0]["pool"] == "gpu"
    assert answer.status["placements"] == [
        {"replica": names.replica("heron", "north", 0), "cluster": "north", "ready": True, "pools": ["gpu"]}
    ]
    assert _admitted(xr, answer.status) == []


def _admitted(xr: Manifest, status: Any) -> list[str]:
    return [str(p) for p in definitions.judge({**xr, "status": copy.deepcopy(dict(status))})]


def test_the_list_of_reasons_is_bounded_and_counts_the_rest() -> None:
    fleet = b.Fleet(*(b.cluster(f"c{i:03d}", ready=i % 2 == 0, gateway=None) for i in range(100)))
    answer = fleet.ask(b.deployment())
    assert len(answer.status["unschedulable"]) == 64
    assert answer.status["unschedulableMore"] == 36
    says = "100 clusters, of them 50 no gateway address, 50 not ready: c000: the cluster has no gateway"
    assert says in b.condition(answer)[2]
    assert len(b.condition(answer)[2]) < 400
    assert _admitted(b.deployment(), answer.status) == []


CONDITIONS = [
    (b.deployment(), [], "none", (False, "NoClusters"), (False, "NoReplicasScheduled"), 15, "an empty fleet"),
    (b.deployment(selector={"a": "b"}), [b.cluster()], "none", (False, "NoClusters"),
     (False, "NoReplicasScheduled"), 15, "no cluster carries the labels"),
    (b.deployment(), [b.cluster()], "none", (False, "Scheduling"),
     (False, "ModelStarting"), 15, "placed just now"),
    (b.deployment(), [b.cluster()], "starting", (True, "ReplicasCreated"),
     (False, "ModelStarting"), 60, "starting: core watches its replicas"),
    (b.deployment(), [b.cluster()], "ready", (True, "ReplicasCreated"),
     (True, "AllReplicasReady"), 60, "serving"),
    (b.deployment(replicas=0), [b.cluster()], "none", (True, "Parked"), (True, "Parked"), 60, "parked"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("xr", "fleet", "state", "scheduled", "ready", "ttl", "reason"),
    CONDITIONS,
    ids=[row[-1] for row in CONDITIONS],
)
def test_conditions_tell_the_states_apart(
    xr: Manifest, fleet: list[Manifest], state: str, scheduled: Any, ready: Any, ttl: int, reason: str
) -> None:
    world = b.Fleet(*fleet)
    if state != "none":
        world.apply(xr, ready=state == "ready")
    answer = world.ask(xr)
    assert [x.type for x in answer.conditions] == list(KIND.conditions)
    assert b.condition(answer)[:2] == scheduled, reason
    assert b.condition(answer, c.REPLICAS_READY)[:2] == ready, reason
    assert b.condition(answer, c.CACHE_RESOLVED)[:2] == (True, "NoModelCache")
    assert answer.ttl == ttl, reason


def test_the_first_answer_marks_nothing_ready() -> None:
    answer = b.Fleet(b.cluster()).ask(b.deployment())
    assert [x.ready for x in answer.resources.values()] == [False]


def test_a_selector_that_does_not_compile_keeps_what_runs_and_names_the_place() -> None:
    fleet = b.Fleet(b.cluster())
    for _ in range(2):
        fleet.apply(b.deployment())
    before = fleet.apply(b.deployment())
    bad = b.deployment(b.engine("main", b.member(requests=[b.request(cel="device.memory > 1")])))
    answer = fleet.ask(bad)
    assert set(answer.resources) == set(before.resources)
    assert b.replica(answer)["spec"] == fleet.observed(bad)["replica-north-0"]["spec"]
    status, reason, message = b.condition(answer)
    assert (status, reason, answer.ready) == (False, "InvalidNodeSelector", False)
    assert "engine main, Standalone, device request gpu, selectors[0].cel: " in message
    assert "undeclared reference to 'device.memory'" in message


def test_an_unreadable_spec_keeps_what_runs() -> None:
    fleet = b.Fleet(b.cluster())
    fleet.apply(b.deployment())
    bad = b.deployment()
    bad["spec"]["replicas"] = "many"
    answer = fleet.ask(bad)
    assert b.placed(answer) == ["north/0"]
    assert b.condition(answer)[:2] == (False, c.REASON_INVALID_SPEC)


def test_without_its_cache_nothing_new_is_placed_and_nothing_that_runs_changes() -> None:
    fleet, xr = b.Fleet(b.cluster(), b.cache()), b.deployment(cache="weights")
    fleet.apply(xr)
    bigger = b.deployment(b.engine("main", b.member(gpus=2)), cache="weights", replicas=2)
    answer = fleet.ask(bigger, cache=[])
    assert b.placed(answer) == ["north/0"]
    assert b.replica(answer)["spec"] == fleet.observed(xr)["replica-north-0"]["spec"]
    assert b.condition(answer, c.CACHE_RESOLVED)[:2] == (False, "ModelCacheNotFound")
    assert b.condition(answer)[:2] == (False, "ModelCacheNotFound")
    assert answer.ready is False
    assert [e.warning for e in answer.events] == [True]
    back = fleet.ask(bigger)
    assert b.condition(back, c.CACHE_RESOLVED)[:2] == (True, "ModelCacheResolved")
    assert len(b.placed(back)) == 2


def test_whole_floats_place_as_whole_numbers() -> None:
    xr = b.deployment(b.engine("main", b.member(gpus=4.0), copies=2.0), replicas=1)
    xr["spec"]["replicas"] = 1.0
    answer = b.Fleet(b.cluster()).ask(xr)
    engine = b.replica(answer)["spec"]["engines"][0]
    assert repr(engine["copies"]) == "2"
    assert repr(engine["members"][0]["deviceRequests"][0]["count"]) == "4"


def test_a_replica_lost_from_view_is_found_again_among_all_and_never_a_strangers() -> None:
    fleet, xr = b.Fleet(b.cluster()), b.deployment()
    fleet.apply(xr)
    mine = fleet.observed(xr)["replica-north-0"]
    fleet.observed(xr).clear()
    alike = {**mine, "metadata": {**mine["metadata"], "namespace": "others"}}
    forged = copy.deepcopy(mine)
    forged["metadata"]["ownerReferences"] = [{"uid": "somebody", "controller": True}]
    leaving = copy.deepcopy(mine)
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    found = fleet.ask(xr, all_replicas=[mine])
    assert b.placed(found) == ["north/0"]
    assert b.condition(found)[1] == "ReplicasCreated"
    for other, reason in (
        (alike, "another team's"),
        (forged, "another owner's"),
        (leaving, "on its way out"),
    ):
        assert b.condition(fleet.ask(xr, all_replicas=[other]))[1] == "Scheduling", reason
    # The name of one that is being deleted is not taken again before it is gone.
    assert b.placed(fleet.ask(xr, all_replicas=[leaving])) == ["north/1"]


@pytest.mark.parametrize("field", ["metadata", "spec", "status"])
def test_junk_in_other_peoples_objects_never_raises(field: str) -> None:
    for junk in (None, 7, "junk", [], {}, [None], {"gpuPools": [None, {"name": 3}], "conditions": "x"}):
        broken = {**b.cluster(), field: junk}
        stranger = {**b.held(), field: junk}
        fleet = b.Fleet(b.cluster("south"))
        answer = fleet.ask(b.deployment(), clusters=[broken, b.cluster("south")], all_replicas=[stranger])
        assert len(b.placed(answer)) == 1
