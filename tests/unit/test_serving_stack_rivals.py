"""ServingStack: what of somebody else's keeps a component from being installed beside it."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from builders import stacks
from modelplane import contracts as c
from modelplane.core import Answer
from modelplane.facts import versions
from modelplane.stacks import join
from modelplane.stacks.component import Context

HELM_RELEASE = "meta.helm.sh/release-name"


def first_look(**spec: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """A new stack whose looks the provider has answered: nothing is there."""
    composite = stacks.stack(stack=c.DYNAMO, **spec)
    answer = stacks.compose(composite)
    observed: dict[str, Any] = {}
    for _ in range(2):
        observed = {k: stacks.reported(r.manifest) for k, r in answer.resources.items()}
        answer = stacks.compose(composite, observed)
    return composite, {k: v for k, v in observed.items() if k in stacks.CONFIGS or k.startswith("rival-")}


def there(observed: dict[str, Any], key: str, **over: Any) -> dict[str, Any]:
    """The looks, one of which has found an object; `over` is merged into what it found."""
    changed = copy.deepcopy(observed)
    sought = changed[key]["spec"]["forProvider"]["manifest"]
    found = {**sought, **over, "metadata": {**sought["metadata"], **over.get("metadata", {})}}
    changed[key]["status"] = {
        "atProvider": {"manifest": found},
        "conditions": [{"type": "Synced", "status": "True"}, {"type": c.READY, "status": "True"}],
    }
    return changed


def by_helm(release: str) -> dict[str, Any]:
    return {"metadata": {"annotations": {HELM_RELEASE: release}}}


def test_nothing_is_installed_on_an_existing_cluster_before_it_has_been_looked_at() -> None:
    answer = stacks.compose(stacks.stack(stack=c.DYNAMO), {k: {} for k in stacks.CONFIGS})
    assert stacks.of_kind(answer, "Release").keys() == set()
    assert "inference-pool-crd" not in answer.resources, "nor what has nothing to fight with"
    assert answer.held_back["envoy-gateway"] == "looks for an install of somebody else's"
    assert stacks.says(answer, c.REQUIREMENTS_MET)[:2] == (None, "Checking")


def test_a_cluster_that_we_made_is_not_looked_at() -> None:
    answer, _ = stacks.settled(stacks.stack(stack=c.DYNAMO, cloud=c.EKS))
    first = stacks.compose(stacks.stack(stack=c.DYNAMO, cloud=c.EKS))
    assert not [k for k in (*answer.resources, *first.resources) if k.startswith("rival-")]


def test_looking_ends_once_a_component_is_there() -> None:
    answer, _ = stacks.settled(stacks.stack(stack=c.DYNAMO))
    assert not [k for k in answer.resources if k.startswith("rival-")]
    assert stacks.says(answer, c.REQUIREMENTS_MET) == (True, "ComponentsManaged", "")


RIVALS = [
    ("rival-nvidia-dra-driver-0", "DeviceClass gpu.nvidia.com", "components Provided", "another DRA driver"),
    (
        "rival-nvidia-dra-driver-2",
        "DaemonSet gpu-operator/nvidia-device-plugin-daemonset",
        "devicePlugin.enabled false",
        "a device plugin allocates the same GPUs",
    ),
    (
        "rival-prometheus-1",
        "Deployment monitoring/kube-prometheus-stack-operator",
        "spec.components.prometheus.enabled false",
        "case C51: two operators fight over every Prometheus",
    ),
    (
        "rival-node-feature-discovery-0",
        "Deployment node-feature-discovery/nfd-master",
        "spec.components.node-feature-discovery.enabled false",
        "one is enough",
    ),
    (
        "rival-envoy-gateway-0",
        "Deployment envoy-gateway-system/envoy-gateway",
        "components Provided",
        "two claim the same classes",
    ),
    (
        "rival-kai-scheduler-0",
        "Deployment kai-scheduler/kai-operator",
        "components Provided",
        "a release of the same name would be taken over",
    ),
    ("rival-grove-0", "Deployment grove-system/grove-operator", "components Provided", "webhooks meet"),
    (
        "rival-gateway-class-0",
        "GatewayClass envoy",
        "spec.gateway.className",
        "ours would be applied over another team's class",
    ),
]


@pytest.mark.parametrize(("key", "named", "step", "reason"), RIVALS)
def test_a_rival_keeps_its_component_away_and_is_named_with_the_next_step(
    key: str, named: str, step: str, reason: str
) -> None:
    composite, observed = first_look()
    answer = stacks.compose(composite, there(observed, key))
    component = key.removeprefix("rival-").rpartition("-")[0]
    assert component not in answer.resources, reason
    assert key in answer.resources, "it goes on looking, so a rival that leaves is noticed"
    entry = stacks.component(answer, component)
    assert entry["state"] == "Blocked"
    assert named in entry["message"]
    assert step in entry["message"]
    status, code, message = stacks.says(answer, c.REQUIREMENTS_MET)
    assert (status, code) == (False, "ForeignInstall")
    assert named in message
    assert stacks.says(answer)[:2] == (False, "ForeignInstall")
    assert answer.ready is False


def test_all_rivals_are_named_at_once() -> None:
    composite, observed = first_look()
    for key in ("rival-grove-0", "rival-prometheus-0"):
        observed = there(observed, key)
    message = stacks.says(stacks.compose(composite, observed), c.REQUIREMENTS_MET)[2]
    assert "grove-operator" in message
    assert "prometheus-operator" in message


def test_a_rival_that_has_left_lets_the_component_in() -> None:
    composite, observed = first_look()
    blocked = stacks.compose(composite, there(observed, "rival-envoy-gateway-0"))
    composite["status"] = dict(blocked.status)
    clear = stacks.compose(composite, observed)
    assert "node-feature-discovery" in clear.resources
    observed["inference-pool-crd"] = stacks.reported(clear.resources["inference-pool-crd"].manifest)
    assert "envoy-gateway" in stacks.compose(composite, observed).resources


@pytest.mark.parametrize("key", ["rival-grove-0", "rival-prometheus-0", "rival-nvidia-dra-driver-1"])
def test_one_rival_keeps_a_whole_new_stack_away_so_that_it_can_still_become_provided(key: str) -> None:
    composite, observed = first_look()
    answer = stacks.compose(composite, there(observed, key))
    components = {x.key: x for x in join.stack(c.DYNAMO)}
    assert {k for k in answer.resources if k in components and not components[k].own} == set()
    waits = stacks.component(answer, "node-feature-discovery")
    assert waits["state"] == "Waiting"
    assert waits["message"].startswith("nothing is installed before the way is clear for ")
    observed |= {k: stacks.reported(r.manifest) for k, r in answer.resources.items() if k not in observed}
    composite = stacks.stack(stack=c.DYNAMO, provided=c.PROVIDED, status=answer.status)
    taken = stacks.compose(composite, observed)
    assert stacks.says(taken)[1] != "InvalidSpec"
    assert "check-grove" in taken.resources


def test_a_provided_cluster_that_is_no_longer_one_for_a_while_keeps_all_that_is_ours() -> None:
    """Managed was asked for while its owners' install still stands: nothing comes, nothing goes, and back."""
    provided = stacks.stack(stack=c.DYNAMO, provided=c.PROVIDED)
    settled, observed = stacks.settled(provided)
    own = {k for k in observed if not k.startswith(("check-", "usage-"))}
    managed = stacks.stack(stack=c.DYNAMO, status=settled.status)
    for _ in range(3):
        answer = stacks.compose(managed, observed)
        managed["status"] = dict(answer.status)
        looks = {k for k in answer.resources if k.startswith("rival-")}
        observed = {k: stacks.reported(r.manifest) for k, r in answer.resources.items()}
        for key in looks:
            observed = there(observed, key)
    assert looks
    assert own <= answer.resources.keys()
    assert stacks.of_kind(answer, "Release") == {}
    assert "inference-pool-crd" not in answer.resources
    assert stacks.says(answer, c.REQUIREMENTS_MET)[1] == "ForeignInstall"
    back = stacks.stack(stack=c.DYNAMO, provided=c.PROVIDED, status=managed["status"])
    for _ in range(3):
        answer = stacks.compose(back, observed)
        observed = {k: stacks.reported(r.manifest) for k, r in answer.resources.items()}
    assert answer.resources.keys() == settled.resources.keys()
    assert stacks.says(answer) == (True, "ComponentsReady", "")


