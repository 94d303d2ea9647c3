"""What objects on a serving cluster report once their controllers have seen them: one rule per kind.

Every rule names where its behaviour is documented: what is reported and when, how it fails, and what keeps
the object from being deleted. A kind without a rule exists and reports nothing, which is true of kinds that
have no status (ConfigMap, Role, StorageClass, ResourceClaimTemplate, ...).

Longer than other modules: it is one table.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from modelplane import contracts as c
from modelplane import names
from modelplane.core import Manifest, paths
from modelplane.sim import holds
from modelplane.sim.world import EPOCH

# Modes of failure, by the word a test injects them with.
UNAVAILABLE = "Unavailable"
UNBOUND = "Unbound"
FAILED = "Failed"
UNPROGRAMMED = "Unprogrammed"
REFUSED = "Refused"

Neighbours = Sequence[Manifest]

# The Job comes a pass after its report's ConfigMap and takes two (modelplane.staging.report writes last).
_STAGES_AFTER = 4


@dataclass(frozen=True, slots=True)
class RemoteRule:
    """How a kind behaves.

    Attributes:
        report: the status from the object.
        source: where this is documented.
        after: passes until the status is there (the controller, an image pull, a load balancer).
        cluster_scoped: whether the kind lives outside namespaces.
        fails: the status of a failed object, by mode, from the object and what is said of it.
        held: what keeps it from leaving, from the object and the others that Objects carry to its cluster.
        controller: chart whose controller must run when the object is deleted.
        finalizer: what hangs without that controller.
        leaves: what stays behind without it; used where nothing hangs.
    """

    report: Callable[[Manifest], Manifest]
    source: str
    after: int = 1
    cluster_scoped: bool = False
    fails: Mapping[str, Callable[[Manifest, str], Manifest]] = field(default_factory=dict)
    held: Callable[[Manifest, Neighbours], str] = lambda _, __: ""
    controller: str = ""
    finalizer: str = ""
    leaves: str = ""


def written(manifest: Mapping[str, Any], age: int) -> Manifest:
    """Return the fields that a pod itself writes into an object: a staging run, its report."""
    artifact = paths.labels(manifest).get(c.ARTIFACT_LABEL)
    if manifest.get("kind") != "ConfigMap" or "data" in manifest or not artifact or age < _STAGES_AFTER:
        return {}
    size = str(8 * 1024**3)
    data = {"id": artifact, "state": "Staged", "bytesDone": size, "bytesTotal": size}
    return {"data": {**data, "revision": names.digest(str(artifact), "commit", length=40)}}


def rule_of(manifest: Mapping[str, Any]) -> RemoteRule | None:
    """Return the rule of the manifest's kind, or None."""
    return RULES.get((paths.text(manifest, "apiVersion"), paths.text(manifest, "kind")))


def condition(type_: str, reason: str, message: str = "", *, true: bool = True) -> Manifest:
    """Return a status condition as of the one moment a played world knows."""
    found = {
        "type": type_,
        "status": "True" if true else "False",
        "reason": reason,
        "lastTransitionTime": EPOCH,
    }
    return {**found, "message": message} if message else found


def stated(type_: str, reason: str, message: str = "", *, true: bool = True) -> Manifest:
    """Return a condition of the type most kinds share, which requires a message, were it an empty one.

    kubernetes/apimachinery pkg/apis/meta/v1/types.go, type Condition.
    """
    return {**condition(type_, reason, message, true=true), "message": message}


def _copies(obj: Manifest, *, fewer: int = 0) -> tuple[int, int]:
    """Return how many copies are asked for and how many run."""
    asked = paths.integer(obj, "spec", "replicas", default=1) or 0
    return asked, max(0, asked - fewer)


def _deployment(obj: Manifest, message: str = "", *, fewer: int = 0) -> Manifest:
    asked, running = _copies(obj, fewer=fewer)
    conditions = [condition("Available", "MinimumReplicasAvailable")]
    if fewer:
        said = "Deployment does not have minimum availability."
        late = f'ReplicaSet "{paths.name(obj)}-0" has timed out progressing.'
        conditions = [
            condition("Available", "MinimumReplicasUnavailable", said, true=False),
            condition("Progressing", "ProgressDeadlineExceeded", late, true=False),
        ]
        if message:
            # Why its pods are not even made: a quota, a policy.
            conditions.insert(0, condition("ReplicaFailure", "FailedCreate", message))
    return {
        "observedGeneration": 1,
        "replicas": asked,
        "updatedReplicas": asked,
        "readyReplicas": running,
        "availableReplicas": running,
        "conditions": conditions,
    }


