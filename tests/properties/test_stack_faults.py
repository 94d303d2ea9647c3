"""A provider's own error in any part of a stack, followed to the InferenceCluster that people look at."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import fleets
from builders import worlds
from modelplane import contracts as c
from modelplane.core import Manifest, paths
from modelplane.facts import versions
from modelplane.sim import prerequisites
from modelplane.sim.remote import FAILED, UNAVAILABLE
from modelplane.sim.rules import UNSYNCED
from modelplane.sim.world import World
from modelplane.stacks import join
from modelplane.stacks.component import ChartComponent, Component, Context, ObjectsComponent
from modelplane.stacks.components import chart_crds

STACKS = {c.STANDARD: "single-gpu", c.DYNAMO: "existing-dynamo"}
# An example that leaves one out.
LEFT_OUT = {("existing-dynamo", "prometheus")}
# Helm's own words, with what such messages are full of.
ERROR = (
    'failed to install release: values don\'t meet the specifications of the schema(s) in "x": '
    '- at \'/replicas\': got string, want integer\n{"kind":"Status"}'
)


def _parts() -> list[tuple[str, str, str]]:
    """Every component of both stacks, each with how it may fail; those both have once."""
    found: dict[str, tuple[str, str, str]] = {}
    for stack, folder in STACKS.items():
        for component in join.stack(stack):
            if component.key != chart_crds.COMPONENT.key and (folder, component.key) not in LEFT_OUT:
                mode = FAILED if isinstance(component, ChartComponent) else UNSYNCED
                found.setdefault(component.key, (folder, component.key, mode))
    return [*found.values(), ("existing-dynamo", "kai-scheduler", UNSYNCED)]


def _is_of(component: Component) -> Callable[[Manifest], bool]:
    keys = {component.key}
    if isinstance(component, ObjectsComponent):
        documents = component.documents(Context(versions.newest()))
        keys = {f"{component.key}-{x.name}" if x.name else component.key for x in documents}
    return lambda obj: paths.labels(obj).get(c.RESOURCE_LABEL) in keys


def _cluster(world: World) -> Manifest:
    (found,) = (o for r, o in world.objects.items() if r.kind == "InferenceCluster")
    return found


def _entry(world: World, name: str) -> Manifest:
    (found,) = (x for x in paths.mappings(_cluster(world), "status", "components") if x["name"] == name)
    return dict(found)


def _backend(world: World) -> str:
    return paths.text(paths.condition(_cluster(world), c.BACKEND_READY), "message")


def _begun(folder: str) -> World:
    kept = {"InferenceCluster", "InferenceClass"}
    return World.of([*prerequisites.objects(), *(d for d in fleets.documents(folder) if d["kind"] in kept)])


@pytest.mark.parametrize(("folder", "key", "mode"), _parts())
def test_the_providers_words_reach_status_components_and_backend_ready(
    folder: str, key: str, mode: str
) -> None:
    world = _begun(folder)
    hits = _is_of(join.find(key))
    world.fail(hits, mode, ERROR)
    fleets.play([], world)
    assert any(hits(x) for x in world.objects.values()), "the fault befell nothing"
    entry = _entry(world, key)
    assert entry["state"] == "Failed"
    assert ERROR in entry["message"]
    told = _backend(world)
    assert f"is not ready: {key}: " in told
    assert ERROR in told
    assert not paths.is_true(_cluster(world), c.READY)
    world.recover()
    fleets.play([], world)
    assert _entry(world, key)["state"] == "Ready"
    assert "message" not in _entry(world, key)
    assert _backend(world) == ""
    assert paths.is_true(_cluster(world), c.READY)


@pytest.mark.parametrize("kind", ["Config", "SchedulingShard"])
def test_kai_is_ready_when_what_its_operator_runs_is(kind: str) -> None:
    """Its chart is deployed and its operator up; what places the gangs is not, and no queue is made."""
    world = _begun("existing-dynamo")
    world.fail(worlds.carries(kind), UNAVAILABLE, "scheduler: ImagePullBackOff")
    fleets.play([], world)
    assert _entry(world, "kai-scheduler")["state"] == "Ready"
    entry = _entry(world, "kai-services")
    assert entry["state"] == "Installing"
    assert "scheduler: ImagePullBackOff" in entry["message"]
    assert "kai-services: " in _backend(world)
    assert not any(worlds.carries("Queue")(x) for x in world.objects.values())
    world.recover()
    fleets.play([], world)
    assert paths.is_true(_cluster(world), c.READY)


def test_an_error_that_quotes_a_whole_manifest_arrives_cut_and_from_its_beginning() -> None:
    world = _begun("single-gpu")
    world.fail(_is_of(join.find("envoy-gateway")), FAILED, f"no such value: {'x' * 70_000}")
    fleets.play([], world)
    entry = _entry(world, "envoy-gateway")
    assert "no such value: xxx" in entry["message"]
    assert len(entry["message"]) <= 512
    assert "no such value: xxx" in _backend(world)
    assert len(_backend(world)) < 2048
