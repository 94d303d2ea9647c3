"""One reconcile of one composite, in the order Crossplane's core does it.

Observe, call the function until its requirements settle, delete what is no longer desired, apply the rest,
write the status, set the conditions (crossplane internal/controller/apiextensions/composite, v2.3). What core
takes for an error of the whole composition leaves the status and Ready as they were.
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
# How a schema check words what server-side apply calls "field not declared in schema".
UNDECLARED = "unknown field"
_CORE_CONDITIONS = {"Ready", "Synced"}
_UNDETERMINED = "A fatal error occurred before the status of this condition could be determined."


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
        warnings: what core did otherwise than it was asked, for people.
    """

    target: Ref
    answer: Answer | None
    calls: int
    refused: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


def reconcile(world: World, target: Ref, function: Function, admit: Admission) -> Report:
    """Reconcile a composite once and return what came of it."""
    reply, calls = _call(world, target, function)
    if reply.answer is None:
        _failed(world, target, reply.fatal)
        return Report(target, None, calls, {"": reply.fatal})
    answer, warnings = reply.answer, _moved(target, reply.answer)
    refused = _delete(world, target, answer) or _apply(world, target, answer, admit)
    if "" not in refused and (why := _status(world, target, answer, admit)):
        refused[""] = why
    if stopped := refused.get(""):
        _failed(world, target, stopped)
    else:
        _ready(world, target, answer, refused)
    return Report(target, answer, calls, refused, warnings)


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
    why = f"requirements didn't stabilize after the maximum number of iterations ({MAX_CALLS - 1})"
    return Reply(fatal=why), MAX_CALLS


def _delete(world: World, target: Ref, answer: Answer) -> dict[str, str]:
    """Delete what is no longer desired; one refusal is an error of the whole composition."""
    refused: dict[str, str] = {}
    for key, child in sorted(world.children.get(target, {}).items()):
        if key in answer.resources or child not in world.objects:
            continue
        if users := world.delete(child, "foreground"):
            refused[key] = f"{child} cannot go: {users[0]}"
    return {**refused, "": next(iter(refused.values()))} if refused else {}


def _apply(world: World, target: Ref, answer: Answer, admit: Admission) -> dict[str, str]:
    refused: dict[str, str] = {}
    for key, composed in answer.resources.items():
        manifest = _composed(world, target, key, composed.manifest)
        if why := _misplaced(target, manifest):
            # Core stops the whole reconcile here; nothing after this key is applied.
            return {**refused, "": f"{key}: {why}"}
        admitted, problems = admit(manifest, world.objects.get(ref(manifest)))
        if undeclared := next((p for p in problems if UNDECLARED in p), ""):
            # Server-side apply fails before validation, which core does not take for an invalid resource.
            return {**refused, "": f"{key}: {ref(manifest)}: {undeclared}"}
        if problems:
            refused[key] = f"{ref(manifest)} refused: {problems[0]}"
            continue
        owner = world.owner(ref(admitted))
        if owner is not None and owner != (target, key):
            refused[key] = f"{ref(admitted)} is already composed by {owner[0]}"
            continue
        world.adopt(target, key, world.apply(admitted))
    return refused


def _composed(world: World, target: Ref, key: str, manifest: Manifest) -> Manifest:
    metadata = dict(manifest.get("metadata", {}))
    scoped = rules.cluster_scoped(paths.text(manifest, "apiVersion"), paths.text(manifest, "kind"))
    if target.namespace and not scoped:
        metadata["namespace"] = target.namespace
    standing = world.children.get(target, {}).get(key)
    if standing in world.objects and standing is not None:
        # Once observed, name and namespace of a key are pinned, whatever the function says.
        metadata["name"] = standing.name
        if standing.namespace:
            metadata["namespace"] = standing.namespace
    metadata["name"] = metadata.get("name") or names.child(target.name, key)
    metadata["labels"] = {**metadata.get("labels", {}), c.COMPOSITE_LABEL: target.name}
    metadata["annotations"] = {**metadata.get("annotations", {}), c.RESOURCE_NAME_ANNOTATION: key}
    return {**manifest, "metadata": metadata}


def _moved(target: Ref, answer: Answer) -> tuple[str, ...]:
    """Return a warning per resource that core puts into the composite's own namespace instead."""
    if not target.namespace:
        return ()
    asked = {key: paths.namespace(x.manifest) for key, x in answer.resources.items()}
    return tuple(
        f"{key}: namespace {space} is ignored: a composite in {target.namespace} composes there only"
        for key, space in asked.items()
        if space and space != target.namespace
    )


def _misplaced(target: Ref, manifest: Manifest) -> str:
    """Return why core refuses where an object would live; the rules users meet first (crossplane#6361)."""
    made = ref(manifest)
    scoped = rules.cluster_scoped(made.api_version, made.kind)
    if target.namespace and scoped:
        return f"a namespaced composite cannot compose the cluster-scoped {made.kind}"
    if not target.namespace and not scoped and not made.namespace:
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
    # What a function says of the composite supersedes what its resources say, either way (crossplane,
    # internal/controller/apiextensions/composite/reconciler.go, CompositionResult.Ready).
    ready = not waiting if answer.ready is None else answer.ready
    if waiting and answer.ready is None:
        message = f"Unready resources: {', '.join(waiting)}"
        state = _condition("Ready", "Creating", message, true=False)
    else:
        state = _condition("Ready", "Available" if ready else "Creating", true=ready)
    why = next(iter(refused.values()), "")
    synced = _condition("Synced", "ReconcileError" if why else "ReconcileSuccess", why, true=not why)
    _conditions(world, target, answer.conditions, state, synced)


def _failed(world: World, target: Ref, why: str) -> None:
    """Mark a composition that ended in an error: conditions of ours become Unknown, Ready stays as it was."""
    found = paths.mappings(world.objects[target], "status", "conditions")
    ours = [
        Condition(str(x.get("type")), None, "FatalError", _UNDETERMINED)
        for x in found
        if x.get("type") not in _CORE_CONDITIONS
    ]
    _conditions(world, target, ours, _condition("Synced", "ReconcileError", why, true=False))


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