def _leader_worker_set(obj: Manifest, message: str = "", *, fewer: int = 0) -> Manifest:
    asked, running = _copies(obj, fewer=fewer)
    # A condition appears once it is True (pkg/controllers/leaderworkerset_controller.go, setCondition).
    state = (
        stated("Progressing", "GroupsProgressing", message or "Replicas are progressing")
        if fewer
        else stated("Available", "AllGroupsReady")
    )
    return {
        "observedGeneration": 1,
        "replicas": asked,
        "readyReplicas": running,
        "updatedReplicas": asked,
        "conditions": [state],
    }


def _pod_clique_set(obj: Manifest, message: str = "", *, fewer: int = 0) -> Manifest:
    # spec.replicas defaults to 0 in the CRD: a set that forgot it would never be available.
    asked = paths.integer(obj, "spec", "replicas", default=0) or 0
    found: Manifest = {
        "observedGeneration": 1,
        "replicas": asked,
        "availableReplicas": max(0, asked - fewer),
        "updatedReplicas": asked,
    }
    if message:
        found["lastErrors"] = [{"code": "ERR_SYNC", "description": message, "observedAt": EPOCH}]
    return found


def _job(_: Manifest) -> Manifest:
    return {"succeeded": 1, "conditions": [condition("Complete", "CompletionsReached")]}


def _failed_job(_: Manifest, message: str) -> Manifest:
    said = message or "Job has reached the specified backoff limit"
    return {"failed": 1, "conditions": [condition("Failed", "BackoffLimitExceeded", said)]}


def _gateway(obj: Manifest) -> Manifest:
    # RFC 5737 documentation addresses, one per object, so that two clusters differ.
    last = 1 + int(names.digest(paths.name(obj), paths.text(obj, "metadata", "uid"), length=4), 16) % 250
    return {
        "addresses": [{"type": "IPAddress", "value": f"192.0.2.{last}"}],
        "conditions": [stated("Accepted", "Accepted"), stated("Programmed", "Programmed")],
    }


def _no_address(_: Manifest, message: str) -> Manifest:
    said = message or "No addresses have been assigned to the Gateway"
    return {
        "conditions": [
            stated("Accepted", "Accepted"),
            stated("Programmed", "AddressNotAssigned", said, true=False),
        ]
    }


def _route(obj: Manifest, message: str = "", *, refused: bool = False) -> Manifest:
    accepted = (
        stated("Accepted", "NotAllowedByListeners", message or "no listener allows the route", true=False)
        if refused
        else stated("Accepted", "Accepted")
    )
    parents = [
        {
            "parentRef": dict(parent),
            "controllerName": "example.net/gateway-controller",
            "conditions": [accepted, stated("ResolvedRefs", "ResolvedRefs")],
        }
        for parent in paths.mappings(obj, "spec", "parentRefs")
    ]
    return {"parents": parents}


def _pool(_: Manifest, message: str = "", *, refused: bool = False) -> Manifest:
    parent = {"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": c.CLUSTER_GATEWAY}
    state = (
        stated("Accepted", "NotSupportedByParent", message or "the gateway does not know it", true=False)
        if refused
        else stated("Accepted", "Accepted")
    )
    return {"parents": [{"parentRef": parent, "conditions": [state]}]}


def _accepted(_: Manifest) -> Manifest:
    return {"conditions": [stated("Accepted", "Accepted")]}


def _kai(_: Manifest, message: str = "System available", *, true: bool = True) -> Manifest:
    deployed = condition("Deployed", "deployed", "Resources deployed")
    return {"conditions": [deployed, condition("Available", "available", message, true=true)]}


def _established(_: Manifest) -> Manifest:
    return {"conditions": [condition("Established", "InitialNamesAccepted")]}


