"""The CEL half of a check: every `x-kubernetes-validations` on the way through a document."""

import base64
import binascii
import json
from collections.abc import Iterator, Mapping
from typing import Any

from modelplane.api import schema_cel, schema_metadata, schema_paths
from modelplane.api.schema_nodes import Node, Raw
from modelplane.api.schema_paths import Path
from modelplane.api.schema_report import Report

# Stands for "no old value here": an old value may itself be null.
ABSENT: Any = object()

# Of the metadata a rule on an object may read these two alone.
_READABLE_METADATA = ("name", "generateName")
_MESSAGE_LENGTH = 5120


def check(node: Node, value: Any, old: Any, path: Path, report: Report) -> None:
    """Run the rules of this node and below. Without an old value, transition rules do not run."""
    if value is None or not node.ruled:
        return
    if node.rules:
        _Run(node, value, old, path, report).all()
    if isinstance(value, dict):
        before = old if isinstance(old, dict) else {}
        for key, field in value.items():
            child = node.value_of(key)
            if child is not None:
                check(child, field, before.get(key, ABSENT), (*path, key), report)
    elif isinstance(value, list) and node.items is not None:
        for index, item in enumerate(value):
            check(node.items, item, _counterpart(node, item, old), (*path, index), report)


def _counterpart(node: Node, item: Any, old: Any) -> Any:
    """Find an item's old self by key; items of other lists than maps have none that could be told apart."""
    if node.list_type == "map" and isinstance(old, list) and isinstance(item, dict):
        key = _key(node, item)
        for candidate in old:
            if isinstance(candidate, dict) and _key(node, candidate) == key:
                return candidate
    return ABSENT


def _key(node: Node, item: Any) -> str:
    keyed = {name: item.get(name) for name in node.list_keys} if node.list_type == "map" else item
    return json.dumps(keyed, sort_keys=True, default=str)


class _Run:
    """The rules of one node over one value, which is converted for CEL once."""

    def __init__(self, node: Node, value: Any, old: Any, path: Path, report: Report) -> None:
        self.node, self.path, self.report = node, path, report
        self.has_old = old is not ABSENT and old is not None
        current = to_cel(node, value, resource=not path)
        before = to_cel(node, old, resource=not path, like=value) if self.has_old else None
        self.bound = schema_cel.bind(current, before, has_old=self.has_old)

    def all(self) -> None:
        """Run each rule that applies and compiles; `unsupported` below names those that do not compile."""
        for rule in self.node.rules:
            optional = bool(rule.get("optionalOldSelf"))
            if schema_cel.reads_old(rule["rule"]) and not optional and not self.has_old:
                continue
            program = schema_cel.program(rule["rule"], optional_old=optional)
            if program.error:
                continue
            outcome = program.run(self.bound)
            if outcome.error:
                self._refuse(
                    rule, f"{self._message(rule)} (the rule could not be evaluated: {outcome.error})"
                )
            elif outcome.value is not True:
                self._refuse(rule, self._message(rule))

    def _refuse(self, rule: Raw, message: str) -> None:
        self.report.add(self.path, message, *schema_paths.parse(rule.get("fieldPath", "")))

    def _message(self, rule: Raw) -> str:
        """Give the rule's own words; a messageExpression that fails gives way to the message, as upstream."""
        if rule.get("messageExpression"):
            program = schema_cel.program(
                rule["messageExpression"], optional_old=bool(rule.get("optionalOldSelf")), result="STRING"
            )
            text = "" if program.error else program.run(self.bound).value
            if isinstance(text, str) and text.strip() and "\n" not in text and len(text) <= _MESSAGE_LENGTH:
                return text.strip()
        message: str = rule.get("message") or f"failed rule: {rule['rule'].strip()}"
        return message


def to_cel(node: Node, value: Any, *, resource: bool = False, like: Any = None) -> Any:
    """Convert a value to what a rule sees: typed by the schema, declared names escaped, the rest kept.

    Sets and list maps compare without regard to order, so an old list with the items of the new one (`like`)
    is brought into its order.
    """
    if isinstance(value, dict):
        return _object(node, value, resource or node.embedded, like)
    if isinstance(value, list):
        items = node.items
        ordered, likes = _aligned(node, value, like)
        if items is None:
            return ordered
        return [to_cel(items, item, like=near) for item, near in zip(ordered, likes, strict=True)]
    return _scalar(node, value)


def _scalar(node: Node, value: Any) -> Any:
    if isinstance(value, bool) or value is None:
        return value
    if node.type == "number" and isinstance(value, int):
        return float(value)
    if isinstance(value, float) and value.is_integer() and (node.type == "integer" or node.int_or_string):
        return int(value)
    if node.raw.get("format") == "byte" and isinstance(value, str):
        try:
            return base64.b64decode(value)
        except (binascii.Error, ValueError):
            return value
    return value


def _object(node: Node, value: Mapping[str, Any], resource: bool, like: Any) -> dict[str, Any]:
    likes = like if isinstance(like, dict) else {}
    result: dict[str, Any] = {}
    for key, field in value.items():
        if resource and key in schema_metadata.TYPE_META:
            readable = isinstance(field, dict)
            result[key] = (
                {name: field[name] for name in _READABLE_METADATA if name in field} if readable else field
            )
        elif key in node.properties:
            result[schema_cel.escape(key)] = to_cel(node.child(key) or node, field, like=likes.get(key))
        else:
            additional = node.additional
            result[key] = field if additional is None else to_cel(additional, field, like=likes.get(key))
    return result


def _aligned(node: Node, value: list[Any], like: Any) -> tuple[list[Any], list[Any]]:
    if node.list_type not in ("set", "map") or not isinstance(like, list) or len(like) != len(value):
        return value, [None] * len(value)
    if not all(isinstance(item, dict) for item in [*value, *like]) and node.list_type == "map":
        return value, [None] * len(value)
    by_key = {_key(node, item): item for item in value}
    order = [_key(node, item) for item in like]
    if set(by_key) != set(order) or len(by_key) != len(value):
        return value, [None] * len(value)
    return [by_key[key] for key in order], like


def unsupported(path: str, node: Node) -> Iterator[tuple[str, str, str]]:
    """Give this node's rules, message expressions and patterns that do not compile: path, text, error."""
    for rule in node.rules:
        optional = bool(rule.get("optionalOldSelf"))
        for field, result in (("rule", "BOOL"), ("messageExpression", "STRING")):
            if rule.get(field):
                error = schema_cel.program(rule[field], optional_old=optional, result=result).error
                if error:
                    yield path, rule[field], error
    pattern = node.raw.get("pattern")
    if pattern:
        error = schema_cel.pattern_error(pattern)
        if error:
            yield path, pattern, error
