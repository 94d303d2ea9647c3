"""allOf, anyOf, oneOf and not, in the forms structural schemas use them."""

from collections.abc import Callable
from typing import Any

from modelplane.api.schema_nodes import Node
from modelplane.api.schema_paths import Path
from modelplane.api.schema_report import Report

Check = Callable[..., None]


def check_logic(node: Node, value: Any, path: Path, report: Report, check: Check) -> None:
    """Check the branches; they see the value without the rule against unknown fields."""
    for branch in node.logic.get("allOf", ()):
        check(branch, value, path, report, strict=False)
    any_of = node.logic.get("anyOf", ())
    if any_of and not (node.int_or_string and _only_types(any_of)):
        failures = _failures(any_of, value, path, check)
        if all(failures):
            report.add(path, _none_fits("at least one", any_of, failures))
    one_of = node.logic.get("oneOf", ())
    if one_of:
        failures = _failures(one_of, value, path, check)
        fitting = sum(not failure for failure in failures)
        if fitting == 0:
            report.add(path, _none_fits("exactly one", one_of, failures))
        elif fitting > 1:
            report.add(path, _too_many(one_of, fitting))
    for branch in node.logic.get("not", ()):
        if not _failures((branch,), value, path, check)[0]:
            names = ", ".join(branch.required)
            report.add(path, f"must not set {names}" if names else "has a form that is not allowed")


def _failures(branches: tuple[Node, ...], value: Any, path: Path, check: Check) -> list[str]:
    """Give each branch's first problem, empty where the branch fits."""
    found = []
    for branch in branches:
        report = Report()
        check(branch, value, path, report, strict=False)
        found.append(str(report.problems[0]) if report.problems else "")
    return found


def _only_types(branches: tuple[Node, ...]) -> bool:
    """The int-or-string pattern, which the type check has judged already."""
    return all(set(branch.raw) == {"type"} for branch in branches)


def _names(branches: tuple[Node, ...]) -> str:
    if all(set(branch.raw) <= {"required"} for branch in branches):
        return ", ".join(" and ".join(branch.required) for branch in branches)
    return ""


def _none_fits(count: str, branches: tuple[Node, ...], failures: list[str]) -> str:
    names = _names(branches)
    if names:
        return f"needs {count} of: {names}"
    return f"fits none of {len(branches)} forms: {'; or '.join(failures)}"


def _too_many(branches: tuple[Node, ...], fitting: int) -> str:
    names = _names(branches)
    return f"allows only one of: {names}" if names else f"fits {fitting} forms, where only one is allowed"
