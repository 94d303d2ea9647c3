"""InferenceCluster: what it composes, what it keeps, and what it says of itself."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

import judges
from builders import platform as p
from modelplane import contracts as c
from modelplane import names
from modelplane.api import definitions
from modelplane.core import Answer
from modelplane.kinds import inference_cluster
from modelplane.kinds.registry import KINDS

KIND = inference_cluster.KIND
CLOUD, CONFIG, STACK = "eks-cluster", inference_cluster.CONFIG, inference_cluster.STACK
USAGE = f"usage-{CLOUD}-by-{STACK}"


def compose(composite: p.Manifest, *objects: p.Manifest, **over: Any) -> Answer:
    return p.compose(KIND, composite, *(objects or (p.inference_class(),)), **over)


def serving(composite: p.Manifest | None = None, **status: Any) -> dict[str, p.Manifest]:
    """The composed resources of a cluster on EKS that serves."""
    composite = composite or p.cluster()
    observed: dict[str, p.Manifest] = {}
    for _ in range(3):
        answer = compose(composite, observed=observed)
        observed = p.observed_of(answer)
        observed[CLOUD] = p.reported(answer.resources[CLOUD].manifest, **p.eks_status(**status))
    return observed


def test_a_new_cluster_on_eks_asks_for_the_cluster_and_nothing_on_it() -> None:
    answer = compose(p.cluster())
    assert set(answer.resources) == {CLOUD}
    assert set(answer.held_back) == {CONFIG, STACK}
    assert answer.ready is False
    assert p.condition(answer, c.CLUSTER_READY)[:2] == (False, "Provisioning")
    assert p.condition(answer, c.BACKEND_READY)[:2] == (False, "WaitingForCluster")


def test_a_cluster_that_serves_is_reached_guarded_and_ready() -> None:
    observed = serving()
    answer = compose(p.cluster(), observed=observed)
    assert set(answer.resources) == {CLOUD, CONFIG, STACK, USAGE}
    assert all(x.ready for x in answer.resources.values())
    assert answer.ready is None
    assert p.condition(answer, c.CLUSTER_READY)[:2] == (True, "ClusterRunning")
    assert p.condition(answer, c.BACKEND_READY)[:2] == (True, "BackendHealthy")
    usage = answer.resources[USAGE].manifest
    assert usage["kind"] == "Usage"
    assert usage["metadata"]["namespace"] == c.SYSTEM_NAMESPACE
    assert (usage["spec"]["of"]["kind"], usage["spec"]["by"]["kind"]) == ("EKSCluster", "ServingStack")
    secret = answer.resources[CONFIG].manifest["spec"]["credentials"]["secretRef"]
    assert secret == {"namespace": c.SYSTEM_NAMESPACE, "name": "north-kubeconfig", "key": "kubeconfig"}


def test_status_is_what_scheduler_endpoints_and_caches_read() -> None:
    observed = serving()
    observed[STACK]["status"].update(
        gateway={"address": "192.0.2.10"},
        stackRelease="2026.12",
        components=[{"name": "grove", "version": "1", "state": "Ready"}],
    )
    observed[STACK]["status"]["conditions"].append(
        {"type": c.REQUIREMENTS_MET, "status": "True", "reason": "ComponentsManaged"}
    )
    answer = compose(p.cluster(), observed=observed)
    status = answer.status
    assert status["providerConfigRef"] == {"name": names.cluster_config("north")}
    assert status["namespace"] == c.SYSTEM_NAMESPACE
    assert status["gateway"] == {"address": "192.0.2.10"}
    assert status["cache"] == {"storageClassName": p.RWX}
    assert status["stackRelease"] == "2026.12"
    assert status["components"] == [{"name": "grove", "version": "1", "state": "Ready"}]
    assert status["pools"] == [{"name": "gpu", "status": "ACTIVE"}]
    (pool,) = status["gpuPools"]
    assert (pool["name"], pool["nodes"], pool["zones"]) == ("gpu", 4, ["eu-north-1a"])
    assert pool["devices"][0] == {**p.inference_class()["spec"]["devices"][0], "claim": "DRA"}
    assert p.condition(answer, c.REQUIREMENTS_MET)[:2] == (True, "ComponentsManaged")


DOUBTS: list[tuple[str, p.Manifest | None, p.Manifest, str]] = [
    ("C49, the class was deleted", None, {}, "WaitingForClasses"),
    ("C49, the class lost its provisioning block", p.inference_class(provisioning={}), {}, "InvalidNodePool"),
    (
        "the class turned to another cloud",
        p.inference_class(provisioning={"provider": "GKE"}),
        {},
        "InvalidNodePool",
    ),
    ("the class is junk", {**p.inference_class(), "spec": "junk"}, {}, "InvalidNodePool"),
    ("the cluster went dark", p.inference_class(), {"ready": False}, "Provisioning"),
    ("its Secrets are not reported any more", p.inference_class(), {"secrets": None}, ""),
    ("its Secrets are junk", p.inference_class(), {"secrets": [{"type": 3}]}, ""),
]


@pytest.mark.parametrize(("reason", "class_", "child", "why"), DOUBTS, ids=[d[0] for d in DOUBTS])
def test_a_cluster_that_runs_keeps_all_it_has(
    reason: str, class_: p.Manifest | None, child: p.Manifest, why: str
) -> None:
    observed = serving()
    before = compose(p.cluster(), observed=observed)
    composite = {**p.cluster(), "status": copy.deepcopy(dict(before.status))}
    told = p.eks_status(**{k: v for k, v in child.items() if k != "ready"})
    observed[CLOUD] = p.reported(observed[CLOUD], ready=child.get("ready", True), **told)
    answer = p.compose(KIND, composite, *([class_] if class_ else []), observed=observed)
    assert answer.resources.keys() == before.resources.keys(), reason
    for key in before.resources:
        assert answer.resources[key].manifest == before.resources[key].manifest, (reason, key)
    assert answer.status["gpuPools"] == before.status["gpuPools"], reason
    assert answer.status["cache"] == before.status["cache"], reason
    if why:
        status, found, message = p.condition(answer, c.CLUSTER_READY)
        assert (status, found) == (False, why), reason
        assert "north" in message or ("gpu" in message and "amber-4x" in message), reason


FIRST: list[tuple[str, p.Manifest, p.Manifest | None, str]] = [
    ("C49, no such class on EKS", p.cluster(), None, "WaitingForClasses"),
    ("C49, a class EKS cannot make", p.cluster(), p.inference_class(provisioning={}), "InvalidNodePool"),
    ("no such class on an Existing cluster", p.cluster(source=c.EXISTING), None, "WaitingForClasses"),
]


@pytest.mark.parametrize(("reason", "composite", "class_", "why"), FIRST, ids=[f[0] for f in FIRST])
def test_nothing_is_composed_before_the_classes_fit_the_first_time(
    reason: str, composite: p.Manifest, class_: p.Manifest | None, why: str
) -> None:
    answer = p.compose(KIND, composite, *([class_] if class_ else []))
    assert dict(answer.resources) == {}, reason
    status, found, message = p.condition(answer, c.CLUSTER_READY)
    assert (status, found) == (False, why), reason
    assert "pool gpu" in message, reason
    assert "amber-4x" in message, reason
    assert [e.warning for e in answer.events] == [True], reason
    assert answer.ready is False, reason


def test_a_pool_that_was_never_made_is_left_out_and_the_others_go_on() -> None:
    pools = [p.pool(), p.pool("big", className="unknown")]
    composite = p.cluster(pools=pools)
    answer = compose(composite, observed=serving())
    made = answer.resources[CLOUD].manifest["spec"]["nodePools"]
    assert [x["name"] for x in made] == ["gpu"]
    assert [x["name"] for x in answer.status["gpuPools"]] == ["gpu"]
    assert "unknown" in answer.status["pools"][1]["message"]


def test_a_pool_whose_recipe_is_nowhere_freezes_the_request() -> None:
    observed = serving()
    status = dict(compose(p.cluster(), observed=observed).status)
    observed[CLOUD]["spec"]["nodePools"] = []
    composite = {**p.cluster(), "status": status}
    answer = p.compose(KIND, composite, observed=observed)
    assert answer.resources[CLOUD].manifest["spec"] == observed[CLOUD]["spec"]
    assert USAGE in answer.resources


def test_the_owner_removes_a_pool_by_the_spec() -> None:
    two = p.cluster(pools=[p.pool(), p.pool("other")])
    observed = serving(two)
    answer = compose(p.cluster(), observed=observed)
    assert [x["name"] for x in answer.resources[CLOUD].manifest["spec"]["nodePools"]] == ["gpu"]


def test_an_existing_cluster_is_reached_at_once_and_makes_no_cloud_resource() -> None:
    """C51: pools on such a cluster never lead to cloud resources."""
    composite = p.cluster(
        source=c.EXISTING,
        block={
            "identitySecretRef": {"name": "key", "type": "AWSWebIdentityCredentials"},
            "components": "Provided",
        },
    )
    answer = compose(composite)
    assert set(answer.resources) == {CONFIG, STACK}
    assert dict(answer.held_back) == {}
    config = answer.resources[CONFIG].manifest["spec"]
    assert config["identity"]["type"] == "AWSWebIdentityCredentials"
    assert config["identity"]["secretRef"]["key"] == "private_key"
    stack = answer.resources[STACK].manifest["spec"]
    assert stack["provided"] == "Provided"
    assert [s["type"] for s in stack["secrets"]] == ["Kubeconfig", "AWSWebIdentityCredentials"]
    assert answer.status["cache"] == {"storageClassName": "nfs-rwx"}
    assert p.condition(answer, c.CLUSTER_READY)[:2] == (True, "ClusterRunning")
    assert answer.resources[STACK].ready is False


def test_a_source_without_a_cloud_here_composes_nothing_and_says_so() -> None:
    answer = compose(p.cluster(source="GKE"))
    assert dict(answer.resources) == {}
    assert p.condition(answer, c.CLUSTER_READY)[:2] == (False, "SourceNotSupported")
    assert answer.ready is False


@pytest.mark.parametrize("source", ["GKE", c.EXISTING])
def test_an_edited_source_does_not_delete_the_cluster_that_runs(source: str) -> None:
    observed = serving()
    answer = compose(p.cluster(source=source), observed=observed)
    assert set(answer.resources) == set(observed)
    assert p.condition(answer, c.CLUSTER_READY)[:2] == (False, "SourceChanged")


def test_the_stack_release_on_record_is_handed_down_and_the_specs_wins() -> None:
    recorded = {**p.cluster(source=c.EXISTING), "status": {"stackRelease": "2026.12"}}
    assert compose(recorded).resources[STACK].manifest["spec"]["stackRelease"] == "2026.12"
    named = {**p.cluster(source=c.EXISTING, stackRelease="2027.03"), "status": {"stackRelease": "2026.12"}}
    assert compose(named).resources[STACK].manifest["spec"]["stackRelease"] == "2027.03"


@pytest.mark.parametrize(
    ("cluster", "name", "reason"),
    [
        (p.cluster(source=c.EXISTING), c.OWN_GATEWAY_CLASS, "a class called envoy may be somebody else's"),
        (p.cluster(), None, "a cluster that we make has no class but ours"),
    ],
)
def test_on_a_cluster_that_is_not_ours_to_make_the_gateway_has_a_class_of_its_own(
    cluster: p.Manifest, name: str | None, reason: str
) -> None:
    observed = serving() if name is None else {}
    spec = compose(cluster, observed=observed).resources[STACK].manifest["spec"]
    assert spec.get("gateway") == ({"className": name} if name else None), reason


def test_an_unready_child_says_why_in_the_condition() -> None:
    first = compose(p.cluster()).resources[CLOUD].manifest
    child = p.reported(first, ready=False)
    child["status"]["conditions"].append(
        {"type": c.CLUSTER_READY, "status": "False", "reason": "Provisioning", "message": "no AWS here"}
    )
    answer = compose(p.cluster(), observed={CLOUD: child})
    assert "no AWS here" in p.condition(answer, c.CLUSTER_READY)[2]


@pytest.mark.parametrize(
    ("low", "high", "ready", "told", "reason"),
    [
        (None, None, 2, 2, "a pool that cannot grow has the nodes that are ready"),
        (1, 6, 0, None, "one that grows is placed on for its autoscaler to see"),
        (0, 6, 1, None, "from one node on it sees what a node offers"),
        (0, 6, 0, 0, "from none it does not: what is placed there would wait for ever"),
    ],
)
def test_placement_is_told_the_ready_nodes_of_what_cannot_grow(
    low: int | None, high: int | None, ready: int, told: int | None, reason: str
) -> None:
    found = p.cluster(pools=[p.pool(nodeCount=4, minNodeCount=low, maxNodeCount=high)])
    nodes = {"nodePools": [{"name": "gpu", "status": "ACTIVE", "readyNodes": ready}]}
    (pool,) = compose(found, observed=serving(**nodes)).status["gpuPools"]
    assert pool.get("readyNodes") == told, reason


def test_a_class_is_accepted_and_composes_nothing() -> None:
    answer = p.compose(KINDS[c.API, "InferenceClass"], p.inference_class())
    assert (dict(answer.resources), dict(answer.status), answer.ready) == ({}, {}, None)
    assert p.condition(answer, c.ACCEPTED) == (True, "Available", "")


JUNK: list[Any] = [None, 7, "x", [], [3], {}, {"nodePools": 3}, {"nodePools": [3, {"className": []}]}]


@pytest.mark.parametrize("spec", JUNK, ids=repr)
def test_requirements_never_raise_on_a_broken_spec(spec: Any) -> None:
    found = KIND.requires({"metadata": {"name": "north"}, "spec": spec})
    assert [r.name for r in found] == ["replicas", "caches"]


def test_everything_composed_and_reported_is_admitted(crds: Path) -> None:
    replica = p.on_cluster()
    for composite in (
        p.cluster(
            images={"mirror": "registry.example.org/m"},
            block={"network": {"nat": "Single"}, "tags": {"team": "ml"}, "logging": {"retentionDays": 7}},
            pools=[p.pool(fabric={"type": "EFA"}, zones=None, labels={"a": "b"}, localStorage="RAID0")],
        ),
        p.cluster(source=c.EXISTING),
    ):
        observed: dict[str, p.Manifest] = {}
        for _ in range(4):
            answer = compose(composite, p.inference_class(), replica, observed=observed)
            for found in answer.resources.values():
                for manifest in judges.with_remote(found.manifest):
                    assert judges.problems(manifest, crds) == []
            shown = {**composite, "status": dict(answer.status)}
            assert [str(x) for x in definitions.load().judge(shown)] == []
            observed = p.observed_of(answer)
            if CLOUD in observed:
                observed[CLOUD]["status"].update(p.eks_status())
        assert "namespace-lab" in observed
