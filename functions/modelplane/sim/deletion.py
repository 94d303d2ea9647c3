"""What Kubernetes does to deleted objects in one pass: garbage collection, finalizers, replayed deletions.

Crossplane runs no function on deletion and orders nothing: all order comes from Usages and finalizers.
kubernetes.io/docs/concepts/architecture/garbage-collection
"""

from modelplane.core import Manifest, paths
from modelplane.sim import rules
from modelplane.sim.remote import condition
from modelplane.sim.world import Cascade, Ref, World, end_of, ref


def advance(world: World) -> None:
    """Collect what lost its owner, let go what nothing holds, and say of the rest what does."""
    refused = _collect(world)
    for target in world.turn(world.deleting):
        if target not in world.deleting:
            continue
        if why := _held(target, world):
            world.waiting[target] = why
            _deleting(target, why, world)
        else:
            _leave(target, world)
    for target in [t for t in world.waiting if t not in world.deleting]:
        del world.waiting[target]
    world.waiting.update({t: why for t, why in refused.items() if t in world.objects})
    for target, cascade in list(world.replays.items()):
        if not world.users(target):
            del world.replays[target]
            world.delete(target, cascade)


def blocked(world: World) -> list[str]:
    """Return what cannot go and by whom it is held, one line each, in order."""
    return [f"{target}: {why}" for target, why in sorted(world.waiting.items()) if target in world.objects]


def _collect(world: World) -> dict[Ref, str]:
    """Delete the children of owners that have left or wait for them; return what a Usage refused."""
    refused: dict[Ref, str] = {}
    for owner, children in sorted(world.children.items()):
        foreground = world.deleting.get(owner) == "foreground"
        if owner in world.objects and not foreground:
            continue
        cascade: Cascade = "foreground" if foreground else "background"
        for child in world.turn(children.values()):
            if child in world.deleting:
                continue
            if users := world.delete(child, cascade):
                refused[child] = f"protected by {users[0]}"
                # The collector tries again by itself: nothing is left to replay.
                world.replays.pop(child, None)
    for usage in world.usages():
        # A Usage is owned by its user, so it is collected after it.
        if end_of(usage, "by") in world.gone and ref(usage) not in world.deleting:
            world.delete(ref(usage))
    return refused


def _held(target: Ref, world: World) -> str:
    if world.deleting[target] == "foreground":
        for _, child in sorted(world.children.get(target, {}).items()):
            if child in world.objects:
                return f"waits for its {child}"
    rule = rules.RULES.get((target.api_version, target.kind))
    return rule.held(world.objects[target], world) if rule else ""


def _leave(target: Ref, world: World) -> None:
    obj = world.objects[target]
    rule = rules.RULES.get((target.api_version, target.kind))
    if rule is not None:
        if leak := rule.leaves(obj, world):
            world.leaks.append(leak)
        for made in rule.makes(obj):
            if ref(made) in world.objects:
                world.remove(ref(made))
    world.remove(target)


def _deleting(target: Ref, why: str, world: World) -> None:
    """Let the provider say that it is deleting, and what hinders it."""
    obj = world.objects[target]
    if rules.is_leaf(target.api_version, target.kind) and "status" in obj:
        world.report(target, deleting(obj, why))


def deleting(obj: Manifest, why: str) -> Manifest:
    """Return the status of a deleted object that something holds."""
    kept = {k: v for k, v in paths.mapping(obj, "status").items() if k != "conditions"}
    states: list[Manifest] = [
        condition("Ready", "Deleting", true=False),
        condition("Synced", "ReconcileError", why, true=False),
    ]
    return {**kept, "conditions": states}
