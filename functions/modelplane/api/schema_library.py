"""The CEL functions that Kubernetes adds to the language, for the environment of schema rules.

https://kubernetes.io/docs/reference/using-api/cel/ lists them. A quantity travels as a map of one entry: this
runtime binds no Python object to an abstract type ("Unimplemented type: 13").
"""

import ipaddress
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from decimal import Decimal
from itertools import pairwise
from typing import Any
from urllib.parse import urlsplit

from cel_expr_python import cel

_BOOL, _INT, _DOUBLE, _STRING, _DYN = (
    cel.Type.BOOL,
    cel.Type.INT,
    cel.Type.DOUBLE,
    cel.Type.STRING,
    cel.Type.DYN,
)
_LIST = cel.Type.List(_DYN)
_STRINGS = cel.Type.List(_STRING)
_QUANTITY = cel.Type.Map(_STRING, _STRING)

_QUANTITY_TEXT = re.compile(
    r"^(?P<number>[+-]?(?:\d+\.?\d*|\.\d+))(?P<suffix>[KMGTPE]i|[numkMGTPE]|[eE][+-]?\d+)?$", re.ASCII
)
_SUFFIXES = {
    **{
        suffix: Decimal(10) ** power
        for suffix, power in zip("numkMGTPE", (-9, -6, -3, 3, 6, 9, 12, 15, 18), strict=True)
    },
    **{f"{suffix}i": Decimal(1024) ** power for power, suffix in enumerate("KMGTPE", start=1)},
}


def _quantity(text: str) -> dict[str, str]:
    match = _QUANTITY_TEXT.match(text)
    if match is None:
        raise ValueError(f'"{text}" is no quantity')
    suffix = match["suffix"] or ""
    scale = _SUFFIXES[suffix] if suffix in _SUFFIXES else Decimal(f"1{suffix}")
    return _wrap(Decimal(match["number"]) * scale)


def _wrap(number: Decimal) -> dict[str, str]:
    # One spelling for each number, so that CEL's own equality of maps compares quantities.
    return {"quantity": format(number.normalize(), "f")}


def _number(quantity: Mapping[str, str]) -> Decimal:
    return Decimal(quantity["quantity"])


def _compare(left: Mapping[str, str], right: Mapping[str, str]) -> int:
    return int(_number(left).compare(_number(right)))


def _as_integer(quantity: Mapping[str, str]) -> int:
    number = _number(quantity)
    if number != number.to_integral_value():
        raise ValueError("the quantity is no whole number")
    return int(number)


def _holds(test: Callable[[Any], Any]) -> Callable[[Any], bool]:
    """Turn a parser that raises ValueError into a yes-or-no function."""

    def holds(value: Any) -> bool:
        try:
            test(value)
        except ValueError:
            return False
        return True

    return holds


def _cidr(text: str) -> None:
    if "/" not in text:
        raise ValueError("no prefix length")
    ipaddress.ip_interface(text)


def _url(text: str) -> None:
    parts = urlsplit(text)
    if not (parts.scheme and parts.netloc) and not text.startswith("/"):
        raise ValueError("no absolute URL")


def _find(text: str, pattern: str) -> str:
    found = re.search(pattern, text)
    return found.group(0) if found else ""


def _find_all(text: str, pattern: str) -> list[str]:
    return [found.group(0) for found in re.finditer(pattern, text)]


def _is_sorted(items: Sequence[Any]) -> bool:
    return all(left <= right for left, right in pairwise(items))


def _contains(items: Sequence[Any], wanted: Sequence[Any]) -> bool:
    return all(item in items for item in wanted)


Signature = tuple[str, str, Any, list[Any], bool, Callable[..., Any]]

# name, overload, result, parameters, called on its first parameter, implementation
_SIGNATURES: tuple[Signature, ...] = (
    ("isSorted", "list_is_sorted", _BOOL, [_LIST], True, _is_sorted),
    ("sum", "list_sum", _DYN, [_LIST], True, sum),
    ("min", "list_min", _DYN, [_LIST], True, min),
    ("max", "list_max", _DYN, [_LIST], True, max),
    ("sets.contains", "sets_contains", _BOOL, [_LIST, _LIST], False, _contains),
    ("sets.equivalent", "sets_equivalent", _BOOL, [_LIST, _LIST], False,
     lambda left, right: _contains(left, right) and _contains(right, left)),
    ("sets.intersects", "sets_intersects", _BOOL, [_LIST, _LIST], False,
     lambda left, right: any(item in left for item in right)),
    ("find", "string_find", _STRING, [_STRING, _STRING], True, _find),
    ("findAll", "string_find_all", _STRINGS, [_STRING, _STRING], True, _find_all),
    ("isQuantity", "is_quantity", _BOOL, [_STRING], False, _holds(_quantity)),
    ("quantity", "string_to_quantity", _QUANTITY, [_STRING], False, _quantity),
    ("compareTo", "quantity_compare_to", _INT, [_QUANTITY, _QUANTITY], True, _compare),
    ("isLessThan", "quantity_is_less_than", _BOOL, [_QUANTITY, _QUANTITY], True,
     lambda left, right: _compare(left, right) < 0),
    ("isGreaterThan", "quantity_is_greater_than", _BOOL, [_QUANTITY, _QUANTITY], True,
     lambda left, right: _compare(left, right) > 0),
    ("sign", "quantity_sign", _INT, [_QUANTITY], True,
     lambda quantity: _compare(quantity, _wrap(Decimal(0)))),
    ("isInteger", "quantity_is_integer", _BOOL, [_QUANTITY], True, _holds(_as_integer)),
    ("asInteger", "quantity_as_integer", _INT, [_QUANTITY], True, _as_integer),
    ("asApproximateFloat", "quantity_as_float", _DOUBLE, [_QUANTITY], True,
     lambda quantity: float(_number(quantity))),
    ("add", "quantity_add", _QUANTITY, [_QUANTITY, _QUANTITY], True,
     lambda left, right: _wrap(_number(left) + _number(right))),
    ("sub", "quantity_sub", _QUANTITY, [_QUANTITY, _QUANTITY], True,
     lambda left, right: _wrap(_number(left) - _number(right))),
    ("isIP", "is_ip", _BOOL, [_STRING], False, _holds(ipaddress.ip_address)),
    ("isCIDR", "is_cidr", _BOOL, [_STRING], False, _holds(_cidr)),
    ("isURL", "is_url", _BOOL, [_STRING], False, _holds(_url)),
)  # fmt: skip


def functions(but: Collection[str] = ()) -> list[Any]:
    """Give the declarations, fresh for one environment; `but` names what it declares itself."""
    return [
        cel.FunctionDecl(name, [cel.Overload(overload, result, parameters, member, impl)])
        for name, overload, result, parameters, member, impl in _SIGNATURES
        if name not in but
    ]
