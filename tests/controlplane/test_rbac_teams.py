"""Who may do what, with the roles of package/install and the real authorizer; where a team's outputs go."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from controlplane import placed
from controlplane.client import Client, Document, RefusedError, condition, documents
from controlplane.function import ROOT
from controlplane.installed import Installed
from controlplane.processes import wait_for
from modelplane import contracts as c
from modelplane import names
from modelplane.core import paths

RBAC = "rbac.authorization.k8s.io"
TEAMS = {"ml-team": "alice", "other-team": "bob"}
CLUSTER_ROLES = {
    "modelplane:platform": ("platform",),
    "modelplane:fleet-viewer": ("ml-team", "other-team", "viewers"),
}
NAMESPACED = [
    ("ml-team", "modelplane:team", "ml-team"),
    ("other-team", "modelplane:team", "other-team"),
    ("ml-team", "modelplane:viewer", "viewers"),
]
OBJECT = {
    "apiVersion": c.KUBERNETES_API,
    "kind": "Object",
    "metadata": {"name": "mine", "namespace": "ml-team"},
    "spec": {
        "forProvider": {"manifest": {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}}}
    },
}


def document(kind: str, name: str, namespace: str = "", **spec: Any) -> Document:
    """A small object of one of our kinds."""
    api = c.INFRA_API if kind in {"ServingStack", "EKSCluster"} else c.API
    meta = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": api, "kind": kind, "metadata": meta, "spec": spec}


def deployment(namespace: str, name: str = "qwen-small") -> Document:
    """The model of the example in a team's namespace."""
    (found,) = documents(ROOT / "examples/single-gpu/model.yaml")
    return {**found, "metadata": {"name": name, "namespace": namespace}}


def service(namespace: str) -> Document:
    """A service that asks for the model by a label that both teams' endpoints carry."""
    labels = {c.DEPLOYMENT_LABEL: "qwen-small"}
    return document("ModelService", "chat", namespace, endpoints=[{"selector": {"matchLabels": labels}}])


def bindings() -> Iterator[Document]:
    """What the commands in personas.yaml make."""
    for role, groups in CLUSTER_ROLES.items():
        for group in groups:
            yield _binding("ClusterRoleBinding", {"name": f"{role}-{group}"}, role, group)
    for namespace, role, group in NAMESPACED:
        yield _binding("RoleBinding", {"name": f"{role}-{group}", "namespace": namespace}, role, group)
    meta = {"name": "modelplane:platform", "namespace": c.SYSTEM_NAMESPACE}
    yield _binding("RoleBinding", meta, "modelplane:platform", "platform", of="Role")


def _binding(kind: str, metadata: Document, role: str, group: str, of: str = "ClusterRole") -> Document:
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": kind,
        "metadata": metadata,
        "roleRef": {"apiGroup": RBAC, "kind": of, "name": role},
        "subjects": [{"apiGroup": RBAC, "kind": "Group", "name": group}],
    }


def await_gone(client: Client, found: Document) -> None:
    """Delete an object and wait until it has left."""
    client.delete(found)
    wait_for(f"{found['kind']} {paths.name(found)} is gone", lambda: client.read(found) is None)


def said(client: Client) -> list[str]:
    """What everything of the teams that is not ready says."""
    return [
        f"{kind} {paths.namespace(one)}/{paths.name(one)}: {what['type']} {what.get('message')}"
        for kind in ("ModelDeployment", "ModelReplica", "ModelEndpoint", "ModelService")
        for one in client.list(c.API, kind)
        for what in one.get("status", {}).get("conditions", ())
        if what["status"] != "True"
    ]


# For each binding one thing that nobody may do without it: user, verb, group, resource, namespace.
BOUND = [
    ("paul", "create", c.GROUP, "inferenceclusters", ""),
    ("paul", "list", "", "secrets", c.SYSTEM_NAMESPACE),
    *((user, "list", c.GROUP, "inferenceclusters", "") for user in ("alice", "bob", "vera")),
    *((user, "create", c.GROUP, "modeldeployments", team) for team, user in TEAMS.items()),
    ("vera", "list", c.GROUP, "modeldeployments", "ml-team"),
]


def denied(installed: Installed) -> list[str]:
    """What the authorizer does not let the personas do yet, of what they are bound to."""
    return [f"{user}: {' '.join(act)}" for user, *act in BOUND if not installed.user(user).may(*act)]


