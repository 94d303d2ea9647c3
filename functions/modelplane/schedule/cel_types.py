"""Quantity and semver as values that CEL can hold, and the functions Kubernetes gives them.

The runtime binds Python values to its own types and to protobuf messages only: an abstract type compiles but
fails at evaluation (cel-expr-python 0.1.3, "Unimplemented type: 13"). So each is a message with one field,
which holds one spelling per value: CEL's own equality then compares values.

Two message parameters look alike to the runtime's dispatch, so a name that both types share has its Python
function on one overload, and the other is declared for the type checker alone.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from cel_expr_python import cel
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from modelplane.schedule import quantity, semver
from modelplane.schedule.quantity import Quantity
from modelplane.schedule.semver import Semver

_PACKAGE = "kubernetes"
_FIELD = "text"


def _pool() -> Any:
    pool = descriptor_pool.DescriptorPool()
    file = descriptor_pb2.FileDescriptorProto(name="modelplane/cel.proto", package=_PACKAGE, syntax="proto3")
    for name in ("Quantity", "Semver"):
        message = file.message_type.add(name=name)
        message.field.add(name=_FIELD, number=1, type=9, label=1)  # an optional string
    pool.Add(file)
    return pool


POOL = _pool()
QUANTITY = cel.Type(f"{_PACKAGE}.Quantity")
SEMVER = cel.Type(f"{_PACKAGE}.Semver")
_QuantityMessage: Any = message_factory.GetMessageClass(POOL.FindMessageTypeByName(f"{_PACKAGE}.Quantity"))
_SemverMessage: Any = message_factory.GetMessageClass(POOL.FindMessageTypeByName(f"{_PACKAGE}.Semver"))


def wrap(value: Quantity | Semver) -> Any:
    """Return the value as CEL holds it."""
    if isinstance(value, Quantity):
        return _QuantityMessage(text=str(value.nano))
    return _SemverMessage(text=str(value))


@lru_cache(maxsize=4096)
def _semver_of(text: str) -> Semver:
    return semver.parse(text)


def _unwrap(value: Any) -> Quantity | Semver:
    if isinstance(value, _QuantityMessage):
        return Quantity(int(value.text or "0"))
    return _semver_of(value.text or "0.0.0")


def _compare(left: Any, right: Any) -> int:
    a, b = _unwrap(left), _unwrap(right)
    if isinstance(a, Quantity) and isinstance(b, Quantity):
        return (a > b) - (a < b)
    if isinstance(a, Semver) and isinstance(b, Semver):
        return (a > b) - (a < b)
    raise ValueError("a quantity cannot be compared with a version")


def _amount(value: Any) -> Quantity:
    found = _unwrap(value)
    if not isinstance(found, Quantity):
        raise ValueError("no such overload: the value is a version, not a quantity")
    return found


def _version(value: Any) -> Semver:
    found = _unwrap(value)
    if not isinstance(found, Semver):
        raise ValueError("no such overload: the value is a quantity, not a version")
    return found


def _parses(parse: Callable[..., object], *arguments: Any, **options: Any) -> bool:
    try:
        parse(*arguments, **options)
    except ValueError:
        return False
    return True


_B, _I, _D, _S = cel.Type.BOOL, cel.Type.INT, cel.Type.DOUBLE, cel.Type.STRING
_Q, _V = [QUANTITY, QUANTITY], [SEMVER, SEMVER]
_Signature = tuple[str, str, Any, list[Any], bool, Callable[..., Any] | None]

# name, overload, result, parameters, called on its first parameter, implementation
_SIGNATURES: tuple[_Signature, ...] = (
    ("quantity", "string_to_quantity", QUANTITY, [_S], False, lambda text: wrap(quantity.parse(text))),
    ("isQuantity", "is_quantity", _B, [_S], False, lambda text: _parses(quantity.parse, text)),
    # The one that is no member, whatever Kubernetes' documentation says.
    ("sign", "quantity_sign", _I, [QUANTITY], False, lambda q: _amount(q).sign),
    ("isInteger", "quantity_is_integer", _B, [QUANTITY], True, lambda q: _amount(q).is_integer),
    ("asInteger", "quantity_as_integer", _I, [QUANTITY], True, lambda q: _amount(q).as_integer()),
    ("asApproximateFloat", "quantity_as_float", _D, [QUANTITY], True, lambda q: _amount(q).as_float()),
    ("add", "quantity_add", QUANTITY, _Q, True, lambda a, b: wrap(_amount(a).add(_amount(b)))),
    ("add", "quantity_add_int", QUANTITY, [QUANTITY, _I], True,
     lambda a, b: wrap(_amount(a).add(Quantity.of(b)))),
    ("sub", "quantity_sub", QUANTITY, _Q, True, lambda a, b: wrap(_amount(a).sub(_amount(b)))),
    ("sub", "quantity_sub_int", QUANTITY, [QUANTITY, _I], True,
     lambda a, b: wrap(_amount(a).sub(Quantity.of(b)))),
    ("compareTo", "quantity_compare_to", _I, _Q, True, _compare),
    ("compareTo", "semver_compare_to", _I, _V, True, None),
    ("isGreaterThan", "quantity_is_greater_than", _B, _Q, True, lambda a, b: _compare(a, b) > 0),
    ("isGreaterThan", "semver_is_greater_than", _B, _V, True, None),
    ("isLessThan", "quantity_is_less_than", _B, _Q, True, lambda a, b: _compare(a, b) < 0),
    ("isLessThan", "semver_is_less_than", _B, _V, True, None),
    ("semver", "string_to_semver", SEMVER, [_S], False, lambda text: wrap(semver.parse(text))),
    ("semver", "string_bool_to_semver", SEMVER, [_S, _B], False,
     lambda text, loose: wrap(semver.parse(text, normalize=loose))),
    ("isSemver", "is_semver", _B, [_S], False, lambda text: _parses(semver.parse, text)),
    ("isSemver", "is_semver_bool", _B, [_S, _B], False,
     lambda text, loose: _parses(semver.parse, text, normalize=loose)),
    ("major", "semver_major", _I, [SEMVER], True, lambda v: _version(v).major),
    ("minor", "semver_minor", _I, [SEMVER], True, lambda v: _version(v).minor),
    ("patch", "semver_patch", _I, [SEMVER], True, lambda v: _version(v).patch),
)  # fmt: skip


NAMES = frozenset(signature[0] for signature in _SIGNATURES)


def functions() -> list[Any]:
    """Return the declarations, fresh for one environment: one per name, with all of its overloads."""
    overloads: dict[str, list[Any]] = {}
    for name, overload, result, parameters, member, impl in _SIGNATURES:
        given = {} if impl is None else {"impl": impl}
        overloads.setdefault(name, []).append(cel.Overload(overload, result, parameters, member, **given))
    return [cel.FunctionDecl(name, found) for name, found in overloads.items()]
