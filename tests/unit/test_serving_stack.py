"""ServingStack: what comes when, what stays, and what a bad spec does."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import pytest

from builders import stacks
from modelplane import contracts as c
from modelplane.facts import versions
from modelplane.kinds import serving_stack
from modelplane.stacks import join


@pytest.mark.parametrize("stack", [c.STANDARD, c.DYNAMO])
def test_before_the_cluster_is_reached_there_are_only_the_provider_configs(stack: str) -> None:
    answer = stacks.compose(stacks.stack(stack=stack))
    assert list(answer.resources) == stacks.CONFIGS
    assert not any(r.ready for r in answer.resources.values())
    assert answer.ready is False
    assert stacks.says(answer)[:2] == (False, "Connecting")


@pytest.mark.parametrize(("stack", "provided", "cloud"), stacks.SHAPES)
def test_each_component_is_created_once_what_it_needs_works(stack: str, provided: str, cloud: str) -> None:
    composite = stacks.stack(stack=stack, provided=provided, cloud=cloud)
    components = {x.key: x for x in join.stack(stack)}
    observed: dict[str, Any] = {}
    for _ in range(30):
        answer = stacks.compose(composite, observed)
        for key in answer.resources.keys() - observed.keys():
            owner = next((x for k, x in components.items() if key == k or key.startswith(f"{k}-")), None)
            for need in (*owner.needs, *owner.after) if owner else ():
                needed = [k for k in answer.resources if k == need or k.startswith(f"{need}-")]
                assert all(observed.get(k) for k in needed if k in components), f"{key} came before {need}"
        observed = {k: stacks.reported(r.manifest) for k, r in answer.resources.items()}
    assert answer.held_back == {}
    assert answer.ready is None
    assert all(r.ready for r in answer.resources.values())
    assert stacks.says(answer) == (True, "ComponentsReady", "")
    assert stacks.compose(composite, observed) == answer, "it stays as it is"


def test_what_is_not_ready_holds_back_only_what_needs_it() -> None:
    composite = stacks.stack(stack=c.DYNAMO, cloud=c.EKS)
    _, settled = stacks.settled(composite)
    observed = {k: v for k, v in settled.items() if k in (*stacks.CONFIGS, "kai-scheduler")}
    observed["kai-scheduler"] = stacks.reported(settled["kai-scheduler"], ready=False)
    answer = stacks.compose(composite, observed)
    assert answer.held_back["grove"] == "waiting for kai-scheduler"
    assert answer.held_back["kai-queue-root"].startswith("waiting for kai-scheduler, kai-services-")
    assert "node-feature-discovery" in answer.resources


def test_a_component_that_breaks_later_takes_nothing_with_it() -> None:
    composite = stacks.stack(stack=c.DYNAMO)
    settled, observed = stacks.settled(composite)
    answer = stacks.compose(composite, stacks.failed(observed, "kai-scheduler", "cannot upgrade"))
    assert answer.resources.keys() == settled.resources.keys()


@pytest.mark.parametrize("stack", [c.STANDARD, c.DYNAMO])
def test_whatever_is_lost_or_unreadable_the_rest_stays(stack: str) -> None:
    composite = stacks.stack(stack=stack)
    _, settled = stacks.settled(composite)
    for key in settled:
        for junk in (None, {}, {"status": "junk", "metadata": None}, {"status": {"conditions": [None, 7]}}):
            observed = {k: v for k, v in settled.items() if k != key}
            if junk is not None:
                observed[key] = junk
            kept = stacks.compose(composite, observed).resources.keys()
            lost = {k for k in settled.keys() - kept if key not in k}
            assert lost == set(), f"{key} as {junk} lost {lost}"


def test_inputs_are_not_changed() -> None:
    composite = stacks.stack(stack=c.DYNAMO, components={"grove": {"values": {"replicaCount": 2}}})
    _, observed = stacks.settled(composite)
    before = copy.deepcopy((composite, observed))
    stacks.compose(composite, observed)
    assert (composite, observed) == before


BAD_SPECS = [
    ({"stackRelease": "1999.01"}, "spec.stackRelease: stack release 1999.01 is not known here", "a typo"),
    (
        {"components": {"grove": {}}},
        "spec.components.grove: stack Standard has no such component",
        "other stack",
    ),
    (
        {"components": {"prom": {}}},
        "it has ai-gateway, ai-gateway-crds, envoy-gateway, leader-worker-set",
        "typo",
    ),
    (
        {"components": {"gateway": {"values": {"a": 1}}}},
        "spec.components.gateway.values: gateway is no chart",
        "",
    ),
    (
        {"components": {"envoy-gateway": {"enabled": False}}},
        "only node-feature-discovery, prometheus can be left out",
        "it is needed",
    ),
    ({"components": {"prometheus": {"values": "big"}}}, "spec.components.prometheus.values: ", "mistyped"),
    ({"stack": "Volcano"}, "spec.stack: Volcano is not one of Standard, Dynamo", "an older package"),
    ({"secrets": []}, "spec.secrets: no entry has type Kubeconfig", "nothing reaches the cluster"),
    (
        {"secrets": [{"type": "AWSWebIdentityCredentials", "name": "x", "key": "y"}]},
        "spec.secrets: no entry has type Kubeconfig",
        "an identity alone reaches nothing",
    ),
    ({"secrets": None}, "spec.secrets: ", "absent"),
    ({"cloud": 7}, "spec.cloud: ", "mistyped"),
    ({"gateway": {"listeners": [{"name": "x"}]}}, "spec.gateway.listeners[0].port: ", "incomplete"),
]


@pytest.mark.parametrize(("spec", "message", "reason"), BAD_SPECS)
def test_a_spec_that_is_not_understood_is_named_and_keeps_all_that_runs(
    spec: dict[str, Any], message: str, reason: str
) -> None:
    settled, observed = stacks.settled(stacks.stack())
    answer = stacks.compose(stacks.stack(status=settled.status, **spec), observed)
    status, code, text = stacks.says(answer)
    assert (status, code) == (False, "InvalidSpec"), reason
    assert message in text
    assert answer.resources.keys() == settled.resources.keys()
    assert answer.status == settled.status
    assert answer.ready is False
    assert {x.type for x in answer.conditions} == set(serving_stack.KIND.conditions)


@pytest.mark.parametrize(
    ("before", "after", "told", "reason"),
    [
        (
            {},
            {"provided": c.PROVIDED},
            "spec.provided: Provided would remove the charts that are installed here (ai-gateway, ",
            "every chart would go, and with it what runs gangs and gateway",
        ),
        (
            {"gateway": {"className": "edge"}},
            {"gateway": {"className": "other"}},
            "spec.gateway.className: the class is edge, and another would be made beside it",
            "a renamed Object leaves the old class behind",
        ),
    ],
)
def test_an_edit_that_would_take_away_what_serves_is_refused(
    before: dict[str, Any], after: dict[str, Any], told: str, reason: str
) -> None:
    settled, observed = stacks.settled(stacks.stack(**before))
    answer = stacks.compose(stacks.stack(status=settled.status, **{**before, **after}), observed)
    status, code, message = stacks.says(answer)
    assert (status, code) == (False, "InvalidSpec"), reason
    assert message.startswith(told)
    assert answer.resources.keys() == settled.resources.keys()


REFS = [{"apiVersion": c.HELM_API, "kind": "Release", "name": "north-stack-kai-scheduler"}]
NOTHING_SEEN = [
    ("status", "kai-scheduler", "what status said last is enough"),
    ("references", "north-stack-kai-scheduler", "what Crossplane says it composed is enough"),
    ("usages", "north-stack-kai-scheduler", "a Usage names what it holds"),
    ("objects", "inference-pool-crd", "an Object that a Provided cluster does not get is no less a trace"),
    ("unreadable", "kai-scheduler", "a Release that has lost its kind stands under its key"),
]


@pytest.mark.parametrize(("trace", "named", "reason"), NOTHING_SEEN)
def test_charts_that_one_pass_does_not_see_are_not_taken_away_by_provided(
    trace: str, named: str, reason: str
) -> None:
    settled, observed = stacks.settled(stacks.stack(stack=c.DYNAMO))
    composite = stacks.stack(stack=c.DYNAMO, provided=c.PROVIDED)
    blind = {k: v for k, v in observed.items() if k in stacks.CONFIGS}
    if trace == "status":
        composite["status"] = dict(settled.status)
    elif trace == "references":
        composite["spec"]["crossplane"] = {"resourceRefs": [None, "junk", *REFS]}
    elif trace == "usages":
        blind |= {k: v for k, v in observed.items() if v["kind"] == "Usage"}
    elif trace == "objects":
        blind["inference-pool-crd"] = observed["inference-pool-crd"]
    else:
        blind["kai-scheduler"] = {}
    answer = stacks.compose(composite, blind)
    status, code, message = stacks.says(answer)
    assert (status, code) == (False, "InvalidSpec"), reason
    assert named in message, reason
    assert answer.resources.keys() == blind.keys(), "all that is seen stays"
    assert answer.ready is False


PROVIDED_AS_EVER = [
    ([], "a new stack"),
    ([{"name": "kai-scheduler", "version": "v1", "state": "Blocked"}], "looked at, and somebody else's"),
    ([{"name": "kai-scheduler", "version": "v1", "state": "Waiting"}], "it never was created"),
    ([{"name": "kai-scheduler", "state": "Failed", "message": "no route"}], "a check that failed"),
    ([{"name": "modelexpress-server", "version": "0.5.1", "state": "Ready"}], "ours on every cluster"),
    ([{"name": ["kai-scheduler"], "version": "v1", "state": {}}, None], "junk"),
]


@pytest.mark.parametrize(("told", "reason"), PROVIDED_AS_EVER)
def test_a_stack_of_which_no_chart_was_installed_may_be_provided(told: list[Any], reason: str) -> None:
    composite = stacks.stack(stack=c.DYNAMO, provided=c.PROVIDED, status={"components": told})
    composite["spec"]["crossplane"] = {"resourceRefs": [{"kind": "Object", "name": "x"}]}
    observed = {k: {} for k in stacks.CONFIGS}
    assert "check-kai-scheduler" in stacks.compose(composite, observed).resources, reason


def test_a_gateway_class_that_one_pass_does_not_see_is_told_by_the_gateway() -> None:
    _, observed = stacks.settled(stacks.stack(gateway={"className": "edge"}))
    del observed["gateway-class"]
    answer = stacks.compose(stacks.stack(gateway={"className": "other"}), observed)
    assert "the class is edge" in stacks.says(answer)[2]


def test_a_provided_cluster_may_be_handed_over() -> None:
    _, observed = stacks.settled(stacks.stack(provided=c.PROVIDED))
    answer = stacks.compose(stacks.stack(), observed)
    assert "gateway" in answer.resources
    assert stacks.says(answer, c.REQUIREMENTS_MET)[1] == "Checking", "what is there is looked at first"


@pytest.mark.parametrize(
    ("spec", "recorded", "installed", "reason"),
    [
        ({}, None, "2026.12", "a new cluster gets the newest"),
        ({}, "2026.12", "2026.12", "an old one keeps what it has"),
        ({"stackRelease": "2026.12"}, "2026.12", "2026.12", "what is asked for may be what there is"),
        ({"stackRelease": "2026.12"}, "1999.01", "1999.01", "one recorded stays until all has moved"),
    ],
)
def test_a_cluster_moves_to_another_release_only_when_asked(
    spec: dict[str, Any], recorded: str | None, installed: str, reason: str
) -> None:
    status = {"stackRelease": recorded} if recorded else None
    answer = stacks.compose(stacks.stack(status=status, **spec))
    assert answer.status["stackRelease"] == installed, reason


def test_a_newer_release_reaches_only_clusters_without_one(monkeypatch: pytest.MonkeyPatch) -> None:
    old = versions.newest()
    newer = versions.Release("2999.01", "2999-01-01", "1.34", "1.40", old.pins)
    monkeypatch.setattr(versions, "releases", lambda: {old.name: old, newer.name: newer})
    assert stacks.compose(stacks.stack()).status["stackRelease"] == "2999.01"
    kept = stacks.compose(stacks.stack(status={"stackRelease": old.name}))
    assert kept.status["stackRelease"] == old.name


def test_an_older_package_leaves_a_newer_stack_alone() -> None:
    settled, observed = stacks.settled(stacks.stack())
    recorded = {**settled.status, "stackRelease": "2999.01"}
    answer = stacks.compose(stacks.stack(status=recorded), observed)
    status, code, text = stacks.says(answer)
    assert (status, code) == (False, "UnknownRelease")
    assert "update the package" in text
    assert answer.resources.keys() == settled.resources.keys()
    assert answer.status["stackRelease"] == "2999.01"


IDENTITY = {
    "type": "AWSWebIdentityCredentials",
    "name": "role",
    "key": "credentials",
    "namespace": "elsewhere",
}


@pytest.mark.parametrize(
    ("secrets", "kubeconfig", "identity", "reason"),
    [
        ([stacks.KUBECONFIG], "modelplane-system/north-kubeconfig/kubeconfig", None, "its own namespace"),
        (
            [{**stacks.KUBECONFIG, "namespace": "other"}],
            "other/north-kubeconfig/kubeconfig",
            None,
            "or the one it names",
        ),
        (
            [IDENTITY, stacks.KUBECONFIG],
            "modelplane-system/north-kubeconfig/kubeconfig",
            "AWSWebIdentityCredentials elsewhere/role/credentials",
            "whatever the order, the other one is the identity",
        ),
        (
            [stacks.KUBECONFIG, IDENTITY, {**IDENTITY, "name": "second"}],
            "modelplane-system/north-kubeconfig/kubeconfig",
            "AWSWebIdentityCredentials elsewhere/role/credentials",
            "the first of several",
        ),
    ],
)
def test_both_configs_read_the_secrets_of_the_spec(
    secrets: list[dict[str, Any]], kubeconfig: str, identity: str | None, reason: str
) -> None:
    answer = stacks.compose(stacks.stack(secrets=secrets))

    def told(ref: Mapping[str, Any]) -> str:
        return f"{ref['namespace']}/{ref['name']}/{ref['key']}"

    for key in stacks.CONFIGS:
        spec = answer.resources[key].manifest["spec"]
        assert told(spec["credentials"]["secretRef"]) == kubeconfig, reason
        found = spec.get("identity")
        assert (f"{found['type']} {told(found['secretRef'])}" if found else None) == identity
