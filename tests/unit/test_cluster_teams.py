"""Teams on a cluster: their namespaces, their walls, and the guard."""

from __future__ import annotations

from typing import Any

import pytest

from builders import platform as p
from modelplane import contracts as c
from modelplane import names
from modelplane.core import Answer, Inputs, settle
from modelplane.kinds import inference_cluster

KIND = inference_cluster.KIND
SPACE, POLICY, GUARD = "namespace-lab", "network-policy-lab", "usage-replicas"
LAB = {SPACE, POLICY, GUARD}
CLUSTER = p.cluster(source=c.EXISTING)


def compose(*there: p.Manifest, observed: dict[str, p.Manifest], composite: p.Manifest = CLUSTER) -> Answer:
    return p.compose(KIND, composite, p.inference_class(), *there, observed=observed)


def prepared(*there: p.Manifest) -> dict[str, p.Manifest]:
    observed: dict[str, p.Manifest] = {}
    for _ in range(3):
        observed = p.observed_of(compose(*there, observed=observed))
    return observed


@pytest.mark.parametrize("kind", ["ModelReplica", "ModelCacheReplica"])
def test_a_team_with_anything_on_the_cluster_gets_a_namespace_and_a_wall(kind: str) -> None:
    observed = prepared(p.on_cluster(kind))
    assert set(observed) >= LAB
    namespace = p.remote(observed[SPACE])
    assert namespace["metadata"] == {
        "name": names.team_namespace("lab"),
        "labels": {c.NAMESPACE_LABEL: "lab"},
    }
    policy = p.remote(observed[POLICY])
    assert policy["metadata"]["namespace"] == names.team_namespace("lab")
    assert policy["spec"]["podSelector"] == {}
    assert policy["spec"]["policyTypes"] == ["Ingress"]
    for key in (SPACE, POLICY):
        assert "Delete" not in observed[key]["spec"]["managementPolicies"], (
            "deleting it deletes what is inside"
        )
        assert observed[key]["metadata"]["namespace"] == c.SYSTEM_NAMESPACE


def test_the_wall_admits_gateway_and_monitoring_only() -> None:
    """Not even the team's own pods: each replica opens its own to each other."""
    policy = p.remote(prepared(p.on_cluster())[POLICY])
    (rule,) = policy["spec"]["ingress"]
    spaces = [
        x["namespaceSelector"]["matchLabels"]["kubernetes.io/metadata.name"]
        for x in rule["from"]
        if "namespaceSelector" in x
    ]
    assert spaces == [c.ENVOY_NAMESPACE, c.SYSTEM_NAMESPACE, c.MONITORING_NAMESPACE]
    assert len(rule["from"]) == len(spaces)


def test_two_teams_get_namespaces_of_their_own() -> None:
    observed = prepared(p.on_cluster(), p.on_cluster(namespace="zoo"))
    spaces = {p.remote(observed[f"namespace-{team}"])["metadata"]["name"] for team in ("lab", "zoo")}
    assert spaces == {names.team_namespace("lab"), names.team_namespace("zoo")}


def test_a_team_is_listed_once_namespace_and_wall_are_there_and_stays_listed() -> None:
    replica = p.on_cluster()
    observed = prepared(replica)
    rows: list[tuple[str, bool, bool, list[str], list[str] | None]] = [
        ("both are there", True, True, [], ["lab"]),
        ("no wall yet: nothing may start behind it", True, False, [], None),
        ("no namespace yet", False, True, [], None),
        ("listed before; the provider has a bad moment", False, False, ["lab"], ["lab"]),
    ]
    for reason, space, wall, before, listed in rows:
        observed[SPACE] = p.reported(observed[SPACE], ready=space)
        observed[POLICY] = p.reported(observed[POLICY], ready=wall)
        composite = {**CLUSTER, "status": {"namespaces": before}}
        answer = compose(replica, observed=observed, composite=composite)
        assert answer.status.get("namespaces") == listed, reason


def test_a_team_that_arrives_does_not_hold_the_cluster_back() -> None:
    observed = {k: v for k, v in prepared(p.on_cluster()).items() if k not in LAB}
    answer = compose(p.on_cluster(), observed=observed)
    assert answer.resources.keys() >= LAB
    assert dict(answer.held_back) == {}
    observed = p.observed_of(answer)
    observed[SPACE] = p.reported(observed[SPACE], ready=False)
    assert all(x.ready for x in compose(p.on_cluster(), observed=observed).resources.values())


