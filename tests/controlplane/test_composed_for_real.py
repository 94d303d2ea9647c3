"""Everything that any example composes, at any pass, applied as core and the providers apply it."""

from __future__ import annotations

import copy
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

import fleets
import judges
from controlplane.client import Client, Document, RefusedError
from controlplane.control_plane import ControlPlane
from modelplane.core import Manifest, paths
from modelplane.sim.world import ref

# Core applies what we compose and provider-kubernetes what an Object carries: both by server-side apply.
MANAGER = "composed"
OURS = ("modelplane.ai", "infrastructure.modelplane.ai")
# These stay until the run ends: others have objects in them or of them.
SHARED = ("Namespace", "CustomResourceDefinition")
# Core writes the status of these as we look, so only their generation stands still.
CORES = (*OURS, "protection.crossplane.io")


def composed(folder: str) -> list[Manifest]:
    """Each distinct object of all passes, in order, remote ones after what carries them."""
    found: dict[str, Manifest] = {}
    for call in fleets.played(folder).calls:
        assert call.reply.answer is not None
        for key, resource in call.reply.answer.resources.items():
            policies = paths.items(resource.manifest, "spec", "managementPolicies") or ["*"]
            for place, manifest in enumerate(judges.with_remote(resource.manifest)):
                if place and not {"*", "Create"} & set(policies):
                    # Looked at or deleted, never applied.
                    continue
                whole = copy.deepcopy(dict(manifest))
                metadata: dict[str, Any] = whole.setdefault("metadata", {})
                # Core names what the function does not, and puts it into the composite's namespace.
                digest = hashlib.sha256(f"{call.target}{key}".encode()).hexdigest()[:12]
                metadata.setdefault("name", f"composed-{digest}")
                if place == 0 and paths.namespace(call.inputs.composite):
                    metadata["namespace"] = paths.namespace(call.inputs.composite)
                found[json.dumps(whole, sort_keys=True)] = whole
    return list(found.values())


def group(manifest: Manifest) -> str:
    """The API group, empty for the core group."""
    return str(manifest["apiVersion"]).rpartition("/")[0]


def prepared(manifest: Manifest) -> Document:
    """The object; core is told to leave composites of ours alone, since what they compose is here too."""
    document = copy.deepcopy(dict(manifest))
    if group(document) in OURS:
        document["metadata"].setdefault("annotations", {})["crossplane.io/paused"] = "true"
    return document


def content(document: Document) -> Document:
    """What was asked for, without what only others write."""
    return {key: value for key, value in document.items() if key not in {"metadata", "status"}}


def fault(client: Client, manifest: Manifest) -> str:
    """What is wrong with the object, empty where it is accepted and applying it again changes nothing."""
    document, about = prepared(manifest), f"{manifest['kind']} {paths.name(manifest)}"
    try:
        # The second apply of a kind whose status has defaults writes once more, to store those; the content
        # stays the same.
        first, second, third = (client.apply(document, MANAGER) for _ in range(3))
    except RefusedError as error:
        return f"{about}: {error}"
    if content(first) != content(second):
        return f"{about}: a second apply made {content(first)} into {content(second)}"
    version = "generation" if group(manifest) in CORES else "resourceVersion"
    if second["metadata"][version] != third["metadata"][version]:
        return f"{about}: it is written again at every apply"
    return ""


@pytest.fixture(scope="module")
def provided(control_plane: ControlPlane, crds: Path) -> Client:
    """A client of a control plane that knows every kind we compose."""
    control_plane.install_providers(crds)
    return control_plane.client


@pytest.mark.parametrize("folder", fleets.FOLDERS)
def test_every_composed_object_is_accepted_and_applied_again_without_change(
    provided: Client, folder: str
) -> None:
    manifests = composed(folder)
    for namespace in sorted({paths.namespace(manifest) for manifest in manifests} - {""}):
        provided.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    try:
        faults = [said for manifest in manifests if (said := fault(provided, manifest))]
        assert not faults, "\n".join(faults)
    finally:
        # Whatever runs next has a fleet of its own, with names like these.
        provided.clear({ref(one): one for one in manifests if one["kind"] not in SHARED}.values())
