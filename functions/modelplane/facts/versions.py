"""The pins: every version the package installs, by stack release, with how each is known."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import yaml

_FOLDER = resources.files("modelplane.facts")
# libyaml's reads the same some ten times faster, where PyYAML was built with it.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class UnknownReleaseError(LookupError):
    """Raised for a stack release this package does not know; the message names those it knows."""


class UnknownPinError(LookupError):
    """Raised for a pin a release does not hold: always our bug."""


@dataclass(frozen=True, slots=True)
class Pin:
    """One version and how it is known.

    Attributes:
        key: its name in the release.
        version: as the chart repository or registry spells it.
        source: where it was read.
        date: when that version came out.
        known: `source`, `text` or `written`, as versions.yaml explains.
        tested_with: what it was tested with, by whom.
        chart: chart name; empty where it is none.
        repository: of the chart, `oci://` or `https://`.
        image: without the tag; empty where it is none.
        manifests: files in facts/manifests.
    """

    key: str
    version: str
    source: str
    date: str
    known: str
    tested_with: str
    chart: str = ""
    repository: str = ""
    image: str = ""
    manifests: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Release:
    """A named set of pins that belong together."""

    name: str
    date: str
    kubernetes_min: str
    kubernetes_max: str
    pins: Mapping[str, Pin]

    def pin(self, key: str) -> Pin:
        """Return the pin, or raise `UnknownPinError`."""
        if key not in self.pins:
            raise UnknownPinError(f"stack release {self.name} has no pin {key}")
        return self.pins[key]


@cache
def releases() -> Mapping[str, Release]:
    """Return every release by name, oldest first."""
    document = yaml.load((_FOLDER / "versions.yaml").read_text(encoding="utf-8"), _LOADER)
    found = [_release(name, body) for name, body in document["releases"].items()]
    return {r.name: r for r in sorted(found, key=lambda r: (r.date, r.name))}


def newest() -> Release:
    """Return the newest release: what a cluster that never had one gets."""
    return list(releases().values())[-1]


def release(name: str) -> Release:
    """Return the release of that name.

    Raises:
        UnknownReleaseError: where this package does not know it.
    """
    known = releases()
    if name not in known:
        raise UnknownReleaseError(f"stack release {name} is not known here; known are {', '.join(known)}")
    return known[name]


def crds(pin: Pin) -> list[dict[str, Any]]:
    """Return the CRD manifests of a pin, new copies on each call; none where it has none."""
    return [copy.deepcopy(_crd(name)) for name in pin.manifests]


@cache
def _crd(name: str) -> dict[str, Any]:
    document: dict[str, Any] = yaml.load((_FOLDER / "manifests" / name).read_text(encoding="utf-8"), _LOADER)
    return document


def _release(name: str, body: Mapping[str, Any]) -> Release:
    kubernetes = body["kubernetes"]
    pins = {key: _pin(key, pin) for key, pin in body["pins"].items()}
    return Release(name, str(body["date"]), kubernetes["min"], kubernetes["max"], pins)


def _pin(key: str, body: Mapping[str, Any]) -> Pin:
    return Pin(
        key=key,
        version=str(body["version"]),
        source=body["source"],
        date=str(body["date"]),
        known=body["known"],
        tested_with=body["testedWith"],
        chart=body.get("chart", ""),
        repository=body.get("repository", ""),
        image=body.get("image", ""),
        manifests=tuple(body.get("manifests", ())),
    )