def test_a_rival_of_a_component_that_comes_later_keeps_that_one_away_alone() -> None:
    """Where charts of ours run already, `Provided` is no way out: it would be refused."""
    _, settled = stacks.settled(stacks.stack(stack=c.DYNAMO))
    before = {k: v for k, v in settled.items() if k not in ("grove", "prometheus")}
    composite = stacks.stack(stack=c.DYNAMO)
    asked = stacks.compose(composite, before)
    looks = {k: stacks.reported(r.manifest) for k, r in asked.resources.items() if k.startswith("rival-")}
    answer = stacks.compose(composite, {**before, **there(looks, "rival-grove-0")})
    assert "prometheus" in answer.resources
    assert "grove" not in answer.resources
    assert "delete the cluster and register it with" in stacks.component(answer, "grove")["message"]


@pytest.mark.parametrize(
    ("key", "found", "clear", "reason"),
    [
        ("rival-grove-0", by_helm("mp-grove-charts"), True, "ours, of a stack that was here before"),
        ("rival-grove-0", by_helm("grove"), False, "a user's release of the same chart"),
        ("rival-grove-0", {"metadata": {"annotations": None}}, False, "applied without Helm"),
        ("rival-kai-scheduler-0", by_helm("kai-scheduler"), False, "its name is not ours alone"),
        (
            "rival-gateway-class-0",
            {"spec": {"parametersRef": {"name": c.CLUSTER_GATEWAY, "namespace": c.SYSTEM_NAMESPACE}}},
            True,
            "a class that points at our proxy",
        ),
        ("rival-gateway-class-0", {"spec": {"controllerName": "x"}}, False, "one that does not"),
        ("rival-gateway-class-0", {"spec": "junk"}, False, "or cannot be read"),
    ],
)
def test_what_is_ours_is_told_from_what_is_not(
    key: str, found: dict[str, Any], clear: bool, reason: str
) -> None:
    composite, observed = first_look()
    answer = stacks.compose(composite, there(observed, key, **found))
    component = key.removeprefix("rival-").rpartition("-")[0]
    assert (stacks.component(answer, component)["state"] != "Blocked") == clear, reason


