"""Invariant 4, namespaces are real, and invariant 7, no injection."""

import copy
import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fleets
import judges
from modelplane import contracts as c
from modelplane import names
from modelplane.core import Inputs, Manifest, paths
from modelplane.sim.world import Ref

OTHER = "other-team"
FLEETS = [f for f in fleets.FLEETS if fleets.has(f, "ModelDeployment")]


def _twins(folder: str) -> list[Manifest]:
    """The example with a second team that uses the same names for everything, and room for both."""
    documents = fleets.documents(folder)
    twins = []
    for read in documents:
        document = copy.deepcopy(read)
        if document["kind"] == "InferenceCluster":
            for pool in document["spec"]["nodePools"]:
                pool["nodeCount"] = 2 * pool.get("maxNodeCount", pool["nodeCount"])
                pool.pop("maxNodeCount", None)
                pool.pop("minNodeCount", None)
        twins.append(document)
        if paths.namespace(document):
            twins.append({**document, "metadata": {**document["metadata"], "namespace": OTHER}})
    return twins


def _remote(objects: dict[Ref, Manifest], team: str) -> list[Manifest]:
    """What one team's composites put on serving clusters."""
    return [
        dict(paths.mapping(o, "spec", "forProvider", "manifest"))
        for r, o in objects.items()
        if (r.api_version, r.kind, r.namespace) == (c.KUBERNETES_API, "Object", team)
    ]


@cache
def _together(folder: str) -> dict[Ref, Manifest]:
    return fleets.play(_twins(folder)).final.objects


@pytest.mark.parametrize("folder", FLEETS)
def test_two_teams_with_the_same_names_share_nothing(folder: str) -> None:
    objects = _together(folder)
    team = next(r.namespace for r in objects if r.kind == "ModelDeployment" and r.namespace != OTHER)
    for mine, theirs in ((team, OTHER), (OTHER, team)):
        own = [o for r, o in objects.items() if r.namespace == mine]
        assert own
        foreign = names.team_namespace(theirs)
        for obj in [*own, *_remote(objects, mine)]:
            text = json.dumps(obj)
            assert f'"{theirs}"' not in text, f"{obj['kind']} {paths.name(obj)} names {theirs}"
            assert foreign not in text, f"{obj['kind']} {paths.name(obj)} names {foreign}"
            assert f"/{theirs}/" not in text, f"{obj['kind']} {paths.name(obj)} routes to {theirs}"
        spaces = {paths.namespace(o) for o in _remote(objects, mine) if paths.namespace(o)}
        assert spaces == {names.team_namespace(mine)}


@pytest.mark.parametrize("folder", FLEETS)
def test_a_second_team_changes_nothing_the_first_one_runs(folder: str) -> None:
    documents = _twins(folder)
    alone = fleets.play([d for d in documents if paths.namespace(d) != OTHER]).final.objects
    together = _together(folder)
    team = next(r.namespace for r in alone if r.kind == "ModelDeployment")
    mine = {r: _spec(o) for r, o in alone.items() if r.namespace == team}
    assert mine == {r: _spec(o) for r, o in together.items() if r.namespace == team}


def _spec(obj: Manifest) -> Any:
    return {k: v for k, v in obj.items() if k != "status"}


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner)


# What a shell, a URL or a template would act on, inside otherwise plain text.
HOSTILE = st.sampled_from(
    ["$(touch /pwned)", "`id`", "; rm -rf /", "' || true '", '"; exit 0; "', "${IFS}", "\n- x: y"]
)
CACHED = next(f for f in FLEETS if fleets.has(f, "ModelCache"))
STAGING = [
    call
    for call in fleets.played(CACHED).calls
    if call.target.kind in ("ModelCache", "ModelCacheReplica") and "huggingFace" in call.inputs.spec
]


@settings(max_examples=60, derandomize=True)
@given(hostile=HOSTILE, field=st.sampled_from(["repo", "revision"]), call=st.sampled_from(STAGING))
def test_user_text_reaches_a_container_only_as_data(hostile: str, field: str, call: fleets.Call) -> None:
    """Repo and revision stand alone in an env value or an argument, never inside a longer string."""
    text = f"org/model{hostile}"
    composite = copy.deepcopy(call.inputs.composite)
    composite["spec"]["huggingFace"][field] = text
    inputs = Inputs(composite, call.inputs.observed, call.inputs.required)
    reply = fleets.real_function()(inputs)
    assert reply.answer is not None
    for composed in reply.answer.resources.values():
        for manifest in judges.with_remote(composed.manifest):
            # Kubelet turns $$ back into $ in env values and arguments.
            seen = {s.replace("$$", "$") for s in _strings(manifest) if hostile in s.replace("$$", "$")}
            assert seen <= {text}, f"{manifest.get('kind')}: {seen}"


def test_the_injection_property_sees_a_staging_job() -> None:
    jobs = [
        manifest
        for call in STAGING
        if call.reply.answer is not None
        for composed in call.reply.answer.resources.values()
        for manifest in judges.with_remote(composed.manifest)
        if manifest.get("kind") == "Job"
    ]
    repo = next(
        d["spec"]["huggingFace"]["repo"] for d in fleets.documents(CACHED) if d["kind"] == "ModelCache"
    )
    assert any(repo in _strings(job) for job in jobs)
