"""ModelCache: which clusters get the weights, which keep them, and what the cache says of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import judges
from builders import platform as p
from modelplane import contracts as c
from modelplane import names
from modelplane.api import definitions
from modelplane.core import Answer
from modelplane.kinds import cache_users, model_cache

KIND = model_cache.KIND
GUARD = cache_users.GUARD
COLD = {"climate": "cold"}


def compose(composite: p.Manifest, *objects: p.Manifest, **over: Any) -> Answer:
    return p.compose(KIND, composite, *objects, **over)


def north(**over: Any) -> p.Manifest:
    return p.ready_cluster("north", **{"labels": COLD, **over})


def placed(composite: p.Manifest | None = None, **status: Any) -> dict[str, p.Manifest]:
    """The composed replica on north, as observed."""
    answer = compose(composite or p.model_cache(), north())
    child = answer.resources["cache-north"].manifest
    return {"cache-north": p.reported(child, ready=status.get("phase") == "Ready", **status)}


def test_each_matching_cluster_gets_a_replica_with_the_source_as_written() -> None:
    composite = p.model_cache(
        huggingFace={"repo": "a/b", "revision": "v1", "sizeGiB": 7, "authSecret": {"name": "t"}}
    )
    answer = compose(composite, north(), p.ready_cluster("south", labels={"climate": "warm"}))
    assert set(answer.resources) == {"cache-north"}
    child = answer.resources["cache-north"].manifest
    assert child["metadata"]["name"] == names.cache_replica("osprey-weights", "north")
    assert child["metadata"]["namespace"] == "lab"
    assert child["metadata"]["labels"] == {c.CLUSTER_LABEL: "north", c.CACHE_LABEL: "osprey-weights"}
    assert child["spec"]["huggingFace"] == composite["spec"]["huggingFace"]
    assert child["spec"]["storage"] == {"sizeGiB": 7}


def test_a_cache_without_selector_goes_everywhere_and_names_the_cluster_that_cannot_hold_it() -> None:
    """C55: every cluster is listed, and one without an RWX class fails fast by name."""
    bare = p.ready_cluster("east", status={"cache": None})
    dark = p.ready_cluster("west", status={"providerConfigRef": None})
    answer = compose(p.model_cache(selector={}), north(), bare, dark)
    assert set(answer.resources) == {"cache-north"}
    listed = {x["name"]: x for x in answer.status["clusters"]}
    assert set(listed) == {"east", "north", "west"}
    assert "no storage class" in listed["east"]["message"]
    assert "cannot be reached" in listed["west"]["message"]
    assert answer.status["summary"] == {"ready": "0/1"}
    status, reason, message = p.condition(answer, c.CLUSTERS_MATCHED)
    assert (status, reason) == (True, "Matched")
    assert "east" in message


STAYS: list[tuple[str, list[p.Manifest]]] = [
    ("the cluster reports no storage class for a moment", [north(status={"cache": None})]),
    ("the cluster cannot be reached for a moment", [north(status={"providerConfigRef": None})]),
    ("the cluster is not ready", [north(status={"conditions": []})]),
    ("the cluster's label was edited", [north(labels={"climate": "warm"})]),
    ("the cluster has no labels, or junk", [{**north(), "metadata": {"name": "north", "labels": "junk"}}]),
    ("the cluster is not found", []),
    ("the cluster has no spec", [{**north(), "spec": None}]),
    (
        "it drains, but the team still serves there",
        [north(taints=[{"key": "d", "effect": "NoExecute"}]), p.on_cluster()],
    ),
    (
        "it drains, and a replica does not say where it is",
        [
            north(taints=[{"key": "d", "effect": "NoExecute"}]),
            {**p.on_cluster(), "metadata": {"namespace": "lab"}, "spec": {}},
        ],
    ),
    ("it repels new replicas only", [north(taints=[{"key": "d", "effect": "NoSchedule"}])]),
]


@pytest.mark.parametrize(("reason", "objects"), STAYS, ids=[s[0] for s in STAYS])
def test_weights_stay_while_the_selector_is_the_one_they_were_placed_under(
    reason: str, objects: list[p.Manifest]
) -> None:
    observed = placed(phase="Ready")
    answer = compose(p.model_cache(), *objects, observed=observed)
    assert set(answer.resources) == {"cache-north"}, reason
    assert answer.resources["cache-north"].manifest["spec"] == observed["cache-north"]["spec"], reason
    assert answer.status["clusters"][0]["phase"] == "Ready", reason


GOES: list[tuple[str, p.Manifest, list[p.Manifest]]] = [
    ("the selector was edited away from the cluster", p.model_cache(selector={"climate": "warm"}), [north()]),
    (
        "the label went first, the selector was edited after",
        p.model_cache(selector={"climate": "hot"}),
        [north(labels={"climate": "warm"})],
    ),
    (
        "the cluster drains and the team has left",
        p.model_cache(),
        [north(taints=[{"key": "d", "effect": "NoExecute"}])],
    ),
    (
        "it drains, and only another team serves there",
        p.model_cache(),
        [north(taints=[{"key": "d", "effect": "NoExecute"}]), p.on_cluster(namespace="zoo")],
    ),
]


@pytest.mark.parametrize(("reason", "composite", "objects"), GOES, ids=[g[0] for g in GOES])
def test_weights_go_when_an_owner_says_so(
    reason: str, composite: p.Manifest, objects: list[p.Manifest]
) -> None:
    answer = compose(composite, *objects, observed=placed(phase="Ready"))
    assert set(answer.resources) == set(), reason
    assert p.condition(answer, c.CLUSTERS_MATCHED)[:2] == (False, "NoClusters"), reason
    assert answer.ready is False, reason


def mounting(name: str = "heron-1", to: str = "north", cache: str = "osprey-weights") -> p.Manifest:
    """A replica of the team's that mounts a cache."""
    found = p.on_cluster(name=name, to=to)
    found["metadata"]["labels"][c.DEPLOYMENT_LABEL] = name.rpartition("-")[0]
    found["spec"]["modelCacheRef"] = {"name": cache}
    return found


