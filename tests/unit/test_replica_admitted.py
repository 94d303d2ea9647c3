"""Whatever the API server admits becomes valid objects on both stacks, or is refused by field: never less."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings

import judges
from builders import admitted
from builders import replicas as r
from builders.replicas import condition
from modelplane import contracts as c
from modelplane.api import definitions
from modelplane.core import Manifest, paths

HEAVY = [
    HealthCheck.too_slow,
    HealthCheck.filter_too_much,
    HealthCheck.data_too_large,
    HealthCheck.function_scoped_fixture,
]


def twice(pod: Manifest) -> Iterator[str]:
    """What a pod may not have two of: server-side apply or a webhook would refuse all of it."""
    spec = pod["spec"]
    lists = {"volumes": spec.get("volumes", []), "claims": spec.get("resourceClaims", [])}
    everything = [*spec["containers"], *spec.get("initContainers", [])]
    lists["containers"] = everything
    for container in everything:
        lists[f"{container['name']}.env"] = container.get("env", [])
        mounts = [{"name": m["mountPath"]} for m in container.get("volumeMounts", [])]
        lists[f"{container['name']}.mounts"] = mounts
        unknown = {m["name"] for m in container.get("volumeMounts", [])} - {
            v["name"] for v in lists["volumes"]
        }
        yield from (f"{container['name']} mounts {name}, which is no volume" for name in unknown)
    for what, found in lists.items():
        yield from (
            f"{what}: {n} twice" for n, count in Counter(x["name"] for x in found).items() if count > 1
        )


@pytest.mark.parametrize("stack", ["Standard", "Dynamo"])
@settings(max_examples=25, suppress_health_check=HEAVY)
@given(composite=admitted.replica())
def test_every_admitted_spec_becomes_valid_objects_or_is_refused_by_field(
    stack: str, composite: Manifest, crds: Path
) -> None:
    assume(definitions.load().judge(composite) == [])
    given_, _ = r.settled(composite, r.cluster(stack=stack, fabric="EFA"), r.cache())
    accepted = condition(given_, c.MODEL_ACCEPTED)
    if accepted.status is not True:
        assert accepted.reason == "InvalidSpec"
        assert accepted.message.startswith("spec.")
        return
    assert condition(given_, c.MODEL_READY).status is True
    for key, manifest in r.manifests(given_).items():
        # The front has nothing of the user's, and is judged elsewhere.
        if key.startswith(("model-serving", "resource-claim")):
            assert judges.problems(manifest, crds) == []
        assert len(manifest["metadata"]["name"]) <= 63
    workloads = r.workloads(given_)
    named = sorted(e["name"] for e in given_.status["engines"])
    assert named == sorted(e["name"] for e in composite["spec"]["engines"]), "no engine is lost"
    for manifest in workloads.values():
        for pod in r.pods(manifest).values():
            assert list(twice(pod)) == []
            assert paths.at(pod, "metadata", "labels", c.WORKLOAD_LABEL) == manifest["metadata"]["name"]


@pytest.mark.parametrize("stack", ["Standard", "Dynamo"])
def test_a_mount_of_no_volume_is_refused_and_takes_nothing_that_runs(stack: str) -> None:
    """Grove and LeaderWorkerSet would make no pod of it, and tell of it in events alone."""
    running = r.replica(r.gang())
    _, seen = r.settled(running, r.cluster(stack=stack))
    typo = {"engine": r.container(volumeMounts=[{"name": "scrach", "mountPath": "/w"}])}
    own = {**typo, "volumes": [{"name": "scratch", "emptyDir": {}}]}
    given_ = r.answer(r.replica(r.gang(worker=own)), r.cluster(stack=stack), observed=seen)
    accepted = condition(given_, c.MODEL_ACCEPTED)
    assert (accepted.status, accepted.reason) == (False, "InvalidSpec")
    assert "container engine mounts scrach" in accepted.message
    assert seen.keys() <= given_.resources.keys()


def test_the_platforms_own_volumes_may_be_mounted() -> None:
    """A sidecar may want the weights, or the engine's shared memory."""
    mounts = [{"name": n, "mountPath": f"/{n}"} for n in ("model-cache", "dshm")]
    member = r.member(sidecars=[r.container("logs", volumeMounts=mounts)])
    pod = r.pods(r.one(r.replica(r.engine("main", member), modelCacheRef={"name": "w"})))["standalone"]
    assert list(twice(pod)) == []


@pytest.mark.parametrize(
    ("pod", "words", "reason"),
    [
        ({"sidecars": [r.container("Log_Shipper")]}, "'Log_Shipper': lower-case letters", "no DNS label"),
        ({"initContainers": [r.container("a.b")]}, "'a.b': lower-case letters", "no label by a dot"),
        ({"initContainers": [r.container("engine")]}, "engine names two containers", "one name twice"),
        ({"sidecars": [r.container("pd-sidecar")]}, "pd-sidecar is Modelplane's own", "the proxy's"),
        ({"volumes": [{"name": "V", "emptyDir": {}}]}, "a volume is named 'V'", "a volume's"),
        (
            {"sidecars": [r.container("x", volumeMounts=[{"name": "model-cache", "mountPath": "/w"}])]},
            "engine main, Standalone: container x mounts model-cache, and there is no modelCacheRef: set it",
            "weights that nobody stages",
        ),
        (
            {"initContainers": [r.container("x", volumeMounts=[{"name": "model-cache", "mountPath": "/w"}])]},
            "container x mounts model-cache",
            "the same before the engine",
        ),
    ],
)
def test_what_no_pod_can_have_is_refused_by_name_and_takes_nothing_that_runs(
    pod: dict[str, Any], words: str, reason: str
) -> None:
    """As stored before admission knew of it: the controllers on the cluster would tell of it in events."""
    _, seen = r.settled(r.replica())
    given_ = r.answer(r.replica(r.engine("main", r.member(**pod))), observed=seen)
    accepted = condition(given_, c.MODEL_ACCEPTED)
    assert (accepted.status, accepted.reason) == (False, "InvalidSpec"), reason
    assert words in accepted.message, reason
    assert seen.keys() <= given_.resources.keys(), reason
