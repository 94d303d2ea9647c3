"""Where our own images come from beside engines, and who may read the credentials for them."""

from __future__ import annotations

from typing import Any

import pytest

from builders import replicas as r
from builders.replicas import condition
from modelplane import contracts as c
from modelplane.core import Manifest

PULL = [{"name": "modelplane-pull"}]


def mirrored(stack: str = "Standard", *, secret: bool = True) -> Manifest:
    found = r.cluster(stack=stack)
    found["spec"]["images"] = {"mirror": "registry.example.org/mirror"}
    if secret:
        found["spec"]["images"]["pullSecretRef"] = {"name": "mirror"}
    return found


@pytest.mark.parametrize("stack", ["Standard", "Dynamo"])
@pytest.mark.parametrize("secret", [True, False])
def test_pods_with_an_image_of_ours_pull_it_with_the_mirrors_secret(stack: str, secret: bool) -> None:
    """The picker, and the decode engine with our proxy; other engines' images are the team's own affair."""
    given, _ = r.settled(r.split(), mirrored(stack, secret=secret))
    found = r.manifests(given)
    want = PULL if secret else None
    assert found["epp"]["spec"]["template"]["spec"].get("imagePullSecrets") == want
    for manifest in r.workloads(given).values():
        for pod in r.pods(manifest).values():
            ours = "initContainers" in pod["spec"]
            assert pod["spec"].get("imagePullSecrets") == (want if ours else None)


def test_a_pull_secret_named_twice_is_listed_once() -> None:
    """The list is a map by name: server-side apply refuses the whole object for one name twice."""
    own = {"imagePullSecrets": [{"name": "a"}, {"name": "modelplane-pull"}, {"name": "a"}]}
    composite = r.replica(
        r.engine("fill", r.member(**own), phase="Prefill"),
        r.engine("gen", r.member(**own), phase="Decode"),
        serving={"mode": "PrefillDecode"},
    )
    given, _ = r.settled(composite, mirrored())
    for manifest in r.workloads(given).values():
        (pod,) = r.pods(manifest).values()
        assert pod["spec"]["imagePullSecrets"] == [{"name": "a"}, {"name": "modelplane-pull"}]


SECRET_ENV = {"name": "A", "valueFrom": {"secretKeyRef": {"name": "modelplane-pull", "key": "x"}}}
READING: list[tuple[dict[str, Any], str]] = [
    ({"volumes": [{"name": "v", "secret": {"secretName": "modelplane-pull"}}]}, "mounted"),
    (
        {"volumes": [{"name": "v", "projected": {"sources": [{"secret": {"name": "modelplane-pull"}}]}}]},
        "projected",
    ),
    ({"engine": r.container(env=[SECRET_ENV])}, "in a variable"),
    (
        {"volumes": [{"name": "v", "secret": {"secretName": "modelplane-pull", "optional": True}}]},
        "optional is as good as mounted",
    ),
]


@pytest.mark.parametrize(("pod", "reason"), READING)
def test_no_engine_reads_the_credentials_of_the_platforms_mirror(pod: dict[str, Any], reason: str) -> None:
    composite = r.replica(r.engine("main", r.member(**pod)))
    given = r.answer(composite, mirrored())
    found = condition(given, c.MODEL_ACCEPTED)
    assert (found.status, found.reason) == (False, "InvalidSpec"), reason
    assert "is the platform's" in found.message, reason
    assert given.resources == {}, reason


def test_a_secret_of_the_teams_own_may_have_that_name() -> None:
    """It is copied under another name, so it is never the platform's."""
    member = r.member(engine=r.container(env=[SECRET_ENV]))
    given, _ = r.settled(
        r.replica(r.engine("main", member)), mirrored(), r.secret("modelplane-pull", {"x": "eA=="})
    )
    (pod,) = r.pods(r.workload(given)).values()
    assert r.env_of(pod)["A"]["secretKeyRef"]["name"] != "modelplane-pull"
