"""ServingStack: what it says of its components, and of a Provided cluster."""

from __future__ import annotations

from typing import Any

import pytest

from builders import stacks
from modelplane import contracts as c
from modelplane.core import paths
from modelplane.facts import versions


@pytest.mark.parametrize(
    ("addresses", "recorded", "published", "reason"),
    [
        (None, None, None, "case C88: none until the load balancer has one"),
        ([], None, None, "an empty list is none"),
        ([{"type": "IPAddress", "value": "192.0.2.1"}], None, "192.0.2.1", "an IP address"),
        ([{"type": "Hostname", "value": "lb.example.org"}], None, "lb.example.org", "or a host name"),
        ([{"value": ""}, {"value": "192.0.2.2"}], None, "192.0.2.2", "the first that stacks.says something"),
        ([None, 7], None, None, "junk is none"),
        ([], "192.0.2.9", "192.0.2.9", "what is not reported now is not gone: routes stand on it"),
    ],
)
def test_the_gateways_address(
    addresses: Any, recorded: str | None, published: str | None, reason: str
) -> None:
    status = {"gateway": {"address": recorded}} if recorded else None
    composite = stacks.stack(status=status)
    _, observed = stacks.settled(composite)
    observed["gateway"]["status"]["atProvider"]["manifest"]["status"] = {"addresses": addresses}
    answer = stacks.compose(composite, observed)
    assert paths.at(answer.status, "gateway", "address") == published, reason


def test_the_gateway_is_ready_when_it_has_an_address() -> None:
    answer, _ = stacks.settled(stacks.stack())
    readiness = answer.resources["gateway"].manifest["spec"]["readiness"]
    assert readiness["policy"] == "DeriveFromCelQuery"
    assert "object.status.addresses" in readiness["celQuery"]


def test_each_component_says_its_version_state_and_why() -> None:
    composite = stacks.stack(stack=c.DYNAMO, cloud=c.EKS)
    settled, observed = stacks.settled(composite)
    assert stacks.component(settled, "grove") == {
        "name": "grove",
        "version": versions.newest().pin("grove").version,
        "state": "Ready",
    }
    broken = stacks.failed(observed, "kai-scheduler", "cannot pull the chart: 401")
    del broken["grove"]
    broken["envoy-gateway"] = stacks.reported(observed["envoy-gateway"], ready=False)
    answer = stacks.compose(composite, broken)
    told = {
        k: (stacks.component(answer, k)["state"], stacks.component(answer, k).get("message"))
        for k in ("kai-scheduler", "grove", "envoy-gateway", "kai-queue")
    }
    assert told == {
        "kai-scheduler": ("Failed", "cannot pull the chart: 401"),
        "grove": ("Waiting", "waits for kai-scheduler"),
        "envoy-gateway": ("Installing", None),
        "kai-queue": ("Ready", None),
    }
    status, code, message = stacks.says(answer)
    assert (status, code) == (False, "ComponentFailed")
    ready = sum(x["state"] == "Ready" for x in answer.status["components"])
    count = f"{ready} of {len(answer.status['components'])} components are ready"
    assert message == f"kai-scheduler: cannot pull the chart: 401; {count}"


def test_a_failed_helm_release_is_told_in_helms_words() -> None:
    composite = stacks.stack()
    _, observed = stacks.settled(composite)
    release = observed["prometheus"] = stacks.reported(observed["prometheus"], ready=False)
    release["status"]["atProvider"] = {
        "state": "failed",
        "releaseDescription": "timed out waiting: " + "x" * 999,
    }
    found = stacks.component(stacks.compose(composite, observed), "prometheus")
    assert found["state"] == "Failed"
    assert found["message"].startswith("timed out waiting: ")
    assert len(found["message"]) <= 512, "a provider's error may quote a whole manifest"


NAMED = "Secret modelplane-system/north-kubeconfig"


@pytest.mark.parametrize(
    ("secret", "code", "told", "reason"),
    [
        ((), "SecretUnusable", f"{NAMED} does not exist: create it with key kubeconfig", "nobody made it"),
        (
            (stacks.secret("north-kubeconfig", "config"),),
            "SecretUnusable",
            f"{NAMED} has no key kubeconfig: add it",
            "its key is another",
        ),
        (
            (stacks.secret("north-kubeconfig", "kubeconfig", namespace="elsewhere"),),
            "SecretUnusable",
            f"{NAMED} does not exist: create it with key kubeconfig",
            "one of that name elsewhere is another",
        ),
        (
            (stacks.secret("north-kubeconfig", "kubeconfig"),),
            "ComponentFailed",
            "node-feature-discovery: connect: no route to host; 0 of ",
            "what is in it is for the provider to judge",
        ),
    ],
)
def test_a_bad_kubeconfig_is_what_the_condition_says(
    secret: tuple[dict[str, Any], ...], code: str, told: str, reason: str
) -> None:
    composite = stacks.stack()
    _, settled = stacks.settled(composite)
    observed = {k: settled[k] for k in (*stacks.CONFIGS, "node-feature-discovery", "inference-pool-crd")}
    for key in ("node-feature-discovery", "inference-pool-crd"):
        observed = stacks.failed(observed, key, "connect: no route to host")
    answer = stacks.compose(composite, observed, *secret)
    status, found, message = stacks.says(answer)
    assert (status, found) == (False, code), reason
    assert message.startswith(told)
    assert stacks.component(answer, "node-feature-discovery")["message"] == "connect: no route to host"