def test_weights_that_engines_mount_stay_whatever_the_selector_says() -> None:
    warm = p.model_cache(selector={"climate": "warm"})
    answer = compose(warm, north(), mounting(), observed=placed(phase="Ready"))
    assert set(answer.resources) == {"cache-north", GUARD}
    assert "ModelReplica heron-1 (ModelDeployment heron)" in answer.status["clusters"][0]["message"]
    elsewhere = compose(warm, north(), mounting(to="south"), observed=placed(phase="Ready"))
    assert set(elsewhere.resources) == {GUARD}


USERS: list[tuple[str, list[p.Manifest], bool]] = [
    ("a replica mounts it", [mounting()], True),
    ("a replica mounts another cache", [mounting(cache="other")], False),
    ("a replica mounts nothing", [p.on_cluster()], False),
    ("another team's replica names a cache alike", [{**mounting(), "metadata": {"namespace": "zoo"}}], False),
    ("junk for a reference", [{**p.on_cluster(), "spec": {"modelCacheRef": "x"}}], False),
]


@pytest.mark.parametrize(("reason", "replicas", "used"), USERS, ids=[u[0] for u in USERS])
def test_a_cache_in_use_refuses_its_deletion_and_says_whose(
    reason: str, replicas: list[p.Manifest], used: bool, crds: Path
) -> None:
    answer = compose(p.model_cache(), north(), *replicas)
    assert (GUARD in answer.resources) is used, reason
    if used:
        usage = answer.resources[GUARD].manifest
        assert judges.problems(usage, crds) == []
        assert usage["metadata"]["namespace"] == "lab"
        assert usage["spec"]["of"] == {
            "apiVersion": c.API,
            "kind": "ModelCache",
            "resourceRef": {"name": "osprey-weights"},
        }
        assert "ModelReplica heron-1 (ModelDeployment heron)" in usage["spec"]["reason"]
        assert "replayed" in usage["spec"]["reason"], "C64: a refused delete comes back, and that is said"


def test_one_empty_look_takes_no_guard_away() -> None:
    observed = placed(phase="Ready")
    first = compose(p.model_cache(), north(), mounting(), observed=observed)
    observed[GUARD] = first.resources[GUARD].manifest
    marked = compose(p.model_cache(), north(), observed=observed)
    assert "heron-1" in marked.resources[GUARD].manifest["spec"]["reason"]
    observed[GUARD] = marked.resources[GUARD].manifest
    assert GUARD not in compose(p.model_cache(), north(), observed=observed).resources
    back = compose(p.model_cache(), north(), mounting(), observed=observed)
    assert "annotations" not in back.resources[GUARD].manifest["metadata"]


def test_many_users_are_counted_and_not_all_named() -> None:
    answer = compose(p.model_cache(), north(), *(mounting(f"heron-{i}") for i in range(40)))
    assert "and 35 more" in answer.resources[GUARD].manifest["spec"]["reason"]


def test_a_claim_of_the_teams_own_needs_no_storage_class() -> None:
    source = {"source": "PersistentVolumeClaim", "persistentVolumeClaim": {"claimName": "w"}}
    bare = north(status={"cache": None})
    assert set(compose(p.model_cache(huggingFace=None, **source), bare).resources) == {"cache-north"}


def test_an_edited_selector_that_still_matches_is_recorded() -> None:
    wider = p.model_cache(selector={})
    child = compose(wider, north(), observed=placed(phase="Ready")).resources["cache-north"].manifest
    assert child["metadata"]["annotations"][c.CACHE_SELECTOR_ANNOTATION] == "{}"


