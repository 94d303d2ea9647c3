"""What runs for an engine: the object per stack and shape, and what all pods share."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import replicas as r
from modelplane import names
from modelplane.core import Manifest

STACKS = ("Standard", "Dynamo")


@pytest.mark.parametrize(("composite", "stack", "kinds", "reason"), r.SHAPES)
def test_an_engine_runs_as_its_stack_and_shape_say(
    composite: Manifest, stack: str, kinds: list[str], reason: str
) -> None:
    assert sorted(m["kind"] for m in r.run(composite, stack).values()) == sorted(kinds), reason


def test_a_leader_worker_set_counts_pods_and_copies_and_writes_every_default() -> None:
    spec = r.one(r.replica(r.gang(workers=2, copies=3)))["spec"]
    template = spec["leaderWorkerTemplate"]
    assert (spec["replicas"], template["size"]) == (3, 3)
    assert template["restartPolicy"] == "RecreateGroupOnPodRestart", "case C57: no broken ring keeps running"
    assert spec["startupPolicy"] == "LeaderCreated"
    assert spec["networkConfig"] == {"subdomainPolicy": "Shared"}
    assert spec["rolloutStrategy"]["rollingUpdateConfiguration"] == {
        "partition": 0,
        "maxUnavailable": 1,
        "maxSurge": 0,
    }


def test_a_gang_on_dynamo_is_one_set_replica_a_copy() -> None:
    """Decision 6: copies scale in place and each of them counts."""
    spec = r.one(r.replica(r.gang(workers=2, copies=3)), "Dynamo")["spec"]
    template = spec["template"]
    assert spec["replicas"] == 3
    assert template["podCliqueScalingGroups"] == [
        {"name": "g", "cliqueNames": ["leader", "worker"], "replicas": 1, "minAvailable": 1}
    ]
    counts = {q["name"]: (q["spec"]["replicas"], q["spec"]["minAvailable"]) for q in template["cliques"]}
    assert counts == {"leader": (1, 1), "worker": (2, 2)}


def test_a_pair_on_dynamo_is_one_set_with_a_group_for_each_engine() -> None:
    composite = r.replica(
        r.gang("fill", phase="Prefill", copies=2),
        r.engine("gen", phase="Decode", copies=3),
        serving={"mode": "PrefillDecode"},
    )
    spec = r.one(composite, "Dynamo")["spec"]
    groups = {g["name"]: g for g in spec["template"]["podCliqueScalingGroups"]}
    assert spec["replicas"] == 1
    assert (groups["p"]["replicas"], groups["p"]["minAvailable"]) == (2, 2)
    assert (groups["d"]["replicas"], groups["d"]["minAvailable"]) == (3, 3)


@pytest.mark.parametrize("composite", [r.replica(r.gang(copies=2)), r.split(), r.split(gangs=True)])
def test_every_default_of_groves_webhook_is_written(composite: Manifest) -> None:
    spec = r.one(composite, "Dynamo")["spec"]
    template = spec["template"]
    assert spec["updateStrategy"] == {"type": "RollingRecreate"}
    assert template["terminationDelay"] == "4h0m0s"
    assert template["headlessServiceConfig"] == {"publishNotReadyAddresses": True}
    assert template["cliqueStartupType"] == "CliqueStartupTypeAnyOrder"
    for clique in template["cliques"]:
        assert clique["spec"]["minAvailable"] == clique["spec"]["replicas"]
        assert clique["spec"]["podSpec"]["restartPolicy"] == "Always"
        assert clique["spec"]["podSpec"]["terminationGracePeriodSeconds"] == 120


@pytest.mark.parametrize(("composite", "stack", "kinds", "reason"), r.SHAPES)
def test_every_pod_on_dynamo_goes_through_kai_with_a_queue(
    composite: Manifest, stack: str, kinds: list[str], reason: str
) -> None:
    for pod in r.all_pods(composite, stack).values():
        on_dynamo = stack == "Dynamo"
        assert (pod["spec"].get("schedulerName") == "kai-scheduler") is on_dynamo, reason
        labels = pod["metadata"]["labels"]
        assert (labels.get("kai.scheduler/queue") == "modelplane") is on_dynamo, reason
        assert (labels.get("priorityClassName") == "inference") is on_dynamo, reason


CLAIMED = {"kai.scheduler/queue": "own-queue", "priorityClassName": "system-node-critical"}


@pytest.mark.parametrize("engine", [r.engine, r.gang])
def test_no_team_chooses_its_queue_or_pushes_others_out(engine: Any) -> None:
    """KAI reads both off the owner, then the pod; Grove refuses a set that names two queues."""
    member = {"metadata": {"labels": CLAIMED, "annotations": {**CLAIMED, "example.org/note": "n"}}}
    shape = (
        r.engine("main", r.member(**member)) if engine is r.engine else r.gang(leader=member, worker=member)
    )
    manifest = r.one(r.replica(shape, labels=CLAIMED), "Dynamo")
    pods = list(r.pods(manifest).values())
    for metadata in (manifest["metadata"], *(p["metadata"] for p in pods)):
        assert metadata["labels"]["kai.scheduler/queue"] == "modelplane"
        assert metadata["labels"]["priorityClassName"] == "inference"
    assert all(p["metadata"]["annotations"] == {"example.org/note": "n"} for p in pods)
    if manifest["kind"] == "PodCliqueSet":
        assert manifest["spec"]["template"]["priorityClassName"] == "inference", "without one a gang has less"


@settings(max_examples=40)
@given(
    name=st.from_regex(r"[a-z]([a-z0-9.-]{0,61}[a-z0-9])?", fullmatch=True),
    engine=st.from_regex(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", fullmatch=True),
    copies=st.integers(1, 64),
    workers=st.integers(1, 63),
)
def test_names_stay_inside_groves_and_lws_budgets(name: str, engine: str, copies: int, workers: int) -> None:
    """Cases C77 and C79, for every admitted name: dots, digits first, 63 characters."""
    replica = names.replica(name, "north", 0)
    for composite in (
        r.replica(r.gang(engine, workers=workers, copies=copies), name=replica),
        r.split(name=replica, gangs=True, workers=workers, copies=copies),
    ):
        given, _ = r.settled(composite, r.cluster(stack="Dynamo"))
        (pcs,) = r.workloads(given).values()
        _inside_groves_budget(pcs)
    given, _ = r.settled(r.replica(r.gang(engine, workers=workers, copies=copies), name=replica))
    (lws,) = r.workloads(given).values()
    # Pods are <lws>-<group>-<worker>; the StatefulSet of a group adds an 11-character revision label.
    assert len(f"{lws['metadata']['name']}-{copies - 1}-{workers}") <= 63
    assert len(f"{lws['metadata']['name']}-{copies - 1}") + 11 <= 63
    assert all(len(m["metadata"]["name"]) <= 63 for m in r.manifests(given).values())


def _inside_groves_budget(pcs: Manifest) -> None:
    set_name = pcs["metadata"]["name"]
    template = pcs["spec"]["template"]
    assert set_name.replace("-", "a").isalnum()
    assert set_name[0].isalpha()
    cliques = [q["name"] for q in template["cliques"]]
    for group in template["podCliqueScalingGroups"]:
        assert len(set_name) + len(group["name"]) <= 36
        for clique in group["cliqueNames"]:
            assert len(set_name) + len(group["name"]) + len(clique) <= 45
    for one_name in cliques:
        assert not [o for o in cliques if o != one_name and o.endswith(one_name)], "found by suffix"
    # The name of a scaled PodGang is a label value: set, replica, a 19-digit epoch, group, copy.
    longest = max(len(g["name"]) for g in template["podCliqueScalingGroups"])
    assert len(set_name) + len("-63-") + 19 + len("-") + longest + len("-63") <= 63


SHAPE_CHANGES = [
    (
        r.replica(r.gang(workers=1)),
        r.replica(r.gang(workers=2)),
        True,
        "clique sizes are read at creation",
    ),
    (r.replica(r.gang(copies=1)), r.replica(r.gang(copies=3)), False, "copies scale in place"),
    (
        r.replica(r.gang()),
        r.replica(r.gang(leader={"engine": r.container(image="example.org/engine:2")})),
        False,
        "a pod spec rolls in place",
    ),
    (r.split(copies=1), r.split(copies=2), True, "a pair's copies are creation-time counts"),
    (r.split(), r.split(gangs=True), True, "other cliques"),
]


@pytest.mark.parametrize(("before", "after", "renamed", "reason"), SHAPE_CHANGES)
def test_only_what_grove_cannot_change_makes_a_new_set(
    before: Manifest, after: Manifest, renamed: bool, reason: str
) -> None:
    first, second = r.run(before, "Dynamo"), r.run(after, "Dynamo")
    assert (first.keys() != second.keys()) is renamed, reason
    assert (r.object_names(first) != r.object_names(second)) is renamed, reason


@pytest.mark.parametrize("stack", STACKS)
def test_the_order_of_members_changes_nothing_that_rolls(stack: str) -> None:
    gang = r.gang()
    swapped = {**gang, "members": gang["members"][::-1]}
    assert r.run(r.replica(gang), stack) == r.run(r.replica(swapped), stack)


@pytest.mark.parametrize("stack", STACKS)
def test_two_replicas_never_select_each_others_pods(stack: str) -> None:
    """Teams and replicas alike: every selector of one misses all pods of the other."""

    def everything(name: str) -> dict[str, Manifest]:
        given, _ = r.settled(r.replica(r.gang("a"), r.engine("b"), name=name), r.cluster(stack=stack))
        return r.manifests(given)

    first, second = everything("heron-1"), everything("heron-1-a")
    assert r.object_names(first) & r.object_names(second) == set()
    labels = [
        p["metadata"]["labels"]
        for m in second.values()
        if m["kind"] in ("Deployment", "LeaderWorkerSet", "PodCliqueSet")
        for p in r.pods(m).values()
    ]
    for manifest in first.values():
        selector = manifest["spec"].get("selector", {}) if "spec" in manifest else {}
        wanted = selector.get("matchLabels", selector)
        assert not [x for x in labels if wanted and wanted.items() <= x.items()], manifest["kind"]
