"""ServingStack: the order in which it goes."""

from __future__ import annotations

from typing import Any

import pytest

from builders import stacks
from modelplane import contracts as c
from modelplane.core import paths
from modelplane.kinds import serving_stack


@pytest.mark.parametrize(("stack", "provided", "cloud"), stacks.SHAPES)
def test_each_consumer_of_a_config_holds_it_alone(stack: str, provided: str, cloud: str) -> None:
    """Case C58: a Usage with a bare selector guards the first consumer only."""
    answer, _ = stacks.settled(stacks.stack(stack=stack, provided=provided, cloud=cloud))
    wanted = [("provider-config-helm", k) for k in stacks.of_kind(answer, "Release")]
    wanted += [
        ("provider-config-kubernetes", key)
        for key, manifest in stacks.of_kind(answer, "Object").items()
        # What leaves its object on the cluster goes without reaching it.
        if "Delete" in manifest["spec"].get("managementPolicies", ["Delete"])
    ]
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
        ("nvidia-dra-driver-namespace", "nvidia-dra-driver", "a namespace takes all in it along"),
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


def lifeline(name: str = "north-auth", **over: Any) -> dict[str, Any]:
    """What writes the kubeconfig of an EKS cluster, as its composite marks it."""
    labels = {c.CLUSTER_LABEL: "north", c.ROLE_LABEL: c.ROLE_LIFELINE}
    metadata = {"name": name, "namespace": c.SYSTEM_NAMESPACE, "labels": labels, **over}
    return {"apiVersion": c.EKS_API, "kind": "ClusterAuth", "metadata": metadata}


def lifelines(found: Any) -> dict[str, Any]:
    return {k: r.manifest for k, r in found.resources.items() if k.startswith("usage-lifeline-")}


@pytest.mark.parametrize("stack", [c.STANDARD, c.DYNAMO])
def test_the_kubeconfig_outlives_the_last_that_reaches_the_cluster(stack: str) -> None:
    """Case C60, with whatever deletion flag: it is held by the configs, which go last of all."""
    answer, _ = stacks.settled(stacks.stack(stack=stack, cloud=c.EKS), lifeline())
    held = lifelines(answer)
    assert sorted(held) == [f"usage-lifeline-north-auth-by-{config}" for config in stacks.CONFIGS]
    configs = stacks.of_kind(answer, "ProviderConfig")
    for key, manifest in held.items():
        assert manifest["spec"]["of"] == {
            "apiVersion": c.EKS_API,
            "kind": "ClusterAuth",
            "resourceRef": {"name": "north-auth"},
        }
        by = configs[key.partition("-by-")[2]]
        assert manifest["spec"]["by"] == {
            "apiVersion": by["apiVersion"],
            "kind": "ProviderConfig",
            "resourceRef": {"name": paths.name(by)},
        }
        assert manifest["metadata"]["namespace"] == c.SYSTEM_NAMESPACE


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (lifeline(labels={c.CLUSTER_LABEL: "south", c.ROLE_LABEL: c.ROLE_LIFELINE}), "another cluster's"),
        (lifeline(labels={c.CLUSTER_LABEL: "north"}), "it is not marked"),
        (lifeline(namespace="elsewhere"), "a Usage does not reach other namespaces"),
    ],
)
def test_only_the_clusters_own_marked_leaves_are_held(other: dict[str, Any], reason: str) -> None:
    answer, _ = stacks.settled(stacks.stack(cloud=c.EKS), other)
    assert lifelines(answer) == {}, reason


def test_an_existing_cluster_has_no_lifelines_of_ours() -> None:
    required = {r.name for r in serving_stack.KIND.requires(stacks.stack())}
    assert "lifelines" not in required


def test_a_lifeline_that_cannot_be_found_is_let_go_at_the_second_look_only() -> None:
    composite = stacks.stack(cloud=c.EKS)
    settled, observed = stacks.settled(composite, lifeline())
    first = stacks.compose(composite, observed)
    assert first.resources.keys() == settled.resources.keys()
    observed = {k: stacks.reported(r.manifest) for k, r in first.resources.items()}
    let_go = lifelines(stacks.compose(composite, observed))
    assert ["by" in usage["spec"] for usage in let_go.values()] == [False, False], "their configs stay"
    last = {**observed, **let_go}
    assert lifelines(stacks.compose(composite, last)) == {}
    back = lifelines(stacks.compose(composite, observed, lifeline()))
    assert back == lifelines(settled), "and is held again when it is there"


@pytest.mark.parametrize("junk", [{}, {"metadata": {"name": "x"}}, {"spec": 7, "kind": "Usage"}])
def test_an_unreadable_usage_of_a_lifeline_hurts_nothing(junk: dict[str, Any]) -> None:
    composite = stacks.stack(cloud=c.EKS)
    settled, observed = stacks.settled(composite, lifeline())
    key = next(iter(lifelines(settled)))
    assert stacks.compose(composite, {**observed, key: junk}, lifeline()).resources == settled.resources
