"""Invariant 4, namespaces are real, and invariant 7, no injection."""

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fleets
from modelplane import contracts as c
from modelplane import names
from modelplane.core import Manifest, paths
from modelplane.sim.world import Ref

OTHER = "other-team"
FLEETS = [f for f in fleets.FOLDERS if (fleets.EXAMPLES / f / "cluster.yaml").is_file()]


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


@pytest.mark.parametrize("folder", FLEETS)
def test_two_teams_with_the_same_names_share_nothing(folder: str) -> None:
    objects = fleets.play(_twins(folder)).final.objects
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
    together = fleets.play(documents).final.objects
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
CACHED = [f for f in FLEETS if any(d["kind"] == "ModelCache" for d in fleets.documents(f))]


@settings(max_examples=14, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(hostile=HOSTILE, field=st.sampled_from(["repo", "revision"]))
def test_user_text_reaches_a_container_only_as_data(hostile: str, field: str) -> None:
    """Repo and revision stand alone in an env value or an argument, never inside a longer string."""
    documents = copy.deepcopy(fleets.documents(CACHED[0]))
    text = f"org/model{hostile}"
    for document in documents:
        if document["kind"] == "ModelCache":
            document["spec"]["huggingFace"][field] = text
    objects = fleets.play(documents).final.objects
    remote = [m for r in {o.namespace for o in objects} for m in _remote(objects, r)]
    jobs = [m for call in fleets.play(documents).calls for m in _jobs(call)] + [
        m for m in remote if m["kind"] == "Job"
    ]
    assert jobs, "no staging Job was composed"
    for job in jobs:
        pods = paths.mapping(job, "spec", "template", "spec")
        # A dollar sign is written twice, or the kubelet would expand $(NAME) in it (core/v1 EnvVar.value).
        assert not any("$(" in s.replace("$$", "") for s in _strings(pods))
        holding = [s for s in (x.replace("$$", "$") for x in _strings(pods)) if hostile in s]
        assert holding
        assert all(s == text for s in holding), holding
    for manifest in remote:
        if manifest["kind"] != "Job":
            assert all(s == text for s in _strings(manifest) if hostile in s), manifest["kind"]


def _jobs(call: fleets.Call) -> list[Manifest]:
    assert call.reply.answer is not None
    found = [
        dict(paths.mapping(x.manifest, "spec", "forProvider", "manifest"))
        for x in call.reply.answer.resources.values()
    ]
    return [m for m in found if m.get("kind") == "Job"]
