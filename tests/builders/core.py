"""Small plans, kinds and objects for the tests of the core and the shell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from modelplane import contracts as c
from modelplane.core import Desired, Inputs, Kind, Plan, Requirement
from modelplane.core.paths import Manifest

WIDGET_API = "example.org/v1"
WIDGET = "Widget"


def widget(name: str = "one", namespace: str = "team", **over: Any) -> Manifest:
    """A composite as Crossplane observes it."""
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": WIDGET_API, "kind": WIDGET, "metadata": metadata, "spec": {}, **over}


def thing(name: str, namespace: str = "", kind: str = "Thing", **over: Any) -> Manifest:
    """A composed resource without a meaning of its own."""
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": "example.org/v1", "kind": kind, "metadata": metadata, **over}


def conditions(**states: str) -> Manifest:
    """A status with conditions, by type."""
    listed = [{"type": t, "status": s, "reason": "Because", "message": f"{t} was"} for t, s in states.items()]
    return {"conditions": listed}


def ready(manifest: Manifest, state: str = "True") -> Manifest:
    """The manifest as observed, with a Ready condition."""
    return {**manifest, "status": conditions(Ready=state)}


def config(name: str = "config", namespace: str = "", api: str = c.KUBERNETES_API) -> Manifest:
    """A namespaced ProviderConfig of provider-kubernetes."""
    return {**thing(name, namespace, "ProviderConfig"), "apiVersion": api}


def consumer(name: str, to: str = "config", namespace: str = "", **over: Any) -> Manifest:
    """An Object that names a provider config."""
    spec = {"providerConfigRef": {"kind": "ProviderConfig", "name": to}, "forProvider": {}}
    return {**thing(name, namespace, "Object"), "apiVersion": c.KUBERNETES_API, "spec": spec, **over}


def usage(of: Manifest, by: Manifest, name: str = "guard") -> Manifest:
    """A Usage as observed."""
    refs = {
        end: {
            "apiVersion": m["apiVersion"],
            "kind": m["kind"],
            "resourceRef": {"name": m["metadata"]["name"]},
        }
        for end, m in (("of", of), ("by", by))
    }
    return {**thing(name, "team", "Usage"), "apiVersion": c.PROTECTION_API, "spec": refs}


def desired(key: str, manifest: Manifest | None = None, **over: Any) -> Desired:
    """A resource of a plan, named like its key."""
    return Desired(key, manifest or thing(key), **over)


def kind(
    compose: Callable[[Inputs], Plan] = lambda _: Plan(),
    conditions: Sequence[str] = ("Built",),
    requires: Callable[[Manifest], Sequence[Requirement]] = lambda _: (),
    **over: Any,
) -> Kind:
    """A kind whose composites are widgets."""
    return Kind(
        over.pop("api_version", WIDGET_API),
        over.pop("kind", WIDGET),
        compose,
        tuple(conditions),
        requires,
        **over,
    )
