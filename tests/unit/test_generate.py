"""The generator of the checked-in XRDs and Compositions."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

import generate

XRD = """\
apiVersion: apiextensions.crossplane.io/v2
kind: CompositeResourceDefinition
metadata: {name: foos.example.org}
spec:
  group: example.org
  names: {kind: BigFoo, plural: foos}
  versions: [{name: v1alpha1}]
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "schemas" / "shared").mkdir(parents=True)
    (tmp_path / "schemas" / "foos.yaml").write_text(XRD)
    return tmp_path


def put(root: Path, name: str, text: str) -> None:
    (root / "schemas" / name).write_text(text)


class Include(NamedTuple):
    reason: str
    shared: str
    value: Any
    want: Any


@pytest.mark.parametrize(
    "row",
    [
        Include("the include stands for the file", "{a: 1}", {"$include": "shared/x.yaml"}, {"a": 1}),
        Include(
            "keys beside it override and add",
            "{a: 1, b: 2}",
            {"$include": "shared/x.yaml", "b": 3, "c": 4},
            {"a": 1, "b": 3, "c": 4},
        ),
        Include("keys before it override too", "{a: 1}", {"a": 2, "$include": "shared/x.yaml"}, {"a": 2}),
        Include(
            "a list may stand for a value", "[1, 2]", {"k": {"$include": "shared/x.yaml"}}, {"k": [1, 2]}
        ),
        Include("a list in a list is spliced", "[1, 2]", [0, {"$include": "shared/x.yaml"}, 3], [0, 1, 2, 3]),
        Include("a written list in a list stays", "{}", [[1], [2]], [[1], [2]]),
        Include(
            "includes nest",
            "{y: {$include: shared/y.yaml}}",
            {"$include": "shared/x.yaml"},
            {"y": {"deep": 1}},
        ),
    ],
    ids=lambda row: row.reason,
)
def test_an_include_is_replaced_by_its_file(root: Path, row: Include) -> None:
    put(root, "shared/x.yaml", row.shared)
    put(root, "shared/y.yaml", "{deep: 1}")
    assert generate.resolve(row.value, root / "schemas") == row.want


class Broken(NamedTuple):
    reason: str
    files: dict[str, str]
    message: str


