"""A gang whose copies do not all serve: which one, which of its pods, and why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import judges
from builders import replicas as r
from builders.replicas import condition
from modelplane import contracts as c
from modelplane.core import Answer, Manifest, paths
from modelplane.gangs import copies

STACKS = ("Standard", "Dynamo")
LOOKED = copies.KEY_PREFIX


def short(workload: Manifest, ready: int) -> Manifest:
    """The status of a workload of which so many copies serve."""
    count = {"LeaderWorkerSet": "readyReplicas", "Deployment": "availableReplicas"}
    field = count.get(workload["kind"], "availableReplicas")
    return {"observedGeneration": 1, "updatedReplicas": 9, field: ready}


def looking(composite: Manifest, stack: str, ready: int = 0) -> tuple[Answer, dict[str, Manifest]]:
    """The replica once its only workload has said that copies are missing, and what is observed then."""
    cluster = r.cluster(stack=stack)
    given, seen = r.settled(composite, cluster)
    for key, manifest in r.workloads(given).items():
        seen[key] = r.observe(given.resources[key].manifest, status=short(manifest, ready))
    given = r.answer(composite, cluster, observed=seen)
    return given, seen


def looked_at(given: Answer) -> dict[str, Manifest]:
    return {k.removeprefix(LOOKED): m for k, m in r.manifests(given).items() if k.startswith(LOOKED)}


def told(
    composite: Manifest, stack: str, found: dict[str, Manifest | None], ready: int = 0
) -> dict[str, Manifest]:
    """What the status says of each engine; `found` gives a part's status by key, None: it is not there."""
    given, seen = looking(composite, stack, ready)
    for key in looked_at(given):
        obj = given.resources[LOOKED + key].manifest
        part = found[key]
        seen[LOOKED + key] = (
            r.observe(obj, status=part)
            if part is not None
            else {
                **obj,
                "status": {
                    "conditions": [
                        {
                            "type": "Synced",
                            "status": "False",
                            "message": "observe failed: external resource does not exist",
                        }
                    ]
                },
            }
        )
    given = r.answer(composite, r.cluster(stack=stack), observed=seen)
    return {e["name"]: e for e in given.status["engines"]}


SET = "heron-1a2b3c4d-main"
PARTS: list[tuple[Manifest, str, dict[str, str], str]] = [
    (r.replica(), "Standard", {}, "the pods of a Deployment are all alike"),
    (
        r.replica(r.gang(copies=2)),
        "Standard",
        {
            "main.0.leader": "Pod -0",
            "main.0.workers": "StatefulSet -0",
            "main.1.leader": "Pod -1",
            "main.1.workers": "StatefulSet -1",
        },
        "a group's leader, and its workers' StatefulSet of the same name",
    ),
    (
        r.replica(r.gang(copies=2)),
        "Dynamo",
        {
            "main.0.leader": "PodClique -0-g-0-leader",
            "main.0.workers": "PodClique -0-g-0-worker",
            "main.1.leader": "PodClique -1-g-0-leader",
            "main.1.workers": "PodClique -1-g-0-worker",
        },
        "a copy is a replica of the set",
    ),
    (
        r.split(copies=2),
        "Dynamo",
        {
            "fill.0.pod": "PodClique -0-p-0-pleader",
            "fill.1.pod": "PodClique -0-p-1-pleader",
            "gen.0.pod": "PodClique -0-d-0-dleader",
            "gen.1.pod": "PodClique -0-d-1-dleader",
        },
        "in a pair a copy is a replica of the engine's scaling group",
    ),
    (
        r.split(gangs=True),
        "Dynamo",
        {
            "fill.0.leader": "PodClique -0-p-0-pleader",
            "fill.0.workers": "PodClique -0-p-0-pworker",
            "gen.0.leader": "PodClique -0-d-0-dleader",
            "gen.0.workers": "PodClique -0-d-0-dworker",
        },
        "gangs in a pair",
    ),
]


@pytest.mark.parametrize(("composite", "stack", "wanted", "reason"), PARTS)
def test_each_copy_of_a_gang_is_looked_at_by_the_name_its_controller_gives_it(
    composite: Manifest, stack: str, wanted: dict[str, str], reason: str, crds: Path
) -> None:
    given, _ = looking(composite, stack)
    (name,) = {m["metadata"]["name"] for m in r.workloads(given).values()}
    found = {k: f"{m['kind']} {m['metadata']['name']}" for k, m in looked_at(given).items()}
    assert found == {k: v.replace(" ", f" {name}") for k, v in wanted.items()}, reason
    for key in looked_at(given):
        made = given.resources[LOOKED + key].manifest
        assert made["spec"]["managementPolicies"] == ["Observe"], "never made, never changed, never deleted"
        assert judges.problems(made, crds) == []


@pytest.mark.parametrize("stack", STACKS)
def test_nothing_is_looked_at_while_all_serves_or_nobody_has_said_what_is_missing(stack: str) -> None:
    composite = r.replica(r.gang(copies=2))
    cluster = r.cluster(stack=stack)
    given, seen = r.settled(composite, cluster)
    assert looked_at(given) == {}, "all copies serve"
    (key,) = r.workloads(given)
    seen[key] = r.observe(given.resources[key].manifest, status={})
    assert looked_at(r.answer(composite, cluster, observed=seen)) == {}, "no controller has been there"


