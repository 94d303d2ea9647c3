"""Every recipe passes the checks and has a place for each replica. None was ever run."""

from __future__ import annotations

from pathlib import Path

import pytest

import fleets
from modelplane.core import paths
from modelplane.render import collect
from modelplane.review.finding import NOTE
from modelplane.review.fleet import Fleet
from modelplane.review.forecast import forecast
from modelplane.review.validate import validate

RECIPES = fleets.ROOT / "recipes"
# The two whole examples are recipes of the models that the project started from.
FOLDERS = [
    *(p.parent for p in sorted(RECIPES.rglob("kustomization.yaml")) if p.parent.name != "classes"),
    fleets.EXAMPLES / "dynamo-h200",
    fleets.EXAMPLES / "dynamo-l4",
]
EVERY_RECIPE = pytest.mark.parametrize("folder", FOLDERS, ids=lambda p: str(p.relative_to(fleets.ROOT)))


@EVERY_RECIPE
def test_a_recipe_has_no_errors_and_no_warnings(folder: Path) -> None:
    findings, number = validate([folder])
    assert [str(x) for x in findings if x.severity != NOTE] == []
    assert number > 0


@EVERY_RECIPE
def test_every_replica_of_a_recipe_has_a_place(folder: Path) -> None:
    found = forecast(Fleet.of(collect.read([folder])))
    assert found.answers
    assert [(a.deployment.name, a.says) for a in found.answers if a.missing] == []


def test_the_page_lists_every_recipe_as_never_run() -> None:
    page = (fleets.ROOT / "docs/recipes.md").read_text(encoding="utf-8")
    assert "planned, never run" in page
    missing = [
        x.name
        for x in RECIPES.iterdir()
        if x.is_dir() and x.name not in ("classes", "moving") and x.name not in page
    ]
    assert missing == []


def test_a_recipe_shares_no_name_with_another() -> None:
    names = [
        (obj["kind"], paths.namespace(obj), paths.name(obj))
        for folder in FOLDERS
        if "moving" not in str(folder)
        for obj in collect.read([folder])
        if obj["kind"] not in ("InferenceClass", "InferenceGateway")
    ]
    assert len(names) == len(set(names))