def test_a_secret_that_only_we_cannot_see_does_not_unsettle_what_works() -> None:
    answer, _ = stacks.settled(stacks.stack())
    assert stacks.says(answer) == (True, "ComponentsReady", "")


@pytest.mark.parametrize("stack", [c.STANDARD, c.DYNAMO])
def test_on_a_provided_cluster_nothing_is_installed(stack: str) -> None:
    answer, _ = stacks.settled(stacks.stack(stack=stack, provided=c.PROVIDED))
    assert stacks.of_kind(answer, "Release") == {}
    owned = {
        stacks.remote(answer, key)["kind"]
        for key, m in stacks.of_kind(answer, "Object").items()
        if m["spec"].get("managementPolicies") != ["Observe"]
    }
    assert {"Gateway", "GatewayClass", "EnvoyProxy", "Namespace"} <= owned
    assert ({"Queue", "Deployment"} <= owned) == (stack == c.DYNAMO)
    assert stacks.says(answer, c.REQUIREMENTS_MET) == (True, "ComponentsFound", "")


def test_a_provided_cluster_is_told_all_that_it_lacks() -> None:
    composite = stacks.stack(stack=c.DYNAMO, provided=c.PROVIDED)
    _, observed = stacks.settled(composite)
    absent = "observe failed: external resource does not exist"
    for key in ("check-grove", "check-nvidia-dra-driver"):
        observed = stacks.failed(observed, key, absent)
    answer = stacks.compose(composite, observed)
    status, code, message = stacks.says(answer, c.REQUIREMENTS_MET)
    assert (status, code) == (False, "ComponentMissing")
    assert "nvidia-dra-driver (DeviceClass gpu.nvidia.com is not there)" in message
    assert "grove (APIService v1alpha1.grove.io is not there)" in message
    assert stacks.component(answer, "grove")["state"] == "Missing"
    assert stacks.component(answer, "kai-scheduler")["state"] == "Found"
    assert stacks.says(answer)[:2] == (False, "ComponentMissing")


COMMON = {"nvidia-dra-driver", "inference-pool-crd", "envoy-gateway", "ai-gateway-crds"}


@pytest.mark.parametrize(
    ("stack", "lacks"),
    [
        (c.STANDARD, COMMON | {"leader-worker-set"}),
        (c.DYNAMO, COMMON | {"kai-scheduler", "kai-services", "grove"}),
    ],
)
def test_a_bare_provided_cluster_is_told_all_at_once_and_not_one_after_the_other(
    stack: str, lacks: set[str]
) -> None:
    composite = stacks.stack(stack=stack, provided=c.PROVIDED)
    observed: dict[str, Any] = {}
    for _ in range(3):
        answer = stacks.compose(composite, observed)
        observed = {k: stacks.reported(r.manifest) for k, r in answer.resources.items()}
        for key in [k for k in observed if k.startswith("check-")]:
            observed = stacks.failed(observed, key, stacks.ABSENT)
    missing = {x["name"] for x in answer.status["components"] if x["state"] == "Missing"}
    assert missing == lacks
    message = stacks.says(answer, c.REQUIREMENTS_MET)[2]
    assert [x for x in lacks if f"{x} (" not in message] == []


def test_a_check_that_cannot_be_made_is_not_a_component_that_is_missing() -> None:
    composite = stacks.stack(provided=c.PROVIDED)
    _, settled = stacks.settled(composite)
    observed = {k: settled[k] for k in (*stacks.CONFIGS, "check-leader-worker-set")}
    observed = stacks.failed(observed, "check-leader-worker-set", "connect failed: no route to host")
    status, code, message = stacks.says(stacks.compose(composite, observed), c.REQUIREMENTS_MET)
    assert (status, code) == (None, "CheckFailed")
    assert message == "leader-worker-set: connect failed: no route to host"


def test_before_a_provided_cluster_answers_nothing_is_known() -> None:
    composite = stacks.stack(provided=c.PROVIDED)
    _, settled = stacks.settled(composite)
    answer = stacks.compose(composite, {k: settled[k] for k in stacks.CONFIGS})
    assert stacks.says(answer, c.REQUIREMENTS_MET)[:2] == (None, "Checking")
    assert "gateway-class" in answer.held_back, "ours wait for what the cluster must have"


def test_a_managed_cluster_has_no_requirements() -> None:
    answer = stacks.compose(stacks.stack(cloud=c.EKS))
    assert stacks.says(answer, c.REQUIREMENTS_MET) == (True, "ComponentsManaged", "")