@pytest.mark.parametrize("stack", STACKS)
def test_what_is_looked_at_stays_until_the_workload_is_ready_and_goes_then(stack: str) -> None:
    composite = r.replica(r.gang(copies=2))
    cluster = r.cluster(stack=stack)
    given, seen = looking(composite, stack)
    keys = set(looked_at(given))
    seen |= {LOOKED + k: r.observe(given.resources[LOOKED + k].manifest, status={}) for k in keys}
    (key,) = r.workloads(given)
    for lost in ({}, {"atProvider": {}}, {"atProvider": {"manifest": {"kind": "Gone"}}}):
        doubt = {**seen, key: {**seen[key], "status": lost}}
        assert set(looked_at(r.answer(composite, cluster, observed=doubt))) == keys
    without = {k: v for k, v in seen.items() if k != key}
    assert set(looked_at(r.answer(composite, cluster, observed=without))) == keys
    last, _ = r.settled(composite, cluster, observed=seen)
    assert looked_at(last) == {}


def test_what_is_looked_at_holds_nothing_up() -> None:
    """The workload is not ready; what only shows why must not be a second cause."""
    given, seen = looking(r.replica(r.gang()), "Dynamo")
    for key in looked_at(given):
        seen[LOOKED + key] = r.observe(given.resources[LOOKED + key].manifest, status={})
    given = r.answer(r.replica(r.gang()), r.cluster(stack="Dynamo"), observed=seen)
    assert all(given.resources[LOOKED + k].ready for k in looked_at(given))
    assert "copy-" not in condition(given, c.MODEL_READY).message


@pytest.mark.parametrize("stack", STACKS)
def test_a_replica_of_many_copies_looks_at_sixteen_objects(stack: str) -> None:
    given, _ = looking(r.replica(r.gang(copies=64)), stack)
    found = looked_at(given)
    assert len(found) == 16
    assert {k.split(".")[1] for k in found} == {str(n) for n in range(8)}, "whole copies, the first ones"


def clique(ready: int, why: str = "") -> Manifest:
    state = {"type": "PodCliqueScheduled", "status": "False" if why else "True", "message": why or "fine"}
    return {"readyReplicas": ready, "conditions": [state]}


def pod(*conditions: Manifest, **status: Any) -> Manifest:
    return {"conditions": list(conditions), **status}


READY = {"type": "Ready", "status": "True"}
NO_GPU = "0/4 nodes are available: 4 cannot allocate all claims."
UNSCHEDULED = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": NO_GPU}
GANG = r.replica(r.gang(workers=3, copies=2))


def test_the_short_copy_of_a_gang_on_dynamo_is_named_with_its_pods_and_why() -> None:
    why = "Insufficient scheduled pods. expected at least: 3, found: 2"
    found = {
        "main.0.leader": clique(1),
        "main.0.workers": clique(3),
        "main.1.leader": clique(1),
        "main.1.workers": clique(2, why),
    }
    entry = told(GANG, "Dynamo", found, ready=1)["main"]
    assert (entry["copies"], entry["readyCopies"]) == (2, 1)
    assert "1 of 2 copies serve" in entry["message"]
    assert "copy 1: workers 2 of 3 ready (PodClique" in entry["message"]
    assert entry["message"].endswith(f"-1-g-0-worker: {why})")
    assert "copy 0" not in entry["message"]
    assert "leader" not in entry["message"].partition("copy 1")[2]


def test_the_short_copy_of_a_gang_on_standard_is_named_with_its_pods_and_why() -> None:
    found: dict[str, Manifest | None] = {
        "main.0.leader": pod(UNSCHEDULED),
        "main.0.workers": None,
        "main.1.leader": pod(READY),
        "main.1.workers": {"readyReplicas": 3},
    }
    entry = told(GANG, "Standard", found, ready=1)["main"]
    assert "copy 0: leader 0 of 1 ready (Pod" in entry["message"]
    assert f"-0: {NO_GPU}), workers not made yet (StatefulSet" in entry["message"]
    assert "copy 1" not in entry["message"]


def test_the_engine_of_a_pair_that_is_short_is_named_and_the_other_is_not() -> None:
    """Grove counts a pair as a whole: of one set either all is available or nothing is told."""
    found: dict[str, Manifest | None] = {
        "fill.0.pod": clique(1),
        "fill.1.pod": clique(1),
        "gen.0.pod": clique(1),
        "gen.1.pod": clique(0, "Insufficient scheduled pods. expected at least: 1, found: 0"),
    }
    entries = told(r.split(copies=2), "Dynamo", found)
    assert entries["fill"] == {"name": "fill", "copies": 2, "readyCopies": 2}
    assert (entries["gen"]["copies"], entries["gen"]["readyCopies"]) == (2, 1)
    assert "1 of 2 copies serve" in entries["gen"]["message"]
    assert "copy 1: pod 0 of 1 ready" in entries["gen"]["message"]


