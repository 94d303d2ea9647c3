"""What an administrator reads where a package cannot be installed: docs/install.md quotes it."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest

import xpkg
from controlplane.client import Client, Document, documents
from controlplane.function import ROOT
from controlplane.installed import PKG, Installed
from controlplane.processes import wait_for

NAME = "refused"
TAG = "v0.0.1"
ABSENT = "xpkg.crossplane.io/crossplane-contrib/provider-absent"


def metadata(**spec: Any) -> Document:
    """Our Configuration's metadata by another name, with another spec."""
    (found,) = documents(ROOT / "package/crossplane.yaml")
    changed = copy.deepcopy(found)
    changed["metadata"]["name"] = NAME
    changed["spec"] = spec
    return changed


def provider(package: str, version: str) -> Document:
    """A dependency."""
    return {"apiVersion": PKG, "kind": "Provider", "package": package, "version": version}


CASES = [
    (
        metadata(crossplane={"version": ">=v99.0.0"}),
        "incompatible Crossplane version",
        "a core that is too old names what the package wants",
    ),
    (
        metadata(dependsOn=[provider(ABSENT, ">=v1.0.0, <v2.0.0")]),
        "crossplane-contrib/provider-absent",
        "a provider that the registry does not have is named",
    ),
    (
        metadata(dependsOn=[provider("xpkg.crossplane.io/crossplane-contrib/provider-helm", ">=v99.0.0")]),
        "crossplane-contrib/provider-helm",
        "and so is one of which there is no such version",
    ),
    (None, "modelplane/refused", "a package that is not there"),
]


@pytest.fixture
def configuration(installed: Installed) -> Iterator[Document]:
    """A Configuration that names a package of no use, gone afterwards with all that core made of it."""
    client = installed.client
    found: Document = {
        "apiVersion": PKG,
        "kind": "Configuration",
        "metadata": {"name": NAME},
        "spec": {"package": f"{xpkg.PLACEHOLDER}/modelplane/{NAME}:{TAG}", "packagePullPolicy": "Always"},
    }
    yield found
    client.delete(found)
    labels = f"pkg.crossplane.io/package={NAME}"
    wait_for("it is gone", lambda: not client.list(PKG, "ConfigurationRevision", labels))


def said(client: Client) -> str:
    """All that the Configuration and its revisions say."""
    labels = f"pkg.crossplane.io/package={NAME}"
    found = [client.get(PKG, "Configuration", NAME), *client.list(PKG, "ConfigurationRevision", labels)]
    return "\n".join(
        f"{one['type']} {one['status']} {one.get('message', '')}"
        for document in found
        for one in ((document or {}).get("status") or {}).get("conditions", ())
        if one["status"] == "False"
    )


@pytest.mark.parametrize(("package", "message", "reason"), CASES, ids=[case[2] for case in CASES])
def test_a_package_that_cannot_be_installed_says_why(
    installed: Installed, configuration: Document, package: Document | None, message: str, reason: str
) -> None:
    if package is None:
        installed.registry.tags.pop(f"modelplane/{NAME}", None)
    else:
        installed.registry.push(f"modelplane/{NAME}", TAG, [package])
    installed.client.apply(configuration)
    wait_for(reason, lambda: message in said(installed.client), seen=lambda: said(installed.client))
    # What is installed already goes on.
    assert installed.unhealthy() == [] or all(NAME in one for one in installed.unhealthy())
