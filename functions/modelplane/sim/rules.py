"""What the leaves of a control plane report, when, how they fail, and what refuses to go: one rule per kind.

A leaf is an object that no composer of ours reconciles: a provider, a controller or a cloud does. The table
is the one place that says how the real thing behaves, each with its source; renderer, goldens, properties
and the teardown play all read it. A kind without a rule exists and reports nothing.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from modelplane import contracts as c
from modelplane import names
from modelplane.api import definitions
from modelplane.core import Manifest, paths, refused
from modelplane.sim import aws, aws_deletion, collections, copies, queries, reach, remote, standing
from modelplane.sim.remote import FAILED, condition
from modelplane.sim.world import Failure, Ref, World, ref

# The provider cannot make the object as it is asked to: refused, forbidden, or the cluster is away.
UNSYNCED = "Unsynced"


class UnknownModeError(Exception):
    """A failure was injected that the kind's rule does not know; the message names those it does."""


@dataclass(frozen=True, slots=True)
class Rule:
    """How a leaf kind behaves.

    Attributes:
        report: the new status, from the object, its age in passes and the world; None: nothing new.
        source: where this is documented.
        cluster_scoped: whether the kind lives outside namespaces.
        held: what keeps a deleted one from leaving, from the object and the world; empty: nothing.
        leaves: what stays behind for good once it has left; empty: nothing.
        makes: further objects the controller writes (a connection Secret) and deletes, from the object.
        fails: the status of a failed object, by mode, from the object and what is said of it.
    """

    report: Callable[[Manifest, int, World], Manifest | None]
    source: str
    cluster_scoped: bool = False
    held: Callable[[Manifest, World], str] = lambda _, __: ""
    leaves: Callable[[Manifest, World], str] = lambda _, __: ""
    makes: Callable[[Manifest], list[Manifest]] = lambda _: []
    fails: Mapping[str, Callable[[Manifest, str], Manifest]] = field(default_factory=dict)


_SYNCED = condition("Synced", "ReconcileSuccess")
_AVAILABLE = condition("Ready", "Available")
_CREATING = condition("Ready", "Creating", true=False)


def _unsynced(obj: Manifest, message: str) -> Manifest:
    """Return the status after a failed reconcile: only Synced changes, all else stays as last seen."""
    said = message or "cannot apply object: the server refused it"
    last = paths.condition(obj, "Ready") or _CREATING
    kept = {k: v for k, v in paths.mapping(obj, "status").items() if k != "conditions"}
    return {**kept, "conditions": [dict(last), condition("Synced", "ReconcileError", said, true=False)]}


def _object(obj: Manifest, age: int, world: World) -> Manifest | None:
    if why := reach.unreachable(obj, world):
        return _unsynced(obj, why)
    if collections.MEMBER_LABEL in paths.labels(obj):
        return None  # its collection tells what it sees
    if paths.labels(obj).get(c.ROLE_LABEL) == c.ROLE_RIVAL:
        # A played cluster holds nothing of somebody else's (crossplane-runtime, managed reconciler).
        return _unsynced(obj, f"observe failed: {refused.NOT_THERE}")
    manifest = reach.carried(obj)
    space = paths.namespace(manifest)
    if space and not reach.namespace_exists(obj, space, world):
        return _unsynced(obj, f'namespaces "{space}" not found')
    seen: Manifest = {
        **manifest,
        "metadata": {
            **paths.mapping(manifest, "metadata"),
            "generation": 1,
            "uid": names.digest(*ref(obj), "remote", length=32),
        },
    }
    rule = remote.rule_of(manifest)
    failure = failure_of(obj, world)
    if copies.is_part(obj):
        if (found := copies.status(obj, world)) is None:
            return _unsynced(obj, f"observe failed: {refused.NOT_THERE}")
        seen["status"] = found
    elif rule is not None and failure is not None and failure.mode in rule.fails:
        seen["status"] = rule.fails[failure.mode](seen, failure.message)
    elif rule is not None and age >= rule.after and (status := rule.report(seen)):
        seen["status"] = status
    if not _writer_fails(manifest, world):
        seen.update(remote.written(manifest, age))
    policy = paths.text(obj, "spec", "readiness", "policy") or "SuccessfulCreate"
    ready = policy == "SuccessfulCreate" or queries.holds(
        paths.text(obj, "spec", "readiness", "celQuery"), seen
    )
    return {"atProvider": {"manifest": seen}, "conditions": [_AVAILABLE if ready else _CREATING, _SYNCED]}


