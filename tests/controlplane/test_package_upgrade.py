"""A release after the one that is installed: what runs stays the very object it was."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from controlplane.client import Client, Document, condition, documents
from controlplane.function import ROOT
from controlplane.installed import PKG, Installed
from controlplane.processes import wait_for
from modelplane import contracts as c
from modelplane.core import paths

EXAMPLES = ("single-gpu", "existing-dynamo", "dynamo-h200", "gateway")
NEXT = "v0.1.1"
# What nobody but we compose: a change to one is ours.
GROUPS = (
    c.GROUP,
    "kubernetes.m.crossplane.io",
    "helm.m.crossplane.io",
    "upbound.io",
    "protection.crossplane.io",
)


def example(folder: str) -> Iterator[Document]:
    """The documents of an example, its classes included."""
    for path in sorted((ROOT / "examples" / folder).glob("*.yaml")):
        for found in documents(path):
            if found["kind"] == "Kustomization":
                for other in found["resources"]:
                    if (target := ROOT / "examples" / folder / other).is_dir():
                        yield from example(target.name)
            else:
                yield found


def next_release(home: Path) -> Path:
    """A tree as the next release may be: a kind has a field more, which nobody has to set."""
    tree = home / "next"
    for folder in ("apis", "compositions", "package"):
        shutil.copytree(ROOT / folder, tree / folder)
    project = (ROOT / "pyproject.toml").read_text()
    (tree / "pyproject.toml").write_text(project.replace('version = "0.1.0"', f'version = "{NEXT[1:]}"'))
    path = tree / "apis/modeldeployments.yaml"
    (xrd,) = documents(path)
    schema = xrd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["properties"]["inTheNext"] = {"type": "string", "description": "New."}
    path.write_text(yaml.safe_dump(xrd, sort_keys=False))
    return tree


def ours(installed: Installed) -> dict[str, Document]:
    """Everything of ours by uid, whoever composed it."""
    return {
        one["metadata"]["uid"]: one
        for one in installed.everything()
        if one["apiVersion"].partition("/")[0].endswith(GROUPS)
        and paths.namespace(one) != "crossplane-system"
    }


def quiet(installed: Installed) -> dict[str, Document]:
    """Everything of ours once nothing has been made or changed for some seconds."""
    before: dict[str, Document] = {}

    def same() -> bool:
        nonlocal before
        found = ours(installed)
        still = {uid: one["metadata"]["generation"] for uid, one in found.items()} == {
            uid: one["metadata"]["generation"] for uid, one in before.items()
        }
        before = found
        return still

    for _ in range(2):
        wait_for("nothing changes any more", same, seconds=120)
    return before


@pytest.fixture
def running(installed: Installed) -> Iterator[dict[str, Document]]:
    """The examples, applied: all that can be composed before a provider answers."""
    installed.serve_gateway_kinds()
    client = installed.client
    client.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ml-team"}})
    for folder in EXAMPLES:
        for found in example(folder):
            client.apply(found)
    wait_for("clusters are composed", lambda: bool(client.list("ec2.aws.m.upbound.io/v1beta1", "VPC")), 90)
    yield quiet(installed)
    installed.remove_fleet()


def test_an_upgrade_with_examples_running_recreates_nothing(
    installed: Installed, running: dict[str, Document], tmp_path: Path
) -> None:
    kinds = {one["kind"] for one in running.values()}
    assert kinds >= {
        "InferenceCluster",
        "ServingStack",
        "EKSCluster",
        "EKSNetwork",
        "Release",
        "Object",
        "VPC",
    }
    installed.upgrade(next_release(tmp_path), NEXT)
    client = installed.client
    wait_for("the new definition is served", lambda: _has_new_field(client), seconds=60)
    # An edit that changes nothing for us makes core compose each anew, by the new function.
    for one in running.values():
        if one["apiVersion"].partition("/")[0].endswith(c.GROUP):
            client.patch(one, {"metadata": {"annotations": {"example.org/upgraded": NEXT}}})
    after = quiet(installed)
    gone = [f"{one['kind']} {one['metadata']['name']}" for uid, one in running.items() if uid not in after]
    new = [f"{one['kind']} {one['metadata']['name']}" for uid, one in after.items() if uid not in running]
    assert (gone, new) == ([], [])
    rewritten = [
        f"{one['kind']} {one['metadata']['name']}"
        for uid, one in running.items()
        if after[uid]["metadata"]["generation"] != one["metadata"]["generation"]
    ]
    assert rewritten == []
    assert {condition(one, "Synced") for one in after.values() if one["kind"] == "InferenceCluster"} == {
        "True"
    }


def _has_new_field(client: Client) -> bool:
    name = "modeldeployments.modelplane.ai"
    crd = client.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", name)
    assert crd is not None
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return "inTheNext" in schema["properties"]["spec"]["properties"]


def test_only_the_new_revisions_are_active_afterwards(installed: Installed) -> None:
    for kind in ("ConfigurationRevision", "FunctionRevision"):
        active = [one for one in installed.client.list(PKG, kind) if one["spec"]["desiredState"] == "Active"]
        (image,) = {one["spec"]["image"] for one in active}
        assert image.endswith(f":{NEXT}")
