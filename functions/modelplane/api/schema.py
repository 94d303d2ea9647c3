"""Judge a document as an API server would, without one: defaults, structure, unknown fields and CEL rules."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from modelplane.api import schema_defaults, schema_rules, schema_values
from modelplane.api.schema_nodes import Node, walk
from modelplane.api.schema_report import Problem, Report

__all__ = ["Problem", "Schema"]


class Schema:
    """One version's `openAPIV3Schema`, read once and kept: CEL and patterns compile on first use.

    An update is judged in full. The API server since 1.33 lets an invalid value pass where the update does
    not touch it ("ratcheting"); here it is a problem, as it would be in a new object.
    """

    def __init__(self, openapi: Mapping[str, Any]) -> None:
        self.openapi = openapi
        self._root = Node(openapi)

    def default(self, obj: Mapping[str, Any]) -> dict[str, Any]:
        """Give a new object with the schema's defaults filled in; the given one stays as it is."""
        result: dict[str, Any] = schema_defaults.apply(self._root, obj)
        return result

    def check(self, obj: Any, old: Any = None) -> list[Problem]:
        """List every reason to refuse the object, empty where there is none.

        Apply `default` first, as the server does. Without an old object, transition rules do not run. As on
        the server, no rule runs over an object whose structure is broken.
        """
        report = Report()
        schema_values.check(self._root, obj, (), report)
        if not report.blocked:
            schema_rules.check(self._root, obj, schema_rules.ABSENT if old is None else old, (), report)
        return report.problems

    @cached_property
    def unsupported(self) -> list[tuple[str, str, str]]:
        """The rules and patterns that do not compile here and are therefore not run: path, text, error."""
        return [found for path, node in walk(self._root) for found in schema_rules.unsupported(path, node)]
