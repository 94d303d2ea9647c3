"""Reading files, folders and kustomizations: every fault has a place, and all come at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from modelplane.core import paths
from modelplane.render import collect

CLASS = """\
apiVersion: modelplane.ai/v1alpha1
kind: InferenceGateway
metadata:
  name: {name}
spec:
  backend: Traefik
  traefik:
    version: 40.2.0
"""
SECRET = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: {name}\n"
LIST = "apiVersion: v1\nkind: List\nitems:\n"
KUSTOMIZATION = "kustomization.yaml"


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return folder


def faults(*roots: Path) -> list[str]:
    with pytest.raises(collect.InputError) as error:
        collect.read(roots)
    return error.value.faults


@pytest.mark.parametrize(
    ("files", "names", "reason"),
    [
        ({"a.yaml": CLASS.format(name="a")}, ["a"], "a folder's files"),
        (
            {"b.yml": SECRET.format(name="b"), "a.yaml": SECRET.format(name="a")},
            ["a", "b"],
            "sorted, both endings",
        ),
        (
            {"x/a.yaml": SECRET.format(name="a"), "b.yaml": SECRET.format(name="b")},
            ["b", "a"],
            "folders after files",
        ),
        ({"a.txt": "x: [", "a.yaml": SECRET.format(name="a")}, ["a"], "other endings are not read"),
        (
            {
                KUSTOMIZATION: "resources:\n- b.yaml\n- a.yaml\n",
                **{f"{n}.yaml": SECRET.format(name=n) for n in "abc"},
            },
            ["b", "a"],
            "a kustomization names what is read, in its order",
        ),
        (
            {"Kustomization": "resources: [sub]\n", f"sub/{KUSTOMIZATION}": "resources: [a.yaml]\n"}
            | {"sub/a.yaml": SECRET.format(name="a"), "sub/b.yaml": SECRET.format(name="b")},
            ["a"],
            "and folders with one of their own; all of kustomize's names count",
        ),
        (
            {KUSTOMIZATION: "resources: [x, y]\n", f"x/{KUSTOMIZATION}": "resources: [../a.yaml]\n"}
            | {f"y/{KUSTOMIZATION}": "resources: [../a.yaml]\n", "a.yaml": SECRET.format(name="a")},
            ["a"],
            "two roads to one file are one file",
        ),
        (
            {
                "a.yaml": "apiVersion: v1\nkind: List\nitems:\n- "
                + SECRET.format(name="a").replace("\n", "\n  ")
            },
            ["a"],
            "a list as kubectl writes it",
        ),
        (
            {"a.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: theirs}\n"},
            ["theirs"],
            "kinds of others are read as they are",
        ),
    ],
)
def test_what_a_folder_stands_for(
    tmp_path: Path, files: dict[str, str], names: list[str], reason: str
) -> None:
    assert [paths.name(o) for o in collect.read([write(tmp_path, files)])] == names, reason


@pytest.mark.parametrize(
    ("files", "expected", "reason"),
    [
        ({}, ": no documents", "nothing there"),
        ({"a.yaml": ""}, ": no documents", "nothing in it"),
        ({"a.yaml": "a: [1\nb: 2\n"}, "a.yaml:2:2:", "broken YAML"),
        ({"a.yaml": "a:\n\tb: 1\n"}, "a.yaml:2:1:", "a tab"),
        ({"a.yaml": "a: 1\na: 2\n"}, 'a.yaml:2:1: the key "a" stands twice', "a duplicate key"),
        ({"a.yaml": "- a\n"}, "a.yaml:1:1: a document must be a mapping", "a list"),
        ({"a.yaml": "hello\n"}, "a.yaml:1:1: a document must be a mapping", "a text"),
        (
            {"a.yaml": CLASS.format(name="x").replace("Gateway", "Gatway")},
            'a.yaml:2: document 1, InferenceGatway x: kind: no kind "InferenceGatway" is',
            "an unknown kind with near names",
        ),
        (
            {"a.yaml": "apiVersion: modelplan.ai/v1alpha1\nkind: Foo\nmetadata: {name: x}\n"},
            "a.yaml:2: document 1, Foo x: kind: no kind",
            "a group that is nearly ours",
        ),
        (
            {"a.yaml": CLASS.format(name="x").replace("backend:", "backnd:")},
            'spec.backnd: unknown field "backnd": did you mean "backend"?',
            "an unknown field",
        ),
        (
            {"a.yaml": "---\n---\n" + CLASS.format(name="x").replace("40.2.0", "[1]")},
            "a.yaml:10: document 2, InferenceGateway x: spec.traefik.version: must be a string",
            "a wrong type after an empty document",
        ),
        (
            {"a.yaml": SECRET.format(name='""')},
            "a.yaml:4: document 1, Secret: metadata.name: is required",
            "no name",
        ),
        ({"a.yaml": "kind: Secret\n"}, "apiVersion: is required", "no apiVersion"),
        ({"a.yaml": "apiVersion: v1\n"}, "kind: is required", "no kind"),
        ({KUSTOMIZATION: ""}, f"{KUSTOMIZATION}:1:1: must hold one document", "an empty kustomization"),
        ({KUSTOMIZATION: "resources: a.yaml\n"}, "resources: must be a list of paths", "no list"),
        (
            {KUSTOMIZATION: "resources:\n- 5\n"},
            f"{KUSTOMIZATION}:2:1: resources[0]: must be a path",
            "no path",
        ),
        (
            {KUSTOMIZATION: "resources:\n- a.yaml\n"},
            f"{KUSTOMIZATION}:2: resources[0]:",
            "a missing resource",
        ),
        (
            {KUSTOMIZATION: "resources: []\npatches: []\n"},
            f"{KUSTOMIZATION}:2:1: patches: only resources",
            "patches",
        ),
        ({KUSTOMIZATION: "kind: Component\n"}, "kind Component cannot be read here", "another kind"),
        (
            {KUSTOMIZATION: "resources:\n- https://example.org/x\n"},
            "resources[0]: https://example.org/x is remote and not fetched",
            "a remote resource",
        ),
        (
            {KUSTOMIZATION: "resources: [x]\n", f"x/{KUSTOMIZATION}": "resources: [..]\n"},
            "leads back to itself",
            "a cycle",
        ),
        (
            {"a.yaml": "apiVersion: v1\nkind: List\nitems: 5\n"},
            "a.yaml:3:1: items: must be a list",
            "a broken list",
        ),
        (
            {"a.yaml": LIST + "- apiVersion: v1\n  kind: Secret\n  metadata:\n    x: 1\n"},
            "a.yaml:6: document 1, Secret: metadata.name: is required",
            "a fault in an item has the item's line",
        ),
    ],
)
def test_a_fault_has_a_place_and_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], expected: str, reason: str
) -> None:
    monkeypatch.chdir(write(tmp_path, files))
    found = faults(Path())
    assert any(expected in fault for fault in found), (reason, found)


def test_all_faults_of_all_files_come_at_once(tmp_path: Path) -> None:
    bad = CLASS.format(name="x").replace("backend:", "backnd:")
    found = faults(
        write(tmp_path, {"a.yaml": "a: [", "b.yaml": "- x\n", "c.yaml": bad}), tmp_path / "none.yaml"
    )
    assert [
        any(part in fault for fault in found) for part in ("a.yaml", "b.yaml", "c.yaml", "none.yaml")
    ] == [True] * 4


@pytest.mark.parametrize(
    ("one", "two", "twice", "reason"),
    [
        (SECRET.format(name="a"), SECRET.format(name="a"), True, "the same"),
        (SECRET.format(name="a"), SECRET.format(name="b"), False, "another name"),
        (SECRET.format(name="a"), SECRET.format(name="a") + "  namespace: x\n", False, "another namespace"),
        (
            SECRET.format(name="a"),
            SECRET.format(name="a") + "  namespace: default\n",
            True,
            "the default, said",
        ),
        (
            SECRET.format(name="a"),
            SECRET.format(name="a").replace("Secret", "ConfigMap"),
            False,
            "another kind",
        ),
        (
            SECRET.format(name="a")
            .replace("v1", "helm.m.crossplane.io/v1beta1")
            .replace("Secret", "ProviderConfig"),
            SECRET.format(name="a")
            .replace("v1", "kubernetes.m.crossplane.io/v1alpha1")
            .replace("Secret", "ProviderConfig"),
            False,
            "a kind of the same name in another group",
        ),
    ],
)
def test_an_object_that_stands_twice_is_told_with_both_places(
    tmp_path: Path, one: str, two: str, twice: bool, reason: str
) -> None:
    folder = write(tmp_path, {"a.yaml": one, "b.yaml": two})
    if twice:
        (fault,) = faults(folder)
        assert f"stands twice, first at {folder}/a.yaml:1" in fault, reason
        assert fault.startswith(f"{folder}/b.yaml:4:"), reason
    else:
        assert len(collect.read([folder])) == 2, reason


def test_links_pipes_binaries_and_huge_files_end_in_a_line_each(tmp_path: Path) -> None:
    (tmp_path / "self.yaml").symlink_to("self.yaml")
    (tmp_path / "dead.yaml").symlink_to("nowhere")
    (tmp_path / "round").symlink_to(".")
    (tmp_path / "bin.yaml").write_bytes(b"\xff\xfe\x00")
    with (tmp_path / "huge.yaml").open("wb") as file:
        file.truncate(64 * 1024 * 1024)
    found = {fault.removeprefix(f"{tmp_path}/").partition(":")[0]: fault for fault in faults(tmp_path)}
    assert found.keys() == {"self.yaml", "dead.yaml", "round", "bin.yaml", "huge.yaml"}
    assert "more than 16: split it" in found["huge.yaml"]
    assert "leads back to itself" in found["round"]


def test_aliases_of_aliases_do_not_eat_the_memory(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    (tmp_path / "a.yaml").write_text("\n".join(lines))
    assert "aliases make more than" in faults(tmp_path)[0]


def test_documents_come_defaulted_and_in_the_namespace_kubectl_would_use(tmp_path: Path) -> None:
    read = collect.read(
        [write(tmp_path, {"a.yaml": SECRET.format(name="a"), "b.yaml": CLASS.format(name="b")})]
    )
    assert [paths.namespace(o) for o in read] == ["default", ""]


def test_a_file_is_named_as_it_was_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"x/a.yaml": "a: [", "y/kustomization.yaml": "resources: [../x/a.yaml]\n"})
    monkeypatch.chdir(tmp_path)
    assert [fault.partition(":")[0] for fault in faults(Path("x"), tmp_path / "x")] == ["x/a.yaml"]
    assert [fault.partition(":")[0] for fault in faults(Path("y"))] == ["x/a.yaml"]
