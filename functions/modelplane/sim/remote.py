"""What objects on a serving cluster report once their controllers have seen them: one rule per kind.

Every rule names where its behaviour is documented. A kind without a rule exists and reports nothing, which is
true of kinds without a status (ConfigMap, Role, StorageClass, ResourceClaimTemplate, ...).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from modelplane import contracts as c
from modelplane import names
from modelplane.core import Manifest, paths
from modelplane.sim.world import EPOCH


@dataclass(frozen=True, slots=True)
class RemoteRule:
    """What a kind reports.

    Attributes:
        report: the status from the object, given its generation.
        source: where this is documented.
        after: passes until the status is there (the controller, an image pull, a load balancer).
        cluster_scoped: whether the kind lives outside namespaces.
    """

    report: Callable[[Manifest], Manifest]
    source: str
    after: int = 1
    cluster_scoped: bool = False


def status_of(manifest: Mapping[str, Any], age: int) -> Manifest | None:
    """Return the status of a remote object of that age in passes, or None where it has none yet."""
    rule = RULES.get((paths.text(manifest, "apiVersion"), paths.text(manifest, "kind")))
    if rule is None or age < rule.after:
        return None
    return rule.report(dict(manifest))


def needs_namespace(manifest: Mapping[str, Any]) -> str:
    """Return the namespace that must exist on the cluster before the object can, or an empty string."""
    return paths.namespace(manifest)


def _condition(type_: str, reason: str, status: str = "True") -> Manifest:
    return {"type": type_, "status": status, "reason": reason, "lastTransitionTime": EPOCH}


def _deployment(obj: Manifest) -> Manifest:
    replicas = paths.integer(obj, "spec", "replicas", default=1)
    return {
        "observedGeneration": 1,
        "replicas": replicas,
        "updatedReplicas": replicas,
        "readyReplicas": replicas,
        "availableReplicas": replicas,
        "conditions": [_condition("Available", "MinimumReplicasAvailable")],
    }


def _leader_worker_set(obj: Manifest) -> Manifest:
    replicas = paths.integer(obj, "spec", "replicas", default=1)
    return {
        "observedGeneration": 1,
        "replicas": replicas,
        "readyReplicas": replicas,
        "updatedReplicas": replicas,
        "conditions": [_condition("Available", "AllGroupsReady")],
    }


def _pod_clique_set(obj: Manifest) -> Manifest:
    # spec.replicas defaults to 0 in the CRD: a set that forgot it would never be available.
    replicas = paths.integer(obj, "spec", "replicas", default=0)
    return {
        "observedGeneration": 1,
        "replicas": replicas,
        "availableReplicas": replicas,
        "updatedReplicas": replicas,
    }


def _gateway(obj: Manifest) -> Manifest:
    # RFC 5737 documentation addresses, one per object, so that two clusters differ.
    last = 1 + int(names.digest(paths.name(obj), paths.text(obj, "metadata", "uid"), length=4), 16) % 250
    return {
        "addresses": [{"type": "IPAddress", "value": f"192.0.2.{last}"}],
        "conditions": [_condition("Accepted", "Accepted"), _condition("Programmed", "Programmed")],
    }


def _route(obj: Manifest) -> Manifest:
    parents = [
        {
            "parentRef": dict(parent),
            "controllerName": "example.net/gateway-controller",
            "conditions": [_condition("Accepted", "Accepted"), _condition("ResolvedRefs", "ResolvedRefs")],
        }
        for parent in paths.mappings(obj, "spec", "parentRefs")
    ]
    return {"parents": parents}


def _pool(_: Manifest) -> Manifest:
    parent = {"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": c.CLUSTER_GATEWAY}
    return {"parents": [{"parentRef": parent, "conditions": [_condition("Accepted", "Accepted")]}]}


def _accepted(_: Manifest) -> Manifest:
    return {"conditions": [_condition("Accepted", "Accepted")]}


def _established(_: Manifest) -> Manifest:
    return {"conditions": [_condition("Established", "InitialNamesAccepted")]}


RULES: dict[tuple[str, str], RemoteRule] = {
    ("v1", "Namespace"): RemoteRule(
        lambda _: {"phase": "Active"},
        "kubernetes.io/docs/concepts/overview/working-with-objects/namespaces",
        after=0,
        cluster_scoped=True,
    ),
    ("v1", "PersistentVolumeClaim"): RemoteRule(
        lambda _: {"phase": "Bound"}, "kubernetes.io/docs/concepts/storage/persistent-volumes#binding"
    ),
    ("batch/v1", "Job"): RemoteRule(
        lambda _: {"succeeded": 1, "conditions": [_condition("Complete", "CompletionsReached")]},
        "kubernetes.io/docs/concepts/workloads/controllers/job",
        after=2,
    ),
    ("apps/v1", "Deployment"): RemoteRule(
        _deployment, "kubernetes.io/docs/concepts/workloads/controllers/deployment#complete-deployment"
    ),
    (c.LWS_API, "LeaderWorkerSet"): RemoteRule(
        _leader_worker_set, "kubernetes-sigs/lws api/leaderworkerset/v1/leaderworkerset_types.go"
    ),
    (c.GROVE_API, "PodCliqueSet"): RemoteRule(
        _pod_clique_set, "ai-dynamo/grove operator/api/core/v1alpha1/podcliqueset.go"
    ),
    (c.GATEWAY_API, "Gateway"): RemoteRule(
        _gateway, "gateway-api.sigs.k8s.io/reference/spec/#gatewaystatus", after=2
    ),
    (c.GATEWAY_API, "GatewayClass"): RemoteRule(
        _accepted, "gateway-api.sigs.k8s.io/reference/spec/#gatewayclassstatus", cluster_scoped=True
    ),
    (c.GATEWAY_API, "HTTPRoute"): RemoteRule(
        _route, "gateway-api.sigs.k8s.io/reference/spec/#httproutestatus"
    ),
    (c.INFERENCE_API, "InferencePool"): RemoteRule(
        _pool, "gateway-api-inference-extension.sigs.k8s.io/api-types/inferencepool"
    ),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition"): RemoteRule(
        _established,
        "kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions",
        cluster_scoped=True,
    ),
}
