"""Edits of objects that exist: what the API server admits against what was there before."""

from __future__ import annotations

from typing import Any

import pytest

from contract.test_admission import MD, changed
from contract.test_eks_admission import CHANGES
from contract.test_platform_admission import with_spec
from controlplane.client import Client, RefusedError
from controlplane.control_plane import ControlPlane
from controlplane.test_admission_for_real import document


def edited(client: Client, kind: str, path: str, old: Any, new: Any) -> str:
    """What the API server says against the edit, empty where it admits it; the object is gone afterwards."""
    before = document(kind, with_spec(kind, path, old)["spec"])
    # Core would start on it otherwise, and hold the deletion up with a finalizer.
    before["metadata"]["annotations"] = {"crossplane.io/paused": "true"}
    client.apply(before)
    try:
        client.apply(before | {"spec": with_spec(kind, path, new)["spec"]})
    except RefusedError as error:
        return str(error)
    finally:
        client.delete(before)
    return ""


@pytest.mark.parametrize(
    ("kind", "path", "old", "new", "says", "reason"),
    [
        ("inferenceclusters", "stack", "Dynamo", "Dynamo", "", "nothing changes"),
        ("inferenceclusters", "stack", "Standard", None, "", "absent means Standard"),
        (
            "inferenceclusters",
            "stack",
            "Standard",
            "Dynamo",
            "cannot change",
            "one that runs cannot turn",
        ),
        ("inferenceclusters", "stack", None, "Dynamo", "cannot change", "nor one that named no stack"),
        ("inferenceclusters", "stack", "Dynamo", None, "cannot change", "a manifest that lost the line"),
        ("servingstacks", "stack", "Dynamo", None, "cannot change", "the same below"),
        (
            "inferenceclusters",
            "cluster.eks.encryption.kmsKey",
            None,
            "None",
            "kmsKey cannot be changed",
            "EKS takes no key away",
        ),
    ],
)
def test_an_edit_is_judged_by_what_was_there(
    client: Client, kind: str, path: str, old: Any, new: Any, says: str, reason: str
) -> None:
    said = edited(client, kind, path, old, new)
    assert bool(said) is bool(says), f"{reason}: {said}"
    assert says in said, reason


@pytest.mark.parametrize(
    ("field", "old", "new", "said", "reason"), CHANGES, ids=lambda value: str(value)[:30]
)
def test_an_edit_of_a_cluster_on_eks_is_judged_as_offline(
    client: Client, field: str, old: Any, new: Any, said: str, reason: str
) -> None:
    found = edited(client, "inferenceclusters", f"cluster.eks.{field}", old, new)
    assert said in found, reason
    assert bool(found) is bool(said), f"{reason}: {found}"


@pytest.mark.parametrize(
    ("replicas", "says", "reason"),
    [
        (3, "", "more"),
        (0, "", "parked"),
        (65, "64", "beyond the limit"),
    ],
)
def test_kubectl_scales_a_deployment(
    control_plane: ControlPlane, client: Client, replicas: int, says: str, reason: str
) -> None:
    asked = document("modeldeployments", changed(MD, {})["spec"])
    asked["metadata"]["annotations"] = {"crossplane.io/paused": "true"}
    client.apply(asked)
    told = control_plane.shell(f"kubectl scale modeldeployment/it --namespace=default --replicas={replicas}")
    found = client.get("modelplane.ai/v1alpha1", "ModelDeployment", "it", "default")
    client.delete(asked)
    assert found is not None
    if says:
        assert says in told.stderr, reason
    else:
        assert (told.stderr, found["spec"]["replicas"]) == ("", replicas), reason
