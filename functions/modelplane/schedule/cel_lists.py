"""List functions that Kubernetes adds to device selectors (cel-go ext/lists.go, version 3), and `find`.

Not among them: `sortBy`, which is a macro, and `indexOf` of a list, whose name the runtime keeps for texts.
"""

from collections.abc import Callable, Sequence
from typing import Any

from cel_expr_python import cel

from modelplane.schedule import regex
from modelplane.schedule.cel_text import MAX_RANGE

_DEPTH = 100


def _flat(items: Sequence[Any], depth: int = 1) -> list[Any]:
    if not 0 <= depth <= _DEPTH:
        raise ValueError("level must be non-negative and small")
    found: list[Any] = []
    for item in items:
        found += _flat(item, depth - 1) if isinstance(item, list) and depth else [item]
    return found


def _sorted(items: Sequence[Any]) -> list[Any]:
    # 1 and true are of one kind to Python.
    if len({type(item) for item in items}) > 1:
        raise ValueError("list elements must have the same type")
    return sorted(items)


def _slice(items: Sequence[Any], start: int, end: int) -> list[Any]:
    if not 0 <= start <= end <= len(items):
        raise ValueError(f"cannot slice({start}, {end}), list is length {len(items)}")
    return list(items[start:end])


def _distinct(items: Sequence[Any]) -> list[Any]:
    found: list[Any] = []
    for item in items:
        if not any(item == other and type(item) is type(other) for other in found):
            found.append(item)
    return found


def _range(number: int) -> list[int]:
    if not 0 <= number <= MAX_RANGE:
        raise ValueError(f"lists.range gives 0 to {MAX_RANGE} numbers here")
    return list(range(number))


_I, _S = cel.Type.INT, cel.Type.STRING
_L, _T = cel.Type.List(cel.Type.DYN), cel.Type.List(cel.Type.STRING)
_Overload = tuple[str, Any, list[Any], Callable[..., Any]]
_MEMBERS: dict[str, list[_Overload]] = {
    "slice": [("list_slice", _L, [_L, _I, _I], _slice)],
    "flatten": [("list_flatten", _L, [_L], _flat), ("list_flatten_int", _L, [_L, _I], _flat)],
    "sort": [("list_sort", _L, [_L], _sorted)],
    "distinct": [("list_distinct", _L, [_L], _distinct)],
    "reverse": [("list_reverse", _L, [_L], lambda items: list(reversed(items)))],
    "find": [("string_find", _S, [_S, _S], regex.find)],
    "findAll": [
        ("string_find_all", _T, [_S, _S], regex.find_all),
        ("string_find_all_int", _T, [_S, _S, _I], regex.find_all),
    ],
}
NAMES = frozenset(_MEMBERS)


def functions() -> list[Any]:
    """Return the declarations, fresh for one environment."""
    found = [
        cel.FunctionDecl(
            name, [cel.Overload(o, gives, takes, True, impl) for o, gives, takes, impl in overloads]
        )
        for name, overloads in _MEMBERS.items()
    ]
    return [*found, cel.FunctionDecl("lists.range", [cel.Overload("lists_range", _L, [_I], False, _range)])]
