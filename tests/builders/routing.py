"""The front door's kinds: gateways, services, endpoints, and what is observed of what they compose."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from modelplane import contracts as c
from modelplane.core import Answer, Inputs, Kind, Manifest, settle

NAMESPACE = "lab"


def gateway(name: str = c.DEFAULT_GATEWAY, **spec: Any) -> Manifest:
    """An InferenceGateway as its owner writes it."""
    traefik = {"version": "40.2.0", **spec.pop("traefik", {})}
    return {
        "apiVersion": c.API,
        "kind": "InferenceGateway",
        "metadata": {"name": name},
        "spec": {"backend": "Traefik", "traefik": traefik, **spec},
    }


def envoy_gateway(name: str = c.DEFAULT_GATEWAY, **spec: Any) -> Manifest:
    """An InferenceGateway that asks for Envoy."""
    found = gateway(name, **spec)
    del found["spec"]["traefik"]
    found["spec"]["backend"] = "Envoy"
    return found


def serving_envoy(address: str = "198.51.100.7", **spec: Any) -> Manifest:
    """One that is ready and has an address."""
    return {**envoy_gateway(**spec), "status": serving_gateway(address)["status"]}


def serving_gateway(address: str = "198.51.100.7", **spec: Any) -> Manifest:
    """An InferenceGateway that is ready and has an address."""
    ready = {"type": c.CONTROLLER_READY, "status": "True", "reason": "ControllerHealthy"}
    return {**gateway(**spec), "status": {"address": address, "conditions": [ready]}}


def service(*groups: Mapping[str, Any], name: str = "birds", namespace: str = NAMESPACE) -> Manifest:
    """A ModelService; without groups one that selects the deployment heron."""
    return {
        "apiVersion": c.API,
        "kind": "ModelService",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"endpoints": list(groups) or [group("heron")]},
    }


def group(deployment: str, **over: Any) -> dict[str, Any]:
    """A group of a ModelService that selects one deployment's endpoints."""
    return {"selector": {"matchLabels": {c.DEPLOYMENT_LABEL: deployment}}, **over}


def endpoint(
    name: str = "heron-1",
    url: str = "http://192.0.2.9/lab/heron-1/v1",
    *,
    namespace: str = NAMESPACE,
    **spec: Any,
) -> Manifest:
    """A ModelEndpoint as a ModelDeployment composes it, without a status."""
    return {
        "apiVersion": c.API,
        "kind": "ModelEndpoint",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {c.DEPLOYMENT_LABEL: name.rpartition("-")[0]},
        },
        "spec": {"url": url, "rewritePath": f"/{namespace}/{name}/", **spec},
    }


def ready_endpoint(name: str = "heron-1", **over: Any) -> Manifest:
    """A ModelEndpoint whose backend stands, with its policy where it is https."""
    made = endpoint(name, **over)
    routing = {"backendName": f"{name}-backend"}
    if made["spec"]["url"].startswith("https:"):
        routing["tlsPolicyName"] = f"{name}-tls"
    return {**made, "status": {"routing": routing}}


def crd(name: str) -> Manifest:
    """A CustomResourceDefinition by name only."""
    return {"apiVersion": c.CRD_API, "kind": "CustomResourceDefinition", "metadata": {"name": name}}


def answer(
    kind: Kind,
    composite: Manifest,
    observed: Mapping[str, Manifest] | None = None,
    required: Mapping[str, list[Manifest]] | None = None,
) -> Answer:
    """What Crossplane is told."""
    return settle.compose(kind, Inputs(composite, observed or {}, required or {}))


def observed(reply: Answer, **status: Mapping[str, Any]) -> dict[str, Manifest]:
    """What is observed after an answer: its manifests, with a status where one is given by key."""
    found = {key: dict(composed.manifest) for key, composed in reply.resources.items()}
    for key, value in status.items():
        known = key.replace("_", "-")
        if known in found:
            found[known]["status"] = dict(value)
    return found


def conditions(reply: Answer) -> dict[str, tuple[bool | None, str]]:
    """Status and reason of each condition."""
    return {x.type: (x.status, x.reason) for x in reply.conditions}


def message(reply: Answer, type_: str) -> str:
    """The message of one condition."""
    return next(x.message for x in reply.conditions if x.type == type_)
