"""Core may write what we compose and read what we ask for: one kind forgotten, and a fleet stands still."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

import fleets
from modelplane import contracts as c
from modelplane.core import Manifest

ROOT = fleets.ROOT
CORE = [
    *yaml.safe_load_all((ROOT / "package/install/core-rights.yaml").read_text()),
    # What Crossplane's own chart gives core.
    *yaml.safe_load_all((ROOT / "tests/controlplane/chart_rights.yaml").read_text()),
]
LABEL = "rbac.crossplane.io/aggregate-to-crossplane"
WRITE = {"get", "list", "watch", "create", "update", "patch", "delete"}
READ = {"get", "list", "watch"}
# Crossplane's RBAC manager gives core every kind of an installed provider and every composite.
MANAGED = (c.GROUP, "crossplane.io", "upbound.io")
# The plural of a kind as its API has it; the API server's answer would be the only other source.
PLURALS = {
    "BackendTLSPolicy": "backendtlspolicies",
    "BackendTrafficPolicy": "backendtrafficpolicies",
    "ClientTrafficPolicy": "clienttrafficpolicies",
    "EnvoyProxy": "envoyproxies",
    "GatewayClass": "gatewayclasses",
    "HTTPRouteFilter": "httproutefilters",
    "SecurityPolicy": "securitypolicies",
}


def plural(kind: str) -> str:
    return PLURALS.get(kind, f"{kind.lower()}s")


def rules() -> Iterator[dict[str, Any]]:
    for role in CORE:
        if role["metadata"].get("labels", {}).get(LABEL) == "true":
            yield from role.get("rules", ())


def granted(api_version: str, kind: str) -> set[str]:
    """The verbs that core has on a kind."""
    group = api_version.rpartition("/")[0]
    found: set[str] = set()
    for rule in rules():
        if {group, "*"} & set(rule["apiGroups"]) and {plural(kind), "*"} & set(rule["resources"]):
            found |= WRITE if "*" in rule["verbs"] else set(rule["verbs"])
    return found


def managed(api_version: str) -> bool:
    return api_version.rpartition("/")[0].endswith(MANAGED)


def composed() -> Iterator[Manifest]:
    for folder in fleets.FOLDERS:
        for call in fleets.played(folder).calls:
            assert call.reply.answer is not None
            for resource in call.reply.answer.resources.values():
                yield resource.manifest


def front_doors() -> list[list[Manifest]]:
    """Front doors of either kind with all that they can ask for."""
    spec: dict[str, Any] = {"hostname": "models.example.org", "tls": {"issuerRef": {"name": "issuer"}}}
    address = {"loadBalancer": "MetalLB", "metallb": {"addressPool": "192.0.2.0/24"}}
    traefik = {**spec, "backend": "Traefik", "traefik": {"version": "40.2.0", **address}}
    keys = {"apiKeys": {"secretSelector": {"matchLabels": {"example.org/keys": "yes"}}}}
    envoy = {**spec, "backend": "Envoy", "auth": keys, "envoy": address}
    return [
        [{"apiVersion": c.API, "kind": "InferenceGateway", "metadata": {"name": "default"}, "spec": one}]
        for one in (traefik, envoy)
    ]


def test_core_may_write_every_kind_that_an_example_composes() -> None:
    kinds = {(one["apiVersion"], one["kind"]) for one in composed() if not managed(one["apiVersion"])}
    # An EndpointSlice is what a ModelEndpoint becomes.
    assert (c.DISCOVERY_API, "EndpointSlice") in kinds
    assert {kind for kind in kinds if not granted(*kind) >= WRITE} == set()


@pytest.mark.parametrize("door", front_doors(), ids=["traefik", "envoy"])
def test_core_may_write_every_kind_that_a_front_door_composes(door: list[Manifest]) -> None:
    played = fleets.play(door)
    kinds = {
        (resource.manifest["apiVersion"], resource.manifest["kind"])
        for call in played.calls
        for resource in (call.reply.answer.resources.values() if call.reply.answer else ())
        if not managed(resource.manifest["apiVersion"])
    }
    assert (c.CERT_MANAGER_API, "Certificate") in kinds
    assert (c.METALLB_API, "IPAddressPool") in kinds
    assert {kind for kind in kinds if not granted(*kind) >= WRITE} == set()


def test_core_may_read_every_kind_that_a_composer_asks_for() -> None:
    asked = {
        (one.api_version, one.kind)
        for folder in fleets.FOLDERS
        for call in fleets.played(folder).calls
        for one in call.reply.requirements
        if not managed(one.api_version)
    }
    assert ("v1", "Secret") in asked
    assert {kind for kind in asked if not granted(*kind) >= READ} == set()


def test_nothing_of_ours_gives_core_rights_on_secrets_or_on_rights() -> None:
    (role,) = yaml.safe_load_all((ROOT / "package/install/core-rights.yaml").read_text())
    named = {
        (group, resource)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    assert ("", "secrets") not in named
    assert not {group for group, _ in named} & {"rbac.authorization.k8s.io", "*"}
    assert "*" not in {resource for _, resource in named}
