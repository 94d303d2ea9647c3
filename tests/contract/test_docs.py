"""What the documents show and name is there: output is real, files and tests exist."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

import fleets
import shown
from modelplane import contracts as c
from modelplane.api import definitions
from modelplane.render.dump import dump
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
RENDER = re.compile(r"\.venv/bin/modelplane render examples/(\S+) --recurse( -o yaml)?")
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)(?:#[^)]*)?\)")
CODE = re.compile(r"`[^`\n]+`")
TEST = re.compile(r"\btest_\w+\b(?!\.py|/)")


@cache
def output(command: str) -> list[str]:
    """What a command prints, line by line; whole renders come from plays that other tests share."""
    assert shown.OURS.fullmatch(command), f"{command}: no test can tell what it prints"
    if called := RENDER.fullmatch(command):
        return rendered(called[1], bool(called[2]))
    return shown.output(command)


def rendered(folder: str, yaml: bool) -> list[str]:
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
    for block in shown.blocks(path.read_text(encoding="utf-8")):
        printed = output(block.command)
        if block.whole and not RENDER.fullmatch(block.command):
            assert list(block.lines) == printed, f"{block.command}: python tools/shown.py writes it anew"
            continue
        rest = iter(printed)
        missing = [line for line in block.lines if line != shown.CUT and line not in rest]
        assert missing == [], f"{block.command} does not print this, in this order"


def test_the_manifest_on_the_first_page_is_the_example() -> None:
    (manifest,) = [
        body for lang, body in shown.FENCE.findall((ROOT / "README.md").read_text()) if lang == "yaml"
    ]
    documents = (ROOT / "examples/dynamo-l4/model.yaml").read_text().split("---\n")
    assert manifest == documents[1]


def manifests(path: Path) -> list[dict[str, Any]]:
    blocks = [body for lang, body in shown.FENCE.findall(path.read_text(encoding="utf-8")) if lang == "yaml"]
    found = [x for block in blocks for x in yaml.safe_load_all(block) if isinstance(x, dict)]
    # A part of a manifest has no metadata; of other projects' kinds we have no definition here.
    return [x for x in found if "metadata" in x and x.get("apiVersion") in (c.API, c.INFRA_API)]


@EVERY_DOCUMENT
def test_a_manifest_in_a_document_is_admitted(path: Path) -> None:
    found = [(x["kind"], str(p)) for x in manifests(path) for p in definitions.judge(x)]
    assert found == []


@EVERY_DOCUMENT
def test_what_a_document_links_to_exists(path: Path) -> None:
    # Not in code: a pattern of the reference may look like a link.
    links = LINK.findall(CODE.sub("", path.read_text(encoding="utf-8")))
    assert [link for link in links if not (path.parent / link).exists()] == []


@EVERY_DOCUMENT
def test_a_test_that_a_document_names_exists(path: Path) -> None:
    known = {
        name
        for file in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", file.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert set(TEST.findall(path.read_text(encoding="utf-8"))) - known == set()
