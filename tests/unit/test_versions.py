"""The pins: complete, sourced, and in agreement with the CRDs they bring."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from modelplane.api import definitions
from modelplane.api.schema import Schema
from modelplane.facts import versions
from modelplane.facts.versions import UnknownPinError, UnknownReleaseError

PINS = [(r.name, p) for r in versions.releases().values() for p in r.pins.values()]


@pytest.mark.parametrize(("release", "pin"), PINS, ids=[f"{r}-{p.key}" for r, p in PINS])
def test_every_pin_says_what_it_is_and_how_it_is_known(release: str, pin: versions.Pin) -> None:
    assert pin.version
    assert pin.source.startswith("https://")
    assert pin.known in ("source", "text", "written")
    assert pin.tested_with
    assert pin.date[:3] == "202"
    assert sum(map(bool, (pin.chart, pin.image, pin.manifests))) == 1, "a chart, an image or manifests"
    assert bool(pin.chart) == bool(pin.repository)
    assert bool(pin.manifests) == (pin.known == "written"), "whoever wrote a manifest answers for it"
    assert ":" not in pin.image, "the tag is the version"


def test_releases_are_in_order_and_the_last_is_the_newest() -> None:
    names = list(versions.releases())
    assert names == sorted(names)
    assert versions.newest().name == names[-1]


def test_an_unknown_release_names_those_that_are_known() -> None:
    with pytest.raises(
        UnknownReleaseError, match=r"stack release 2019.01 is not known here; known are 2026\.12"
    ):
        versions.release("2019.01")


def test_an_unknown_pin_names_its_release() -> None:
    with pytest.raises(UnknownPinError, match=r"stack release 2026\.12 has no pin nothing"):
        versions.newest().pin("nothing")


def test_a_caller_cannot_change_a_manifest_for_the_next() -> None:
    pin = versions.newest().pin("inference-pool-crd")
    first = versions.crds(pin)
    before = copy.deepcopy(first)
    first[0]["metadata"]["name"] = "changed"
    assert versions.crds(pin) == before


POOL: dict[str, Any] = {
    "selector": {"matchLabels": {"app": "x"}},
    "targetPorts": [{"number": 8000}],
    "endpointPickerRef": {"name": "picker", "port": {"number": 9002}},
}
SAMPLES: list[tuple[str, dict[str, Any], str]] = [
    ("InferencePool", {"spec": POOL}, "what a replica composes"),
    ("InferencePool", {"spec": {**POOL, "endpointPickerRef": {"name": "p"}}}, "a picker without a port"),
    ("InferencePool", {"spec": {**POOL, "targetPorts": []}}, "no port"),
    ("InferencePool", {"spec": {**POOL, "targetPorts": [{"number": 1}, {"number": 1}]}}, "one port twice"),
    ("InferencePool", {"spec": {**POOL, "selector": {"matchLabels": {}}}}, "a pool of nothing"),
    ("InferencePool", {"spec": {**POOL, "other": 1}}, "an unknown field"),
    ("InferencePool", {}, "no spec"),
    (
        "InferencePool",
        {"spec": POOL, "status": {"parents": [{"parentRef": {"name": "g"}, "conditions": []}]}},
        "a gateway's report",
    ),
    ("ModelMetadata", {"spec": {"modelName": "a/b", "sourceType": "weights"}}, "a record"),
    ("ModelMetadata", {"spec": {}}, "a record of no model"),
    ("ModelMetadata", {"spec": {"modelName": "a"}, "status": {"worker": {}}}, "a worker without a rank"),
    (
        "ModelMetadata",
        {"spec": {"modelName": "a"}, "status": {"worker": {"workerRank": 0, "backendType": "tcp"}}},
        "an unknown backend",
    ),
    ("ModelCacheEntry", {"spec": {"modelName": "a/b", "provider": "Ngc"}}, "a download"),
    ("ModelCacheEntry", {"spec": {"modelName": "a/b", "provider": "Other"}}, "an unknown provider"),
    (
        "ModelCacheEntry",
        {"spec": {"modelName": "a", "provider": "Ngc"}, "status": {"phase": "", "claimId": None}},
        "a lease nobody holds",
    ),
]


@pytest.mark.parametrize(("kind", "body", "what"), SAMPLES, ids=[f"{s[0]}: {s[2]}" for s in SAMPLES])
def test_a_crd_in_our_words_accepts_what_the_projects_own_does(
    kind: str, body: dict[str, Any], what: str, crds: Path
) -> None:
    ours = {crd["spec"]["names"]["kind"]: crd for _, pin in PINS for crd in versions.crds(pin)}[kind]
    version = ours["spec"]["versions"][0]
    document = {
        "apiVersion": f"{ours['spec']['group']}/{version['name']}",
        "kind": kind,
        "metadata": {"name": "x", "namespace": "y"},
        **body,
    }
    theirs = definitions.load_crds(crds).of(document)
    assert theirs is not None
    verdicts = []
    for schema in (Schema(version["schema"]["openAPIV3Schema"]), theirs.schema):
        defaulted = schema.default(document)
        verdicts.append((defaulted, sorted(p.path for p in schema.check(defaulted))))
    assert verdicts[0] == verdicts[1], what
