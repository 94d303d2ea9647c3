"""One reconcile of one composite, in the order Crossplane's core does it.

Observe, call the function until its requirements settle, delete what is no longer desired, apply the rest,
write the status, set the conditions (crossplane internal/controller/apiextensions/composite, v2.3).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from modelplane import contracts as c
from modelplane import names
from modelplane.core import Answer, Condition, Inputs, Manifest, Requirement, paths
from modelplane.sim import rules
from modelplane.sim.world import EPOCH, Ref, World, ref

# Core calls once, then at most five times more for requirements that keep changing.
MAX_CALLS = 6


@dataclass(frozen=True, slots=True)
class Reply:
    """What the function answers: its requirements, and its answer once they are all fetched."""

    requirements: Sequence[Requirement] = ()
    answer: Answer | None = None
    fatal: str = ""


Function = Callable[[Inputs], Reply]
# Defaults a document and lists why an API server would refuse it; the old one is there on update.
Admission = Callable[[Manifest, Manifest | None], tuple[Manifest, Sequence[str]]]


@dataclass(frozen=True, slots=True)
class Report:
    """What came of one reconcile.

    Attributes:
        target: the composite.
        answer: the settled answer; None after a fatal result.
        calls: how often the function was called.
        refused: why core or the API server refused a resource, by key; key "" stops the whole reconcile.
    """

    target: Ref
    answer: Answer | None
    calls: int
    refused: Mapping[str, str] = field(default_factory=dict)


def reconcile(world: World, target: Ref, function: Function, admit: Admission) -> Report:
    """Reconcile a composite once and return what came of it."""
    reply, calls = _call(world, target, function)
    if reply.answer is None:
        _conditions(world, target, [], _condition("Synced", "ReconcileError", reply.fatal, true=False))
        return Report(target, None, calls, {"": reply.fatal})
    refused = _apply(world, target, reply.answer, admit)
    if why := _status(world, target, reply.answer, admit):
        refused[""] = why
    _ready(world, target, reply.answer, refused)
    return Report(target, reply.answer, calls, refused)


def _call(world: World, target: Ref, function: Function) -> tuple[Reply, int]:
    xr, observed = world.objects[target], world.observed(target)
    required: dict[str, Sequence[Manifest]] = {}
    before: Sequence[Requirement] | None = None
    for calls in range(1, MAX_CALLS + 1):
        reply = function(Inputs(xr, observed, required))
        if reply.fatal or reply.requirements == before or not reply.requirements:
            return reply, calls
        before = reply.requirements
        required = {r.name: world.fetch(r) for r in reply.requirements}
    return Reply(fatal=f"requirements did not settle in {MAX_CALLS} calls"), MAX_CALLS


def _apply(world: World, target: Ref, answer: Answer, admit: Admission) -> dict[str, str]:
    refused: dict[str, str] = {}
    for key, child in sorted(world.children.get(target, {}).items()):
        if key in answer.resources or child not in world.objects:
            continue
        if users := world.delete(child):
            refused[key] = f"{child} cannot go: {users[0]}"
        else:
            del world.children[target][key]
    for key, composed in answer.resources.items():
        manifest = _composed(target, key, composed.manifest)
        if why := _misplaced(target, manifest):
            # Core stops the whole reconcile here; nothing after this key is applied.
            return {**refused, "": f"{key}: {why}"}
        admitted, problems = admit(manifest, world.objects.get(ref(manifest)))
        if problems:
            refused[key] = f"{ref(manifest)} refused: {problems[0]}"
            continue
        owner = _owner(world, ref(admitted))
        if owner not in (None, (target, key)):
            refused[key] = f"{ref(admitted)} is already composed by {owner[0]}" if owner else ""
            continue
        world.adopt(target, key, world.apply(admitted))
    return refused


def _owner(world: World, child: Ref) -> tuple[Ref, str] | None:
    for owner, children in world.children.items():
        for key, found in children.items():
            if found == child and child in world.objects:
                return owner, key
    return None


def _composed(target: Ref, key: str, manifest: Manifest) -> Manifest:
    metadata = dict(manifest.get("metadata", {}))
    scoped = rules.cluster_scoped(paths.text(manifest, "apiVersion"), paths.text(manifest, "kind"))
    if target.namespace and not scoped:
        metadata.setdefault("namespace", target.namespace)
    metadata["name"] = metadata.get("name") or names.child(target.name, key)
    metadata["labels"] = {**metadata.get("labels", {}), c.COMPOSITE_LABEL: target.name}
    metadata["annotations"] = {**metadata.get("annotations", {}), c.RESOURCE_NAME_ANNOTATION: key}
    return {**manifest, "metadata": metadata}


def _misplaced(target: Ref, manifest: Manifest) -> str:
    """Return why core refuses where an object would live; the rules users meet first (crossplane#6361)."""
    made = ref(manifest)
    scoped = rules.cluster_scoped(made.api_version, made.kind)
    if target.namespace and scoped:
        return f"a namespaced composite cannot compose the cluster-scoped {made.kind}"
    if target.namespace and made.namespace != target.namespace:
        return f"{made} is outside the composite's namespace {target.namespace}"
    if (
        not target.namespace
        and not scoped
        and not made.namespace
        and not made.api_version.startswith(c.GROUP)
    ):
        return f"{made.kind} needs a namespace"
    return ""


def _status(world: World, target: Ref, answer: Answer, admit: Admission) -> str:
    xr = world.objects[target]
    status = {**answer.status, "conditions": paths.items(xr, "status", "conditions")}
    _, problems = admit({**xr, "status": status}, xr)
    if problems:
        return f"status refused: {problems[0]}"
    world.report(target, status)
    return ""


def _ready(world: World, target: Ref, answer: Answer, refused: Mapping[str, str]) -> None:
    waiting = [key for key, composed in answer.resources.items() if not composed.ready]
    ready = answer.ready if answer.ready is not None else not waiting
    if waiting and not ready:
        message = f"Unready resources: {', '.join(waiting)}"
        state = _condition("Ready", "Creating", message, true=False)
    else:
        state = _condition("Ready", "Available" if ready else "Creating", true=ready)
    why = refused.get("") or next(iter(refused.values()), "")
    synced = _condition("Synced", "ReconcileError" if why else "ReconcileSuccess", why, true=not why)
    _conditions(world, target, answer.conditions, state, synced)


def _conditions(world: World, target: Ref, ours: Sequence[Condition], *core: Manifest) -> None:
    """Merge conditions by type, as core does: one that is not sent keeps its last value."""
    xr = world.objects[target]
    known = {str(x.get("type")): dict(x) for x in paths.mappings(xr, "status", "conditions")}
    words = {True: "True", False: "False", None: "Unknown"}
    for condition in ours:
        known[condition.type] = {
            "type": condition.type,
            "status": words[condition.status],
            "reason": condition.reason,
            **({"message": condition.message} if condition.message else {}),
        }
    known.update({x["type"]: x for x in core})
    timed = [{**known[k], "lastTransitionTime": EPOCH} for k in sorted(known)]
    world.report(target, {**paths.mapping(xr, "status"), "conditions": timed})


def _condition(type_: str, reason: str, message: str = "", *, true: bool) -> Manifest:
    found: dict[str, Any] = {"type": type_, "status": "True" if true else "False", "reason": reason}
    return {**found, "message": message} if message else found
