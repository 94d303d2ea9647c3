"""The function as core runs it in a cluster: the Deployment that our runtime config becomes.

No kubelet starts its pods here. A process of ours stands for one: the image's command with the environment,
the files and the port that the Deployment gives its container.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from crossplane.function.proto.v1 import run_function_pb2 as fnv1
from crossplane.function.proto.v1 import run_function_pb2_grpc as rpc

import xpkg
from controlplane import packages
from controlplane.binaries import find_or_build
from controlplane.client import Client, Document, condition
from controlplane.control_plane import ControlPlane
from controlplane.core import CLIENT_SECRET, NAMESPACE, secret, write_secret
from controlplane.function import NAME, ROOT
from controlplane.processes import LOOPBACK, Process, free_ports, listens, wait_for
from modelplane.core import paths

SERVICE = f"{NAME}.{NAMESPACE}"
OURS = ("DeploymentRuntimeConfig", "PodDisruptionBudget", "Function")


class InACluster(ControlPlane):
    """Crossplane with the package runtime of a cluster, and of ours the function only."""

    def _start(self) -> None:
        self._start_core()
        packages.push_ours(self.registry, ROOT, self.home, xpkg.version(ROOT))
        for one in packages.manifests(self.home):
            if one["kind"] in OURS and one["metadata"]["name"] == NAME:
                self.client.apply(one)


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest) -> Iterator[InACluster]:
    with InACluster(find_or_build(), ["--package-runtime=Deployment"]) as running:
        yield running
        running.failed = request.session.testsfailed > 0


@pytest.fixture(scope="module")
def deployment(cluster: InACluster) -> Document:
    """What core has made of the function."""

    def found() -> list[Document]:
        return cluster.client.list("apps/v1", "Deployment", namespace=NAMESPACE)

    wait_for("core has made a Deployment", lambda: bool(found()))
    (one,) = found()
    return one


def container(deployment: Document) -> Document:
    """The only container of its pods."""
    (one,) = deployment["spec"]["template"]["spec"]["containers"]
    assert isinstance(one, dict)
    return one


def test_the_api_server_admits_two_replicas_that_give_no_rights_away(
    cluster: InACluster, deployment: Document
) -> None:
    spec, runs = deployment["spec"], container(deployment)
    pod = spec["template"]["spec"]
    assert spec["replicas"] == 2
    assert spec["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
    assert runs["image"].startswith(f"{cluster.registry.host}/{xpkg.FUNCTION}")
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["automountServiceAccountToken"] is False
    assert runs["securityContext"]["readOnlyRootFilesystem"] is True
    assert runs["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert runs["resources"]["limits"] == {"memory": "1Gi"}


def test_probes_and_service_reach_the_port_that_core_calls(cluster: InACluster, deployment: Document) -> None:
    runs = container(deployment)
    ports = {one["name"]: one["containerPort"] for one in runs["ports"]}
    service = cluster.client.get("v1", "Service", NAME, NAMESPACE)
    assert service is not None
    called = {one["targetPort"] for one in service["spec"]["ports"] if one["name"] == "grpc"}
    assert {ports.get(str(one), one) for one in called} == {9443}
    assert {runs[probe]["tcpSocket"]["port"] for probe in ("readinessProbe", "livenessProbe")} == {9443}


def test_disruptions_and_spread_count_the_pods_that_core_labels(
    cluster: InACluster, deployment: Document
) -> None:
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    budget = cluster.client.get("policy/v1", "PodDisruptionBudget", NAME, NAMESPACE)
    assert budget is not None
    (spread,) = deployment["spec"]["template"]["spec"]["topologySpreadConstraints"]
    for selector in (budget["spec"]["selector"], spread["labelSelector"]):
        assert selector["matchLabels"].items() <= labels.items()
    assert budget["spec"]["minAvailable"] < deployment["spec"]["replicas"]


def test_its_container_serves_core_with_the_certificates_that_core_made(
    cluster: InACluster, deployment: Document, tmp_path: Path
) -> None:
    runs = container(deployment)
    mounts = {one["name"]: one["mountPath"] for one in runs["volumeMounts"]}
    folders = {}
    for volume in deployment["spec"]["template"]["spec"]["volumes"]:
        if name := paths.text(volume, "secret", "secretName"):
            folder = folders[mounts[volume["name"]]] = tmp_path / volume["name"]
            wait_for(f"Secret {name} is there", lambda n=name: bool(secret(cluster.client, n)))
            write_secret(cluster.client, name, folder)
    given = {one["name"]: one["value"] for one in runs["env"] if "value" in one}
    environment = {name: str(folders.get(value, value)) for name, value in given.items()}
    (port,) = free_ports(1)
    # The image's entry point; the port is the only thing of ours.
    command = [sys.executable, "-m", "modelplane", "serve", *runs.get("args", ())]
    command += ["--address", f"{LOOPBACK}:{port}"]
    server = Process("function-in-a-pod", command, cluster.server.logs, env=environment)
    server.start(lambda: listens(port))
    try:
        answer = call(cluster.client, port)
    finally:
        server.stop()
    assert answer.meta.tag == "from core"
    assert [one.message for one in answer.results if one.severity == fnv1.SEVERITY_FATAL] == []


def call(client: Client, port: int) -> fnv1.RunFunctionResponse:
    """Ask the server as core does: with core's certificate, by the name of the Service."""
    own = secret(client, CLIENT_SECRET)
    credentials = grpc.ssl_channel_credentials(own["ca.crt"], own["tls.key"], own["tls.crt"])
    options = [("grpc.ssl_target_name_override", SERVICE)]
    request = fnv1.RunFunctionRequest()
    request.meta.tag = "from core"
    request.observed.composite.resource.update(
        {"apiVersion": "modelplane.ai/v1alpha1", "kind": "InferenceClass", "metadata": {"name": "any"}}
    )
    with grpc.secure_channel(f"{LOOPBACK}:{port}", credentials, options) as channel:
        answer = rpc.FunctionRunnerServiceStub(channel).RunFunction(request, timeout=30)
    assert isinstance(answer, fnv1.RunFunctionResponse)
    return answer


def test_the_function_is_healthy_once_its_pods_are_available(
    cluster: InACluster, deployment: Document
) -> None:
    available = {"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"}

    def function() -> Document | None:
        return cluster.client.get("pkg.crossplane.io/v1", "Function", NAME)

    assert condition(function(), "Healthy") != "True"
    cluster.client.patch(deployment, {"status": {"conditions": [available]}}, subresource="status")
    wait_for("it is healthy", lambda: condition(function(), "Healthy") == "True", seen=function)
    assert condition(function(), "Installed") == "True"
