"""Each example of docs/platform-reuse.md on a real core: the platform's own function runs beside ours."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from controlplane import placed
from controlplane.client import Client, Document, condition, documents
from controlplane.function import ROOT, Function
from controlplane.installed import Installed
from controlplane.living import example
from controlplane.processes import wait_for
from modelplane import contracts as c
from modelplane.core import paths

REUSE = ROOT / "examples/platform-reuse"
NAME = "platform-function"
PACKAGE: Document = {
    "apiVersion": "meta.pkg.crossplane.io/v1",
    "kind": "Function",
    "metadata": {"name": NAME},
    "spec": {"capabilities": ["composition"]},
}
AWS = "eks.aws.m.upbound.io/v1beta1"


@pytest.fixture(scope="module")
def platform(installed: Installed) -> Iterator[Client]:
    """A control plane with the platform's function and both of its APIs; no user has written anything yet."""
    client = installed.client
    installed.serve_gateway_kinds()
    command = [sys.executable, str(REUSE / "function/main.py")]
    function = Function(installed.server, client, installed.registry, NAME, command)
    function.serve()
    function.install([PACKAGE], "platform/function")
    for namespace in ("ml-team", c.SYSTEM_NAMESPACE):
        client.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    applied = [
        client.apply(found)
        for name in ("own-api/definition", "own-api/composition", "own-api/rights")
        for found in documents(REUSE / f"{name}.yaml")
    ]
    for name in ("eksclusters", "inferenceclusters"):
        applied += [client.apply(found) for found in documents(REUSE / f"own-network/{name}.yaml")]
    yield client
    for found in reversed(applied):
        client.delete(found)
    client.delete({"apiVersion": "pkg.crossplane.io/v1", "kind": "Function", "metadata": {"name": NAME}})
    function.stop()


