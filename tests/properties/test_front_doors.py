"""Whole fleets behind either front door, played to rest: both serve the same services, each team its own."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest

import fleets
import judges
from modelplane import contracts as c
from modelplane import names
from modelplane.core import Manifest, paths
from modelplane.sim.world import Ref

FOLDER = "dynamo-l4"
TEAMS = ("ml-team", "other-team")
PROVIDER_TOKEN = "czNjcmV0"
KEYS = {"keys": "yes"}


def gateway(backend: str) -> Manifest:
    spec: Manifest = {"backend": backend}
    if backend == c.TRAEFIK:
        spec["traefik"] = {"version": "40.2.0"}
    else:
        spec["auth"] = {"apiKeys": {"secretSelector": {"matchLabels": KEYS}}}
    metadata = {"name": c.DEFAULT_GATEWAY}
    return {"apiVersion": c.API, "kind": "InferenceGateway", "metadata": metadata, "spec": spec}


def secret(name: str, namespace: str, labels: dict[str, str] | None = None) -> Manifest:
    metadata = {"name": name, "namespace": namespace, "labels": labels or {}}
    data = {"token": PROVIDER_TOKEN}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "data": data}


def provider(team: str) -> Manifest:
    """A hosted provider, selected with the team's own replicas."""
    labels = {"tier": "all"}
    return {
        "apiVersion": c.API,
        "kind": "ModelEndpoint",
        "metadata": {"name": "acme", "namespace": team, "labels": labels},
        "spec": {
            "url": "https://api.example.com/v1",
            "rewritePath": "/",
            "auth": {"secretRef": {"name": "acme", "key": "token"}},
        },
    }


def service(team: str, deployment: str) -> Manifest:
    groups = [
        {"weight": 90, "selector": {"matchLabels": {c.DEPLOYMENT_LABEL: deployment}}},
        {"weight": 10, "selector": {"matchLabels": {"tier": "all"}}},
    ]
    metadata = {"name": "mixed", "namespace": team}
    return {"apiVersion": c.API, "kind": "ModelService", "metadata": metadata, "spec": {"endpoints": groups}}


def _with_room(cluster: Manifest) -> Manifest:
    sizes = ("nodeCount", "minNodeCount", "maxNodeCount")
    pools = [
        {**{k: v for k, v in pool.items() if k not in sizes}, "nodeCount": 8}
        for pool in cluster["spec"]["nodePools"]
    ]
    return {**cluster, "spec": {**cluster["spec"], "nodePools": pools}}


@cache
def played(backend: str) -> fleets.Played:
    """The example with two teams of the same names, behind one kind of door."""
    found = []
    for read in fleets.documents(FOLDER):
        if read["kind"] == "InferenceGateway":
            continue
        document = _with_room(read) if read["kind"] == "InferenceCluster" else read
        if not paths.namespace(document):
            found.append(document)
        else:
            found += [{**document, "metadata": {**document["metadata"], "namespace": team}} for team in TEAMS]
    deployment = next(paths.name(d) for d in found if d["kind"] == "ModelDeployment")
    for team in TEAMS:
        found += [provider(team), secret("acme", team), service(team, deployment)]
    found += [gateway(backend), secret("callers", c.SYSTEM_NAMESPACE, KEYS)]
    return fleets.play(found)


def of_kind(objects: dict[Ref, Manifest], kind: str, team: str) -> list[Manifest]:
    return [o for r, o in objects.items() if (r.kind, r.namespace) == (kind, team)]


@pytest.mark.parametrize("backend", [c.TRAEFIK, c.ENVOY])
def test_a_fleet_settles_behind_either_door(backend: str) -> None:
    final = played(backend).final
    assert final.changed == {}
    unready = {
        str(r.target): paths.condition(final.objects[r.target], c.READY).get("message")
        for r in final.reports
        if not paths.is_true(final.objects[r.target], c.READY)
    }
    # Traefik cannot send a provider's credential, and says so.
    allowed = {f"ModelEndpoint {team}/acme" for team in TEAMS} if backend == c.TRAEFIK else set()
    assert set(unready) == allowed, unready
    for team in TEAMS:
        (mixed,) = [o for o in of_kind(final.objects, "ModelService", team) if paths.name(o) == "mixed"]
        assert paths.text(mixed, "status", "address").endswith(f"/{team}/mixed")


