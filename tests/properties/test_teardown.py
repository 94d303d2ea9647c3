"""Invariant 5, ends cleanly: every example fleet, deleted in the played world in both ways."""

from __future__ import annotations

import pytest

import fleets
from modelplane import contracts as c
from modelplane.core import paths
from modelplane.sim import deletion
from modelplane.sim.play import Pass
from modelplane.sim.world import Cascade, Ref, World, end_of, ref

FLEETS = fleets.FLEETS
SERVING = [f for f in FLEETS if fleets.has(f, "ModelDeployment")]
TEAMS = {"ModelService", "ModelDeployment", "ModelCache"}
PLATFORM = {"InferenceCluster", "InferenceGateway"}
CASCADES: list[Cascade] = ["background", "foreground"]


def _fleet(folder: str) -> World:
    return fleets.played(folder).world.copy()


def _delete(world: World, kinds: set[str], cascade: Cascade) -> list[Pass]:
    """Delete all roots of these kinds, as `kubectl delete -f` does; what is refused is replayed."""
    for root in [r for r in world.objects if r.kind in kinds]:
        world.delete(root, cascade)
    return [done for done, _ in fleets.play([], world).passes]


def _orders(passes: list[Pass], usages: dict[Ref, tuple[Ref, Ref]]) -> list[str]:
    """Each protected object that left before its user, where both left."""
    left = {target: done.number for done in passes for target in done.gone}
    return [
        f"{of} left in pass {left[of]}, its user {by} in {left[by]}"
        for of, by in usages.values()
        if of in left and by in left and left[of] < left[by]
    ]


def _usages(world: World) -> dict[Ref, tuple[Ref, Ref]]:
    return {ref(u): (end_of(u, "of"), end_of(u, "by")) for u in world.usages() if "by" in u["spec"]}


@pytest.mark.parametrize("cascade", CASCADES)
@pytest.mark.parametrize("folder", FLEETS)
def test_a_deleted_fleet_leaves_nothing_behind_in_an_order_no_usage_forbids(
    folder: str, cascade: Cascade
) -> None:
    world = _fleet(folder)
    usages = _usages(world)
    passes = _delete(world, TEAMS, cascade)
    passes += _delete(world, PLATFORM, cascade)
    given = {r for r in world.objects if r.kind in {"InferenceClass", "CustomResourceDefinition"}}
    assert deletion.blocked(world) == []
    assert world.leaks == []
    assert world.objects.keys() - given == set()
    assert _orders(passes, usages) == []


@pytest.mark.parametrize("cascade", CASCADES)
@pytest.mark.parametrize("folder", FLEETS)
def test_a_deleted_deployment_takes_its_own_and_nothing_of_the_cluster(folder: str, cascade: Cascade) -> None:
    world = _fleet(folder)
    cluster = {
        r
        for r, o in world.objects.items()
        if r.namespace == c.SYSTEM_NAMESPACE
        and "Usage" not in r.kind
        # A team's namespace goes with what it last ran there.
        and c.NAMESPACE_LABEL not in paths.labels(o)
    }
    _delete(world, {"ModelDeployment"}, cascade)
    assert [r for r in world.objects if r.kind in {"ModelReplica", "ModelEndpoint"}] == []
    missing = cluster - world.objects.keys()
    assert missing == set()
    assert deletion.blocked(world) == []


@pytest.mark.parametrize("cascade", CASCADES)
@pytest.mark.parametrize("folder", SERVING)
def test_a_busy_cluster_refuses_and_goes_by_itself_when_its_last_user_has_left(
    folder: str, cascade: Cascade
) -> None:
    world = _fleet(folder)
    (cluster,) = [r for r in world.objects if r.kind == "InferenceCluster"]
    (refusal,) = world.delete(cluster, cascade)
    assert "ModelReplicas or ModelCacheReplicas use this cluster" in refusal
    fleets.play([], world)
    assert cluster in world.objects
    _delete(world, TEAMS, cascade)
    assert cluster not in world.objects
    assert world.leaks == []


@pytest.mark.parametrize("folder", FLEETS)
def test_without_its_usages_a_fleet_would_hang_or_leak_and_say_so(folder: str) -> None:
    """The order is the Usages' doing: else the tests above would prove nothing."""
    world = _fleet(folder)
    _delete(world, TEAMS, "background")
    for usage in list(_usages(world)):
        world.remove(usage)
    (cluster,) = [r for r in world.objects if r.kind == "InferenceCluster"]
    # The stack's composite first, so that nothing makes the Usages anew.
    for target in [cluster, *(r for r in world.objects if r.kind == "ServingStack")]:
        world.delete(target)
    installed = any(r.kind == "Release" for r in world.objects)
    fleets.play([], world)
    # Where all controllers are somebody else's, none of ours can leave too early.
    assert bool([*deletion.blocked(world), *world.leaks]) == installed
