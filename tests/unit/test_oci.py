"""Image layouts: what is written is what was meant, and what is read is refused unless it is whole."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

import oci

CONFIG = {"os": "linux", "architecture": "amd64", "config": {"User": "2000"}}


def image(architecture: str = "amd64", **files: bytes) -> oci.Image:
    layer = oci.layer(files or {"a": b"1"}, {"example.org/role": "data"})
    return oci.Image({**CONFIG, "architecture": architecture}, (layer,))


def blob(folder: Path, digest: str) -> bytes:
    return (folder / "blobs" / "sha256" / digest.removeprefix("sha256:")).read_bytes()


def rewrite(folder: Path, media_type: str, content: bytes) -> None:
    """Make the only layer of the layout another blob of another media type."""
    index = json.loads((folder / "index.json").read_bytes())
    manifest = json.loads(blob(folder, index["manifests"][0]["digest"]))
    (layer,) = manifest["layers"]
    layer |= {"mediaType": media_type, "digest": put(folder, content), "size": len(content)}
    index["manifests"][0]["digest"] = put(folder, json.dumps(manifest).encode())
    (folder / "index.json").write_text(json.dumps(index))


def put(folder: Path, content: bytes) -> str:
    digest = oci.digest(content)
    (folder / "blobs" / "sha256" / digest.removeprefix("sha256:")).write_bytes(content)
    return digest


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    oci.write(tmp_path, [image()], "a:v1")
    (read,) = oci.read(tmp_path)
    assert read.config == CONFIG
    assert [one.blob for one in read.layers] == [one.blob for one in image().layers]


def test_the_digest_is_that_of_the_manifest_a_registry_would_serve(tmp_path: Path) -> None:
    digest = oci.write(tmp_path, [image()], "a:v1")
    manifest = json.loads(blob(tmp_path, digest))
    assert manifest["mediaType"] == oci.MANIFEST
    for part in (manifest["config"], *manifest["layers"]):
        assert part["size"] == len(blob(tmp_path, part["digest"]))


def test_the_same_content_is_the_same_bytes_in_whatever_order_it_comes() -> None:
    one, other = oci.layer({"a": b"1", "b": b"2"}, {}), oci.layer({"b": b"2", "a": b"1"}, {})
    assert one == other
    assert image().manifest_blob() == image().manifest_blob()


def test_diff_ids_are_of_the_plain_tarball_and_digests_of_the_gzipped_one() -> None:
    (layer,) = image().layers
    assert layer.diff_id == oci.digest(gzip.decompress(layer.blob))
    assert layer.digest == oci.digest(layer.blob)


def test_a_layer_says_nothing_of_who_made_it_and_when() -> None:
    (layer,) = image().layers
    with tarfile.open(fileobj=io.BytesIO(layer.blob)) as tar:
        (entry,) = tar.getmembers()
    assert (entry.mtime, entry.uid, entry.gid, entry.uname, entry.mode) == (0, 0, 0, "", 0o644)


def test_images_of_several_platforms_are_pushed_as_one_index(tmp_path: Path) -> None:
    digest = oci.write(tmp_path, [image("amd64"), image("arm64")], "a:v1")
    index = json.loads(blob(tmp_path, digest))
    assert index["mediaType"] == oci.INDEX
    assert [one["platform"]["architecture"] for one in index["manifests"]] == ["amd64", "arm64"]
    assert [one.config["architecture"] for one in oci.read(tmp_path)] == ["amd64", "arm64"]


def test_an_attestation_beside_an_image_is_no_image(tmp_path: Path) -> None:
    oci.write(tmp_path, [image()], "a:v1")
    index = json.loads((tmp_path / "index.json").read_bytes())
    attested = {**index["manifests"][0], "annotations": {"vnd.docker.reference.type": "attestation-manifest"}}
    (tmp_path / "index.json").write_text(json.dumps({**index, "manifests": [*index["manifests"], attested]}))
    assert len(oci.read(tmp_path)) == 1


def test_a_layer_without_compression_is_gzipped_and_keeps_its_diff_id(tmp_path: Path) -> None:
    oci.write(tmp_path, [image()], "a:v1")
    plain = gzip.decompress(image().layers[0].blob)
    rewrite(tmp_path, "application/vnd.oci.image.layer.v1.tar", plain)
    (read,) = oci.read(tmp_path)
    assert read.layers[0].diff_id == oci.digest(plain)
    assert gzip.decompress(read.layers[0].blob) == plain


def test_a_file_holds_what_docker_save_would_write(tmp_path: Path) -> None:
    with tarfile.open(fileobj=io.BytesIO(oci.archive(image()))) as tar:
        files: dict[str, bytes] = {}
        for entry in tar.getmembers():
            content = tar.extractfile(entry)
            assert content is not None
            files[entry.name] = content.read()
    (listed,) = json.loads(files.pop("manifest.json"))
    config = files.pop(listed["Config"])
    assert json.loads(config)["rootfs"]["diff_ids"] == [image().layers[0].diff_id]
    assert files == {listed["Layers"][0]: image().layers[0].blob}


def damage(folder: Path) -> None:
    for found in (folder / "blobs" / "sha256").iterdir():
        found.write_bytes(b"{}")


@pytest.mark.parametrize(
    ("spoil", "says", "reason"),
    [
        (lambda folder: (folder / "index.json").unlink(), "no OCI layout", "some other folder"),
        (
            lambda folder: (folder / "index.json").write_text("{}"),
            "holds no image",
            "nothing was built into it",
        ),
        (damage, "damaged", "a blob that is not what it was"),
        (
            lambda folder: [one.unlink() for one in (folder / "blobs" / "sha256").iterdir()],
            "not whole",
            "a copy that broke off",
        ),
        (
            lambda folder: rewrite(folder, "application/vnd.oci.image.layer.v1.tar+zstd", b"zstd"),
            "gzip compression",
            "a compression that older clients of registries cannot read",
        ),
    ],
)
def test_a_layout_that_is_not_whole_is_refused_with_the_next_step(
    tmp_path: Path, spoil: Any, says: str, reason: str
) -> None:
    oci.write(tmp_path, [image()], "a:v1")
    spoil(tmp_path)
    with pytest.raises(oci.OciError, match=says) as error:
        oci.read(tmp_path)
    assert str(tmp_path) in str(error.value), reason
