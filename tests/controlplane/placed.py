"""A fleet taken as ready, so that what teams write is composed without any provider."""

from __future__ import annotations

import copy

import fleets
from controlplane.client import Client, Document
from modelplane import contracts as c
from modelplane.core import paths
from modelplane.sim import remote

PAUSED = "crossplane.io/paused"


def simulated(kind: str, folder: str = "single-gpu") -> Document:
    """The one object of a kind in an example, its status as our composer leaves it when all is ready."""
    (found,) = (obj for obj in fleets.played(folder).world.objects.values() if obj["kind"] == kind)
    return copy.deepcopy(dict(found))


def apply_ready(client: Client, found: Document) -> Document:
    """Apply a composite with its status; core leaves it alone, so the status stays."""
    meta = {"name": paths.name(found), "labels": dict(paths.labels(found)), "annotations": {PAUSED: "true"}}
    bare = {"apiVersion": found["apiVersion"], "kind": found["kind"], "metadata": meta}
    client.apply({**bare, "spec": found["spec"]})
    return client.apply({**bare, "status": found["status"]}, subresource="status")


def provide(client: Client, namespace: str) -> None:
    """Answer every Object of a namespace as a provider does whose cluster has done all it was asked."""
    for one in client.list(c.KUBERNETES_API, "Object", namespace=namespace):
        seen = dict(paths.mapping(one, "spec", "forProvider", "manifest"))
        rule = remote.rule_of(seen)
        if rule is not None and (status := rule.report(seen)):
            seen["status"] = status
        conditions = [remote.condition("Ready", "Available"), remote.condition("Synced", "ReconcileSuccess")]
        bare = {key: one[key] for key in ("apiVersion", "kind")}
        meta = {"name": paths.name(one), "namespace": namespace}
        status = {"atProvider": {"manifest": seen}, "conditions": conditions}
        if one.get("status") == status:
            # Core counts the events of what it composes, and stops listening where there are too many.
            continue
        client.apply({**bare, "metadata": meta, "status": status}, "provider", subresource="status")
