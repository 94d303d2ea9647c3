"""The two Crossplane packages: what is in them, and how they become images.

A package is an image with one layer that holds `package.yaml`, a YAML stream of the package's metadata and
its objects. Core finds that layer by an annotation on its descriptor. A `.xpkg` file has no place for one, so
the image's config repeats it as a label of the layer's digest, which `crossplane xpkg push` turns back into
an annotation. Read in github.com/crossplane/crossplane-runtime v2.3.3, pkg/xpkg/{build,layers}.go.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

import oci

# RFC 2606 reserves it for documentation: the tree names no registry that anybody owns.
INSTALL = Path("package/install")
PLACEHOLDER = "registry.example.org"
FUNCTION = "modelplane/function"
CONFIGURATION = "modelplane/configuration"
REPOSITORIES = (FUNCTION, CONFIGURATION)
KEY = "io.crossplane.xpkg"
BASE = "base"
STREAM = "package.yaml"

Document = dict[str, Any]


class PackageError(Exception):
    """Something that no package can be made of; the message names it and the next step."""


@dataclass(frozen=True)
class Release:
    """What the packages say of themselves: where they go, as what, and from which commit ("" is unknown)."""

    version: str
    registry: str = PLACEHOLDER
    revision: str = ""

    def reference(self, repository: str) -> str:
        """The full name of a package; its tag is the version, which Crossplane wants to be a semantic one."""
        return f"{self.registry}/{repository}:{self.version}"


def version(tree: Path) -> str:
    """The release that the tree is of, as a tag."""
    with (tree / "pyproject.toml").open("rb") as handle:
        return "v" + str(tomllib.load(handle)["project"]["version"])


def contents(tree: Path, registry: str = PLACEHOLDER) -> dict[str, list[Document]]:
    """The objects of each package, its metadata first, by repository.

    Only what is named here goes in: a package that is built from a folder takes every YAML file below it.
    """
    metadata = _document(tree / "package/crossplane.yaml")
    for dependency in metadata["spec"]["dependsOn"]:
        dependency["package"] = elsewhere(dependency["package"], registry)
    objects = [*_folder(tree / "apis"), *_folder(tree / "compositions")]
    activation = _document(tree / "package/activation.yaml")
    return {
        FUNCTION: [_document(tree / "package/function/crossplane.yaml")],
        CONFIGURATION: [metadata, *objects, activation],
    }


def elsewhere(text: str, registry: str) -> str:
    """The text with the registry in place of the placeholder; what names another registry stays."""
    return text.replace(f"{PLACEHOLDER}/", f"{registry}/")


def write_install(tree: Path, folder: Path, release: Release) -> None:
    """Write what `kubectl apply -k` takes: the tree's package/install with our packages of this release."""
    folder.mkdir(parents=True, exist_ok=True)
    for source in sorted((tree / INSTALL).glob("*.yaml")):
        (folder / source.name).write_text(released(source.read_text(), release))


def released(text: str, release: Release) -> str:
    """A manifest with our packages as this release has them, wherever the tree names them with a tag."""
    for repository in REPOSITORIES:
        tagged = rf"\b{re.escape(PLACEHOLDER)}/{repository}:[\w.+-]+"
        text = re.sub(tagged, release.reference(repository), text)
    return elsewhere(text, release.registry)


def images(tree: Path, release: Release, runtime: Path | None = None) -> dict[str, list[oci.Image]]:
    """Both packages by repository: the Function for every platform of its runtime, the Configuration once.

    `runtime` is the layout of the image that serves the function. Without one the Function's package has no
    runtime in it, which is for control planes that run functions elsewhere (--package-runtime=External).

    Raises:
        PackageError: a source that is missing or not of one document; a runtime that would not start.
        oci.OciError: a layout that holds no image.
    """
    inside = contents(tree, release.registry)
    bases = [_empty()] if runtime is None else [_checked(image, runtime) for image in oci.read(runtime)]
    return {
        FUNCTION: [_package(base, inside[FUNCTION], release) for base in bases],
        CONFIGURATION: [_package(_empty(), inside[CONFIGURATION], release)],
    }


def write(tree: Path, out: Path, release: Release, runtime: Path | None = None) -> dict[str, str]:
    """Write the layout of each package below `out/<repository>` and return their digests by repository."""
    made = images(tree, release, runtime)
    return {
        repository: oci.write(out / repository, packages, release.reference(repository))
        for repository, packages in made.items()
    }


def _package(base: oci.Image, documents: list[Document], release: Release) -> oci.Image:
    stream = "---\n".join(["", *(yaml.safe_dump(one, sort_keys=False) for one in documents)])
    layer = oci.layer({STREAM: stream.encode()}, {KEY: BASE})
    settings = dict(base.config.get("config") or {})
    settings["Labels"] = {
        **(settings.get("Labels") or {}),
        **_labels(documents[0], release),
        f"{KEY}:{layer.digest}": BASE,
    }
    history = [*base.config.get("history", []), {"created_by": f"modelplane package {STREAM}"}]
    # After the runtime's layers, as `crossplane xpkg build` appends it.
    return oci.Image({**base.config, "config": settings, "history": history}, (*base.layers, layer))


def _labels(metadata: Mapping[str, Any], release: Release) -> dict[str, str]:
    # https://github.com/opencontainers/image-spec/blob/v1.1.0/annotations.md
    said = {
        "title": metadata["metadata"]["name"],
        "version": release.version,
        "revision": release.revision,
        "licenses": metadata["metadata"]["annotations"]["meta.crossplane.io/license"],
    }
    return {f"org.opencontainers.image.{key}": value for key, value in said.items() if value}


def _empty() -> oci.Image:
    return oci.Image({"os": "linux", "architecture": "amd64"}, ())


def _checked(image: oci.Image, origin: Path) -> oci.Image:
    settings = image.config.get("config") or {}
    if not settings.get("Entrypoint"):
        raise PackageError(
            f"{origin}: the image starts nothing: it needs an ENTRYPOINT that serves the function"
        )
    user = str(settings.get("User", "")).partition(":")[0]
    if not user.isdigit() or int(user) == 0:
        # The kubelet cannot tell from a name that it is not root's, and refuses it under runAsNonRoot.
        raise PackageError(f"{origin}: the image runs as {user or 'root'}: set USER to a number other than 0")
    return image


def _folder(folder: Path) -> list[Document]:
    found = [_document(path) for path in sorted(folder.glob("*.yaml"))]
    if not found:
        raise PackageError(f"{folder} holds no YAML file: run `make generate`")
    return found


def _document(path: Path) -> Document:
    if not path.is_file():
        raise PackageError(f"{path} is missing")
    try:
        read = [one for one in yaml.safe_load_all(path.read_text()) if one is not None]
    except yaml.YAMLError as error:
        raise PackageError(f"{path} is no YAML: {error}") from None
    if len(read) != 1 or not isinstance(read[0], dict):
        raise PackageError(f"{path} holds {len(read)} documents: want one object")
    return dict(read[0])