RULES: dict[tuple[str, str], RemoteRule] = {
    ("v1", "Namespace"): RemoteRule(
        lambda _: {"phase": "Active"},
        "kubernetes.io/docs/concepts/overview/working-with-objects/namespaces",
        after=0,
        cluster_scoped=True,
    ),
    ("v1", "PersistentVolumeClaim"): RemoteRule(
        lambda _: {"phase": "Bound"},
        "kubernetes.io/docs/concepts/storage/persistent-volumes (binding; storage object in use protection)",
        fails={UNBOUND: lambda _, __: {"phase": "Pending"}},
        held=holds.mounted,
    ),
    ("batch/v1", "Job"): RemoteRule(
        _job,
        "kubernetes.io/docs/concepts/workloads/controllers/job (completion, backoff limit)",
        after=2,
        fails={FAILED: _failed_job},
    ),
    ("apps/v1", "Deployment"): RemoteRule(
        _deployment,
        "kubernetes.io/docs/concepts/workloads/controllers/deployment#complete-deployment",
        # None of its pods: of a picker one more is always away, the one without the lease.
        fails={UNAVAILABLE: lambda obj, said: _deployment(obj, said, fewer=_copies(obj)[0])},
    ),
    (c.LWS_API, "LeaderWorkerSet"): RemoteRule(
        _leader_worker_set,
        "kubernetes-sigs/lws api/leaderworkerset/v1/leaderworkerset_types.go",
        fails={UNAVAILABLE: lambda obj, said: _leader_worker_set(obj, said, fewer=1)},
    ),
    (c.GROVE_API, "PodCliqueSet"): RemoteRule(
        _pod_clique_set,
        "ai-dynamo/grove operator/api/core/v1alpha1/podcliqueset.go; api/common/constants (the finalizer)",
        fails={UNAVAILABLE: lambda obj, said: _pod_clique_set(obj, said, fewer=1)},
        controller="grove-charts",
        finalizer="grove.io/podcliqueset.grove.io",
    ),
    (c.GATEWAY_API, "Gateway"): RemoteRule(
        _gateway,
        "gateway-api.sigs.k8s.io/reference/spec/#gatewaystatus; Envoy Gateway makes and deletes its Service",
        after=2,
        fails={UNPROGRAMMED: _no_address},
        controller="gateway-helm",
        leaves="its Service of type LoadBalancer, and the cloud's load balancer with it",
    ),
    (c.GATEWAY_API, "GatewayClass"): RemoteRule(
        _accepted,
        "gateway-api.sigs.k8s.io/reference/spec/#gatewayclassspec (finalizer while Gateways use it)",
        cluster_scoped=True,
        held=holds.used_by_gateways,
        controller="gateway-helm",
        finalizer="gateway-exists-finalizer.gateway.networking.k8s.io",
    ),
    (c.GATEWAY_API, "HTTPRoute"): RemoteRule(
        _route,
        "gateway-api.sigs.k8s.io/reference/spec/#httproutestatus",
        fails={REFUSED: lambda obj, said: _route(obj, said, refused=True)},
    ),
    (c.INFERENCE_API, "InferencePool"): RemoteRule(
        _pool,
        "gateway-api-inference-extension.sigs.k8s.io/api-types/inferencepool",
        fails={REFUSED: lambda obj, said: _pool(obj, said, refused=True)},
    ),
    (c.KAI_API, "Queue"): RemoteRule(
        lambda _: {},
        "NVIDIA/KAI-Scheduler pkg/admission webhook ValidateDelete: no deletion with child queues",
        cluster_scoped=True,
        held=holds.parent_of_queues,
    ),
    **dict.fromkeys(
        ((c.KAI_CONFIG_API, "Config"), (c.KAI_CONFIG_API, "SchedulingShard")),
        RemoteRule(
            _kai,
            "kai-scheduler/KAI-Scheduler pkg/operator/controller/status_reconciler",
            cluster_scoped=True,
            fails={UNAVAILABLE: lambda obj, said: _kai(obj, said or "System not available", true=False)},
        ),
    ),
    # Of a Provided cluster, which has what it must have.
    ("apiregistration.k8s.io/v1", "APIService"): RemoteRule(
        lambda _: {"conditions": [condition("Available", "Local")]},
        "kubernetes/kubernetes cmd/kube-apiserver/app/aggregator.go: one per version of a served CRD group",
        cluster_scoped=True,
    ),
    (c.CRD_API, "CustomResourceDefinition"): RemoteRule(
        _established,
        "kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions",
        cluster_scoped=True,
    ),
}