def _writer_fails(manifest: Manifest, world: World) -> bool:
    """Tell whether the Job whose pods would write into the object has been made to fail."""
    artifact = paths.text(manifest, "metadata", "labels", c.ARTIFACT_LABEL)
    if not artifact or not world.failures:
        return False
    for obj in world.of_kind(c.KUBERNETES_API, "Object"):
        job = reach.carried(obj)
        ours = job.get("kind") == "Job" and paths.namespace(job) == paths.namespace(manifest)
        if ours and artifact in paths.name(job) and failure_of(obj, world) is not None:
            return True
    return False


def _release(obj: Manifest, age: int, world: World) -> Manifest | None:
    if why := reach.unreachable(obj, world):
        return _unsynced(obj, why)
    if age < 1:
        return {"conditions": [_CREATING, _SYNCED]}
    version = paths.text(obj, "spec", "forProvider", "chart", "version")
    return {
        "atProvider": {"state": "deployed", "revision": 1, "version": version},
        "conditions": [_AVAILABLE, _SYNCED],
        "synced": True,
    }


def _failed_release(obj: Manifest, message: str) -> Manifest:
    said = message or "context deadline exceeded"
    version = paths.text(obj, "spec", "forProvider", "chart", "version")
    return {
        "atProvider": {"state": "failed", "revision": 1, "version": version, "releaseDescription": said},
        "conditions": [
            condition("Ready", "Unavailable", true=False),
            condition("Synced", "ReconcileError", f"failed to install release: {said}", true=False),
        ],
        "failed": 1,
        "synced": False,
    }


def _secret(obj: Manifest) -> list[Manifest]:
    """The connection Secret of a resource that writes one."""
    name = paths.text(obj, "spec", "writeConnectionSecretToRef", "name")
    if not name:
        return []
    metadata = {"name": name, "namespace": paths.namespace(obj)}
    return [
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": metadata,
            "type": "connection.crossplane.io/v1alpha1",
        }
    ]


def _aws(kind: tuple[str, str], rule: aws.AwsRule) -> Rule:
    fails = {FAILED: aws.failed, aws.REFUSED: aws.refused, UNSYNCED: _unsynced}
    if rule.states:
        fails[aws.CREATE_FAILED] = aws.create_failed
    return Rule(
        lambda obj, age, world: aws.report(rule, obj, age, world),
        f"sim/aws.py: {kind[1]}, provider-upjet-aws v2.6.0",
        held=aws_deletion.held,
        leaves=aws_deletion.leaves,
        makes=_secret,
        fails=fails,
    )


def _usage(_: Manifest, age: int, __: World) -> Manifest | None:
    return {"conditions": [_AVAILABLE, _SYNCED]} if age >= 1 else None


def _plain(rule: remote.RemoteRule) -> Rule:
    def report(obj: Manifest, age: int, _: World) -> Manifest | None:
        return rule.report(obj) if age >= rule.after else None

    return Rule(report, rule.source, cluster_scoped=rule.cluster_scoped, fails=rule.fails)


def _silent(_: Manifest, __: int, ___: World) -> Manifest | None:
    return None


