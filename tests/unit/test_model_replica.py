"""ModelReplica: what waits for what, what is never dropped, and what it says of itself."""

from __future__ import annotations

from pathlib import Path

import pytest

import judges
from builders import replicas as r
from builders.replicas import condition
from modelplane import contracts as c
from modelplane.core import Condition, Manifest
from modelplane.kinds.model_replica import KIND

STACKS = ("Standard", "Dynamo")


def without_address() -> Manifest:
    found = r.cluster()
    del found["status"]["providerConfigRef"]
    return found


NO_CLUSTER = (r.secret("unrelated", {}),)
WAITING = [
    (
        r.replica(),
        NO_CLUSTER,
        "WaitingForCluster",
        "InferenceCluster north does not exist",
        "no such cluster",
    ),
    (r.replica(), (without_address(),), "WaitingForCluster", "providerConfigRef", "not reachable yet"),
    (
        r.replica(),
        (r.cluster(teams=["other"]),),
        "Deploying",
        "prepare namespace mp-lab-",
        "the team's namespace is not there yet",
    ),
    (
        r.replica(modelCacheRef={"name": "w"}),
        (r.cluster(), r.cache("Hydrating")),
        "Deploying",
        "ModelCache w on cluster north is Hydrating",
        "GPUs do not wait beside a download",
    ),
    (
        r.replica(modelCacheRef={"name": "w"}),
        (r.cluster(),),
        "Deploying",
        "has no ModelCacheReplica",
        "case C18: never a pod that waits on a volume for ever",
    ),
    (
        r.replica(r.engine("main", r.member(pool="gone"))),
        (r.cluster(),),
        "Deploying",
        "has no node pool gone",
        "a pool nobody declares",
    ),
]


@pytest.mark.parametrize(("composite", "found", "reason_", "message", "reason"), WAITING)
def test_before_its_place_is_ready_no_pod_is_created_and_the_condition_says_why(
    composite: Manifest, found: tuple[Manifest, ...], reason_: str, message: str, reason: str
) -> None:
    given = r.answer(composite, *found)
    accepted = condition(given, c.MODEL_ACCEPTED)
    assert (accepted.status, accepted.reason) == (False, reason_), reason
    assert message in accepted.message, reason
    assert condition(given, c.MODEL_READY).status is False, reason
    assert r.workloads(given) == {}, reason
    assert given.ready is False, reason
    assert given.ttl == 15, "core does not watch what it waits for"
    assert {x.type for x in given.conditions} == set(KIND.conditions), "every condition type, always"


def test_nothing_is_created_in_a_namespace_that_is_not_there() -> None:
    given = r.answer(r.replica(), r.cluster(teams=[]))
    assert given.resources == {}
    assert all("prepare namespace" in why for why in given.held_back.values())


def test_one_that_loads_is_not_asked_about_every_few_seconds_since_core_watches_what_it_composed() -> None:
    given = r.answer(r.replica(), r.cluster())
    assert condition(given, c.MODEL_READY).status is False
    assert given.held_back, "its route, among others, comes after its pool"
    assert given.ttl == 60


