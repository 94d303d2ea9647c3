"""Parts of the control plane that go and come back: what ran stays, what waited goes on."""

from __future__ import annotations

import copy
from collections.abc import Iterator

import pytest

from contract.test_platform_admission import VALID
from controlplane.client import Client, Document, condition
from controlplane.control_plane import ControlPlane
from controlplane.processes import wait_for


def inference_class(name: str) -> Document:
    """The smallest composite that core makes Ready without any provider."""
    return {
        "apiVersion": "modelplane.ai/v1alpha1",
        "kind": "InferenceClass",
        "metadata": {"name": name},
        "spec": copy.deepcopy(VALID["inferenceclasses"]),
    }


def has(client: Client, document: Document, kind: str, status: str) -> bool:
    """Whether the object has the condition."""
    return condition(client.read(document), kind) == status


def becomes_ready(client: Client, name: str) -> None:
    """Apply a class and wait for it."""
    applied = client.apply(inference_class(name))
    wait_for(f"{name} is Ready", lambda: has(client, applied, "Ready", "True"))


@pytest.fixture
def both(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """Two servers of the function behind the one endpoint; the first alone again afterwards."""
    function = control_plane.function
    function.start_server(1)
    yield control_plane
    function.servers[1].kill()
    if function.servers[0].pid is None:
        function.start_server(0)


def test_a_function_that_was_killed_is_called_again_when_it_is_back(control_plane: ControlPlane) -> None:
    client, function = control_plane.client, control_plane.function
    becomes_ready(client, "before-the-kill")
    function.servers[0].kill()
    waiting = client.apply(inference_class("during-the-outage"))
    assert not has(client, waiting, "Ready", "True")
    assert has(client, inference_class("before-the-kill"), "Ready", "True")
    function.start_server(0)
    wait_for("it is Ready", lambda: has(client, waiting, "Ready", "True"))


def test_one_of_two_functions_may_go(both: ControlPlane) -> None:
    becomes_ready(both.client, "with-two")
    both.function.servers[0].kill()
    becomes_ready(both.client, "with-the-second-alone")
    assert [server.pid is None for server in both.function.servers] == [True, False], "by the second alone"


def test_an_api_server_restart_changes_nothing(control_plane: ControlPlane) -> None:
    client, server = control_plane.client, control_plane.server
    becomes_ready(client, "before-the-restart")
    kept = client.settled(inference_class("before-the-restart"))
    server.api.kill()
    server.start_api()
    after = client.settled(inference_class("before-the-restart"))
    assert after["metadata"]["resourceVersion"] == kept["metadata"]["resourceVersion"]
    applied = client.apply(inference_class("after-the-restart"))

    def ready() -> bool:
        if control_plane.core.process.pid is None:
            # Core ends when it loses its watches for good; its Deployment starts it again.
            control_plane.core.start()
        return has(client, applied, "Ready", "True")

    wait_for("a class that is made afterwards is Ready", ready)


def test_a_core_restart_writes_nothing(control_plane: ControlPlane) -> None:
    client = control_plane.client
    becomes_ready(client, "before-cores-restart")
    kept = client.settled(inference_class("before-cores-restart"))
    control_plane.core.stop()
    control_plane.core.start()
    becomes_ready(client, "after-cores-restart")
    after = client.settled(inference_class("before-cores-restart"))
    assert after["metadata"]["resourceVersion"] == kept["metadata"]["resourceVersion"]
