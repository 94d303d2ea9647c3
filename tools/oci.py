"""OCI images in a folder: read, put together from layers, written; the same bytes for the same content.

The folder: https://github.com/opencontainers/image-spec/blob/v1.1.0/image-layout.md. `crane push` and `skopeo
copy oci:` take it as it is.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

INDEX = "application/vnd.oci.image.index.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
_DOCKER_INDEX = "application/vnd.docker.distribution.manifest.list.v2+json"
_DOCKER_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
# Docker's own names for the same two things: a layer that is a gzipped tarball, and one that is a plain one.
_GZIPPED = (LAYER, "application/vnd.docker.image.rootfs.diff.tar.gzip")
_PLAIN = ("application/vnd.oci.image.layer.v1.tar", "application/vnd.docker.image.rootfs.diff.tar")
# What docker buildx keeps beside an image in its index, as an image of no platform.
_ATTESTATION = "vnd.docker.reference.type"


class OciError(Exception):
    """A folder that holds no image we can use; the message names the folder and the next step."""


@dataclass(frozen=True)
class Layer:
    """One gzipped tarball; `annotations` stand on its descriptor in the manifest."""

    blob: bytes
    diff_id: str
    annotations: Mapping[str, str] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """The digest of what is stored, gzip and all."""
        return digest(self.blob)


@dataclass(frozen=True)
class Image:
    """A config, as the image specification has it but for `rootfs`, and the layers it is of."""

    config: Mapping[str, Any]
    layers: tuple[Layer, ...]

    @property
    def platform(self) -> dict[str, str]:
        """What an index says of the image: `os`, `architecture` and, where there is one, `variant`."""
        return {key: self.config[key] for key in ("os", "architecture", "variant") if self.config.get(key)}

    def config_blob(self) -> bytes:
        """The config as stored, its `rootfs` after our layers."""
        rootfs = {"type": "layers", "diff_ids": [layer.diff_id for layer in self.layers]}
        return _json({**self.config, "rootfs": rootfs})

    def manifest_blob(self) -> bytes:
        """The manifest as stored."""
        layers = [
            {
                **_descriptor(LAYER, layer.blob),
                **({"annotations": dict(layer.annotations)} if layer.annotations else {}),
            }
            for layer in self.layers
        ]
        config = _descriptor(CONFIG, self.config_blob())
        return _json({"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": layers})


def digest(content: bytes) -> str:
    """The name of a blob."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def layer(files: Mapping[str, bytes], annotations: Mapping[str, str]) -> Layer:
    """A layer of files that everybody may read, owned by root and as old as the epoch."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, content in sorted(files.items()):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o644
            tar.addfile(entry, io.BytesIO(content))
    return _gzipped(out.getvalue(), annotations)


def read(folder: Path) -> list[Image]:
    """Every image of a layout, one a platform, in the order of its index.

    Raises:
        OciError: where the folder is no layout, holds no image, or one with layers of another compression.
    """
    index = folder / "index.json"
    if not index.is_file():
        raise OciError(f"{folder} is no OCI layout: it has no index.json")
    images = [_image(folder, manifest) for manifest in _manifests(folder, json.loads(index.read_bytes()))]
    if not images:
        raise OciError(f"{folder} holds no image: build one into it first")
    return images


def write(folder: Path, images: Sequence[Image], name: str) -> str:
    """Write the layout and return the digest to push: of the one image, or of an index over all of them.

    `name` is what tools find it by (`org.opencontainers.image.ref.name`). The folder must be new or empty.
    """
    _keep(folder, *(one.blob for image in images for one in image.layers))
    _keep(folder, *(image.config_blob() for image in images), *(image.manifest_blob() for image in images))
    listed = [
        {**_descriptor(MANIFEST, image.manifest_blob()), "platform": image.platform} for image in images
    ]
    top = listed[0]
    if len(images) > 1:
        inner = _json({"schemaVersion": 2, "mediaType": INDEX, "manifests": listed})
        _keep(folder, inner)
        top = _descriptor(INDEX, inner)
    named = {**top, "annotations": {"org.opencontainers.image.ref.name": name}}
    (folder / "oci-layout").write_bytes(_json({"imageLayoutVersion": "1.0.0"}))
    (folder / "index.json").write_bytes(_json({"schemaVersion": 2, "mediaType": INDEX, "manifests": [named]}))
    return str(top["digest"])


def archive(image: Image) -> bytes:
    """The image as one file in the form of `docker save`, layers gzipped: what a `.xpkg` file is."""
    config = image.config_blob()
    # https://github.com/google/go-containerregistry/blob/v0.21.6/pkg/v1/tarball/write.go
    names = {one.digest.removeprefix("sha256:") + ".tar.gz": one.blob for one in image.layers}
    listed = [{"Config": digest(config), "RepoTags": None, "Layers": list(names)}]
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, content in {digest(config): config, **names, "manifest.json": _json(listed)}.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o644
            tar.addfile(entry, io.BytesIO(content))
    return out.getvalue()


def _gzipped(plain: bytes, annotations: Mapping[str, str]) -> Layer:
    # No time and no name in the header: they would make every build another package.
    return Layer(gzip.compress(plain, compresslevel=9, mtime=0), digest(plain), annotations)


def _manifests(folder: Path, index: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for entry in index.get("manifests", []):
        if _ATTESTATION in entry.get("annotations", {}):
            continue
        found = json.loads(_blob(folder, entry))
        if entry["mediaType"] in (INDEX, _DOCKER_INDEX):
            yield from _manifests(folder, found)
        elif entry["mediaType"] in (MANIFEST, _DOCKER_MANIFEST):
            yield found


def _image(folder: Path, manifest: Mapping[str, Any]) -> Image:
    config = json.loads(_blob(folder, manifest["config"]))
    layers = []
    for entry, diff_id in zip(manifest["layers"], config["rootfs"]["diff_ids"], strict=True):
        blob, media_type = _blob(folder, entry), entry["mediaType"]
        if media_type in _GZIPPED:
            layers.append(Layer(blob, diff_id))
        elif media_type in _PLAIN:
            layers.append(_gzipped(blob, {}))
        else:
            raise OciError(f"{folder}: a layer is {media_type}: build the image with gzip compression")
    return Image({key: value for key, value in config.items() if key != "rootfs"}, tuple(layers))


def _blob(folder: Path, descriptor: Mapping[str, Any]) -> bytes:
    name = str(descriptor["digest"])
    path = folder / "blobs" / Path(*name.split(":"))
    if not path.is_file():
        raise OciError(f"{folder} is not whole: it lacks {name}; build the image anew")
    content = path.read_bytes()
    if digest(content) != name:
        raise OciError(f"{folder} is damaged: {name} is not what its name says; build the image anew")
    return content


def _keep(folder: Path, *blobs: bytes) -> None:
    (folder / "blobs" / "sha256").mkdir(parents=True, exist_ok=True)
    for blob in blobs:
        (folder / "blobs" / "sha256" / digest(blob).removeprefix("sha256:")).write_bytes(blob)


def _descriptor(media_type: str, content: bytes) -> dict[str, Any]:
    return {"mediaType": media_type, "digest": digest(content), "size": len(content)}


def _json(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
