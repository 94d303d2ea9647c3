"""Device selectors: CEL over one device, in the environment Kubernetes' DRA gives it.

A selector is compiled once per text and run once per distinct device shape: a fleet holds thousands of pools
but few kinds of device. The environment follows k8s.io/dynamic-resource-allocation cel/compile.go.

`device` is no variable of its own here but its fields are (`device.driver` is one name to the checker), so
that a wrong field or a number compared with a quantity is refused when it compiles. A selector that takes
`device` as a value is compiled in a second environment, where only its run can tell.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any

from cel_expr_python import cel
from cel_expr_python.ext import ext_bindings, ext_optional, ext_strings

from modelplane.api import schema_library
from modelplane.schedule import cel_lists, cel_text, cel_types
from modelplane.schedule.devices import Shape
from modelplane.schedule.semver import Semver

_S, _DYN, _BOOL = cel.Type.STRING, cel.Type.DYN, cel.Type.BOOL
_ATTRIBUTES = cel.Type.Map(_S, _DYN)
_CAPACITY = cel.Type.Map(_S, cel_types.QUANTITY)
_FIELDS: Mapping[str, Any] = {
    "device.driver": _S,
    "device.allowMultipleAllocations": _BOOL,
    "device.attributes": cel.Type.Map(_S, _ATTRIBUTES),
    "device.capacity": cel.Type.Map(_S, _CAPACITY),
}
_REMEMBERED = 4096


@dataclass(slots=True)
class Selector:
    """A selector as written.

    Attributes:
        text: the CEL.
        error: why it cannot be used; empty for one that compiled. One with an error matches nothing.
    """

    text: str
    error: str = ""
    _program: Any = None
    _known: dict[Shape, bool] = field(default_factory=dict)

    def matches(self, shape: Shape) -> bool:
        """Tell whether it is true of the device; an error or another value than a bool is not true."""
        known = self._known.get(shape)
        if known is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            known = self._known[shape] = self._program is not None and _run(self._program, shape)
        return known


@lru_cache(maxsize=_REMEMBERED)
def selector(text: str) -> Selector:
    """Return the compiled selector; look at its `error` before use."""
    if why := cel_text.bounded(text):
        return Selector(text, why)
    environment = _environment(whole=cel_text.whole_device(text))
    try:
        result = environment.compile(text).return_type()
        # Compiled as written first, so that an error shows the author's own text and column.
        program = environment.compile(cel_text.with_domains(text))
    except RuntimeError as error:
        return Selector(text, _first_line(error))
    except TypeError:  # half of a surrogate pair is no text to the runtime
        return Selector(text, "the selector is no valid Unicode")
    if result not in (_BOOL, _DYN):
        return Selector(text, f"gives {result.name().lower()}, not bool")
    return Selector(text, "", program)


def _run(program: Any, shape: Shape) -> bool:
    try:
        result = program.eval(data=_bindings(shape))
        return result.type() == _BOOL and result.value() is True
    except (RuntimeError, TypeError, ValueError):
        return False


@lru_cache(maxsize=_REMEMBERED)
def _bindings(shape: Shape) -> Mapping[str, Any]:
    attributes: dict[str, dict[str, Any]] = {}
    capacity: dict[str, dict[str, Any]] = {}
    for name, _, value in shape.attributes:
        domain, bare = _qualified(name, shape.driver)
        held = cel_types.wrap(value) if isinstance(value, Semver) else value
        attributes.setdefault(domain, {})[bare] = held
    for name, amount in shape.capacity:
        domain, bare = _qualified(name, shape.driver)
        capacity.setdefault(domain, {})[bare] = cel_types.wrap(amount)
    fields = {
        "driver": shape.driver,
        "allowMultipleAllocations": False,
        "attributes": attributes,
        "capacity": capacity,
    }
    return {"device": fields, **{f"device.{name}": value for name, value in fields.items()}}


def _qualified(name: str, driver: str) -> tuple[str, str]:
    domain, slash, bare = name.partition("/")
    return (domain, bare) if slash else (driver, name)


def _domain(domains: Mapping[str, Any], name: str) -> Any:
    return domains.get(name, {})


@cache
def _environment(*, whole: bool) -> Any:
    any_map = cel.Type.Map(_S, _DYN)
    takes = {name: any_map if whole else _FIELDS[f"device.{name}"] for name in ("attributes", "capacity")}
    gives = {"attributes": _ATTRIBUTES, "capacity": any_map if whole else _CAPACITY}
    return cel.NewEnv(
        descriptor_pool=cel_types.POOL,
        variables={"device": any_map} if whole else dict(_FIELDS),
        # Version 2 of the string functions is what Kubernetes has; 3 adds another `reverse`.
        extensions=[ext_strings.ExtStrings(2), ext_optional.ExtOptional(), ext_bindings.ExtBindings()],
        functions=[
            *cel_types.functions(),
            *cel_lists.functions(),
            *schema_library.functions(but=cel_types.NAMES | cel_lists.NAMES),
            *(
                cel.FunctionDecl(
                    f"__{name}",
                    [cel.Overload(f"domain_of_{name}", gives[name], [takes[name], _S], False, _domain)],
                )
                for name in takes
            ),
        ],
    )


def _first_line(error: RuntimeError) -> str:
    """Return CEL's message without its status word, place marker and drawing."""
    line = str(error).splitlines()[0].removeprefix("INVALID_ARGUMENT: ").removeprefix("ERROR: <input>:")
    return line.removesuffix(" [INVALID_ARGUMENT]")