def test_one_whose_engine_waits_for_a_pool_that_its_cluster_forgot_is_asked_about_soon() -> None:
    _, observed = r.settled(r.replica(), r.cluster())
    observed["model-serving-main"]["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
    given = r.answer(r.replica(), r.cluster(pools=["gpu2"]), observed=observed)
    assert given.resources.keys() == observed.keys()
    assert given.held_back == {}, "it is composed, and stays"
    assert condition(given, c.MODEL_READY).status is False
    assert given.ttl == 15, "core does not watch the cluster"


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize(
    "composite", [r.replica(), r.replica(r.gang(copies=2)), r.split(), r.split(gangs=True)]
)
def test_a_workload_waits_for_its_claims_and_then_all_is_ready(composite: Manifest, stack: str) -> None:
    """Case C89: nothing is ready in the response that first asks for it."""
    first = r.answer(composite, r.cluster(stack=stack))
    assert not any(x.ready for x in first.resources.values())
    assert r.workloads(first) == {}
    last, _ = r.settled(composite, r.cluster(stack=stack))
    assert last.held_back == {}
    assert last.ready is None
    assert all(x.ready for x in last.resources.values())
    assert condition(last, c.MODEL_ACCEPTED) == Condition(c.MODEL_ACCEPTED, True, "Accepted")
    assert condition(last, c.MODEL_READY) == Condition(c.MODEL_READY, True, "Serving")


def _status_of(manifest: Manifest, ready: int) -> Manifest:
    found: dict[str, Manifest] = {
        "Deployment": {"updatedReplicas": 3, "availableReplicas": ready},
        "LeaderWorkerSet": {"updatedReplicas": 3, "readyReplicas": ready},
        "PodCliqueSet": {"availableReplicas": ready},
    }
    return {"observedGeneration": 1, **found[manifest["kind"]]}


@pytest.mark.parametrize(
    ("engine", "stack"),
    [(r.engine(copies=3), "Standard"), (r.gang(copies=3), "Standard"), (r.gang(copies=3), "Dynamo")],
)
@pytest.mark.parametrize("ready", [0, 2])
def test_every_copy_counts(engine: Manifest, stack: str, ready: int) -> None:
    composite = r.replica(engine)
    given, seen = r.settled(composite, r.cluster(stack=stack))
    (key,) = r.workloads(given)
    manifest = r.workload(given)
    seen[key] = r.observe(given.resources[key].manifest, status=_status_of(manifest, ready))
    given = r.answer(composite, r.cluster(stack=stack), observed=seen)
    assert not given.resources[key].ready
    (entry,) = given.status["engines"]
    assert (entry["copies"], entry["readyCopies"]) == (3, ready)
    assert (
        f"{ready} of 3 copies serve on {manifest['kind']} {manifest['metadata']['name']}" in entry["message"]
    )
    found = condition(given, c.MODEL_READY)
    assert (found.status, found.reason) == (False, "ModelStarting")
    assert "engine main" in found.message


@pytest.mark.parametrize(
    ("key", "words"), [("epp", "endpoint picker"), ("model-route", "route"), ("inference-pool", "pool")]
)
def test_a_replica_whose_front_is_missing_does_not_serve(key: str, words: str) -> None:
    _, seen = r.settled(r.replica())
    seen[key]["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
    given = r.answer(r.replica(), observed=seen)
    found = condition(given, c.MODEL_READY)
    assert (found.status, found.reason) == (False, "ModelStarting")
    assert words in found.message


def test_what_the_provider_complains_of_is_told() -> None:
    given, seen = r.settled(r.replica())
    seen["model-serving-main"]["status"] = {
        "conditions": [{"type": "Synced", "status": "False", "message": "webhook denied: " + "x" * 999}]
    }
    given = r.answer(r.replica(), observed=seen)
    assert "webhook denied" in condition(given, c.MODEL_READY).message
    assert len(condition(given, c.MODEL_READY).message) < 400


def test_a_copy_count_nobody_reports_now_is_the_one_told_before() -> None:
    composite = {
        **r.replica(r.engine(copies=3)),
        "status": {"engines": [{"name": "main", "readyCopies": 2.0}]},
    }
    _, seen = r.settled(composite)
    seen["model-serving-main"]["status"] = {}
    assert r.answer(composite, observed=seen).status["engines"][0]["readyCopies"] == 2


def test_a_contract_variable_of_the_users_own_is_warned_of() -> None:
    own = {"engine": r.container(env=[{"name": "MODELPLANE_RANK", "value": "7"}])}
    given = r.answer(r.replica(r.gang(worker=own)))
    (event,) = given.events
    assert event.warning
    assert "MODELPLANE_RANK" in event.message
    assert "engine main" in event.message


def test_junk_in_a_spec_raises_nowhere() -> None:
    for spec in ({}, {"clusterName": 7}, {"engines": "x"}, {"engines": [None, 3, {"members": [7]}]}):
        composite = {**r.replica(), "spec": spec}
        assert list(KIND.requires(composite)) == []
        assert r.answer(composite).resources == {}


COMPOSITES = [
    r.replica(),
    r.replica(r.gang(workers=3, copies=3), modelCacheRef={"name": "w"}),
    r.replica(r.engine("main", r.member("Leader", gpus=0), r.member("Worker", gpus=8, nodes=1))),
    r.split(),
    r.split(gangs=True, copies=2),
]


@pytest.mark.parametrize("fabric", ["", "EFA"])
@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("composite", COMPOSITES)
def test_every_object_is_valid_for_the_real_api(
    composite: Manifest, stack: str, fabric: str, crds: Path
) -> None:
    given, _ = r.settled(composite, r.cluster(stack=stack, fabric=fabric), r.cache())
    faults = [
        f"{m.get('kind')}: {fault}"
        for x in given.resources.values()
        for m in judges.with_remote(x.manifest)
        for fault in judges.problems(m, crds)
    ]
    assert faults == []
