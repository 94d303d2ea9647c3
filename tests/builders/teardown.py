"""Taking a played fleet down: users first, then a cluster, in an order that nobody can foresee."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterable
from functools import cache

import fleets
from modelplane import contracts as c
from modelplane.kinds.registry import KINDS
from modelplane.render.run import admit
from modelplane.sim import deletion
from modelplane.sim.play import one_pass
from modelplane.sim.world import Cascade, Ref, World

USERS = (("ModelService", "ModelDeployment"), ("ModelCache",))


@cache
def emptied(folder: str) -> World:
    """An example's world at rest, without the models of its teams; shared, so never write to it."""
    world = copy.deepcopy(fleets.play(fleets.documents(folder)).world)
    for kinds in USERS:
        for target in [r for r in world.objects if r.kind in kinds]:
            world.delete(target)
        for _ in range(25):
            step(world)
    return world


def step(world: World) -> None:
    one_pass(world, set(KINDS), fleets.real_function(), admit)


def at_random(seed: int) -> Callable[[Iterable[Ref]], list[Ref]]:
    """A turn that takes a random part of what there is, in a random order."""
    dice = random.Random(seed)

    def turn(found: Iterable[Ref]) -> list[Ref]:
        mixed = sorted(found)
        dice.shuffle(mixed)
        return [target for target in mixed if dice.random() < 0.7]

    return turn


def take_down(world: World, cascade: Cascade, seed: int, limit: int = 400) -> int:
    """Delete the cluster and play until nothing of it is left; the passes it took, or `limit`.

    Nothing is composed meanwhile: what is being deleted is not reconciled, and the rest has no part in it.
    """
    world.turn = at_random(seed)
    (cluster,) = [r for r in world.objects if r.kind == "InferenceCluster"]
    assert world.delete(cluster, cascade) == []
    for number in range(limit):
        if not rest(world):
            return number
        world.passes += 1
        deletion.advance(world)
    return limit


def rest(world: World) -> list[Ref]:
    """What of a cluster is left on the control plane; the fleet's own gateway is not part of one."""
    return [
        r
        for r in world.objects
        if r.kind == "InferenceCluster"
        or (
            r.namespace == c.SYSTEM_NAMESPACE
            and world.objects[r]["metadata"].get("labels", {}).get(c.COMPOSITE_LABEL) != "default"
            and r.name != c.IN_CLUSTER_CONFIG
        )
    ]
