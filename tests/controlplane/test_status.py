"""`modelplane status` and `plan --live` against a real API server and core."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import fleets
from builders.manifests import deployment, existing, gpu_class, member, write
from controlplane.client import Client, condition
from controlplane.control_plane import ControlPlane
from controlplane.processes import wait_for
from modelplane import cli
from modelplane.core import paths

GPU = member(cel="device.driver == 'gpu.nvidia.com'")
SECRET = "hunter2"


@pytest.fixture(scope="module")
def fleet(control_plane: ControlPlane, crds: Path) -> Iterator[Client]:
    """A class, a cluster that nobody reaches, and a deployment without a place."""
    control_plane.install_providers(crds)
    client = control_plane.client
    for name in ("ml-team", "modelplane-system"):
        client.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    client.apply(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "lab", "namespace": "modelplane-system"},
            "stringData": {"kubeconfig": SECRET},
        }
    )
    applied = [client.apply(x) for x in (gpu_class(), existing(), deployment(GPU))]
    wait_for(
        "all three were looked at", lambda: looked_at(client), seen=lambda: [client.read(x) for x in applied]
    )
    yield client
    for document in reversed(applied):
        client.delete(document)


def looked_at(client: Client) -> bool:
    """Whether core has composed each, the deployment with the cluster's state before it."""
    it, lab, qwen = (client.read(x) or {} for x in (gpu_class(), existing(), deployment(GPU)))
    known = condition(it, "Ready") == "True" and condition(lab, "BackendReady") != "Absent"
    return known and any(
        "not Ready" in x.get("message", "") for x in paths.mappings(qwen, "status", "conditions")
    )


def run(control_plane: ControlPlane, *args: str) -> Result:
    kubeconfig = str(control_plane.server.kubeconfig)
    return CliRunner().invoke(cli.main, [args[0], "--kubeconfig", kubeconfig, *args[1:]])


def objects(result: Result) -> dict[str, Any]:
    return {x["object"]: x for x in json.loads(result.stdout)["objects"]}


@pytest.mark.usefixtures("fleet")
def test_the_tree_says_what_is_ready_and_the_first_reason_why_not(control_plane: ControlPlane) -> None:
    result = run(control_plane, "status", "-o", "json")
    assert result.exit_code == 1, result.output
    found = objects(result)
    assert found["InferenceClass l4"]["ready"] is True
    assert found["InferenceCluster lab"]["why"].startswith("BackendReady ")
    assert "is not ready" in found["ModelDeployment ml-team/qwen"]["why"].replace("not Ready", "not ready")
    assert SECRET not in result.output
    (room,) = json.loads(result.stdout)["capacity"]
    assert (room["cluster"], room["total"], room["free"]) == ("lab", 2, 2)


@pytest.mark.usefixtures("fleet")
def test_one_object_is_shown_with_what_it_composed(control_plane: ControlPlane) -> None:
    found = objects(run(control_plane, "status", "inferenceclusters/lab", "-o", "json"))
    assert next(iter(found)) == "InferenceCluster lab"
    assert all("ModelDeployment" not in name for name in found)
    missing = run(control_plane, "status", "modeldeployment/nobody")
    assert missing.exit_code == 3
    assert missing.output.strip() == "status: no ModelDeployment nobody is there; there are qwen"


@pytest.mark.usefixtures("fleet")
def test_a_plan_is_made_on_the_live_fleet(control_plane: ControlPlane) -> None:
    files = str(fleets.EXAMPLES / "qwen3-coder")
    result = run(control_plane, "plan", "--live", "--all", files, "-o", "json")
    assert result.exit_code == 1, result.output
    answers = {x["name"]: x for x in json.loads(result.stdout)["deployments"]}
    assert answers["qwen"]["whyNot"] == [{"cluster": "lab", "reason": "the cluster is not Ready"}]
    assert answers["qwen3-coder"]["missing"] == 1


def test_a_context_that_is_not_there_is_one_line(control_plane: ControlPlane) -> None:
    result = run(control_plane, "status", "--context", "nobody")
    assert result.exit_code == 3
    assert "nobody" in result.output
    assert len(result.output.strip().splitlines()) == 1


def test_a_live_fleet_can_be_drawn(control_plane: ControlPlane) -> None:
    result = run(control_plane, "graph", "--live", "-o", "svg")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("<svg")


def test_manifests_are_judged_against_the_live_fleet(
    fleet: Client, control_plane: ControlPlane, tmp_path: Path
) -> None:
    found = fleet.list("modelplane.ai/v1alpha1", "InferenceCluster")
    assert [x["metadata"]["name"] for x in found] == ["lab"]
    judged = write(tmp_path, deployment(GPU, name="second"))
    result = run(control_plane, "validate", "--live", str(judged))
    assert result.exit_code == 1
    assert "the cluster is not Ready" in result.output
