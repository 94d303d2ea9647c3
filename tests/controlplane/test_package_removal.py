"""Taking Modelplane away again, as docs/install.md says, and what keeps one from doing it by accident."""

from __future__ import annotations

import pytest

from controlplane.client import Document, RefusedError
from controlplane.installed import PKG, Installed
from modelplane import contracts as c


def test_the_configuration_is_not_deleted_by_accident(installed: Installed) -> None:
    configuration: Document = {"apiVersion": PKG, "kind": "Configuration", "metadata": {"name": "modelplane"}}
    with pytest.raises(RefusedError, match="deletes every InferenceCluster"):
        installed.client.delete(configuration)
    assert installed.unhealthy() == []


def test_removal_leaves_nothing_behind(installed: Installed) -> None:
    installed.remove_fleet()
    installed.remove()
    client = installed.client
    crds = [
        one["metadata"]["name"] for one in client.list("apiextensions.k8s.io/v1", "CustomResourceDefinition")
    ]
    assert [name for name in crds if name.endswith((c.GROUP, "upbound.io", ".m.crossplane.io"))] == []
    named = [
        f"{kind} {one['metadata']['name']}"
        for api_version, kind in (
            ("rbac.authorization.k8s.io/v1", "ClusterRole"),
            ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"),
            ("pkg.crossplane.io/v1beta1", "DeploymentRuntimeConfig"),
            ("apiextensions.crossplane.io/v1", "Composition"),
            ("apiextensions.crossplane.io/v1alpha1", "ManagedResourceActivationPolicy"),
            ("protection.crossplane.io/v1beta1", "ClusterUsage"),
            ("apps/v1", "Deployment"),
            ("v1", "ServiceAccount"),
        )
        for one in client.list(api_version, kind)
        if "modelplane" in one["metadata"]["name"] or "provider" in one["metadata"]["name"]
    ]
    # The manager's and the providers' roles go with the garbage collector.
    assert [one for one in named if not one.startswith("ClusterRole crossplane:")] == []
    locks = client.list("pkg.crossplane.io/v1beta1", "Lock")
    assert [one.get("packages") for one in locks] in ([[]], [None])