def test_what_is_unused_goes_at_the_second_look_only() -> None:
    observed = prepared(p.on_cluster())
    once = compose(observed=observed)
    assert once.resources.keys() >= LAB, "one empty look may be a lookup gone wrong"
    assert once.status.get("namespaces") == ["lab"]
    twice = compose(observed=p.observed_of(once))
    assert twice.resources.keys() & LAB == set()
    back = compose(p.on_cluster(), observed=p.observed_of(once))
    for key in LAB:
        assert "annotations" not in back.resources[key].manifest["metadata"], key


def _without(obj: p.Manifest, part: str) -> p.Manifest:
    return {**obj, "metadata": {k: v for k, v in obj["metadata"].items() if k != part}}


DOUBTS: list[tuple[str, dict[str, list[Any]] | None]] = [
    (
        "a replica that does not say whose it is",
        {"replicas": [_without(p.on_cluster(), "namespace")], "caches": []},
    ),
    ("a cache without metadata", {"replicas": [], "caches": [{}]}),
    ("a list that was not fetched", {"replicas": []}),
]


@pytest.mark.parametrize(("reason", "lists"), DOUBTS, ids=[d[0] for d in DOUBTS])
def test_doubt_keeps_every_team_and_the_guard(reason: str, lists: dict[str, list[Any]]) -> None:
    observed = prepared(p.on_cluster())
    for _ in range(2):
        required = {"class-amber-4x": [p.inference_class()], **lists}
        answer = settle.compose(KIND, Inputs(CLUSTER, observed, required))
        assert answer.resources.keys() >= LAB, reason
        observed = p.observed_of(answer)


def test_the_guard_refuses_deletion_and_says_that_the_delete_is_replayed() -> None:
    """C64: a refused delete comes back when the last replica leaves; whoever is refused must know."""
    guard = prepared(p.on_cluster())[GUARD]
    assert guard["kind"] == "ClusterUsage"
    assert "by" not in guard["spec"]
    assert guard["spec"]["replayDeletion"] is True
    assert guard["spec"]["of"]["resourceRef"] == {"name": "north"}
    assert "replayed" in guard["spec"]["reason"]


def test_the_guard_stands_also_where_nothing_else_is_composed() -> None:
    answer = p.compose(KIND, p.cluster(), p.on_cluster())
    assert set(answer.resources) == {GUARD}


def test_replicas_of_other_clusters_do_not_count() -> None:
    answer = compose(p.on_cluster(to="south"), observed={})
    assert answer.resources.keys() & LAB == set()


MIRRORED = p.cluster(
    source=c.EXISTING, images={"mirror": "r.example.org/m", "pullSecretRef": {"name": "mirror-pull"}}
)
CONFIG_KEY = ".dockerconfigjson"


def mirror_secret(**data: str) -> p.Manifest:
    found = p.secret("mirror-pull", **data)
    return {**found, "metadata": {"name": "mirror-pull", "namespace": c.SYSTEM_NAMESPACE}}


def test_each_team_gets_the_mirrors_pull_secret_for_what_we_run_there() -> None:
    source = mirror_secret(**{CONFIG_KEY: "e30=", "username": "dQ==", "password": "czNjcg=="})
    there = [p.on_cluster(), p.on_cluster("ModelCacheReplica", "zoo"), source]
    observed: dict[str, p.Manifest] = {}
    for _ in range(3):
        observed = p.observed_of(compose(*there, observed=observed, composite=MIRRORED))
    for team in ("lab", "zoo"):
        seen = observed[f"pull-secret-{team}"]
        assert seen["metadata"]["namespace"] == c.SYSTEM_NAMESPACE, "no team reads the platform's Object"
        assert p.remote(seen)["metadata"]["namespace"] == names.team_namespace(team)
        assert p.remote(seen)["data"] == {CONFIG_KEY: "e30="}, "the key kubelet reads, and no other"
        assert "managementPolicies" not in seen["spec"], "a credential goes with its Object"
    lost = compose(*there[:2], observed=observed, composite=MIRRORED)
    assert set(lost.resources) == set(observed), "a source that is not found takes nothing away"
    dropped = compose(*there, observed=observed, composite=CLUSTER)
    assert not [k for k in dropped.resources if k.startswith("pull-secret")], "the owner's spec does"


@pytest.mark.parametrize("data", [{}, {CONFIG_KEY: ""}, {"username": "dQ=="}], ids=repr)
def test_a_pull_secret_without_its_key_holds_nothing_else_up(data: dict[str, str]) -> None:
    observed: dict[str, p.Manifest] = {}
    for _ in range(3):
        answer = compose(p.on_cluster(), mirror_secret(**data), observed=observed, composite=MIRRORED)
        observed = p.observed_of(answer)
    assert set(observed) >= LAB
    assert CONFIG_KEY in answer.held_back["pull-secret-lab"]