@pytest.fixture(scope="module")
def fleet(installed: Installed) -> Iterator[Installed]:
    """Both teams with the same model and service on one cluster, each thing written by whoever may."""
    admin = installed.client
    installed.serve_gateway_kinds()
    for namespace in TEAMS:
        admin.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    bound = list(bindings())
    for binding in bound:
        admin.apply(binding)
    # The authorizer hears of a binding a moment after it was written.
    wait_for("every persona may do its own", lambda: not denied(installed), seen=lambda: denied(installed))
    platform = installed.user("paul")
    cluster = placed.simulated("InferenceCluster")
    cluster["status"]["namespaces"] = sorted(TEAMS)
    made = [placed.apply_ready(platform, cluster)]
    made.append(placed.apply_ready(platform, placed.simulated("InferenceGateway", "gateway")))
    asked = [(user, one) for team, user in TEAMS.items() for one in (deployment(team), service(team))]
    for user, one in asked:
        installed.user(user).create(one)

    def ready() -> bool:
        for team in TEAMS:
            placed.provide(admin, team)
        found = [admin.get(c.API, "ModelDeployment", "qwen-small", team) for team in TEAMS]
        return all(condition(one, "Ready") == "True" for one in found)

    wait_for("both teams' models are ready", ready, seen=lambda: said(admin))
    yield installed
    for _, one in reversed(asked):
        await_gone(admin, one)
    for one in reversed(made):
        admin.patch(one, {"metadata": {"annotations": {placed.PAUSED: None}}})
        await_gone(admin, one)
    for binding in bound:
        admin.delete(binding)


REFUSED = [
    ("alice", lambda it: it.create(deployment("other-team", "intruder")), "another team's namespace"),
    ("alice", lambda it: it.list(c.API, "ModelDeployment", namespace="other-team"), "nor look into it"),
    ("alice", lambda it: it.list(c.API, "ModelDeployment"), "nor into all at once"),
    ("alice", lambda it: it.list("v1", "Secret", namespace="other-team"), "another team's Secrets"),
    ("alice", lambda it: it.list("v1", "Secret", namespace=c.SYSTEM_NAMESPACE), "kubeconfigs of clusters"),
    ("alice", lambda it: it.list(c.KUBERNETES_API, "Object", namespace="ml-team"), "copies of Secrets"),
    ("alice", lambda it: it.create(OBJECT), "whoever writes one is the provider on the serving cluster"),
    ("alice", lambda it: it.list(c.HELM_API, "Release", namespace="ml-team"), "values may hold credentials"),
    ("alice", lambda it: it.create(document("ModelReplica", "r", "ml-team")), "the scheduler places"),
    ("alice", lambda it: it.create(document("ModelCacheReplica", "r", "ml-team")), "so does the cache"),
    ("alice", lambda it: it.create(document("InferenceCluster", "mine")), "clusters are the platform's"),
    ("alice", lambda it: it.create(document("InferenceClass", "mine")), "shapes of nodes too"),
    ("alice", lambda it: it.create(document("InferenceGateway", "mine")), "and the front door"),
    ("alice", lambda it: it.create(document("ServingStack", "s", "ml-team")), "installs charts as it likes"),
    ("alice", lambda it: it.create(document("EKSCluster", "e", "ml-team")), "costs money"),
    (
        "alice",
        lambda it: it.list(c.ENVOY_API, "SecurityPolicy", namespace="ml-team"),
        "keys of the front door",
    ),
    ("alice", lambda it: it.list("pkg.crossplane.io/v1", "Configuration"), "packages are the platform's"),
    ("vera", lambda it: it.create(deployment("ml-team", "viewed")), "a viewer writes nothing"),
    ("vera", lambda it: it.list("v1", "Secret", namespace="ml-team"), "and reads no Secret"),
    ("vera", lambda it: it.list(c.API, "ModelDeployment", namespace="other-team"), "where it was bound only"),
    ("paul", lambda it: it.list("v1", "Secret", namespace="ml-team"), "a team's Secrets are the team's"),
    ("paul", lambda it: it.create(OBJECT), "what is composed nobody writes by hand"),
]

