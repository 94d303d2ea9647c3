"""ServingStack: the order in which it goes."""

from __future__ import annotations

import pytest

from builders import stacks
from modelplane import contracts as c


@pytest.mark.parametrize(("stack", "provided", "cloud"), stacks.SHAPES)
def test_each_consumer_of_a_config_holds_it_alone(stack: str, provided: str, cloud: str) -> None:
    """Case C58: a Usage with a bare selector guards the first consumer only."""
    answer, _ = stacks.settled(stacks.stack(stack=stack, provided=provided, cloud=cloud))
    wanted = [("provider-config-helm", k) for k in stacks.of_kind(answer, "Release")]
    wanted += [("provider-config-kubernetes", k) for k in stacks.of_kind(answer, "Object")]
    assert sorted(e for e in stacks.edges(answer) if e[0] in stacks.CONFIGS) == sorted(wanted)


@pytest.mark.parametrize(
    ("of", "by", "reason"),
    [
        ("gateway-class", "gateway", "the class's finalizer waits for its gateways"),
        ("envoy-gateway", "gateway-class", "only the controller takes that finalizer off"),
        ("gateway-service", "gateway", "while it stands, the controller makes the Service again"),
        ("envoy-gateway", "gateway-service", "the load balancer is gone before its controller"),
        ("ai-gateway", "gateway", "with its hook dead, Envoy Gateway changes nothing any more"),
        ("kai-scheduler", "kai-queue-root", "its webhook fails closed"),
        ("kai-queue-root", "kai-queue", "a parent goes last"),
        ("kai-scheduler", "grove", "Grove's PodGroups need it"),
        ("nvidia-dra-driver-namespace", "nvidia-dra-driver-quota", "a namespace takes all in it along"),
        ("modelexpress-network-policy", "modelexpress-server-deployment", "the fence goes last"),
    ],
)
def test_nothing_goes_before_what_needs_it(of: str, by: str, reason: str) -> None:
    answer, _ = stacks.settled(stacks.stack(stack=c.DYNAMO))
    assert (of, by) in stacks.edges(answer), reason


@pytest.mark.parametrize(("stack", "provided", "cloud"), stacks.SHAPES)
def test_removal_never_goes_in_a_circle(stack: str, provided: str, cloud: str) -> None:
    answer, _ = stacks.settled(stacks.stack(stack=stack, provided=provided, cloud=cloud))
    left = {k for k, r in answer.resources.items() if r.manifest["kind"] != "Usage"}
    held = stacks.edges(answer)
    while left:
        free = {k for k in left if not any(of == k and by in left for of, by in held)}
        assert free, f"nothing of {sorted(left)} can ever be deleted"
        left -= free


def test_the_load_balancer_is_watched_until_the_cloud_has_released_it() -> None:
    answer, _ = stacks.settled(stacks.stack(cloud=c.EKS))
    service = answer.resources["gateway-service"].manifest
    assert service["spec"]["managementPolicies"] == ["Observe", "Delete"]
    proxy = stacks.remote(answer, "gateway-proxy")["spec"]["provider"]["kubernetes"]["envoyService"]
    assert stacks.remote(answer, "gateway-service")["metadata"] == {
        "name": proxy["name"],
        "namespace": c.ENVOY_NAMESPACE,
    }
