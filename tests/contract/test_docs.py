"""What the documents show and name is there: output is real, files and tests exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import fleets
from modelplane.cli.render import dump
from modelplane.render.run import composed

ROOT = fleets.ROOT
DOCUMENTS = [
    path
    for path in [
        *sorted(ROOT.glob("*.md")),
        *sorted((ROOT / "docs").rglob("*.md")),
        ROOT / "examples/README.md",
    ]
    if path.is_file()
]
EVERY_DOCUMENT = pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
# A line of a shown output that holds only this stands for any number of lines.
CUT = "…"
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
RENDER = re.compile(r"\.venv/bin/modelplane render examples/(\S+) --recurse( -o yaml)?")
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)(?:#[^)]*)?\)")
TEST = re.compile(r"\btest_\w+\b(?!\.py|/)")


def shown(text: str) -> Iterator[tuple[str, list[str]]]:
    """Each command of a document's console blocks with the lines shown below it, cuts left out."""
    for language, block in FENCE.findall(text):
        if language == "console":
            for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
                command, *lines = part.splitlines()
                yield command, [line for line in lines if line != CUT]


@cache
def output(folder: str, yaml: bool) -> list[str]:
    """What the command prints, line by line."""
    played = fleets.played(folder)
    if yaml:
        return dump(composed(played.final, played.world.children)).splitlines()
    found: list[str] = []
    before: dict[str, list[str]] = {}
    for done, lines in played.passes:
        trees: dict[str, list[str]] = {}
        for line in lines:
            root = line.what if not line.guide else next(reversed(trees))
            trees.setdefault(root, []).append(str(line))
        changed = [tree for root, tree in trees.items() if before.get(root) != tree]
        found += [f"pass {done.number}", *(line for tree in changed for line in tree)]
        before = trees
    return found


@EVERY_DOCUMENT
def test_output_in_a_document_is_what_the_command_prints(path: Path) -> None:
    for command, lines in shown(path.read_text(encoding="utf-8")):
        called = RENDER.fullmatch(command)
        assert called, f"{command}: no test can tell what it prints"
        rest = iter(output(called[1], bool(called[2])))
        missing = [line for line in lines if line not in rest]
        assert missing == [], f"{command} does not print this, in this order"


def test_the_manifest_on_the_first_page_is_the_example() -> None:
    (manifest,) = [body for lang, body in FENCE.findall((ROOT / "README.md").read_text()) if lang == "yaml"]
    documents = (ROOT / "examples/dynamo-l4/model.yaml").read_text().split("---\n")
    assert manifest == documents[1]


@EVERY_DOCUMENT
def test_what_a_document_links_to_exists(path: Path) -> None:
    links = LINK.findall(path.read_text(encoding="utf-8"))
    assert [link for link in links if not (path.parent / link).exists()] == []


@EVERY_DOCUMENT
def test_a_test_that_a_document_names_exists(path: Path) -> None:
    known = {
        name
        for file in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", file.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert set(TEST.findall(path.read_text(encoding="utf-8"))) - known == set()