def answer(client: Client, kind: str, name: str) -> None:
    """Call one AWS object ready, as its provider does once AWS has made it."""
    ready = [
        {"type": kind, "status": "True", "reason": "Available", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        for kind in ("Ready", "Synced")
    ]
    found = {"apiVersion": AWS, "kind": kind, "metadata": {"name": name, "namespace": c.SYSTEM_NAMESPACE}}
    client.apply({**found, "status": {"conditions": ready}}, "provider", subresource="status")


def test_a_team_s_own_kind_becomes_a_model_that_the_scheduler_places(
    installed: Installed, platform: Client
) -> None:
    cluster = placed.apply_ready(platform, placed.simulated("InferenceCluster"))
    (model,) = documents(REUSE / "own-api/model.yaml")
    platform.apply(model)

    def ready() -> bool:
        placed.provide(platform, "ml-team")
        found = platform.get(c.API, "ModelDeployment", "chat", "ml-team")
        return condition(found, "Ready") == "True"

    wait_for("the model's deployment is ready", ready)
    (replica,) = platform.list(c.API, "ModelReplica", namespace="ml-team")
    assert replica["spec"]["clusterName"] == "lab"
    engine = paths.at(replica, "spec", "engines", 0, "members", 0, "template", "spec", "containers", 0)
    assert "--model=Qwen/Qwen2.5-0.5B-Instruct" in engine["args"]

    def told() -> list[str]:
        found = platform.get("example.org/v1", "Model", "chat", "ml-team")
        return [condition(found, kind) for kind in ("Synced", "Ready")]

    # Without a front door there is no URL to report, so the service is what the Model waits for. A write that
    # meets another's makes it not Synced until core's next look.
    wait_for("the Model waits for its service", lambda: told() == ["True", "False"], seen=told)
    platform.delete(model)
    wait_for("nothing is left", lambda: not platform.list(c.API, "ModelDeployment"))
    platform.patch(cluster, {"metadata": {"annotations": {placed.PAUSED: None}}})
    installed.remove_fleet()


def test_a_step_after_ours_hands_the_cluster_to_the_platform_s_own_network(
    installed: Installed, platform: Client
) -> None:
    for found in example("classes"):
        platform.apply(found)
    (cluster,) = documents(REUSE / "own-network/cluster.yaml")
    platform.apply(cluster)

    def eks() -> Document | None:
        return platform.get(c.INFRA_API, "EKSCluster", "own-network", c.SYSTEM_NAMESPACE)

    wait_for("its EKSCluster is composed", lambda: eks() is not None)
    handed = eks()
    assert handed is not None
    # What our step composed stands, with what the step after it changed.
    assert handed["metadata"]["labels"][c.CLUSTER_LABEL] == "own-network"
    assert handed["metadata"]["labels"]["example.org/cost-center"] == "inference"
    assert handed["spec"]["crossplane"]["compositionRef"]["name"] == "eksclusters-own-network"
    made = {"Cluster": "own-network", "ClusterAuth": "own-network-auth", "NodeGroup": "own-network-l4"}
    space = c.SYSTEM_NAMESPACE
    for kind, name in made.items():
        wait_for(f"{kind} is composed", lambda k=kind, n=name: platform.get(AWS, k, n, space) is not None)
    # Nothing of our own Composition for the kind was made: no network, no roles.
    assert platform.list(c.INFRA_API, "EKSNetwork") == []
    assert platform.list("iam.aws.m.upbound.io/v1beta1", "Role") == []
    for kind, name in made.items():
        answer(platform, kind, name)
    wait_for("the EKSCluster is ready", lambda: condition(eks(), "Ready") == "True")
    wait_for(
        "Modelplane goes on with the serving stack",
        lambda: bool(platform.list(c.INFRA_API, "ServingStack", namespace=space)),
    )
    (stack,) = platform.list(c.INFRA_API, "ServingStack", namespace=space)
    assert stack["spec"]["secrets"][0]["name"] == "own-network-kubeconfig"
    installed.remove_fleet()


def test_a_cluster_that_names_no_composition_is_made_by_ours(platform: Client, installed: Installed) -> None:
    """Two Compositions fit the kind; the definition's default is ours, whatever else is there."""
    for found in example("classes"):
        platform.apply(found)
    (cluster,) = documents(REUSE / "own-network/cluster.yaml")
    del cluster["spec"]["crossplane"]
    cluster["metadata"]["name"] = "by-default"
    platform.apply(cluster)
    space = c.SYSTEM_NAMESPACE

    def network() -> bool:
        return bool(platform.list(c.INFRA_API, "EKSNetwork", namespace=space))

    wait_for("its network is composed", network)
    found = platform.get(c.INFRA_API, "EKSCluster", "by-default", space)
    assert found is not None
    assert found["spec"]["crossplane"]["compositionRef"]["name"] == f"eksclusters.{c.INFRA_GROUP}"
    installed.remove_fleet()


def test_the_package_manager_puts_a_definition_back_so_a_default_is_not_changed_there(
    installed: Installed,
) -> None:
    """Why docs/platform-reuse.md names the Composition per cluster: an installed XRD is the package's."""
    client, name = installed.client, f"eksclusters.{c.INFRA_GROUP}"
    definition = {
        "apiVersion": "apiextensions.crossplane.io/v2",
        "kind": "CompositeResourceDefinition",
        "metadata": {"name": name},
    }
    client.patch(definition, {"spec": {"enforcedCompositionRef": {"name": "eksclusters-own-network"}}})
    (revision,) = [
        one
        for one in client.list("pkg.crossplane.io/v1", "ConfigurationRevision")
        if one["spec"]["desiredState"] == "Active"
    ]
    client.patch(revision, {"metadata": {"annotations": {"example.org/nudge": "1"}}})

    def spec() -> Document:
        found = client.read(definition)
        assert found is not None
        return dict(found["spec"])

    def back() -> bool:
        return "enforcedCompositionRef" not in spec()

    wait_for("the package manager has put it back", back, seen=spec)
    assert spec()["defaultCompositionRef"] == {"name": name}, "ours is the default as before"