ADMITTED = [
    ("alice", lambda it: it.list(c.API, "ModelReplica", namespace="ml-team"), "what its model became"),
    ("alice", lambda it: it.list("v1", "Event", namespace="ml-team"), "why something waits"),
    ("alice", lambda it: it.list(c.API, "InferenceCluster"), "what the fleet offers"),
    ("vera", lambda it: it.list(c.API, "ModelDeployment", namespace="ml-team"), "a viewer looks"),
    ("paul", lambda it: it.list(c.API, "ModelDeployment"), "the platform sees all teams"),
    ("paul", lambda it: it.list(c.KUBERNETES_API, "Object"), "and what was composed"),
    ("paul", lambda it: it.list("v1", "Secret", namespace=c.SYSTEM_NAMESPACE), "kubeconfigs are its own"),
]


@pytest.mark.parametrize(("user", "act", "reason"), REFUSED, ids=[f"{u}: {r}" for u, _, r in REFUSED])
def test_a_persona_is_refused_what_is_not_its_own(fleet: Installed, user: str, act: Any, reason: str) -> None:
    with pytest.raises(RefusedError, match=f'User "{user}" cannot') as refused:
        act(fleet.user(user))
    assert refused.value.status == 403, reason


@pytest.mark.parametrize(("user", "act", "reason"), ADMITTED, ids=[f"{u}: {r}" for u, _, r in ADMITTED])
def test_a_persona_may_read_what_it_works_with(fleet: Installed, user: str, act: Any, reason: str) -> None:
    assert isinstance(act(fleet.user(user)), list), reason


def test_a_team_scales_and_deletes_its_model_by_itself(fleet: Installed) -> None:
    alice, own = fleet.user("alice"), deployment("ml-team", "scaled")
    made = alice.create(own)
    alice.patch(made, {"spec": {"replicas": 0}}, subresource="scale")
    found = alice.get(c.API, "ModelDeployment", "scaled", "ml-team")
    assert found is not None
    assert found["spec"]["replicas"] == 0
    await_gone(alice, own)


def test_nothing_that_comes_of_a_team_s_objects_stands_in_another_namespace(fleet: Installed) -> None:
    admin = fleet.client
    everything = fleet.everything()
    roots = {
        one["metadata"]["uid"]: team
        for team in TEAMS
        for one in admin.list(c.API, "ModelDeployment", namespace=team)
        + admin.list(c.API, "ModelService", namespace=team)
    }
    assert len(roots) == 4
    grown, known = dict(roots), 0
    while len(grown) != known:
        known = len(grown)
        for one in everything:
            for owner in one["metadata"].get("ownerReferences", ()):
                if owner["uid"] in grown:
                    grown[one["metadata"]["uid"]] = grown[owner["uid"]]
    outputs = [one for one in everything if one["metadata"]["uid"] in grown]
    assert {one["kind"] for one in outputs} >= {"ModelReplica", "ModelEndpoint", "Object"}
    astray = [
        f"{one['kind']} {one['metadata'].get('namespace')}/{one['metadata']['name']}"
        for one in outputs
        if one["metadata"].get("namespace") != grown[one["metadata"]["uid"]]
    ]
    assert astray == []


def test_what_a_team_s_objects_carry_to_a_cluster_stays_in_the_team_s_namespace_there(
    fleet: Installed,
) -> None:
    for team in TEAMS:
        carried = [
            paths.mapping(one, "spec", "forProvider", "manifest")
            for one in fleet.client.list(c.KUBERNETES_API, "Object", namespace=team)
        ]
        spaces = {paths.namespace(one) for one in carried}
        assert spaces == {names.team_namespace(team)}


def test_a_service_that_asks_for_what_both_teams_have_routes_to_its_own_team_only(fleet: Installed) -> None:
    client = fleet.client

    def routed(team: str) -> list[Document]:
        parts = client.list(c.TRAEFIK_API, "TraefikService", namespace=team)
        return parts + client.list(c.GATEWAY_API, "HTTPRoute", namespace=team)

    for team in TEAMS:
        (endpoint,) = client.list(c.API, "ModelEndpoint", namespace=team)
        name = endpoint["metadata"]["name"]
        # Core does not watch what a composer asks for, so the service hears of its endpoint at its next turn.
        client.patch(service(team), {"metadata": {"annotations": {"example.org/nudge": "1"}}})
        wait_for(f"{team} routes to {name}", lambda t=team, n=name: n in str(routed(t)))
        client.settled(service(team))
        assert ({*TEAMS} - {team}).pop() not in str([one["spec"] for one in routed(team)])