@pytest.mark.parametrize(
    "row",
    [
        Broken("a missing file", {"foos.yaml": XRD + "x: {$include: shared/no.yaml}"}, "no such file"),
        Broken(
            "a circle",
            {
                "foos.yaml": XRD + "x: {$include: shared/a.yaml}",
                "shared/a.yaml": "{k: {$include: shared/a.yaml}}",
            },
            "includes itself",
        ),
        Broken(
            "keys beside a list",
            {"foos.yaml": XRD + "x: {$include: shared/a.yaml, k: 1}", "shared/a.yaml": "[1]"},
            "nothing to override",
        ),
        Broken("a repeated key loses a field", {"foos.yaml": XRD + "kind: Other"}, "'kind' is repeated"),
        Broken("broken YAML", {"foos.yaml": "a: [1"}, "not valid YAML"),
        Broken("an empty file", {"foos.yaml": ""}, "empty"),
        Broken("no XRD", {"foos.yaml": "kind: Other"}, "not an XRD"),
        Broken("a file named otherwise", {"bars.yaml": XRD}, "name the XRD and the file after"),
    ],
    ids=lambda row: row.reason,
)
def test_a_broken_source_is_named_and_nothing_is_written(
    root: Path, row: Broken, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, text in row.files.items():
        put(root, name, text)
    assert generate.main([], root) == 2
    said = capsys.readouterr().err
    assert row.message in said
    assert "schemas" in said
    assert not (root / "apis").exists()


def test_check_names_what_would_change_and_writes_nothing(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / "apis").mkdir()
    (root / "apis" / "gone.yaml").write_text("stale")
    assert generate.main(["--check"], root) == 1
    assert capsys.readouterr().out.splitlines() == [
        "apis/foos.yaml: missing",
        "apis/gone.yaml: without a source",
        "compositions/foos.yaml: missing",
        "docs/reference/api/foos.md: missing",
        "docs/reference/api/index.md: missing",
    ]
    assert sorted(path.name for path in root.rglob("apis/*")) == ["gone.yaml"]


def test_writing_settles_and_a_later_edit_is_seen(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert generate.main([], root) == 0
    assert generate.main(["--check"], root) == 0
    (root / "apis" / "foos.yaml").write_text("edited by hand")
    capsys.readouterr()
    assert generate.main(["--check"], root) == 1
    assert capsys.readouterr().out == "apis/foos.yaml: out of date\n"


def test_an_xrd_gets_one_composition_that_calls_our_function(root: Path) -> None:
    (made,) = generate.generate_compositions(root)
    assert yaml.safe_load(made.text) == {
        "apiVersion": "apiextensions.crossplane.io/v1",
        "kind": "Composition",
        "metadata": {"name": "foos.example.org"},
        "spec": {
            "compositeTypeRef": {"apiVersion": "example.org/v1alpha1", "kind": "BigFoo"},
            "mode": "Pipeline",
            "pipeline": [{"step": "compose-big-foo", "functionRef": {"name": "modelplane-function"}}],
        },
    }


@pytest.mark.parametrize(
    ("kind", "want"),
    [
        ("ModelCacheReplica", "model-cache-replica"),
        ("EKSNodePool", "eks-node-pool"),
        ("EKSCluster", "eks-cluster"),
    ],
)
def test_a_run_of_capitals_is_one_word_of_a_step(kind: str, want: str) -> None:
    assert generate.kebab(kind) == want


def test_a_shape_used_twice_is_written_twice_in_the_order_of_the_source(root: Path) -> None:
    # Crossplane's package parser and many tools read anchors; a reader of a diff does not.
    put(root, "shared/x.yaml", "{z: 1, a: [one]}")
    put(root, "foos.yaml", XRD + "p: {$include: shared/x.yaml}\nq: {$include: shared/x.yaml}\n")
    (made,) = generate.generate_xrds(root)
    assert "&" not in made.text
    assert made.text.endswith("p:\n  z: 1\n  a:\n    - one\nq:\n  z: 1\n  a:\n    - one\n")
    assert made.text.startswith("# Generated from schemas/foos.yaml; edit there")


def test_another_generator_is_checked_like_the_built_in_ones(root: Path) -> None:
    extra = generate.Generator(
        "notes", lambda _: iter([generate.Generated(Path("notes/a.txt"), "a")]), owns=("notes/*.txt",)
    )
    (root / "notes").mkdir()
    (root / "notes" / "b.txt").write_text("b")
    found = {(str(item.path), item.how) for item in generate.differences(root, [extra])}
    assert found == {("notes/a.txt", "missing"), ("notes/b.txt", "without a source")}


def test_the_reference_names_every_field_with_its_type_default_and_limits() -> None:
    definition = yaml.safe_load(XRD)
    shape = {
        "type": "object",
        "description": "A foo.",
        "properties": {
            "spec": {
                "type": "object",
                "required": ["size"],
                "properties": {
                    "size": {"type": "integer", "description": "How | large.", "minimum": 1},
                    "mode": {"type": "string", "enum": ["A", "B"], "default": "A"},
                    "parts": {"type": "array", "items": {"properties": {"name": {"type": "string"}}}},
                    "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                },
                "x-kubernetes-validations": [{"rule": "true", "message": "never"}],
            }
        },
    }
    definition["spec"]["versions"][0]["schema"] = {"openAPIV3Schema": shape}
    lines = generate.api_reference.page(definition, "foos.yaml").splitlines()
    assert "| `spec.size` | integer | required | How \\| large. At least 1. |" in lines
    assert "| `spec.mode` | string | `A` | One of `A`, `B`. |" in lines
    assert "| `spec.parts[].name` | string |  |  |" in lines
    assert "| `spec.labels` | map of string |  |  |" in lines
    assert "- `spec`: never" in lines
