"""From a Plan to an Answer: the rules every kind obeys, applied once.

Creation gates, readiness, Usages, what is kept, and the completeness of conditions. Pure: the shell writes
the Answer into a response, the renderer prints it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from modelplane import contracts as c
from modelplane.core import keep, leaving, paths, refused, usages
from modelplane.core.inputs import Inputs, Kind
from modelplane.core.paths import Manifest
from modelplane.core.plan import Condition, Desired, Event, Hold, Plan, PlanError, Waiting

# Seconds after which one that waits looks again at what core does not watch for it. News of a cluster reach
# a model's address through six composites that wait for each other; a minute for each was most of the time
# from apply to Ready.
WAITING_SECONDS = 15
# What core's webhook writes on an object whose deletion a Usage has refused (checked on core 2.3.4).
DELETION_REFUSED = "usage.crossplane.io/deletion-attempt-with-policy"
_STATUS = {"True": True, "False": False}


@dataclass(frozen=True, slots=True)
class Composed:
    """One resource of the answer: what to apply, and whether it is ready."""

    manifest: Manifest
    ready: bool


@dataclass(frozen=True, slots=True)
class Answer:
    """What Crossplane is told about one composite.

    Attributes:
        resources: by composition resource name, in sorted order.
        held_back: keys not composed yet, with the reason.
        status: the composite's status.
        conditions: all of the kind's condition types.
        events: for people.
        ready: whether the composite counts as ready; None leaves it to its resources.
        ttl: seconds after which Crossplane asks again; 0: never.
    """

    resources: Mapping[str, Composed] = field(default_factory=dict)
    held_back: Mapping[str, str] = field(default_factory=dict)
    status: Mapping[str, Any] = field(default_factory=dict)
    conditions: Sequence[Condition] = ()
    events: Sequence[Event] = ()
    ready: bool | None = None
    ttl: int = 0


def compose(kind: Kind, inputs: Inputs) -> Answer:
    """Run the kind's composer and settle its Plan; a `Hold` keeps everything that runs."""
    try:
        plan = kind.compose(inputs)
    except Hold as hold:
        plan = held(kind, inputs, hold)
    return settle(kind, plan, inputs)


def held(kind: Kind, inputs: Inputs, hold: Hold) -> Plan:
    """Return the Plan that keeps all that is observed and says why.

    Conditions other than the hold's keep their last value: they were true of what still runs.
    """
    if hold.condition not in kind.conditions:
        raise PlanError(f"{kind.kind} holds on {hold.condition}, which is not one of its conditions")
    conditions = [
        Condition(type_, False, hold.reason, hold.message)
        if type_ == hold.condition
        else _last(inputs.composite, type_)
        for type_ in kind.conditions
    ]
    return Plan(
        status=keep.kept_status(inputs.composite),
        conditions=conditions,
        events=[Event(hold.message, warning=True)],
        keep_all=True,
        ready=False,
    )


def settle(kind: Kind, plan: Plan, inputs: Inputs) -> Answer:
    """Apply gates, readiness, Usages and keeping to a Plan."""
    rules = {r.key: r.ready for r in plan.resources if isinstance(r, Desired)}
    ready_now = {
        key: rules[key].holds(seen) if key in rules else _kept_ready(seen)
        for key, seen in inputs.observed.items()
    }
    held_back: dict[str, str] = {}
    desired: list[Desired] = []
    for resource in plan.resources:
        if resource.key not in inputs.observed and (why := _closed(resource, ready_now)):
            held_back[resource.key] = why
        elif isinstance(resource, Desired):
            desired.append(resource)
    kept = _kept(plan, inputs)
    orders, unclear = _usages(inputs, desired, kept)
    desired += orders
    emitted = {r.key: Composed(r.manifest, r.ready.holds(inputs.observed.get(r.key))) for r in desired}
    standing = usages.standing(inputs.observed, kept.values(), _manifests(desired, kept).values())
    for key in [*kept, *unclear, *standing]:
        seen = inputs.observed[key]
        emitted.setdefault(key, Composed(keep.kept(seen), _kept_ready(seen)))
    # What leaves takes nothing from what is wanted, so it always counts as ready.
    last = leaving.leaving(inputs.observed, emitted, plan.unused)
    emitted |= {k: Composed(manifest, ready=True) for k, manifest in last.items()}
    conditions = refused.tell(_complete(kind, plan), kind.working, inputs.observed, emitted)
    return Answer(
        resources=dict(sorted(emitted.items())),
        held_back=dict(sorted(held_back.items())),
        status=plan.status,
        conditions=conditions,
        events=plan.events,
        ready=plan.ready if plan.ready is not None else (False if held_back else None),
        ttl=patience(kind, inputs.composite, conditions, told=_told(plan)),
    )


