"""A serving stack's whole life in the played world: installed, stopped at any pass, moved, and taken down."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest

import fleets
from builders import stacks
from modelplane import contracts as c
from modelplane.core import paths
from modelplane.facts import versions
from modelplane.render.run import Rendering
from modelplane.sim import deletion, prerequisites
from modelplane.sim.world import Cascade, Ref, World

CASCADES: list[Cascade] = ["background", "foreground"]
SHAPES = [
    (stack, provided)
    for stack, provided in itertools.product((c.STANDARD, c.DYNAMO), (c.MANAGED, c.PROVIDED))
]
NEXT = "2999.01"
STACK = Ref(c.INFRA_API, "ServingStack", c.SYSTEM_NAMESPACE, "north-stack")
IMAGES = {"mirror": "registry.example.org/m", "pullSecretRef": {"name": "login"}}


@pytest.fixture
def releases(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second release, in which every version is another."""
    old = versions.newest()
    pins = {key: replace(pin, version=f"{pin.version}-next") for key, pin in old.pins.items()}
    newer = versions.Release(NEXT, "2999-01-01", "1.34", "1.40", pins)
    monkeypatch.setattr(versions, "releases", lambda: {old.name: old, NEXT: newer})


def begun(passes: int, **spec: Any) -> World:
    """A world in which a stack has been reconciled that often; at most until nothing changes."""
    # The release is named: the second one of a test must not be a new stack's.
    release = next(iter(versions.releases()))
    composite = stacks.stack(images=IMAGES, stackRelease=release, **spec)
    world = World.of([*prerequisites.objects(), stacks.LOGIN, composite])
    play(world, passes)
    return world


def play(world: World, passes: int = 60) -> list[Any]:
    work = Rendering(world, recurse=True, function=fleets.real_function())
    return [done for _, (done, _) in zip(range(passes), work.passes(), strict=False)]


def ask(world: World, release: str) -> None:
    stack = world.objects[STACK]
    world.apply({**stack, "spec": {**stack["spec"], "stackRelease": release}})


def gone(world: World, cascade: Cascade) -> None:
    world.delete(STACK, cascade)
    play(world)
    assert deletion.blocked(world) == []
    assert world.leaks == []
    given = {r for r in world.objects if r.kind in {"CustomResourceDefinition", "Secret"}}
    assert world.objects.keys() - given == set()


@pytest.mark.parametrize("cascade", CASCADES)
@pytest.mark.parametrize(("stack", "provided"), SHAPES)
@pytest.mark.parametrize("passes", [1, 2, 4, 8, 60])
def test_a_stack_that_is_deleted_at_any_pass_goes_without_a_trace(
    stack: str, provided: str, cascade: Cascade, passes: int
) -> None:
    gone(begun(passes, stack=stack, provided=provided), cascade)


@pytest.mark.parametrize("cascade", CASCADES)
@pytest.mark.parametrize("stack", [c.STANDARD, c.DYNAMO])
@pytest.mark.parametrize("passes", [1, 4, 7])
def test_a_stack_that_is_deleted_in_the_middle_of_a_move_goes_without_a_trace(
    stack: str, cascade: Cascade, passes: int, releases: None
) -> None:
    world = begun(60, stack=stack)
    ask(world, NEXT)
    play(world, passes)
    gone(world, cascade)


@pytest.mark.parametrize(("stack", "provided"), SHAPES)
def test_a_move_ends_at_the_new_release_and_is_ready_in_every_pass(
    stack: str, provided: str, releases: None
) -> None:
    world = begun(60, stack=stack, provided=provided)
    assert paths.is_true(world.objects[STACK], c.READY)
    ask(world, NEXT)
    passes = play(world)
    told = [paths.text(done.objects[STACK], "status", "stackRelease") for done in passes]
    assert told[-1] == NEXT
    assert [paths.is_true(done.objects[STACK], c.READY) for done in passes] == [True] * len(passes)
    assert len(passes) <= 24, "a move takes about as many passes as the stack has waves"
    versions_ = {
        paths.text(o, "spec", "forProvider", "chart", "version") for o in world.of_kind(c.HELM_API, "Release")
    }
    assert all(version.endswith("-next") for version in versions_)
    jobs = [r for r in world.objects if "chart-crds" in r.name]
    assert jobs == [], "the Job and its rights go with the move"


@pytest.mark.parametrize("stack", [c.STANDARD, c.DYNAMO])
def test_a_move_that_is_taken_back_ends_where_it_began(stack: str, releases: None) -> None:
    world = begun(60, stack=stack)
    before = {r: o.get("spec") for r, o in world.objects.items() if r.kind in {"Release", "Object"}}
    ask(world, NEXT)
    play(world, 4)
    ask(world, next(iter(versions.releases())))
    play(world)
    after = {r: o.get("spec") for r, o in world.objects.items() if r.kind in {"Release", "Object"}}
    assert after == before
    assert paths.is_true(world.objects[STACK], c.READY)


@pytest.mark.parametrize(("stack", "provided"), SHAPES)
def test_a_stack_that_comes_back_finds_what_is_its_own(stack: str, provided: str) -> None:
    """Deleted without its children and applied again, as after a restore: nothing is installed twice."""
    world = begun(60, stack=stack, provided=provided)
    names = {r for r in world.objects if r.kind in {"Release", "Object"}}
    composite = {k: v for k, v in world.objects[STACK].items() if k != "status"}
    world.apply({**composite, "status": {}})
    play(world)
    assert {r for r in world.objects if r.kind in {"Release", "Object"}} == names
    assert paths.is_true(world.objects[STACK], c.READY)


SMALLER = [
    ({"images": {"mirror": "registry.example.org/m"}}, "the copies of a Secret that charts pulled with"),
    ({"images": {}}, "the mirror with its Secret"),
    ({"components": {"prometheus": {"enabled": False}}}, "an optional component"),
]


@pytest.mark.parametrize(("spec", "reason"), SMALLER)
def test_what_is_taken_off_a_running_stack_leaves_without_stopping_the_rest(
    spec: dict[str, Any], reason: str
) -> None:
    world = begun(60, stack=c.DYNAMO)
    before = len(world.objects)
    stack = world.objects[STACK]
    world.apply({**stack, "spec": {**stack["spec"], **spec}})
    passes = play(world)
    refused = [report.refused for done in passes for report in done.reports if report.refused]
    assert refused == [], reason
    assert len(world.objects) < before, reason
    assert not world.deleting, reason
    assert paths.is_true(world.objects[STACK], c.READY)
