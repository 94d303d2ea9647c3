"""Faults injected into every part of a played fleet: each is said by name and message, and passes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import fleets
from builders import worlds
from modelplane.core import Inputs, Manifest, paths, settle
from modelplane.kinds.registry import KINDS
from modelplane.sim import prerequisites
from modelplane.sim.remote import FAILED, REFUSED, UNAVAILABLE, UNBOUND, UNPROGRAMMED
from modelplane.sim.rules import UNSYNCED
from modelplane.sim.world import World

Case = tuple[str, Callable[[Manifest], bool], str, str, str, str, list[str]]
# Folder, what fails and how, what is said of it; then who says it, in which condition, in which words.
CASES: list[Case] = [
    (
        "dynamo-l4",
        worlds.installs("kai-scheduler"),
        FAILED,
        "no such image",
        "InferenceCluster",
        "BackendReady",
        ["kai-scheduler", "no such image"],
    ),
    (
        "dynamo-l4",
        worlds.installs("gateway-helm"),
        UNSYNCED,
        "chart not found",
        "ServingStack",
        "ComponentsReady",
        ["envoy-gateway", "chart not found"],
    ),
    (
        "standard-h200",
        worlds.installs("lws"),
        FAILED,
        "timed out",
        "ServingStack",
        "ComponentsReady",
        ["leader-worker-set", "timed out"],
    ),
    (
        "dynamo-l4",
        worlds.carries("Gateway"),
        UNPROGRAMMED,
        "",
        "InferenceCluster",
        "BackendReady",
        ["gateway"],
    ),
    (
        "dynamo-l4",
        worlds.carries("PersistentVolumeClaim"),
        UNBOUND,
        "",
        "ModelCacheReplica",
        "ArtifactReady",
        ["PersistentVolumeClaim", "is not bound"],
    ),
    (
        "standard-h200",
        worlds.carries("Job"),
        FAILED,
        "no space left",
        "ModelCache",
        "ArtifactReady",
        ["Job", "no space left"],
    ),
    (
        "dynamo-l4",
        worlds.carries("PodCliqueSet"),
        UNAVAILABLE,
        "no room for a gang",
        "ModelReplica",
        "ModelReady",
        ["PodCliqueSet", "no room for a gang", "copy 0: leader 0 of 1 ready", "Insufficient scheduled pods"],
    ),
    (
        "dynamo-l4",
        worlds.carries("PodCliqueSet"),
        UNSYNCED,
        "denied by webhook",
        "ModelReplica",
        "ModelAccepted",
        ["Object", "denied by webhook"],
    ),
    (
        "standard-h200",
        worlds.carries("LeaderWorkerSet"),
        UNAVAILABLE,
        "",
        "ModelReplica",
        "ModelReady",
        [
            "LeaderWorkerSet",
            "0 of 1 copies serve",
            "copy 0: leader 0 of 1 ready",
            "cannot allocate all claims",
        ],
    ),
    (
        "single-gpu",
        worlds.carries("Deployment"),
        UNAVAILABLE,
        "",
        "ModelReplica",
        "ModelReady",
        ["Deployment", "0 of 1 copies serve", "has timed out progressing"],
    ),
    (
        "dynamo-l4",
        worlds.carries("HTTPRoute"),
        REFUSED,
        "",
        "ModelReplica",
        "ModelReady",
        ["model-route", "no listener allows the route"],
    ),
    (
        "standard-h200",
        worlds.carries("HTTPRoute", "-host-route-"),
        REFUSED,
        "",
        "ModelReplica",
        "ModelReady",
        ["model-host-route"],
    ),
    (
        "dynamo-l4",
        worlds.carries("InferencePool"),
        REFUSED,
        "ExtensionReference service not found",
        "ModelReplica",
        "ModelReady",
        ["inference-pool", "ExtensionReference service not found"],
    ),
    (
        "standard-h200",
        worlds.carries("Deployment", "-epp-"),
        UNAVAILABLE,
        "no image",
        "ModelReplica",
        "ModelReady",
        ["endpoint picker", "no image"],
    ),
    (
        "dynamo-l4",
        worlds.carries("ConfigMap", "-epp-"),
        UNSYNCED,
        "exceeded quota",
        "ModelReplica",
        "ModelReady",
        ["not applied: Object", "exceeded quota"],
    ),
    (
        "dynamo-l4",
        worlds.carries("NetworkPolicy", "-ingress-"),
        UNSYNCED,
        "forbidden",
        "ModelReplica",
        "ModelReady",
        ["network-policy", "forbidden"],
    ),
]


def _rest(world: World) -> None:
    fleets.play([], world)


def _unready(world: World) -> list[str]:
    return [str(r) for r, o in world.objects.items() if r[:2] in KINDS and not paths.is_true(o, "Ready")]


@pytest.mark.parametrize(("folder", "hits", "mode", "message", "kind", "condition", "words"), CASES)
def test_a_fault_is_said_by_name_and_message_and_passes(
    folder: str,
    hits: Callable[[Manifest], bool],
    mode: str,
    message: str,
    kind: str,
    condition: str,
    words: list[str],
) -> None:
    world = World.of([*prerequisites.objects(), *fleets.documents(folder)])
    world.fail(hits, mode, message)
    _rest(world)
    assert any(hits(obj) for obj in world.objects.values()), "the fault befell nothing"
    (target,) = [r for r in world.objects if r.kind == kind]
    said = worlds.reasons(world, target)
    assert condition in said
    assert [word for word in words if word not in said[condition]] == [], said
    root = [r for r in world.objects if r.kind in {"ModelDeployment", "InferenceCluster", "ModelCache"}]
    assert any(not paths.is_true(world.objects[r], "Ready") for r in root), (
        "nobody who applies things is told"
    )
    world.recover()
    _rest(world)
    assert _unready(world) == []


@pytest.mark.parametrize(("folder", "hits", "mode", "message", "kind", "condition", "words"), CASES)
def test_a_fault_in_what_runs_takes_nothing_away(
    folder: str,
    hits: Callable[[Manifest], bool],
    mode: str,
    message: str,
    kind: str,
    condition: str,
    words: list[str],
) -> None:
    world = fleets.played(folder).world.copy()
    before = {r for r in world.objects if r.kind not in {"ModelEndpoint", "Service", "EndpointSlice"}}
    world.fail(hits, mode, message)
    _rest(world)
    missing = before - world.objects.keys()
    assert [str(r) for r in missing if "Usage" not in r.kind] == [], (kind, condition, words)
    world.recover()
    _rest(world)
    assert _unready(world) == []


REFUSALS: list[tuple[str, Callable[[Manifest], bool], list[tuple[str, str]]]] = [
    (
        "dynamo-l4",
        worlds.carries("PodCliqueSet"),
        [("ModelReplica", "ModelReady"), ("ModelDeployment", "ReplicasReady")],
    ),
    (
        "standard-h200",
        worlds.carries("LeaderWorkerSet"),
        [("ModelReplica", "ModelReady"), ("ModelDeployment", "ReplicasReady")],
    ),
    (
        "dynamo-l4",
        worlds.installs("kai-scheduler"),
        [("ServingStack", "ComponentsReady"), ("InferenceCluster", "BackendReady")],
    ),
    (
        "dynamo-l4",
        worlds.carries("PersistentVolumeClaim"),
        [("ModelCacheReplica", "ArtifactReady"), ("ModelCache", "ArtifactReady")],
    ),
]


@pytest.mark.parametrize(("folder", "hits", "tellers"), REFUSALS)
def test_a_refused_change_is_told_up_to_whoever_applied_it_and_makes_nothing_unready(
    folder: str, hits: Callable[[Manifest], bool], tellers: list[tuple[str, str]]
) -> None:
    """What ran before still does, so the message is all that can tell."""
    world = fleets.played(folder).world.copy()
    world.fail(hits, UNSYNCED, "denied by webhook")
    _rest(world)
    for kind, type_ in tellers:
        (obj,) = [o for r, o in world.objects.items() if r.kind == kind]
        found = paths.condition(obj, type_)
        assert (found["status"], paths.is_true(obj, "Ready")) == ("True", True), kind
        assert "not applied" in found["message"], kind
        assert "denied by webhook" in found["message"], kind
    world.recover()
    _rest(world)
    assert not [
        str(r) for r, o in world.objects.items() if r[:2] in KINDS and "not applied" in str(o["status"])
    ]


@pytest.mark.parametrize("folder", fleets.FOLDERS)
def test_whatever_is_refused_of_whatever_composite_is_told(folder: str) -> None:
    """One child at a time, of every composite of every example, once all of it stands."""
    for call in fleets.played(folder).last_calls():
        kind, asked = KINDS[call.target[:2]], call.reply.answer
        assert asked is not None
        for key in asked.resources.keys() & call.inputs.observed.keys():
            seen = call.inputs.observed[key]
            if paths.items(seen, "spec", "managementPolicies") == ["Observe"]:
                continue
            answer = settle.compose(kind, _refusing(call.inputs, key, seen))
            health = next(x for x in answer.conditions if x.type == kind.working)
            quoted = "its own condition Synced" if _is_secret(seen) else "denied by webhook"
            assert quoted in " ".join(x.message for x in answer.conditions), (str(call.target), key)
            assert asked.resources.keys() <= answer.resources.keys(), (str(call.target), key)
            assert health.status is not None


def _is_secret(seen: Manifest) -> bool:
    return paths.text(seen, "spec", "forProvider", "manifest", "kind") == "Secret"


def _refusing(inputs: Inputs, key: str, seen: Manifest) -> Inputs:
    kept = [x for x in paths.mappings(seen, "status", "conditions") if x.get("type") != "Synced"]
    refusal = {"type": "Synced", "status": "False", "message": "denied by webhook"}
    status = {**paths.mapping(seen, "status"), "conditions": [*kept, refusal]}
    return Inputs(inputs.composite, {**inputs.observed, key: {**seen, "status": status}}, inputs.required)
