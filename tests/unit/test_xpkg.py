"""The two packages as Crossplane's package manager and its command line read them."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml

import oci
import xpkg
from builders.packages import put, runtime, tree
from contract.xrds import APIS, ROOT, load

RELEASE = xpkg.Release("v0.1.0", "registry.local:5000/acme", "0123abc")
BOTH = pytest.mark.parametrize("repository", xpkg.REPOSITORIES)


def files(layer: oci.Layer) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    with tarfile.open(fileobj=io.BytesIO(layer.blob)) as tar:
        for entry in tar.getmembers():
            content = tar.extractfile(entry)
            assert content is not None
            found[entry.name] = content.read()
    return found


def stream(image: oci.Image) -> list[dict[str, Any]]:
    """What core reads: the documents of `package.yaml` in the layer that the annotation names."""
    (layer,) = (one for one in image.layers if one.annotations.get("io.crossplane.xpkg") == "base")
    (content,) = (content for name, content in files(layer).items() if name == "package.yaml")
    return [one for one in yaml.safe_load_all(content) if one is not None]


@BOTH
def test_core_finds_the_stream_by_the_annotation_and_the_command_line_by_the_label(repository: str) -> None:
    (image,) = xpkg.images(ROOT, RELEASE)[repository]
    (annotated,) = (one for one in image.layers if one.annotations)
    assert annotated.annotations == {"io.crossplane.xpkg": "base"}
    assert list(files(annotated)) == ["package.yaml"]
    labels = image.config["config"]["Labels"]
    assert labels[f"io.crossplane.xpkg:{annotated.digest}"] == "base"


@BOTH
def test_a_stream_holds_exactly_one_object_of_metadata_and_it_comes_first(repository: str) -> None:
    (image,) = xpkg.images(ROOT, RELEASE)[repository]
    meta = [one["apiVersion"].startswith("meta.pkg.crossplane.io/") for one in stream(image)]
    assert meta == [True, *[False] * (len(meta) - 1)]


def test_the_configuration_holds_every_definition_and_composition_and_no_kind_it_may_not() -> None:
    (image,) = xpkg.images(ROOT, RELEASE)[xpkg.CONFIGURATION]
    objects = stream(image)[1:]
    # crossplane-runtime v2.3.3, pkg/xpkg/lint.go: anything else fails the whole revision.
    assert {one["kind"] for one in objects} == {
        "CompositeResourceDefinition",
        "Composition",
        "ManagedResourceActivationPolicy",
    }
    compositions = [load(path) for path in sorted((ROOT / "compositions").glob("*.yaml"))]
    policy = load(ROOT / "package/activation.yaml")
    assert objects == [*(load(path) for path in sorted(APIS)), *compositions, policy]


def test_the_function_s_package_holds_nothing_but_metadata() -> None:
    (image,) = xpkg.images(ROOT, RELEASE)[xpkg.FUNCTION]
    assert stream(image) == [load(ROOT / "package/function/crossplane.yaml")]


def test_the_function_is_asked_for_where_it_is_pushed_and_providers_where_they_are_published() -> None:
    (image,) = xpkg.images(ROOT, RELEASE)[xpkg.CONFIGURATION]
    packages = [one["package"] for one in stream(image)[0]["spec"]["dependsOn"]]
    assert packages[0] == "registry.local:5000/acme/modelplane/function"
    assert RELEASE.reference(xpkg.FUNCTION) == f"{packages[0]}:v0.1.0"
    assert {one.split("/")[0] for one in packages[1:]} == {"xpkg.crossplane.io"}


def test_a_package_says_its_release_and_commit() -> None:
    for image, *_ in xpkg.images(ROOT, RELEASE).values():
        labels = image.config["config"]["Labels"]
        assert labels["org.opencontainers.image.version"] == "v0.1.0"
        assert labels["org.opencontainers.image.revision"] == "0123abc"


def test_without_a_commit_it_names_none() -> None:
    (image,) = xpkg.images(ROOT, xpkg.Release("v0.1.0"))[xpkg.FUNCTION]
    assert "org.opencontainers.image.revision" not in image.config["config"]["Labels"]


def test_the_same_tree_makes_the_same_packages(tmp_path: Path) -> None:
    base = runtime(tmp_path / "runtime")
    digests = [xpkg.write(ROOT, tmp_path / name, RELEASE, base) for name in ("one", "other")]
    assert digests[0] == digests[1]
    assert set(digests[0]) == set(xpkg.REPOSITORIES)


def test_what_is_written_can_be_read_again(tmp_path: Path) -> None:
    digests = xpkg.write(ROOT, tmp_path, RELEASE)
    for repository, digest in digests.items():
        (read,) = oci.read(tmp_path / repository)
        assert oci.digest(read.manifest_blob()) != digest, "annotations are no part of what is read as a base"
        index = json.loads((tmp_path / repository / "index.json").read_bytes())
        (entry,) = index["manifests"]
        assert entry["digest"] == digest
        assert entry["annotations"]["org.opencontainers.image.ref.name"] == RELEASE.reference(repository)


def test_the_stream_lies_over_the_runtime_and_leaves_it_as_it_was(tmp_path: Path) -> None:
    base = runtime(tmp_path, Env=["PATH=/usr/bin"], Labels={"example.org/base": "debian"})
    (image,) = xpkg.images(ROOT, RELEASE, base)[xpkg.FUNCTION]
    (before,) = oci.read(base)
    assert image.layers[:-1] == before.layers
    assert list(files(image.layers[-1])) == ["package.yaml"]
    settings, was = image.config["config"], before.config["config"]
    assert {**settings, "Labels": {}} == {**was, "Labels": {}}
    assert settings["Labels"]["example.org/base"] == "debian"


def test_the_function_is_packed_for_every_platform_and_the_configuration_once(tmp_path: Path) -> None:
    packages = xpkg.images(ROOT, RELEASE, runtime(tmp_path, "amd64", "arm64"))
    assert [one.platform["architecture"] for one in packages[xpkg.FUNCTION]] == ["amd64", "arm64"]
    assert len(packages[xpkg.CONFIGURATION]) == 1


@pytest.mark.parametrize(
    ("settings", "says", "reason"),
    [
        ({"User": ""}, "runs as root", "no USER is root"),
        ({"User": "0:2000"}, "runs as 0", "root by number"),
        ({"User": "nonroot"}, "runs as nonroot", "the kubelet cannot tell who a name is"),
        ({"Entrypoint": None}, "starts nothing", "the runtime sets no command of its own"),
    ],
)
def test_a_runtime_that_the_kubelet_would_not_start_is_refused(
    tmp_path: Path, settings: dict[str, Any], says: str, reason: str
) -> None:
    with pytest.raises(xpkg.PackageError, match=says) as error:
        xpkg.images(ROOT, RELEASE, runtime(tmp_path, **settings))
    assert str(tmp_path) in str(error.value), reason


@pytest.mark.parametrize(
    ("name", "text", "says", "reason"),
    [
        ("apis/a.yaml", None, "holds no YAML file: run `make generate`", "nothing was generated"),
        ("package/activation.yaml", None, "is missing", "a file that the package needs"),
        (
            "apis/a.yaml",
            "a: 1\n---\nb: 2\n",
            "holds 2 documents",
            "the second would go in unseen by our checks",
        ),
        ("apis/a.yaml", "", "holds 0 documents", "an empty definition"),
        ("apis/a.yaml", "[1]", "want one object", "a list is no object"),
        ("compositions/a.yaml", "a: [", "is no YAML", "a merge that went wrong"),
    ],
)
def test_a_source_that_is_not_one_object_is_named(
    tmp_path: Path, name: str, text: str | None, says: str, reason: str
) -> None:
    path = tree(tmp_path) / name
    if text is None:
        path.unlink()
    else:
        path.write_text(text)
    with pytest.raises(xpkg.PackageError, match=says) as error:
        xpkg.contents(tmp_path)
    assert str(path.parent) in str(error.value), reason


def test_only_what_is_named_goes_in(tmp_path: Path) -> None:
    put(tree(tmp_path), "package/install/roles.yaml", {"kind": "ClusterRole"})
    put(tmp_path, "package/crds/a.yaml", {"kind": "CustomResourceDefinition"})
    kinds = {one["kind"] for documents in xpkg.contents(tmp_path).values() for one in documents}
    assert kinds == {"Configuration", "Function", "Thing"}