def test_a_pair_of_which_every_pod_is_ready_but_not_the_set_serves_not_yet() -> None:
    """Else the replica would be ready by our count, against the set's own word."""
    found: dict[str, Manifest | None] = {"fill.0.pod": clique(1), "gen.0.pod": clique(1)}
    entries = told(r.split(), "Dynamo", found)
    assert all("look at its pods" in e["message"] for e in entries.values())


def test_of_a_copy_that_nobody_has_seen_nothing_is_said() -> None:
    given, seen = looking(r.split(), "Dynamo")
    given = r.answer(r.split(), r.cluster(stack="Dynamo"), observed=seen)
    for entry in given.status["engines"]:
        assert "readyCopies" not in entry
        assert "not all copies serve" in entry["message"]


def test_more_than_three_short_copies_are_told_by_number() -> None:
    composite = r.replica(r.gang(copies=5))
    found = {f"main.{n}.{role}": clique(0) for n in range(5) for role in ("leader", "workers")}
    message = told(composite, "Dynamo", dict(found))["main"]["message"]
    assert "copy 2: " in message
    assert "copy 3: " not in message
    assert message.endswith("and copies 3, 4")


WAITING = {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "x"'}
COMPLAINTS: list[tuple[Manifest, str, str]] = [
    (pod(UNSCHEDULED), NO_GPU, "no node takes it"),
    (
        pod(containerStatuses=[{"name": "engine", "state": {"waiting": WAITING}}]),
        'container engine is in ImagePullBackOff: Back-off pulling image "x"',
        "no image",
    ),
    (
        pod(initContainerStatuses=[{"name": "init", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]),
        "container init is in CrashLoopBackOff",
        "an init container fails",
    ),
    (
        pod(
            containerStatuses=[
                {
                    "name": "engine",
                    "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                    "lastState": {"terminated": {"reason": "OOMKilled", "message": "TOKEN=secret"}},
                }
            ]
        ),
        "container engine is in CrashLoopBackOff: it ended with OOMKilled",
        "what a container wrote before it ended is not repeated",
    ),
    (
        pod(containerStatuses=[{"name": "engine", "state": {"waiting": {"reason": "ContainerCreating"}}}]),
        "",
        "every pod is that for a while",
    ),
    (pod(containerStatuses=[{"name": "engine", "state": {"running": {}}}]), "", "it loads"),
    ({"lastErrors": [{"description": "no such queue"}]}, "no such queue", "Grove could not make its pods"),
    (
        {"conditions": [{"type": "MinAvailableBreached", "status": "True", "message": "expected 1"}]},
        "expected 1",
        "its containers fail",
    ),
    ({"conditions": "x", "containerStatuses": [3], "lastErrors": {}}, "", "junk"),
]


@pytest.mark.parametrize(("status", "words", "reason"), COMPLAINTS)
def test_why_the_pods_of_a_copy_are_not_ready_is_read_from_what_looks_after_them(
    status: Manifest, words: str, reason: str
) -> None:
    assert copies.complaint({"status": status}) == words, reason


QUOTA = 'pods "x" is forbidden: exceeded quota: team'
LATE = 'ReplicaSet "x" has timed out progressing.'
FAILURE = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": QUOTA}
DEADLINE = {
    "type": "Progressing",
    "status": "False",
    "reason": "ProgressDeadlineExceeded",
    "message": LATE,
}
UPDATING = {"type": "UpdateInProgress", "status": "True", "message": "Rolling Upgrade is in progress"}
# What LeaderWorkerSet leaves behind when Available turns False.
STALE = {"type": "Available", "status": "False", "message": "All replicas are ready"}
WORDS: list[tuple[Manifest, str, list[Manifest], str, str]] = [
    (r.engine(copies=2), "Standard", [FAILURE, DEADLINE], QUOTA, "why its pods are not made"),
    (r.engine(copies=2), "Dynamo", [DEADLINE], LATE, "nothing moves any more"),
    (r.engine(copies=2), "Standard", [{**FAILURE, "status": "False"}], "", "that has passed"),
    (r.gang(copies=2), "Standard", [UPDATING, STALE], "Rolling Upgrade is in progress", "it is updated"),
    (r.gang(copies=2), "Standard", [STALE], "", "a condition that is False says what was"),
]


@pytest.mark.parametrize(("engine", "stack", "conditions", "words", "reason"), WORDS)
def test_what_a_workload_says_of_itself_is_quoted(
    engine: Manifest, stack: str, conditions: list[Manifest], words: str, reason: str
) -> None:
    composite = r.replica(engine)
    given, seen = looking(composite, stack, ready=1)
    (key,) = r.workloads(given)
    status = seen[key]["status"]["atProvider"]["manifest"]["status"]
    status["conditions"] = conditions
    given = r.answer(composite, r.cluster(stack=stack), observed=seen)
    (entry,) = given.status["engines"]
    assert "1 of 2 copies serve" in entry["message"], reason
    assert f"reports: {words}" in entry["message"] if words else "reports" not in entry["message"], reason
    assert "All replicas are ready" not in entry["message"], reason
    assert paths.text(entry, "message") in condition(given, c.MODEL_READY).message, reason
