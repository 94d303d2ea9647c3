"""What two parts of the fleet agree on stands in one module: a second spelling is a second contract."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from contract.xrds import ROOT
from modelplane import contracts

PACKAGE = ROOT / "functions" / "modelplane"
MARK = "modelplane.ai/"
MODULES = [path for path in sorted(PACKAGE.rglob("*.py")) if path != PACKAGE / "contracts.py"]
DOCUMENTS = [
    path
    for folder in ("schemas", "apis", "compositions", "package", "examples", "docs")
    for path in sorted((ROOT / folder).rglob("*"))
    if path.suffix in (".yaml", ".md")
]
DOCUMENTS += sorted(ROOT.glob("*.md"))
# A key ends where a word does: a dot or hyphen after it ends the sentence.
KEY = re.compile(r"\b(?:[a-z]+\.)?modelplane\.ai/([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)?")


def literals(source: str) -> Iterator[tuple[int, str]]:
    """String constants of a module that hold the mark, docstrings apart, and f-strings that spell it."""
    tree = ast.parse(source)
    prose = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            if MARK in node.value:
                yield node.lineno, node.value
        elif isinstance(node, ast.JoinedStr):
            spelled = ast.unparse(node)
            if re.search(r"\{[\w.]*GROUP\}/", spelled):
                yield node.lineno, spelled


@pytest.mark.parametrize(
    ("source", "found", "reason"),
    [
        ('X = "modelplane.ai/gpu"', 1, "a literal"),
        ('X = f"modelplane.ai/{name}"', 1, "part of an f-string"),
        ('X = f"{c.GROUP}/gpu"', 1, "spelled from its group"),
        ('X = f"{INFRA_GROUP}/gpu"', 1, "or from the other"),
        ('"""Labels below modelplane.ai/ are ours."""', 0, "a module's docstring"),
        ('def f():\n    """Read modelplane.ai/gpu."""', 0, "a function's"),
        ("# modelplane.ai/gpu\nX = 1", 0, "a comment"),
        ('X = f"{c.GPU_LABEL}={value}"', 0, "a contract that is used"),
        ('X = "https://modelplane.ai"', 0, "no key"),
    ],
)
def test_a_literal_is_told_from_prose(source: str, found: int, reason: str) -> None:
    assert len(list(literals(source))) == found, reason


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_spells_no_contract_itself(path: Path) -> None:
    assert list(literals(path.read_text(encoding="utf-8"))) == [], "take it from contracts.py"


def known() -> set[str]:
    """What may follow `modelplane.ai/`: versions, and the keys that contracts declares."""
    values = {value for name, value in vars(contracts).items() if isinstance(value, str) and name.isupper()}
    return {value.split(MARK, 1)[1] for value in values if MARK in value}


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_document_uses_only_keys_that_the_package_knows(path: Path) -> None:
    used = {key for key in KEY.findall(path.read_text(encoding="utf-8")) if key}
    assert used <= known()


def test_keys_are_distinct_and_legal() -> None:
    labels = [
        value
        for name, value in vars(contracts).items()
        if name.endswith(("_LABEL", "_ANNOTATION")) and isinstance(value, str)
    ]
    assert len(set(labels)) == len(labels), "two names for one key"
    for label in labels:
        prefix, _, name = label.rpartition("/")
        assert re.fullmatch(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?", prefix), label
        assert re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?", name), label
