"""Invariant 5 on EKS: whatever the flag and the order, nothing leaks and nothing hangs."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable

import pytest

import fleets
from builders import teardown
from modelplane import contracts as c
from modelplane.core import Manifest, paths
from modelplane.sim import aws_deletion, prerequisites
from modelplane.sim.world import Cascade, World

FOLDERS = ("dynamo-l4", "eks-efa")
# More seeds find more: MODELPLANE_SEEDS=1000 before a release.
SEEDS = int(os.environ.get("MODELPLANE_SEEDS", "25"))
CASCADES: tuple[Cascade, ...] = ("background", "foreground")
Change = Callable[[World], None]


@pytest.mark.parametrize("cascade", CASCADES)
@pytest.mark.parametrize("folder", FOLDERS)
def test_a_cluster_leaves_nothing_behind_in_any_order(folder: str, cascade: Cascade) -> None:
    for seed in range(SEEDS):
        world = copy.deepcopy(teardown.emptied(folder))
        passes = teardown.take_down(world, cascade, seed)
        assert teardown.rest(world) == [], f"seed {seed} hangs after {passes} passes: {world.waiting}"
        assert world.leaks == [], f"seed {seed}"


@pytest.mark.parametrize("cascade", CASCADES)
def test_a_cluster_that_is_still_coming_up_leaves_nothing_behind_either(cascade: Cascade) -> None:
    world = World.of([*prerequisites.objects(), *fleets.documents("eks-efa")])
    for number in range(1, 40):
        teardown.step(world)
        if number % 3 == 0 or SEEDS > 25:
            half = copy.deepcopy(world)
            passes = teardown.take_down(half, cascade, number)
            assert teardown.rest(half) == [], f"pass {number} hangs after {passes} passes: {half.waiting}"
            assert half.leaks == [], f"pass {number}"


def _without_usages(world: World) -> None:
    for usage in world.usages():
        if usage["metadata"].get("namespace") == c.SYSTEM_NAMESPACE:
            target = next(r for r, obj in world.objects.items() if obj is usage)
            world.remove(target)


def _with_deletion(world: World) -> None:
    """Let providers delete on its own what goes with its parent at AWS."""
    for target, obj in list(world.objects.items()):
        if target.api_version.endswith("upbound.io/v1beta1"):
            spec = {k: v for k, v in obj["spec"].items() if k != "managementPolicies"}
            world.objects[target] = {**obj, "spec": spec}


def _broken(folder: str, *changes: Change, until: frozenset[str] | None = None) -> set[str]:
    """The edges that are broken by taking a cluster down in some order, after changes to its world.

    With `until`, orders are tried until all of these broke: a rare one needs more than the others.
    """
    found: set[str] = set()
    for seed in range(200 if until else 12):
        if until and found >= until:
            break
        world = copy.deepcopy(teardown.emptied(folder))
        for change in changes:
            change(world)
        teardown.take_down(world, "background", seed, limit=40)
        found |= {leak.rpartition("(edge ")[2].rstrip(")") for leak in world.leaks if "(edge " in leak}
    return found


def test_every_edge_is_held_by_a_usage_or_by_never_deleting_what_goes_with_its_parent() -> None:
    """Without either each edge breaks, so the play above would have seen it."""
    guarded = {edge.name for edge in aws_deletion.EDGES} | {"system"}
    assert _broken("eks-efa", _without_usages, _with_deletion, until=frozenset(guarded)) >= guarded
    # These need no Usage: nobody may delete them.
    by_policy = {"vpc-cni", "pod-identity", "nfs", "access-entry", "access-policy"}
    assert _broken("eks-efa", _without_usages) & {
        e.name for e in aws_deletion.EDGES
    } == guarded - by_policy - {"system"}


def test_without_usages_what_reaches_the_cluster_hangs_on_a_dead_api() -> None:
    hung = False
    for seed in range(6):
        world = copy.deepcopy(teardown.emptied("dynamo-l4"))
        _without_usages(world)
        teardown.take_down(world, "background", seed, limit=60)
        hung = hung or bool(teardown.rest(world))
    assert hung


def test_who_refuses_a_deletion_is_named() -> None:
    world = copy.deepcopy(teardown.emptied("eks-efa"))
    (auth,) = [r for r in world.objects if r.kind == "ClusterAuth"]
    (refused, *_) = world.delete(auth)
    assert "in use by ProviderConfig" in refused
    (cluster,) = [r for r in world.objects if r.kind == "Cluster"]
    users = {line.rpartition("in use by ")[2].partition(" ")[0] for line in world.delete(cluster)}
    assert users == {"ClusterAuth", "NodeGroup"}


def test_only_what_may_not_be_deleted_goes_with_its_parent() -> None:
    """Case C60: in-cluster pieces of ours own nothing outside, so the providers may not delete them."""
    world = teardown.emptied("eks-efa")
    free = [
        paths.text(obj, "metadata", "annotations", c.RESOURCE_NAME_ANNOTATION)
        for obj in world.objects.values()
        if _of_eks_cluster(obj) and not aws_deletion.may_delete(obj) and obj["kind"] in ("Object", "Release")
    ]
    assert sorted(free) == [
        "release-cluster-autoscaler",
        "release-efa-dra-driver",
        "storage-class-ebs",
        "storage-class-rwx-efs",
    ]


def _of_eks_cluster(obj: Manifest) -> bool:
    return paths.labels(obj).get(c.COMPOSITE_LABEL) == "eks-efa"
