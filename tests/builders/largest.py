"""The largest document of a kind: every optional field, list, map and text at its limit, if rules let it.

What a schema allows is also what its rules are evaluated on: a document at all limits shows what they cost.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

Tree = dict[str, Any]
Accepts = Callable[[Any], bool]
# An API server takes 3 MB a request, and etcd 1.5 MB an object.
BYTES = 1_000_000
# Steps to a place in a document; "[]" any item of a list, "{}" any value of a map.
Path = tuple[str, ...]
# Fields that tell the items of a list apart.
_KEYS = ("name", "key", "mountPath", "secretRef", "type", "endpoint")


def largest(schema: Tree, smallest: Any, accepts: Accepts, *, deep: bool) -> Any:
    """Grow a valid value by the schema as far as `accepts` says yes, the innermost lists first or last.

    Where not all lists fit into one document, that decides which are at their limit.
    """
    value = _with_options(schema, smallest, accepts)
    for path in sorted(_growing(schema), key=len, reverse=deep):
        value = _lengthened(schema, value, path, accepts)
    for path in _texts(schema):
        longer = copy.deepcopy(value)
        for holder, key, node in _places(schema, longer, path):
            holder[key] = _longest(str(holder[key]), node)
        if _size(longer) < BYTES and accepts(longer):
            value = longer
    return value


def limits(schema: Tree, value: Any) -> Iterator[tuple[Path, int, int]]:
    """Yield each list and map of the value with its length and the schema's limit."""
    for path in _growing(schema):
        for holder, key, node in _places(schema, value, path):
            yield path, len(holder[key]), _limit(node)


def _limit(node: Tree) -> int:
    return int(node.get("maxItems") or node["maxProperties"])


def _with_options(schema: Tree, value: Any, accepts: Accepts) -> Any:
    """Set every field that may be set beside those that are, nearest to the top first."""
    for path in sorted(_fields(schema), key=len):
        fuller = copy.deepcopy(value)
        added = False
        for holder, key, node in _places(schema, fuller, path[:-1]):
            inner = holder[key]
            if isinstance(inner, dict) and path[-1] not in inner:
                inner[path[-1]] = _smallest(node["properties"][path[-1]])
                added = True
        if added and accepts(fuller):
            value = fuller
    return value


def _lengthened(schema: Tree, value: Any, path: Path, accepts: Accepts) -> Any:
    most = _limit(_at(schema, path)) if _places(schema, value, path) else 0
    while most > 1:
        longer = copy.deepcopy(value)
        for holder, key, node in _places(schema, longer, path):
            holder[key] = _filled(holder[key], node, most)
        if _size(longer) < BYTES and accepts(longer):
            return longer
        most = most * 3 // 4
    return value


def _filled(value: Any, node: Tree, most: int) -> Any:
    if isinstance(value, dict):
        first = next(iter(value.values()), None) or _smallest(node["additionalProperties"])
        return {**value, **{f"key-{i}": copy.deepcopy(first) for i in range(most - len(value))}}
    if "enum" in node["items"]:
        return node["items"]["enum"][:most]
    first = value[0] if value else _smallest(node["items"])
    return [*value, *(_another(first, node["items"], i) for i in range(len(value), most))]


def _another(first: Any, node: Tree, i: int) -> Any:
    """Return an item like the first with other keys."""
    if isinstance(first, dict):
        fields = node.get("properties", {})
        return {
            k: _another(v, fields.get(k, {}), i) if k in _KEYS else copy.deepcopy(v) for k, v in first.items()
        }
    if not isinstance(first, str) or "enum" in node:
        return first
    for other in (f"{first}-{i}", f"{first[:-2]}{i:02x}", f"10.{i}.0.0/16"):
        if re.search(node.get("pattern", ""), other) and len(other) <= node.get("maxLength", len(other)):
            return other
    return first


def _longest(text: str, node: Tree) -> str:
    return text.ljust(int(node["maxLength"]), "x")


def _smallest(node: Tree) -> Any:
    if "default" in node:
        return copy.deepcopy(node["default"])
    if node.get("enum"):
        return node["enum"][0]
    if node.get("x-kubernetes-int-or-string"):
        return 1
    kind = node.get("type")
    if kind == "object":
        if "additionalProperties" in node:
            return {"key": _smallest(node["additionalProperties"])}
        return {k: _smallest(node["properties"][k]) for k in node.get("required", ())}
    if kind == "array":
        return [_smallest(node["items"])]
    return {"integer": max(1, int(node.get("minimum", 1))), "number": 1, "boolean": True}.get(str(kind), "a")


def _size(value: Any) -> int:
    return len(json.dumps(value))


def _fields(node: Tree, path: Path = ()) -> Iterator[Path]:
    for name, below in node.get("properties", {}).items():
        yield (*path, name)
        yield from _fields(below, (*path, name))
    for step, key in (("[]", "items"), ("{}", "additionalProperties")):
        if isinstance(node.get(key), dict):
            yield from _fields(node[key], (*path, step))


def _growing(node: Tree) -> list[Path]:
    return [p for p in _all(node) if {"maxItems", "maxProperties"} & _at(node, p).keys()]


def _texts(node: Tree) -> list[Path]:
    free = ({"enum", "pattern", "format"}, {"maxLength"})
    return [p for p in _all(node) if not free[0] & _at(node, p).keys() and free[1] & _at(node, p).keys()]


def _all(node: Tree, path: Path = ()) -> Iterator[Path]:
    yield path
    for name, below in node.get("properties", {}).items():
        yield from _all(below, (*path, name))
    for step, key in (("[]", "items"), ("{}", "additionalProperties")):
        if isinstance(node.get(key), dict):
            yield from _all(node[key], (*path, step))


def _at(node: Tree, path: Path) -> Tree:
    for step in path:
        node = {"[]": node.get("items"), "{}": node.get("additionalProperties")}.get(step) or node[
            "properties"
        ][step]
    return node


def _places(schema: Tree, value: Any, path: Path) -> list[tuple[Any, Any, Tree]]:
    """Return each place the path leads to: what holds it, under which key, and its schema."""
    found: list[tuple[Any, Any, Tree]] = [([value], 0, schema)]
    for step in path:
        after: list[tuple[Any, Any, Tree]] = []
        for holder, key, node in found:
            inner = holder[key]
            below = _at(node, (step,))
            if step in ("[]", "{}"):
                keys = range(len(inner)) if step == "[]" else list(inner)
                after += [(inner, one, below) for one in keys]
            elif isinstance(inner, dict) and step in inner:
                after.append((inner, step, below))
        found = after
    return found
