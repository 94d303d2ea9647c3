"""Building and pushing the packages: what goes where, and what is refused before anything is sent."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

import make_package
import oci
import push
import xpkg
from builders.packages import commit, put, runtime, tree
from contract.xrds import ROOT

GHCR = "ghcr.io/acme"
LOCAL = "localhost:5000"


class World:
    """A clean tree in git, and tools on PATH that note how they are called and answer for a registry."""

    def __init__(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.tree = tree(home / "tree")
        self.out = home / "out"
        self.bin = home / "bin"
        self.runtime = runtime(home / "runtime")
        self.bin.mkdir()
        self._calls = home / "calls"
        self._published = home / "published"
        self._published.mkdir()
        self._cat = shutil.which("cat")
        self.revision = commit(self.tree)
        git = shutil.which("git")
        assert git is not None
        (self.bin / "git").symlink_to(git)
        monkeypatch.setenv("PATH", str(self.bin))

    def tool(self, name: str, status: int = 0) -> None:
        """Put a tool there whose pushes end with `status`; what is published already, it finds."""
        path = self.bin / name
        path.write_text(
            "#!/bin/sh\n"
            f"echo {name} $* >>{self._calls}\n"
            "for last; do :; done\n"
            f"case $1 in inspect|manifest) exec {self._cat} {self._published}/${{last##*/}};; esac\n"
            f"exit {status}\n"
        )
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def publish(self, package: str, manifest: bytes) -> None:
        """Make the registry hold a package, named like `function:v0.1.0`."""
        (self._published / package).write_bytes(manifest)

    def build(self, registry: str = GHCR, *, with_runtime: bool = True) -> dict[str, Any]:
        make_package.build(self.tree, self.out, registry, self.runtime if with_runtime else None)
        return dict(json.loads((self.out / "packages.json").read_text()))

    @property
    def calls(self) -> list[str]:
        return self._calls.read_text().splitlines() if self._calls.exists() else []


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, monkeypatch)


@pytest.mark.parametrize(
    "name",
    [
        "ghcr.io/acme",
        "registry.local:5000",
        "kind-registry:5000",
        "localhost",
        "127.0.0.1:5000",
        "a.b/c/d-e.f",
    ],
)
def test_a_host_with_or_without_folders_is_a_registry(name: str) -> None:
    assert make_package.registry(name) == name


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("", "names none"),
        ("https://ghcr.io/acme", "an address"),
        ("ghcr.io/Acme", "lower case"),
        ("ghcr.io/acme/", "ends in a slash"),
        ("ghcr.io/acme:v1", "has a tag"),
        ("ghcr.io/acme@sha256:1", "has a tag"),
        ("acme", "acme is no host"),
        ("acme/models", "acme is no host"),
        ("ghcr.io/_acme", "no path"),
        ("ghcr.io/a b", "no path"),
    ],
)
def test_what_is_no_registry_is_refused_with_an_example(name: str, says: str) -> None:
    with pytest.raises(xpkg.PackageError, match=says) as error:
        make_package.registry(name)
    assert "ghcr.io/acme" in str(error.value)


def test_a_build_says_what_it_was_made_from(world: World) -> None:
    record = world.build()
    assert record["revision"] == world.revision
    assert (record["version"], record["registry"], record["changed"]) == ("v0.1.0", GHCR, [])
    for repository, digest in record["digests"].items():
        index = json.loads((world.out / repository / "index.json").read_bytes())
        assert index["manifests"][0]["digest"] == digest


def test_a_changed_source_is_built_and_said(world: World) -> None:
    put(world.tree, "apis/b.yaml", {"kind": "Thing"})
    record = world.build()
    assert record["changed"] == ["apis/b.yaml"]
    assert record["revision"] == f"{world.revision}-dirty"


def test_a_changed_document_changes_no_package(world: World) -> None:
    (world.tree / "docs").mkdir()
    (world.tree / "docs" / "a.md").write_text("a")
    assert world.build()["changed"] == []


def test_a_build_leaves_nothing_of_an_earlier_one(world: World) -> None:
    put(world.tree, "package/install/old.yaml", {"kind": "ClusterRole"})
    world.build()
    (world.tree / "package/install/old.yaml").unlink()
    world.build(with_runtime=False)
    assert not (world.out / "install" / "old.yaml").exists()
    for repository in xpkg.REPOSITORIES:
        index = json.loads((world.out / repository / "index.json").read_bytes())
        manifest = json.loads(blob(world.out / repository, index["manifests"][0]["digest"]))
        wanted = {index["manifests"][0]["digest"], manifest["config"]["digest"]}
        wanted |= {layer["digest"] for layer in manifest["layers"]}
        found = {f"sha256:{path.name}" for path in (world.out / repository / "blobs/sha256").iterdir()}
        assert found == wanted


def blob(folder: Path, digest: str) -> bytes:
    return (folder / "blobs/sha256" / digest.removeprefix("sha256:")).read_bytes()


@pytest.mark.parametrize(
    ("text", "want", "reason"),
    [
        (
            "registry.example.org/modelplane/function:v0.0.9",
            "ghcr.io/acme/modelplane/function:v0.1.0",
            "ours",
        ),
        (
            "registry.example.org/modelplane/",
            "ghcr.io/acme/modelplane/",
            "a prefix, as an ImageConfig has it",
        ),
        (
            "registry.example.org/modelplane/functions:v1",
            "ghcr.io/acme/modelplane/functions:v1",
            "another one",
        ),
        (
            "xpkg.crossplane.io/a/provider-helm:v1.4.0",
            "xpkg.crossplane.io/a/provider-helm:v1.4.0",
            "another's",
        ),
    ],
)
def test_what_is_installed_by_hand_names_this_release(
    world: World, text: str, want: str, reason: str
) -> None:
    put(world.tree, "package/install/packages.yaml", {"kind": "Function", "spec": {"package": text}})
    world.build()
    written = yaml.safe_load((world.out / "install" / "packages.yaml").read_text())
    assert written["spec"]["package"] == want, reason


def test_a_tree_without_git_is_built_and_names_no_commit(world: World) -> None:
    shutil.rmtree(world.tree / ".git")
    assert world.build()["revision"] == ""


def test_a_machine_without_git_builds_all_the_same(world: World) -> None:
    (world.bin / "git").unlink()
    assert world.build()["revision"] == ""


@pytest.mark.parametrize(
    ("tool", "function", "configuration"),
    [
        (
            "skopeo",
            "skopeo copy --preserve-digests oci:{out}/modelplane/function docker://{name}/function:v0.1.0",
            "skopeo copy --preserve-digests oci:{out}/modelplane/configuration"
            " docker://{name}/configuration:v0.1.0",
        ),
        (
            "crane",
            "crane push {out}/modelplane/function {name}/function:v0.1.0",
            "crane push {out}/modelplane/configuration {name}/configuration:v0.1.0",
        ),
        (
            "crossplane",
            "crossplane xpkg push --package-files={out}/modelplane-function-amd64.xpkg"
            " {name}/function:v0.1.0",
            "crossplane xpkg push --package-files={out}/modelplane-configuration-amd64.xpkg"
            " {name}/configuration:v0.1.0",
        ),
    ],
)
def test_the_function_is_pushed_before_what_asks_for_it(
    world: World, tool: str, function: str, configuration: str
) -> None:
    world.tool(tool)
    world.build()
    push.push(world.out, GHCR)
    sent = [call for call in world.calls if "inspect" not in call and "manifest" not in call]
    values = {"out": world.out, "name": f"{GHCR}/modelplane"}
    assert sent == [function.format(**values), configuration.format(**values)]


def test_all_platforms_go_under_one_tag(world: World, tmp_path: Path) -> None:
    world.runtime = runtime(tmp_path / "both", "amd64", "arm64")
    world.build()
    world.tool("crossplane")
    push.push(world.out, GHCR)
    files = ",".join(str(world.out / f"modelplane-function-{it}.xpkg") for it in ("amd64", "arm64"))
    assert f"--package-files={files} " in world.calls[0]
    world.tool("skopeo")
    push.push(world.out, GHCR)
    assert [call for call in world.calls if "--all" in call] == [
        f"skopeo copy --preserve-digests --all oci:{world.out}/modelplane/function"
        f" docker://{GHCR}/modelplane/function:v0.1.0"
    ]


def manifest(world: World, repository: str) -> bytes:
    index = json.loads((world.out / repository / "index.json").read_bytes())
    return blob(world.out / repository, index["manifests"][0]["digest"])


@pytest.mark.parametrize("tool", ["skopeo", "crane"])
def test_a_push_that_broke_off_may_be_repeated(world: World, tool: str) -> None:
    world.build()
    world.publish("function:v0.1.0", manifest(world, xpkg.FUNCTION))
    world.tool(tool)
    push.push(world.out, GHCR)
    assert [call.split()[1] for call in world.calls if "v0.1.0" in call][-2:] == [
        {"skopeo": "copy", "crane": "push"}[tool]
    ] * 2


@pytest.mark.parametrize("tool", ["skopeo", "crane"])
def test_a_released_tag_is_not_moved_and_nothing_is_sent(world: World, tool: str) -> None:
    world.build()
    world.publish("configuration:v0.1.0", b'{"another": "manifest"}')
    world.tool(tool)
    with pytest.raises(
        xpkg.PackageError, match=r"configuration:v0\.1\.0 is there already and is something else"
    ):
        push.push(world.out, GHCR)
    assert {call.split()[1] for call in world.calls} <= {"inspect", "manifest"}


def test_a_registry_on_this_machine_takes_what_is_being_tried(world: World) -> None:
    put(world.tree, "apis/b.yaml", {"kind": "Thing"})
    world.build(LOCAL, with_runtime=False)
    world.publish("function:v0.1.0", b'{"another": "manifest"}')
    world.tool("skopeo")
    push.push(world.out, LOCAL)
    assert [call.split()[1] for call in world.calls] == ["copy", "copy"]
    assert all("--dest-tls-verify=false" in call for call in world.calls)


def test_a_registry_may_have_another_name_here_than_where_it_is_pulled_from(world: World) -> None:
    inside = "172.18.0.3:5000"
    dirty(world)
    world.build(inside)
    world.tool("crane")
    push.push(world.out, inside, through=LOCAL)
    assert [call.split()[-1] for call in world.calls] == [
        "localhost:5000/modelplane/function:v0.1.0",
        "localhost:5000/modelplane/configuration:v0.1.0",
    ]
    with pytest.raises(xpkg.PackageError, match="no commit says"):
        push.push(world.out, inside)


def test_a_push_that_fails_stops_before_the_next_package(world: World) -> None:
    world.build()
    world.tool("crane", status=1)
    with pytest.raises(
        xpkg.PackageError, match=r"crane could not push ghcr\.io/acme/modelplane/function:v0\.1\.0"
    ):
        push.push(world.out, GHCR)
    assert [call for call in world.calls if " push " in call] == world.calls[-1:]


@pytest.mark.parametrize(
    ("built", "registry", "says", "reason"),
    [
        (
            GHCR,
            "ghcr.io/other",
            "built for ghcr.io/acme, not ghcr.io/other",
            "the Configuration names the first",
        ),
        (xpkg.PLACEHOLDER, xpkg.PLACEHOLDER, "reserved for documentation", "nobody named a registry"),
        (xpkg.PLACEHOLDER, GHCR, "run `make package REGISTRY=ghcr.io/acme`", "built without naming one"),
    ],
)
def test_packages_go_nowhere_but_where_they_say_they_are(
    world: World, built: str, registry: str, says: str, reason: str
) -> None:
    world.build(built)
    world.tool("skopeo")
    with pytest.raises(xpkg.PackageError, match=says):
        push.push(world.out, registry)
    assert world.calls == [], reason


def dirty(world: World) -> None:
    put(world.tree, "apis/a.yaml", {"kind": "Other"})


def without_git(world: World) -> None:
    shutil.rmtree(world.tree / ".git")


@pytest.mark.parametrize(
    ("spoil", "says"), [(dirty, "apis/a.yaml changed since; commit"), (without_git, "no git checkout")]
)
def test_what_no_commit_describes_stays_here(world: World, spoil: Any, says: str) -> None:
    spoil(world)
    world.build()
    world.tool("skopeo")
    with pytest.raises(xpkg.PackageError, match=says):
        push.push(world.out, GHCR)
    with pytest.raises(xpkg.PackageError, match=says):
        make_package.check(world.tree, GHCR)
    assert world.calls == []


def test_of_many_changed_files_five_are_named(world: World) -> None:
    for number in range(8):
        put(world.tree, f"apis/{number}.yaml", {"kind": "Thing"})
    with pytest.raises(xpkg.PackageError, match=r"apis/4\.yaml and 3 more changed"):
        make_package.check(world.tree, GHCR)


def test_a_clean_tree_may_be_built_for_any_registry_of_one_s_own(world: World) -> None:
    make_package.check(world.tree, GHCR)
    with pytest.raises(xpkg.PackageError, match="reserved for documentation"):
        make_package.check(world.tree, f"{xpkg.PLACEHOLDER}/acme")


def test_docker_hub_has_no_folders(world: World) -> None:
    with pytest.raises(xpkg.PackageError, match="no folders below acme"):
        make_package.check(world.tree, "docker.io/acme")
    make_package.check(world.tree, "docker.io")


def test_a_folder_of_that_name_which_no_build_made_is_left_alone(world: World) -> None:
    (world.out / "modelplane").mkdir(parents=True)
    (world.out / "modelplane" / "precious.py").write_text("x")
    with pytest.raises(xpkg.PackageError, match="of another origin: remove it"):
        world.build()
    assert (world.out / "modelplane" / "precious.py").exists()


def test_half_a_build_is_not_pushed_and_does_not_stop_the_next(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.build()

    def full(*_: Any) -> str:
        raise OSError("No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(oci, "write", full)
        with pytest.raises(OSError, match="No space"):
            world.build()
    with pytest.raises(xpkg.PackageError, match="run `make package` first"):
        push.push(world.out, GHCR)
    assert world.build()["registry"] == GHCR


def test_a_function_without_a_runtime_is_for_this_machine_only(world: World) -> None:
    world.build(with_runtime=False)
    world.tool("skopeo")
    with pytest.raises(xpkg.PackageError, match="no runtime in it"):
        push.push(world.out, GHCR)


def test_without_a_tool_the_three_that_would_do_are_named(world: World) -> None:
    world.build()
    with pytest.raises(xpkg.PackageError, match="no skopeo, crane, crossplane is here"):
        push.push(world.out, GHCR)
    with pytest.raises(xpkg.PackageError, match="no crane is here"):
        push.push(world.out, GHCR, "crane")


def test_nothing_built_is_said(world: World) -> None:
    with pytest.raises(xpkg.PackageError, match="run `make package` first"):
        push.push(world.out, GHCR)


def test_an_error_is_one_line_and_a_status(capsys: pytest.CaptureFixture[str]) -> None:
    assert make_package.main(["check", "--registry", "https://ghcr.io"]) == 1
    said = capsys.readouterr()
    assert said.err.startswith("make_package: REGISTRY=https://ghcr.io: it is an address")
    assert said.err.count("\n") == 1


def test_a_layout_that_is_missing_is_an_error_too(world: World, tmp_path: Path) -> None:
    with pytest.raises(oci.OciError, match="no OCI layout"):
        make_package.build(world.tree, world.out, GHCR, tmp_path / "nothing")
    assert not (world.out / "packages.json").exists()


@pytest.mark.parametrize(
    ("builder", "says"),
    [
        ("", "no docker daemon, podman or buildah here"),
        ("podman", "podman does not work here"),
        ("kaniko", "BUILDER is kaniko: want docker, podman or buildah"),
    ],
)
def test_an_image_without_a_builder_is_an_error_that_says_what_to_install(
    tmp_path: Path, builder: str, says: str
) -> None:
    for name in ("bash", "mkdir", "rm"):
        found = shutil.which(name)
        assert found is not None
        (tmp_path / name).symlink_to(found)
    told = subprocess.run(
        [str(tmp_path / "bash"), str(ROOT / "package/function/image.sh"), str(tmp_path / "image")],
        env={**os.environ, "PATH": str(tmp_path), "BUILDER": builder},
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 1
    assert says in told.stderr
    assert not (tmp_path / "image").exists()
