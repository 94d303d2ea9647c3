"""The packages that a registry serves to the tests: ours, and stand-ins for the providers they need."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import yaml

import xpkg
from controlplane.client import Document, documents
from controlplane.function import ROOT
from controlplane.registry import Registry

# Every registry that the packages name; all are served from loopback instead.
HOSTS = (xpkg.PLACEHOLDER, "xpkg.crossplane.io")
INSTALL = Path("out/package/install")
FAMILY = "provider-family-aws"


def providers() -> list[Document]:
    """The entries of the Configuration's `dependsOn` that are providers."""
    (metadata,) = documents(ROOT / "package/crossplane.yaml")
    return [one for one in metadata["spec"]["dependsOn"] if one["kind"] == "Provider"]


def manifests(home: Path) -> list[Document]:
    """Everything that `kubectl apply -k` applies of what was pushed last, in order."""
    (listed,) = documents(home / INSTALL / "kustomization.yaml")
    return [found for name in listed["resources"] for found in documents(home / INSTALL / name)]


def push_ours(registry: Registry, tree: Path, home: Path, tag: str) -> None:
    """Serve both packages of a tree under the tag, as `make push` does but without a runtime.

    What is then applied stands below `home` where docs/install.md says.
    """
    release = xpkg.Release(tag, registry.host)
    xpkg.write(tree, home / tag, release)
    xpkg.write_install(tree, home / INSTALL, release)
    for repository in xpkg.REPOSITORIES:
        registry.serve(home / tag / repository, repository, tag)


def next_release(home: Path, version: str) -> Path:
    """A tree as the next release may be: a kind has a field more, which nobody has to set."""
    tree = home / "next"
    for folder in ("apis", "compositions", "package"):
        shutil.copytree(ROOT / folder, tree / folder)
    project = (ROOT / "pyproject.toml").read_text()
    (tree / "pyproject.toml").write_text(project.replace('version = "0.1.0"', f'version = "{version}"'))
    path = tree / "apis/modeldeployments.yaml"
    (xrd,) = documents(path)
    schema = xrd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["properties"]["inTheNext"] = {"type": "string", "description": "New."}
    path.write_text(yaml.safe_dump(xrd, sort_keys=False))
    return tree


def push_providers(registry: Registry, crds: Path) -> None:
    """Serve a stand-in for each provider and for the AWS family: real CRDs, no program."""
    for entry in providers():
        folder, _, name = entry["package"].partition("/")[2].rpartition("/")
        # Of the form `>=v1.2.3, <v2.0.0`; the lower bound is a release.
        release = entry["version"].partition(",")[0].removeprefix(">=")
        depends: list[Document] = []
        if name.startswith("provider-aws-"):
            depends = [{**entry, "package": f"{entry['package'].rpartition('/')[0]}/{FAMILY}"}]
            registry.push(f"{folder}/{FAMILY}", release, list(_provider(FAMILY, [], crds)))
        registry.push(f"{folder}/{name}", release, list(_provider(name, depends, crds)))


def _provider(name: str, depends: list[Document], crds: Path) -> Iterator[Document]:
    yield {
        "apiVersion": "meta.pkg.crossplane.io/v1",
        "kind": "Provider",
        "metadata": {"name": name},
        # As the real ones have it: their managed kinds are served once a policy activates them.
        "spec": {"capabilities": ["safe-start"], "dependsOn": depends},
    }
    for path in sorted(crds.glob(f"provider-*/{_group(name)}_*.yaml")):
        yield from documents(path)


def _group(provider: str) -> str:
    if provider == FAMILY:
        return "aws.m.upbound.io"
    if provider.startswith("provider-aws-"):
        return f"{provider.removeprefix('provider-aws-')}.aws.m.upbound.io"
    return f"{provider.removeprefix('provider-')}.m.crossplane.io"
