"""Structural defaulting, as the API server does it on every read and write."""

import copy
from collections.abc import Mapping
from typing import Any

from modelplane.api.schema_nodes import Node


def apply(node: Node, value: Any) -> Any:
    """Give a copy of the value with the schema's defaults filled in.

    A default is set only where the parent exists. A null in a field that is not nullable counts as absent:
    the default takes its place, or, where there is none, the field is dropped; items of a list stay.
    https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#defaulting
    """
    if isinstance(value, dict):
        return _object(node, value)
    if isinstance(value, list):
        items = node.items
        return copy.deepcopy(value) if items is None else [_item(items, item) for item in value]
    return value


def _item(node: Node, value: Any) -> Any:
    if value is None and not node.nullable and node.has_default:
        value = node.default
    return apply(node, value)


def _object(node: Node, value: Mapping[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, field in value.items():
        child = node.value_of(key)
        if child is None:
            result[key] = copy.deepcopy(field)
        elif field is not None or child.nullable:
            result[key] = apply(child, field)
        elif child.has_default:
            result[key] = apply(child, child.default)
    for name in node.properties:
        if name not in result:
            child = node.child(name)
            if child is not None and child.has_default:
                result[name] = apply(child, child.default)
    return result