def patience(kind: Kind, composite: Mapping[str, Any], conditions: Sequence[Condition], *, told: bool) -> int:
    """Return the seconds after which to ask again: soon for one that waits, or that somebody wants gone.

    A model that loads for half an hour waits too, but for what it composed: `told` says that nothing else is
    missing, and its kind's `watched` which conditions that excuses. A Usage that refused a deletion lets go
    once nobody needs the object any more, and who needs it is required, not composed.
    """
    wanted_gone = DELETION_REFUSED in paths.mapping(composite, "metadata", "annotations")
    excused = kind.watched if told else frozenset()
    rests = all(x.status or (x.status is False and x.type in excused) for x in conditions)
    return kind.ttl if rests and not wanted_gone else min(kind.ttl, WAITING_SECONDS)


def _told(plan: Plan) -> bool:
    """Tell whether all that is missing is composed, or comes after what is."""
    blocked = any(isinstance(r, Waiting) or r.blocked for r in plan.resources)
    return bool(plan.resources) and not plan.keep_all and not blocked


def _closed(resource: Desired | Waiting, ready_now: Mapping[str, bool]) -> str:
    if isinstance(resource, Waiting):
        return resource.needs or "waiting for a value that nobody has reported yet"
    if resource.blocked:
        return resource.blocked
    missing = [key for key in resource.after if not ready_now.get(key, False)]
    return f"waiting for {', '.join(missing)}" if missing else ""


def _kept(plan: Plan, inputs: Inputs) -> dict[str, Manifest]:
    """Return what is sent back as observed: what waits, and what the plan keeps without building it."""
    built = {r.key for r in plan.resources if isinstance(r, Desired)}
    keys = plan.keep | {r.key for r in plan.resources if isinstance(r, Waiting)}
    return {
        key: seen
        for key, seen in inputs.observed.items()
        if key not in built and (plan.keep_all or key in keys)
    }


def _manifests(desired: Sequence[Desired], kept: Mapping[str, Manifest]) -> dict[str, Manifest]:
    return {**kept, **{r.key: r.manifest for r in desired}}


def _usages(
    inputs: Inputs, desired: Sequence[Desired], kept: Mapping[str, Manifest]
) -> tuple[list[Desired], list[str]]:
    """One Usage per edge whose both ends are composed: a Usage by something absent errors for ever.

    Also the keys of Usages to keep as observed: what is kept may be unreadable, and then has no new one.
    """
    manifests = _manifests(desired, kept)
    found, unclear = [], []
    for edge in usages.edges(desired, manifests, inputs.namespace):
        if all(usages.identified(manifests[key]) for key in edge):
            found.append(usages.usage(inputs.name, inputs.namespace, edge, manifests))
        elif (key := usages.usage_key(edge)) in inputs.observed:
            unclear.append(key)
    if taken := {u.key for u in found} & {r.key for r in desired}:
        raise PlanError(f"{', '.join(sorted(taken))} is the key of a Usage: the plan may not use it")
    return found, unclear


def _kept_ready(observed: Mapping[str, Any]) -> bool:
    # Without its rule only the object itself can say: one that has a Ready condition is judged by it.
    return paths.is_true(observed, c.READY) if paths.condition(observed, c.READY) else True


def _complete(kind: Kind, plan: Plan) -> list[Condition]:
    given = {x.type: x for x in plan.conditions}
    if unknown := given.keys() - set(kind.conditions):
        raise PlanError(f"{kind.kind} does not declare condition {', '.join(sorted(unknown))}")
    # Crossplane keeps the last value of a condition a function stops returning, for ever: always send all.
    return [given.get(t, Condition(t, None, c.REASON_UNDETERMINED)) for t in kind.conditions]


def _last(composite: Manifest, type_: str) -> Condition:
    found = paths.condition(composite, type_)
    reason = paths.text(found, "reason") or c.REASON_UNDETERMINED
    message = refused.without(paths.text(found, "message"))
    return Condition(type_, _STATUS.get(str(found.get("status"))), reason, message)
