"""Why a deleted leaf still stands: what its provider or controller waits for, or cannot do."""

from modelplane import contracts as c
from modelplane.core import Manifest, paths
from modelplane.sim import reach, remote
from modelplane.sim.world import World, end_of, ref


def of_object(obj: Manifest, world: World) -> str:
    """Say what keeps an Object: the API out of reach, or what holds the object it carries."""
    if not _may_delete(obj):
        return ""
    if why := reach.unreachable(obj, world):
        return why
    manifest = reach.carried(obj)
    rule = remote.rule_of(manifest)
    if rule is None:
        return ""
    what = f"{manifest['kind']} {paths.name(manifest)}"
    cluster = reach.kubeconfig(obj, world)
    others = [
        reach.carried(other)
        for other in reach.consumers(world, cluster)
        if other is not obj and other["kind"] == "Object"
    ]
    if why := rule.held(manifest, others):
        return f"{what}: {why}"
    if rule.finalizer and _controller_left(rule, world, cluster):
        return f"{what}: nobody serves its finalizer {rule.finalizer} since {rule.controller} has left"
    return ""


def left_by_object(obj: Manifest, world: World) -> str:
    """Say what an Object leaves on its cluster for good: what only a controller that has left cleans up."""
    manifest = reach.carried(obj)
    rule = remote.rule_of(manifest)
    if rule is None or not rule.leaves or not _may_delete(obj):
        return ""
    if not _controller_left(rule, world, reach.kubeconfig(obj, world)):
        return ""
    return f"{manifest['kind']} {paths.name(manifest)} left {rule.leaves}: {rule.controller} had left before"


def of_release(obj: Manifest, world: World) -> str:
    """Say what keeps a Release: only the API out of reach; Helm asks nobody whether a chart is used."""
    return reach.unreachable(obj, world) if _may_delete(obj) else ""


def of_config(config: Manifest, world: World) -> str:
    """Say which Object or Release still names a provider config."""
    target = ref(config)
    for kind in ("Object", "Release"):
        for obj in world.of_kind(target.api_version, kind):
            if reach.config_of(obj) == target:
                return f"in use by {ref(obj)}"
    return ""


def of_usage(usage: Manifest, world: World) -> str:
    """Say whether a composed Usage waits for its user; one that a person made goes at once."""
    by = end_of(usage, "by")
    composed = c.COMPOSITE_LABEL in paths.labels(usage)
    return f"waits for {by} to be deleted" if composed and by in world.objects else ""


def reached_by(world: World, cluster: reach.Kubeconfig) -> str:
    """Say what still has to reach a cluster before it may go."""
    for obj in reach.consumers(world, cluster):
        if _may_delete(obj):
            return f"{ref(obj)} still has to reach it"
    return ""


def _may_delete(obj: Manifest) -> bool:
    policies = paths.items(obj, "spec", "managementPolicies") or ["*"]
    return "*" in policies or "Delete" in policies


def _controller_left(rule: remote.RemoteRule, world: World, cluster: reach.Kubeconfig) -> bool:
    """Tell whether a controller was here and is not: one that was never ours is taken to be there."""
    return reach.charts(world, cluster).get(rule.controller) is False