@pytest.mark.parametrize("backend", [c.TRAEFIK, c.ENVOY])
def test_weights_are_exact_in_sum(backend: str) -> None:
    for team in TEAMS:
        routes = of_kind(played(backend).final.objects, "HTTPRoute", team)
        (route,) = [r for r in routes if f"/{team}/mixed/" in json.dumps(r)]
        shares = {r["name"]: r["weight"] for r in route["spec"]["rules"][0]["backendRefs"]}
        acme = shares.pop(names.child("acme", "backend"), 0)
        assert sum(shares.values()) == (9 * acme or sum(shares.values()))
        assert (acme > 0) is (backend == c.ENVOY)


@pytest.mark.parametrize("backend", [c.TRAEFIK, c.ENVOY])
def test_no_team_routes_to_the_other_or_names_it(backend: str) -> None:
    objects = played(backend).final.objects
    for mine, theirs in (TEAMS, TEAMS[::-1]):
        own = [o for r, o in objects.items() if r.namespace == mine]
        assert own
        for obj in own:
            text = json.dumps(obj)
            assert theirs not in text, f"{obj['kind']} {paths.name(obj)} names {theirs}"
            assert names.team_namespace(theirs) not in text


def test_a_host_name_of_a_front_door_finds_its_own_teams_replica_and_no_other() -> None:
    objects = played(c.ENVOY).final.objects
    found_by: dict[str, set[str]] = {}
    for obj in objects.values():
        remote = paths.mapping(obj, "spec", "forProvider", "manifest")
        for host in paths.items(remote, "spec", "hostnames"):
            found_by.setdefault(host, set()).add(paths.namespace(remote))
    sent = {
        paths.text(f, "urlRewrite", "hostname"): r.namespace
        for r, o in objects.items()
        if r.kind == "HTTPRoute"
        for ref in paths.items(o, "spec", "rules", 0, "backendRefs")
        for f in paths.mappings(ref, "filters")
        if paths.text(f, "urlRewrite", "hostname").endswith(".internal")
    }
    assert set(sent.values()) == set(TEAMS)
    for host, team in sent.items():
        assert found_by[host] == {names.team_namespace(team)}


@pytest.mark.parametrize("backend", [c.TRAEFIK, c.ENVOY])
def test_a_credential_stands_in_secrets_only(backend: str) -> None:
    for call in played(backend).calls:
        assert call.reply.answer is not None
        for key, composed in call.reply.answer.resources.items():
            for manifest in judges.with_remote(composed.manifest):
                if manifest.get("kind") != "Secret" and composed.manifest.get("kind") != "Object":
                    assert PROVIDER_TOKEN not in json.dumps(manifest), (call.target, key)
        told = [x.message for x in call.reply.answer.conditions] + [
            x.message for x in call.reply.answer.events
        ]
        assert "s3cret" not in " ".join(told) + json.dumps(call.reply.answer.status)


@pytest.mark.parametrize("backend", [c.TRAEFIK, c.ENVOY])
def test_everything_composed_is_valid_for_the_real_api(backend: str, crds: Path) -> None:
    seen: dict[str, Manifest] = {}
    for call in played(backend).calls:
        if call.target.kind in ("InferenceGateway", "ModelService", "ModelEndpoint"):
            assert call.reply.answer is not None
            for composed in call.reply.answer.resources.values():
                seen[json.dumps(composed.manifest, sort_keys=True)] = composed.manifest
    assert seen
    assert [p for manifest in seen.values() for p in judges.problems(manifest, crds)] == []


def test_moving_from_traefik_to_envoy_and_back_leaves_nothing_of_the_other() -> None:
    world = played(c.TRAEFIK).world
    for backend, parent in ((c.ENVOY, c.FLEET_ENVOY), (c.TRAEFIK, c.FLEET_GATEWAY)):
        moved = fleets.play([gateway(backend), secret("callers", c.SYSTEM_NAMESPACE, KEYS)], world)
        routes = [o for r, o in moved.final.objects.items() if r.kind == "HTTPRoute"]
        assert {paths.text(o, "spec", "parentRefs", 0, "name") for o in routes} == {parent}
        gateways = [r.name for r in moved.final.objects if r.kind == "Gateway"]
        assert gateways == [parent]
    played.cache_clear()
