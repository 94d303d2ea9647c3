"""ServingStack: the mirror's credentials, and values that the platform sets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import judges
from builders import stacks
from modelplane import contracts as c
from modelplane.core import paths
from modelplane.kinds import serving_stack
from modelplane.stacks import join
from modelplane.stacks.component import ChartComponent

IMAGES = {"mirror": "registry.example.org/m", "pullSecretRef": {"name": "login"}}
SHAPES = [(s, p) for s, p, cloud in stacks.SHAPES if cloud == c.EKS]


def copies(answer: Any) -> dict[str, Any]:
    return {
        k.removeprefix("pull-secret-"): stacks.remote(answer, k)
        for k in answer.resources
        if k.startswith("pull-secret-")
    }


@pytest.mark.parametrize(("stack", "provided"), SHAPES)
def test_every_namespace_with_pods_of_ours_has_the_mirrors_secret(
    stack: str, provided: str, crds: Path
) -> None:
    answer, _ = stacks.settled(stacks.stack(stack=stack, provided=provided, images=IMAGES), stacks.LOGIN)
    named = {
        paths.namespace(stacks.remote(answer, k))
        for k in stacks.of_kind(answer, "Object")
        if stacks.remote(answer, k)["kind"] == "Deployment"
    }
    charts = {m["spec"]["forProvider"]["namespace"] for m in stacks.of_kind(answer, "Release").values()}
    assert copies(answer).keys() == named | charts
    for space, secret in copies(answer).items():
        assert secret["metadata"] == {"name": c.PULL_SECRET, "namespace": space}
        assert secret["data"].keys() == {".dockerconfigjson"}, "user name and password stay here"
        assert judges.problems(secret, crds) == []


def test_a_copy_is_there_until_the_chart_that_pulls_with_it_is_gone() -> None:
    answer, _ = stacks.settled(stacks.stack(stack=c.DYNAMO, images=IMAGES), stacks.LOGIN)
    held = stacks.edges(answer)
    assert ("pull-secret-kai-scheduler", "kai-scheduler") in held, "its hooks run when it is removed"
    assert ("pull-secret-modelexpress-system", "modelexpress-server-deployment") in held


@pytest.mark.parametrize("stack", [c.STANDARD, c.DYNAMO])
def test_with_the_mirrors_secret_a_stack_still_is_applied_in_one_reconcile(stack: str) -> None:
    answer, _ = stacks.settled(stacks.stack(stack=stack, images=IMAGES), stacks.LOGIN)
    assert len(answer.resources) <= 100


BAD_LOGINS = [
    ((), "Secret modelplane-system/login does not exist: create it with key .dockerconfigjson, username", ""),
    (
        (stacks.secret("login", "username", "password"),),
        "login has no key .dockerconfigjson: add it",
        "kubelet",
    ),
    ((stacks.secret("login", ".dockerconfigjson", namespace="other"),), "login does not exist", "elsewhere"),
    (
        ({**stacks.secret("login"), "data": "junk"},),
        "has no key .dockerconfigjson, username, password",
        "junk",
    ),
    (
        ({**stacks.secret("login"), "data": {".dockerconfigjson": 7}},),
        "has no key",
        "a value of another type",
    ),
]


@pytest.mark.parametrize(("secrets", "told", "reason"), BAD_LOGINS)
def test_a_bad_login_is_named_with_the_next_step(
    secrets: tuple[dict[str, Any], ...], told: str, reason: str
) -> None:
    answer, _ = stacks.settled(stacks.stack(images=IMAGES, cloud=c.EKS), *secrets)
    status, code, message = stacks.says(answer)
    assert (status, code) == (False, "SecretUnusable"), reason
    assert told in message
    assert answer.ready is False
    assert copies(answer) == {}


def test_a_login_that_only_lacks_what_helm_reads_is_told_where_a_chart_fails() -> None:
    secret = stacks.secret("login", ".dockerconfigjson")
    composite = stacks.stack(images=IMAGES, cloud=c.EKS)
    settled, observed = stacks.settled(composite, secret)
    assert stacks.says(settled)[0] is True, "a mirror may let anybody read charts"
    answer = stacks.compose(composite, stacks.failed(observed, "prometheus", "401"), secret)
    _, reason, message = stacks.says(answer)
    assert reason == "SecretUnusable"
    assert message.startswith(
        "Secret modelplane-system/login has no key username, password: add it; not applied"
    )
    assert message.endswith(": 401"), "and what came of it"


@pytest.mark.parametrize("secrets", [(), (stacks.secret("login"),)])
def test_copies_outlast_a_source_that_is_not_found(secrets: tuple[dict[str, Any], ...]) -> None:
    composite = stacks.stack(stack=c.DYNAMO, images=IMAGES)
    settled, observed = stacks.settled(composite, stacks.LOGIN)
    answer = stacks.compose(composite, observed, *secrets)
    assert answer.resources.keys() == settled.resources.keys()
    assert stacks.says(answer)[0] is True, "what was pulled runs"


def test_copies_go_when_the_reference_goes() -> None:
    _, observed = stacks.settled(stacks.stack(images=IMAGES), stacks.LOGIN)
    composite = stacks.stack(images={"mirror": "registry.example.org/m"})
    let_go = stacks.compose(composite, observed, stacks.LOGIN)
    assert copies(let_go), "their Usages name charts that stay, so these go first"
    for _ in range(2):
        observed = {key: stacks.reported(made.manifest) for key, made in let_go.resources.items()}
        let_go = stacks.compose(composite, observed, stacks.LOGIN)
    assert copies(let_go) == {}


def test_no_value_of_a_secret_leaves_the_copy() -> None:
    composite = stacks.stack(images=IMAGES)
    answer, observed = stacks.settled(composite, stacks.LOGIN)
    broken = stacks.compose(composite, stacks.failed(observed, "prometheus", "401"), stacks.secret("login"))
    value = stacks.LOGIN["data"]["password"]
    for found in (answer, broken):
        assert value not in str([found.status, found.conditions, found.events, found.held_back])
        told = {k for k, r in found.resources.items() if value in str(r.manifest)}
        assert all(k.startswith("pull-secret-") for k in told)


@pytest.mark.parametrize(
    "spec",
    [
        None,
        {},
        {"secrets": "junk", "images": 7},
        {"secrets": [None, {"name": 3}, {"name": ""}], "images": {"mirror": "m", "pullSecretRef": []}},
        {"secrets": {"a": 1}, "images": {"mirror": {}, "pullSecretRef": {"name": "login"}}},
    ],
)
def test_what_is_required_never_depends_on_a_spec_that_can_be_read(spec: Any) -> None:
    assert serving_stack.KIND.requires({"metadata": {"namespace": "x"}, "spec": spec}) == []


FIXED = [(x.key, fixed) for x in join.stack(c.DYNAMO) if isinstance(x, ChartComponent) for fixed in x.fixed]


def nested(path: tuple[str, ...], value: Any) -> dict[str, Any]:
    found: Any = value
    for step in reversed(path):
        found = {step: found}
    return dict(found)


@pytest.mark.parametrize(("key", "fixed"), FIXED, ids=[f"{k}-{'.'.join(f.path)}" for k, f in FIXED])
def test_a_value_the_stack_does_not_work_without_cannot_be_changed(key: str, fixed: Any) -> None:
    settled, observed = stacks.settled(stacks.stack(stack=c.DYNAMO))
    ours = settled.resources[key].manifest["spec"]["forProvider"]["values"]
    had = paths.at(ours, *fixed.path)
    attempts = [nested(fixed.path, "theirs")]
    if had is not None:
        # A null takes the value away, and so does one above it.
        attempts += [nested(fixed.path, None), nested(fixed.path[:1], None)]
    for values in attempts:
        composite = stacks.stack(stack=c.DYNAMO, status=settled.status, components={key: {"values": values}})
        answer = stacks.compose(composite, observed)
        status, code, message = stacks.says(answer)
        assert (status, code) == (False, "InvalidSpec"), values
        assert message.startswith(f"spec.components.{key}.values: {fixed.path[0]}")
        assert "is the stack's own, since otherwise" in message
        assert answer.resources.keys() == settled.resources.keys()


def test_the_same_value_may_be_said_again() -> None:
    values = {"crdInstaller": {"enabled": True}, "webhookServerSecret": {"enabled": False}}
    answer = stacks.compose(stacks.stack(stack=c.DYNAMO, components={"grove": {"values": values}}))
    assert stacks.says(answer)[1] == "Connecting"


def test_values_that_would_burst_a_response_are_refused() -> None:
    values = {"x": "y" * serving_stack.VALUES_LIMIT}
    answer = stacks.compose(stacks.stack(components={"prometheus": {"values": values}}))
    assert stacks.says(answer)[1] == "InvalidSpec"
    assert "spec.components.prometheus.values: are larger than 32768 bytes" in stacks.says(answer)[2]


def test_node_feature_discovery_may_be_left_to_somebody_else() -> None:
    answer, _ = stacks.settled(stacks.stack(components={"node-feature-discovery": {"enabled": False}}))
    assert "node-feature-discovery" not in answer.resources
    assert answer.resources["nvidia-dra-driver"].ready, "a node label set by hand serves it"
