"""What the leaves of a control plane report, when, and what refuses to go: one rule per kind.

A leaf is an object that no composer of ours reconciles: a provider, a controller or a cloud does. The table
is the one place that says how the real thing behaves, each with its source; renderer, goldens, properties
and the teardown play all read it. A kind without a rule exists and reports nothing.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from modelplane import contracts as c
from modelplane import names
from modelplane.core import Manifest, paths
from modelplane.sim import queries, remote
from modelplane.sim.world import EPOCH, Ref, World, ref

AWS_STANDS = "simulated here: the AWS resources below an EKSCluster"


@dataclass(frozen=True, slots=True)
class Rule:
    """How a leaf kind behaves.

    Attributes:
        report: the new status, from the object, its age in passes and the world; None: nothing new.
        source: where this is documented.
        cluster_scoped: whether the kind lives outside namespaces.
        refuses: what keeps it from being deleted while it is used (for teardown), in words.
        makes: further objects the controller writes (a connection Secret), from the object.
    """

    report: Callable[[Manifest, int, World], Manifest | None]
    source: str
    cluster_scoped: bool = False
    refuses: str = ""
    makes: Callable[[Manifest], list[Manifest]] = lambda _: []


def _condition(type_: str, reason: str, message: str = "", *, true: bool = True) -> Manifest:
    found = {
        "type": type_,
        "status": "True" if true else "False",
        "reason": reason,
        "lastTransitionTime": EPOCH,
    }
    return {**found, "message": message} if message else found


_SYNCED = _condition("Synced", "ReconcileSuccess")
_AVAILABLE = _condition("Ready", "Available")


def _failed(message: str) -> Manifest:
    return {"conditions": [_condition("Synced", "ReconcileError", message, true=False)]}


def _object(obj: Manifest, age: int, world: World) -> Manifest | None:
    if why := _unreachable(obj, world):
        return _failed(why)
    manifest = paths.mapping(obj, "spec", "forProvider", "manifest")
    space = remote.needs_namespace(manifest)
    if space and not _namespace_exists(obj, space, world):
        return _failed(f'namespaces "{space}" not found')
    seen: Manifest = {
        **manifest,
        "metadata": {
            **paths.mapping(manifest, "metadata"),
            "generation": 1,
            "uid": names.digest(*ref(obj), "remote", length=32),
        },
    }
    if status := remote.status_of(seen, age):
        seen["status"] = status
    policy = paths.text(obj, "spec", "readiness", "policy") or "SuccessfulCreate"
    ready = policy == "SuccessfulCreate" or queries.holds(
        paths.text(obj, "spec", "readiness", "celQuery"), seen
    )
    state = _AVAILABLE if ready else _condition("Ready", "Creating", true=False)
    return {"atProvider": {"manifest": seen}, "conditions": [state, _SYNCED]}


def _release(obj: Manifest, age: int, world: World) -> Manifest | None:
    if why := _unreachable(obj, world):
        return _failed(why)
    if age < 1:
        return {"conditions": [_condition("Ready", "Creating", true=False), _SYNCED]}
    version = paths.text(obj, "spec", "forProvider", "chart", "version")
    return {
        "atProvider": {"state": "deployed", "revision": 1, "version": version},
        "conditions": [_AVAILABLE, _SYNCED],
        "synced": True,
    }


def _unreachable(obj: Manifest, world: World) -> str:
    found = paths.mapping(obj, "spec", "providerConfigRef")
    kind, name = str(found.get("kind")), paths.text(found, "name")
    space = paths.namespace(obj) if kind == "ProviderConfig" else ""
    if Ref(str(obj["apiVersion"]), kind, space, name) in world.objects:
        return ""
    return f'cannot get provider config: {kind} "{name}" not found'


def _namespace_exists(obj: Manifest, space: str, world: World) -> bool:
    """Tell whether a namespace is on the cluster the object goes to.

    Charts make their own namespace; others come from Objects. A cluster is told by its kubeconfig Secret,
    since several provider configs reach one cluster.
    """
    if space in {"default", "kube-system"}:
        return True
    cluster = _kubeconfig(obj, world)
    for found in world.of_kind(c.KUBERNETES_API, "Object"):
        manifest = paths.mapping(found, "spec", "forProvider", "manifest")
        made = manifest.get("kind") == "Namespace" and paths.name(manifest) == space
        if made and _kubeconfig(found, world) == cluster and paths.is_true(found, "Synced"):
            return True
    return any(
        paths.text(found, "spec", "forProvider", "namespace") == space
        and _kubeconfig(found, world) == cluster
        and paths.is_true(found, "Ready")
        for found in world.of_kind(c.HELM_API, "Release")
    )


def _kubeconfig(obj: Manifest, world: World) -> tuple[str, str]:
    found = paths.mapping(obj, "spec", "providerConfigRef")
    kind = str(found.get("kind"))
    space = paths.namespace(obj) if kind == "ProviderConfig" else ""
    config = world.objects.get(Ref(str(obj["apiVersion"]), kind, space, paths.text(found, "name")), {})
    secret = paths.mapping(config, "spec", "credentials", "secretRef")
    return paths.text(secret, "namespace"), paths.text(secret, "name")


def _kubeconfig_name(obj: Mapping[str, Any]) -> str:
    return names.child(paths.name(obj), "kubeconfig")


def _eks_cluster(obj: Manifest, age: int, _: World) -> Manifest | None:
    if age < 2:
        return {"conditions": [_condition("Ready", "Creating", AWS_STANDS, true=False), _SYNCED]}
    pools = [
        {
            "name": pool.get("name"),
            "status": "ACTIVE",
            "readyNodes": paths.integer(pool, "nodeCount", default=1),
        }
        for pool in paths.mappings(obj, "spec", "nodePools")
    ]
    secret = {"type": c.KUBECONFIG, "name": _kubeconfig_name(obj), "key": c.KUBECONFIG_KEY}
    return {
        "secrets": [secret],
        "cache": {"storageClassName": "modelplane-rwx-efs"},
        "nodePools": pools,
        "conditions": [_AVAILABLE, _SYNCED],
    }


def _eks_secret(obj: Manifest) -> list[Manifest]:
    metadata = {"name": _kubeconfig_name(obj), "namespace": paths.namespace(obj)}
    return [
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": metadata,
            "type": "connection.crossplane.io/v1alpha1",
        }
    ]


def _usage(_: Manifest, age: int, __: World) -> Manifest | None:
    return {"conditions": [_AVAILABLE, _SYNCED]} if age >= 1 else None


def _plain(rule: remote.RemoteRule) -> Rule:
    def report(obj: Manifest, age: int, _: World) -> Manifest | None:
        return rule.report(obj) if age >= rule.after else None

    return Rule(report, rule.source, cluster_scoped=rule.cluster_scoped)


def _silent(_: Manifest, __: int, ___: World) -> Manifest | None:
    return None


RULES: dict[tuple[str, str], Rule] = {
    # Kinds that stand on the control plane as they do on a cluster: its own gateway and routes.
    **{kind: _plain(rule) for kind, rule in remote.RULES.items()},
    (c.KUBERNETES_API, "Object"): Rule(
        _object, "provider-kubernetes internal/controller/namespaced/object/object.go (v1.2.1)"
    ),
    (c.HELM_API, "Release"): Rule(_release, "provider-helm pkg/controller/namespaced/release (v1.4.0)"),
    (c.KUBERNETES_API, "ClusterProviderConfig"): Rule(
        _silent,
        "crossplane-runtime pkg/reconciler/providerconfig: a finalizer while ProviderConfigUsages stand",
        cluster_scoped=True,
        refuses="Objects that name it",
    ),
    (c.HELM_API, "ClusterProviderConfig"): Rule(_silent, "the same", cluster_scoped=True),
    (c.PROTECTION_API, "Usage"): Rule(_usage, "crossplane internal/controller/protection/usage (v2.3)"),
    (c.PROTECTION_API, "ClusterUsage"): Rule(_usage, "the same", cluster_scoped=True),
    (c.INFRA_API, "EKSCluster"): Rule(
        _eks_cluster,
        "its status contract (apis/eksclusters.yaml); what AWS does below it is not simulated",
        makes=_eks_secret,
    ),
}


def is_leaf(api_version: str, kind: str) -> bool:
    """Tell whether the simulator, not a composer, answers for the kind."""
    return (api_version, kind) in RULES


def cluster_scoped(api_version: str, kind: str) -> bool:
    """Tell whether a leaf kind lives outside namespaces; unknown kinds are namespaced."""
    rule = RULES.get((api_version, kind))
    return rule is not None and rule.cluster_scoped


def act(target: Ref, world: World) -> None:
    """Let the object's controller do what it does in one pass."""
    rule = RULES.get((target.api_version, target.kind))
    if rule is None:
        return
    obj = world.objects[target]
    status = rule.report(obj, world.age(target), world)
    if status is not None:
        world.report(target, status)
        for made in rule.makes(obj):
            if ref(made) not in world.objects:
                world.apply(made)
