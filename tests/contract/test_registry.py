"""Kinds, definitions and Compositions are three lists of one thing: what one lacks is never composed."""

from __future__ import annotations

import re

import pytest

from builders.core import thing
from contract.xrds import APIS, ROOT, load
from modelplane.core import Kind, PlanError
from modelplane.kinds.registry import KINDS

COMPOSITIONS = sorted((ROOT / "compositions").glob("*.yaml"))
# What Crossplane writes itself and drops from a function's answer (crossplane, internal/controller/
# apiextensions/composite, system conditions).
SYSTEM = {"Ready", "Synced", "Healthy", "UpToDate", "Responsive"}
CAMEL = re.compile(r"[A-Z][a-z0-9]*([A-Z][a-z0-9]*)*")
EVERY_KIND = pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.kind)

Keys = set[tuple[str, str]]


def defined() -> Keys:
    specs = [load(path)["spec"] for path in APIS]
    return {(f"{s['group']}/{v['name']}", s["names"]["kind"]) for s in specs for v in s["versions"]}


def composed() -> Keys:
    refs = [load(path)["spec"]["compositeTypeRef"] for path in COMPOSITIONS]
    return {(ref["apiVersion"], ref["kind"]) for ref in refs}


def test_every_definition_has_a_composer_and_a_composition_and_no_composer_lacks_either() -> None:
    assert set(KINDS) == defined()
    assert composed() == defined()


@EVERY_KIND
def test_a_kind_is_registered_under_its_own_name(kind: Kind) -> None:
    assert KINDS[(kind.api_version, kind.kind)] is kind


def test_kinds_are_named_apart() -> None:
    names = [kind.kind for kind in KINDS.values()]
    assert len(set(names)) == len(names), "a Step names a composer by its kind alone"


@EVERY_KIND
def test_a_kind_says_how_it_is_in_conditions_that_crossplane_shows(kind: Kind) -> None:
    assert kind.conditions
    assert len(set(kind.conditions)) == len(kind.conditions)
    assert all(CAMEL.fullmatch(type_) for type_ in kind.conditions)
    assert not set(kind.conditions) & SYSTEM


@EVERY_KIND
def test_a_kind_is_polled_seldom_or_not_at_all(kind: Kind) -> None:
    assert kind.ttl == 0 or 10 <= kind.ttl <= 600, "seconds; a shorter one is load on every control plane"


JUNK = [
    ({}, "an empty composite"),
    ({"spec": None}, "no spec"),
    ({"spec": "junk"}, "text for a spec"),
    ({"spec": {"cluster": 3, "nodePools": "x", "engines": [None], "template": []}}, "fields of other types"),
    ({"spec": {"modelCacheRef": {"name": 1}, "endpoints": [{"selector": 3}], "source": []}}, "other refs"),
    ({"metadata": [], "status": 3}, "no metadata"),
]


@EVERY_KIND
@pytest.mark.parametrize(("parts", "reason"), JUNK)
def test_requirements_are_said_of_any_composite(kind: Kind, parts: dict[str, object], reason: str) -> None:
    xr = {**thing("a", "team", kind.kind), "apiVersion": kind.api_version, **parts}
    try:
        found = kind.requires(xr)
    except PlanError as error:
        pytest.fail(f"{reason}: {error}")
    assert len({r.name for r in found}) == len(found), "one name, two requirements"
    assert [r.name for r in kind.requires(xr)] == [r.name for r in found], "the same on every call"
