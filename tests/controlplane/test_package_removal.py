"""Taking Modelplane away again, as docs/install.md says, and what keeps one from doing it by accident."""

from __future__ import annotations

import pytest

from controlplane.client import Client, Document, RefusedError
from controlplane.installed import PKG, Installed, documented
from controlplane.processes import wait_for
from modelplane import contracts as c
from modelplane.core import paths

GROUPS = (c.GROUP, "upbound.io", ".m.crossplane.io")
# Of the roles that Crossplane's chart makes, the one with such a name.
CHARTS_OWN = "crossplane:allowed-provider-permissions"


def test_the_configuration_is_not_deleted_by_accident(installed: Installed) -> None:
    configuration: Document = {"apiVersion": PKG, "kind": "Configuration", "metadata": {"name": "modelplane"}}
    with pytest.raises(RefusedError, match="deletes every InferenceCluster"):
        installed.client.delete(configuration)
    assert installed.unhealthy() == []


def test_removal_leaves_nothing_behind(installed: Installed) -> None:
    for block in documented("Removal"):
        installed.follow(block)
    # The last of it goes with the garbage collector.
    wait_for("nothing is left", lambda: not left(installed.client), seen=lambda: left(installed.client))
    assert left(installed.client) == []


def left(client: Client) -> list[str]:
    """All that is still there of us and of the providers we brought."""
    crds = client.list("apiextensions.k8s.io/v1", "CustomResourceDefinition")
    found = [paths.name(one) for one in crds if paths.name(one).endswith(GROUPS)]
    found += [
        f"{kind} {name}"
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
        for name in map(paths.name, client.list(api_version, kind))
        if ("modelplane" in name or "provider" in name) and name != CHARTS_OWN
    ]
    locks = client.list("pkg.crossplane.io/v1beta1", "Lock")
    return found + [f"Lock {one['name']}" for lock in locks for one in lock.get("packages") or ()]