def test_a_replica_that_does_not_say_what_it_was_placed_under_stays() -> None:
    observed = placed(phase="Ready")
    del observed["cache-north"]["metadata"]["annotations"]
    answer = compose(p.model_cache(selector={"climate": "warm"}), north(), observed=observed)
    assert set(answer.resources) == {"cache-north"}


@pytest.mark.parametrize(
    ("reason", "cluster"),
    [
        ("a draining cluster", north(taints=[{"key": "d", "effect": "NoExecute"}])),
        (
            "a cluster that is being deleted",
            {**north(), "metadata": {**north()["metadata"], "deletionTimestamp": "x"}},
        ),
    ],
)
def test_no_new_weights_go_to_a_cluster_that_leaves(reason: str, cluster: p.Manifest) -> None:
    assert set(compose(p.model_cache(), cluster).resources) == set(), reason


VERDICTS: list[tuple[str, list[dict[str, Any]], tuple[bool, str], str]] = [
    ("all there", [{"phase": "Ready"}, {"phase": "Ready"}], (True, "Staged"), "2/2"),
    ("one there", [{"phase": "Ready"}, {"phase": "Hydrating"}], (False, "Partial"), "1/2"),
    ("none yet", [{"phase": "Pending"}, {}], (False, "Hydrating"), "0/2"),
    (
        "a failure outranks progress",
        [{"phase": "Failed", "message": "disk full"}, {"phase": "Ready"}],
        (False, "Failed"),
        "1/2",
    ),
    (
        "a missing token outranks a failure",
        [{"phase": "Failed"}, {"phase": "Pending", "why": "AuthSecretMissing"}],
        (False, "AuthSecretMissing"),
        "0/2",
    ),
    ("junk instead of a phase", [{"phase": 3}, {"phase": "Gone"}], (False, "Hydrating"), "0/2"),
]


@pytest.mark.parametrize(("reason", "told", "wanted", "summary"), VERDICTS, ids=[v[0] for v in VERDICTS])
def test_the_cache_is_as_ready_as_its_replicas_say(
    reason: str, told: list[dict[str, Any]], wanted: tuple[bool, str], summary: str
) -> None:
    clusters = [north(), p.ready_cluster("south", labels=COLD)]
    answer = compose(p.model_cache(), *clusters)
    observed = {}
    for (key, found), status in zip(answer.resources.items(), told, strict=True):
        ready = status.get("phase") == "Ready"
        seen = p.reported(found.manifest, ready=ready, **{k: v for k, v in status.items() if k != "why"})
        if why := status.get("why"):
            seen["status"]["conditions"].append(
                {"type": c.ARTIFACT_READY, "status": "False", "reason": why, "message": f"{why}!"}
            )
        observed[key] = seen
    answer = compose(p.model_cache(), *clusters, observed=observed)
    assert p.condition(answer, c.ARTIFACT_READY)[:2] == wanted, reason
    assert answer.status["summary"] == {"ready": summary}, reason
    assert answer.ready is wanted[0], reason


def test_a_phase_the_replica_does_not_tell_is_the_one_told_last() -> None:
    composite = {**p.model_cache(), "status": {"clusters": [{"name": "north", "phase": "Hydrating"}]}}
    answer = compose(composite, north(), observed=placed())
    assert answer.status["clusters"] == [{"name": "north", "phase": "Hydrating"}]


@pytest.mark.parametrize(
    "source",
    [
        {"source": "Bucket", "bucket": {"uri": "s3://weights/x"}},
        {"source": "OCI", "oci": {"image": "r.example.org/m:1"}},
        {"source": "PersistentVolumeClaim", "persistentVolumeClaim": {"claimName": "w"}},
    ],
    ids=lambda s: s["source"],
)
def test_every_admitted_source_makes_an_admitted_replica(source: dict[str, Any], crds: Path) -> None:
    composite = p.model_cache(huggingFace=None, **source)
    answer = compose(definitions.load().default(composite), north())
    (found,) = answer.resources.values()
    assert judges.problems(found.manifest, crds) == []
    shown = {**composite, "status": dict(answer.status)}
    assert [str(x) for x in definitions.load().judge(shown)] == []


def test_two_teams_with_the_same_cache_name_share_nothing() -> None:
    other = p.model_cache()
    other["metadata"]["namespace"] = "zoo"
    mine, theirs = (compose(x, north()).resources["cache-north"].manifest for x in (p.model_cache(), other))
    assert (mine["metadata"]["namespace"], theirs["metadata"]["namespace"]) == ("lab", "zoo")
    assert names.cache_claim("lab", "w") != names.cache_claim("zoo", "w")


@pytest.mark.parametrize("spec", [None, 7, "x", [], {"clusterSelector": 3}], ids=repr)
def test_requirements_never_raise_on_a_broken_spec(spec: Any) -> None:
    found = KIND.requires({"metadata": {"name": "w", "namespace": "lab"}, "spec": spec})
    assert [(r.name, r.match_labels, r.namespace) for r in found] == [
        ("clusters", None, None),
        ("replicas", None, "lab"),
    ]
