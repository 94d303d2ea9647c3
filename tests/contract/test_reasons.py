"""The troubleshooting page has every reason that a condition of ours can carry, and no other."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import fleets

KINDS = fleets.ROOT / "functions/modelplane/kinds"
PAGE = fleets.ROOT / "docs/troubleshooting.md"
CAMEL = re.compile(r"(?:[A-Z][a-z0-9]*|[A-Z]{2,})+")
# CamelCase constants beside the composers that are no reasons of a condition.
OTHERS = {
    "cache_scene.py": {"BOUND"},
    "serving_stack_status.py": {
        "WAITING", "INSTALLING", "UPGRADING", "READY", "FAILED", "CHECKING", "FOUND", "MISSING", "BLOCKED",
    },
}  # fmt: skip
ROW = re.compile(r"^\| `(\w+)` \|", re.MULTILINE)


def constants(path: Path) -> Iterator[tuple[str, str]]:
    """Public constants of a module with a CamelCase text, whatever they are for, also several in one line."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        for target in targets:
            for name, value in pairs(target, getattr(node, "value", None)):
                if name[0] != "_" and CAMEL.fullmatch(value):
                    yield name, value


def pairs(target: ast.expr | None, value: ast.expr | None) -> Iterator[tuple[str, str]]:
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        for one, other in zip(target.elts, value.elts, strict=True):
            yield from pairs(one, other)
    elif isinstance(target, ast.Name) and isinstance(value, ast.Constant) and isinstance(value.value, str):
        yield target.id, value.value


def reasons() -> set[str]:
    found = {
        value
        for path in sorted(KINDS.glob("*.py"))
        for name, value in constants(path)
        if name not in OTHERS.get(path.name, ())
    }
    contracts = fleets.ROOT / "functions/modelplane/contracts.py"
    found |= {value for name, value in constants(contracts) if name.startswith("REASON_")}
    outcomes = fleets.ROOT / "functions/modelplane/staging/outcome.py"
    return found | {value for _, value in constants(outcomes)}


def listed() -> list[str]:
    return ROW.findall(PAGE.read_text(encoding="utf-8"))


def test_every_reason_is_on_the_page() -> None:
    assert reasons() - set(listed()) == set()


def test_the_page_has_no_reason_that_is_gone() -> None:
    assert set(listed()) - reasons() == set()


def test_every_reason_that_kinds_share_is_one_that_a_kind_gives() -> None:
    contracts = fleets.ROOT / "functions/modelplane/contracts.py"
    code = "".join(p.read_text(encoding="utf-8") for p in contracts.parent.rglob("*.py") if p != contracts)
    shared = [name for name, _ in constants(contracts) if name.startswith("REASON_")]
    assert shared
    assert [name for name in shared if f"c.{name}" not in code] == []


def test_what_reads_not_true_says_what_to_do() -> None:
    text = PAGE.read_text(encoding="utf-8").split("## All is well")[0]
    rows = [line.strip("|").split("|") for line in text.splitlines() if ROW.match(line)]
    assert rows
    assert [row[0] for row in rows if len(row) < 4 or not all(cell.strip() for cell in row)] == []
