"""Reads the shipped XRDs and walks their schemas, for the contract tests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent.parent
APIS = sorted((ROOT / "apis").glob("*.yaml"))


@dataclass(frozen=True)
class Node:
    """One schema, where it stands, and whether a rule at it or above ranges over it."""

    path: str
    schema: dict[str, Any]
    kind: str  # root, property, items or values
    ruled: bool


@cache
def load(path: Path) -> dict[str, Any]:
    """One XRD or Composition; the file is read once a run."""
    document: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return document


def schema_of(xrd: dict[str, Any]) -> dict[str, Any]:
    """The schema of the only version."""
    (version,) = xrd["spec"]["versions"]
    schema: dict[str, Any] = version["schema"]["openAPIV3Schema"]
    return schema


def walk(schema: dict[str, Any], path: str = "", kind: str = "root", ruled: bool = False) -> Iterator[Node]:
    """Every schema below and including this one, parents first."""
    ruled = ruled or "x-kubernetes-validations" in schema
    yield Node(path or ".", schema, kind, ruled)
    for name, child in schema.get("properties", {}).items():
        yield from walk(child, f"{path}.{name}", "property", ruled)
    if "items" in schema:
        yield from walk(schema["items"], f"{path}[]", "items", ruled)
    if isinstance(schema.get("additionalProperties"), dict):
        yield from walk(schema["additionalProperties"], f"{path}{{}}", "values", ruled)


def nodes(path: Path) -> list[Node]:
    """Every schema of one XRD file."""
    return list(walk(schema_of(load(path))))


def closed(schema: dict[str, Any]) -> dict[str, Any]:
    """A CRD's schema as JSON schema in which unknown fields are refused, as strict decoding does."""
    result = {
        key: value
        for key, value in schema.items()
        if not key.startswith("x-kubernetes-") and key not in {"description", "format", "default"}
    }
    if "properties" in schema:
        result["properties"] = {name: closed(child) for name, child in schema["properties"].items()}
        if not schema.get("x-kubernetes-preserve-unknown-fields"):
            result["additionalProperties"] = False
    if "items" in schema:
        result["items"] = closed(schema["items"])
    if isinstance(schema.get("additionalProperties"), dict):
        result["additionalProperties"] = closed(schema["additionalProperties"])
    return result
