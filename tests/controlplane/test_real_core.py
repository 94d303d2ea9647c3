"""The real core calls the real function over mTLS."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from contract.test_platform_admission import VALID
from controlplane.client import Client, Document, RefusedError, condition
from controlplane.control_plane import ControlPlane
from controlplane.processes import wait_for

CLASS = {
    "apiVersion": "modelplane.ai/v1alpha1",
    "kind": "InferenceClass",
    "metadata": {"name": "on-core"},
    "spec": VALID["inferenceclasses"],
}


def ready(client: Client, document: Document) -> bool:
    """Whether core says so and applied everything."""
    found = client.read(document)
    return condition(found, "Ready") == "True" and condition(found, "Synced") == "True"


@pytest.fixture
def inference_class(client: Client) -> Iterator[Document]:
    """An applied InferenceClass, gone afterwards."""
    applied = client.apply(CLASS)
    yield applied
    client.delete(applied)
    wait_for("the class is gone", lambda: client.read(applied) is None)


def test_the_function_is_installed_by_the_package_manager(control_plane: ControlPlane) -> None:
    revision = control_plane.function.revision()
    assert revision is not None
    assert revision["status"]["endpoint"] == control_plane.function.endpoint
    assert condition(revision, "RevisionHealthy") == "True"
    assert any("/manifests/" in path for path in control_plane.registry.asked)


def test_a_class_becomes_ready_and_is_left_alone(client: Client, inference_class: Document) -> None:
    wait_for("the class is Ready", lambda: ready(client, inference_class))
    found = client.settled(inference_class)
    assert condition(found, "Accepted") == "True"
    # An edit that changes nothing for us makes core look again, and core has nothing to write.
    nudged = client.patch(found, {"metadata": {"annotations": {"example.org/nudge": "1"}}})
    again = client.settled(inference_class)
    assert again["metadata"]["resourceVersion"] == nudged["metadata"]["resourceVersion"]


def test_a_usage_refuses_a_deletion_through_the_webhook(client: Client, inference_class: Document) -> None:
    usage = client.apply(
        {
            "apiVersion": "protection.crossplane.io/v1beta1",
            "kind": "ClusterUsage",
            "metadata": {"name": "keeps-the-class"},
            "spec": {
                "of": {
                    "apiVersion": inference_class["apiVersion"],
                    "kind": inference_class["kind"],
                    "resourceRef": {"name": inference_class["metadata"]["name"]},
                },
                "reason": "a test holds it",
            },
        }
    )

    def held() -> bool:
        found = client.read(inference_class)
        return found is not None and found["metadata"].get("labels", {}).get("crossplane.io/in-use") == "true"

    wait_for("core marks the class as in use", held)
    with pytest.raises(RefusedError, match="a test holds it"):
        client.delete(inference_class)
    client.delete(usage)
    wait_for("the usage is gone", lambda: client.read(usage) is None)