@pytest.mark.parametrize(
    ("said", "clear", "reason"),
    [
        (stacks.ABSENT, True, "nothing is there"),
        (
            'cannot get object: no matches for kind "DeviceClass" in version "resource.k8s.io/v1"',
            True,
            "the cluster does not even know the kind",
        ),
        ("connect failed: no route to host", False, "nobody knows"),
    ],
)
def test_a_look_that_failed_is_no_look(said: str, clear: bool, reason: str) -> None:
    composite, observed = first_look()
    answer = stacks.compose(composite, stacks.failed(observed, "rival-grove-0", said))
    state = stacks.component(answer, "grove")
    assert (state["state"] != "Checking") == clear, reason
    if not clear:
        assert state["message"] == said
        assert stacks.says(answer, c.REQUIREMENTS_MET)[0] is None


@pytest.mark.parametrize("stack", [c.STANDARD, c.DYNAMO])
def test_a_component_that_runs_is_never_asked_for_rivals_again(stack: str) -> None:
    """Also where it cannot be seen in one pass: held back then, it would be deleted."""
    composite = stacks.stack(stack=stack)
    settled, observed = stacks.settled(composite)
    composite["status"] = dict(settled.status)
    for key in settled.resources:
        answer = stacks.compose(composite, {k: v for k, v in observed.items() if k != key})
        assert key in answer.resources
        assert not [k for k in answer.resources if k.startswith("rival-")]


def test_on_a_provided_cluster_only_what_we_own_there_has_rivals() -> None:
    composite = stacks.stack(stack=c.DYNAMO, provided=c.PROVIDED)
    keys = [k for k in answer_of(composite).resources if k.startswith("rival-")]
    assert keys == ["rival-gateway-class-0"]


def answer_of(composite: dict[str, Any]) -> Answer:
    return stacks.compose(composite, {k: {} for k in stacks.CONFIGS})


@pytest.mark.parametrize("stack", sorted(join.STACKS))
def test_rivals_are_small_and_leave_with_what_they_stand_for(stack: str) -> None:
    """A CRD may be a megabyte, and it stays when its controller goes: it would tell nothing."""
    here = Context(versions.newest())
    kinds = {rival.kind for x in join.stack(stack) for rival in x.rivals(here)}
    assert "CustomResourceDefinition" not in kinds
    assert kinds <= {
        "Deployment",
        "DaemonSet",
        "DeviceClass",
        "GatewayClass",
        "ValidatingWebhookConfiguration",
    }