_CONFIG_SOURCE = (
    "crossplane-runtime pkg/reconciler/providerconfig: a finalizer while ProviderConfigUsages stand"
)
_OBJECT = Rule(
    _object,
    "provider-kubernetes internal/controller/namespaced/object/object.go (v1.2.1); crossplane-runtime "
    "pkg/reconciler/managed: a deleted one leaves once what it made has, if it may delete at all",
    held=standing.of_object,
    leaves=standing.left_by_object,
    fails={UNSYNCED: _unsynced},
)
_RELEASE = Rule(
    _release,
    "provider-helm pkg/controller/namespaced/release (v1.4.0); the same for deletion",
    held=standing.of_release,
    fails={FAILED: _failed_release, UNSYNCED: _unsynced},
)
_CONFIG = Rule(_silent, _CONFIG_SOURCE, held=standing.of_config)
_CLUSTER_CONFIG = Rule(_silent, _CONFIG_SOURCE, cluster_scoped=True, held=standing.of_config)
_USAGE_SOURCE = (
    "crossplane internal/controller/protection/usage/reconciler.go: a composed one waits for its user"
)

RULES: dict[tuple[str, str], Rule] = {
    # Kinds that stand on the control plane as they do on a cluster: its own gateway and routes.
    **{kind: _plain(rule) for kind, rule in remote.RULES.items()},
    (c.KUBERNETES_API, "Object"): _OBJECT,
    (c.HELM_API, "Release"): _RELEASE,
    (c.KUBERNETES_API, "ProviderConfig"): _CONFIG,
    (c.HELM_API, "ProviderConfig"): _CONFIG,
    (c.KUBERNETES_API, "ClusterProviderConfig"): _CLUSTER_CONFIG,
    (c.HELM_API, "ClusterProviderConfig"): _CLUSTER_CONFIG,
    (c.PROTECTION_API, "Usage"): Rule(_usage, _USAGE_SOURCE, held=standing.of_usage),
    (c.PROTECTION_API, "ClusterUsage"): Rule(
        _usage, _USAGE_SOURCE, cluster_scoped=True, held=standing.of_usage
    ),
    (c.KUBERNETES_API, "ObservedObjectCollection"): Rule(
        collections.report,
        "provider-kubernetes internal/controller/namespaced/observedobjectcollection (v1.2.1)",
    ),
    **{kind: _aws(kind, rule) for kind, rule in aws.RULES.items()},
}
# Passes after which no controller has news of what nobody touches.
SLOWEST = max(2, *(r.after for r in remote.RULES.values()), *(r.after for r in aws.RULES.values()))


def is_leaf(api_version: str, kind: str) -> bool:
    """Tell whether the simulator, not a composer, answers for the kind."""
    return (api_version, kind) in RULES


def cluster_scoped(api_version: str, kind: str) -> bool:
    """Tell whether a kind lives outside namespaces; one that nobody here knows is namespaced."""
    if rule := RULES.get((api_version, kind)):
        return rule.cluster_scoped
    known = definitions.load().get((api_version, kind))
    return known is not None and not known.namespaced


def failure_of(obj: Manifest, world: World) -> Failure | None:
    """Return the first injected failure that hits the object, or None."""
    return next((f for f in world.failures if f.hits(obj)), None)


def act(target: Ref, world: World) -> None:
    """Let the object's controller do what it does in one pass."""
    rule = RULES.get((target.api_version, target.kind))
    if rule is None or target in world.deleting:
        return
    obj = world.objects[target]
    failure = failure_of(obj, world)
    if failure is not None and failure.mode in rule.fails:
        status: Manifest | None = rule.fails[failure.mode](obj, failure.message)
    else:
        if failure is not None:
            _known(obj, rule, failure)
        status = rule.report(obj, world.age(target), world)
    if status is not None:
        world.report(target, status)
        for made in rule.makes(obj):
            if ref(made) not in world.objects:
                world.apply(made)


def _known(obj: Manifest, rule: Rule, failure: Failure) -> None:
    inner = remote.rule_of(reach.carried(obj))
    modes = {**rule.fails, **(inner.fails if inner else {})}
    if failure.mode not in modes:
        known = ", ".join(sorted(modes)) or "no way to fail"
        raise UnknownModeError(f"{ref(obj)} knows {known}, not {failure.mode}")
