"""Every shape of replica on both stacks, and each of its pods, as a real API server takes them.

A CRD's schema says little of the pods inside a gang: wrapped into a Deployment, the API server judges them as
it would when Grove or LWS creates them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from builders import pod_rules, replica_cases
from builders import replicas as r
from controlplane.client import Client
from controlplane.control_plane import ControlPlane
from controlplane.test_composed_for_real import fault
from modelplane.core import Manifest, paths
from modelplane.kinds import replica_pods

BOTH = pytest.mark.parametrize("stack", replica_cases.STACKS)


@pytest.fixture(scope="module")
def cluster(control_plane: ControlPlane, crds: Path) -> Client:
    """A client of an API server that knows what a serving cluster knows."""
    control_plane.install_providers(crds)
    return control_plane.client


def faults(client: Client, manifests: list[Manifest]) -> list[str]:
    """What is wrong with any of them, their namespaces being there."""
    for namespace in sorted({paths.namespace(manifest) for manifest in manifests}):
        client.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    return [said for manifest in manifests if (said := fault(client, manifest))]


def wrapped(found: dict[str, Manifest]) -> Iterator[Manifest]:
    """A Deployment for each pod template of the workloads."""
    for key, manifest in found.items():
        if not key.startswith("model-serving"):
            continue
        for role, pod in r.pods(manifest).items():
            labels = {"app.kubernetes.io/name": f"{role}-as-a-pod"}
            metadata = {**pod["metadata"], "labels": {**pod["metadata"]["labels"], **labels}}
            yield {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {
                    "name": f"{paths.name(manifest)}-{role}"[-63:].lstrip("-0123456789"),
                    "namespace": paths.namespace(manifest),
                },
                "spec": {
                    "replicas": 0,
                    "selector": {"matchLabels": labels},
                    "template": {"metadata": metadata, "spec": pod["spec"]},
                },
            }


@BOTH
@pytest.mark.parametrize("case", replica_cases.CASES)
def test_a_replica_and_its_pods_are_accepted_and_settle(cluster: Client, case: str, stack: str) -> None:
    found = replica_cases.objects(case, stack)
    assert faults(cluster, [*found.values(), *wrapped(found)]) == []


ODD: list[tuple[dict[str, Any], str]] = [
    ({"terminationGracePeriodSeconds": 0}, "no wait: the API server refuses one longer than the grace"),
    ({"terminationGracePeriodSeconds": 1}, "no time for half of it"),
    ({"imagePullSecrets": [{"name": "a"}, {"name": "a"}]}, "named twice"),
    ({"engine": r.container(env=[{"name": "A", "value": "1"}, {"name": "A", "value": "2"}])}, "set twice"),
    ({"engine": r.container(readinessProbe={"tcpSocket": {"port": 8000}})}, "a probe of their own"),
    (
        {
            "engine": r.container(volumeMounts=[{"name": "shm", "mountPath": "/dev/shm"}]),
            "volumes": [{"name": "shm", "emptyDir": {"medium": "Memory"}}],
        },
        "shared memory of their own",
    ),
    ({"requests": [r.device(count=8), {**r.NIC, "count": 64}]}, "three claims"),
]


@BOTH
@pytest.mark.parametrize(("member", "reason"), ODD)
def test_what_users_may_write_makes_pods_that_are_accepted(
    cluster: Client, member: dict[str, Any], reason: str, stack: str
) -> None:
    composite = r.replica(r.gang("odd", leader=dict(member), worker=dict(member)), team="odd")
    given, _ = r.settled(composite, r.cluster(stack=stack, fabric="EFA", teams=["odd"]))
    found = r.manifests(given)
    assert faults(cluster, [*found.values(), *wrapped(found)]) == [], reason


def made_of(member: dict[str, Any]) -> list[Manifest]:
    """The pods of a worker that is written so, each as a Deployment."""
    composite = r.replica(r.gang("odd", worker=dict(member)), team="odd")
    given, _ = r.settled(composite, r.cluster(teams=["odd"]))
    assert r.workloads(given)
    return list(wrapped(r.manifests(given)))


@pytest.mark.parametrize(("member", "field", "words", "reason"), pod_rules.REFUSED)
def test_what_we_refuse_of_a_pod_the_api_server_refuses(
    cluster: Client,
    monkeypatch: pytest.MonkeyPatch,
    member: dict[str, Any],
    field: str,
    words: str,
    reason: str,
) -> None:
    """A rule of ours that is stricter than Kubernetes would take from users what works."""
    monkeypatch.setattr(replica_pods, "check", lambda _: None)
    assert faults(cluster, made_of(member)), (field, words, reason)


@pytest.mark.parametrize(("member", "reason"), pod_rules.ADMITTED)
def test_what_we_let_through_of_a_pod_the_api_server_takes(
    cluster: Client, member: dict[str, Any], reason: str
) -> None:
    assert faults(cluster, made_of(member)) == [], reason
