"""Reading other people's objects: by path, and never raising on what is missing or mistyped."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Manifest = dict[str, Any]
# Plain types first: they spare the much slower check of an abstract class; `at` asks for a dict first of all.
_MAPPING, _SEQUENCE = (dict, Mapping), (list, Sequence)


def at(obj: object, *path: str | int, default: Any = None) -> Any:
    """Return the value at the path, or `default` where any step is missing, null or of another type."""
    here: Any = obj
    for step in path:
        if isinstance(here, dict):
            if (here := here.get(step)) is None:
                return default
        elif isinstance(step, int):
            if not isinstance(here, _SEQUENCE) or isinstance(here, str) or not -len(here) <= step < len(here):
                return default
            here = here[step]
        elif not isinstance(here, Mapping) or (here := here.get(step)) is None:
            return default
    return default if here is None else here


def mapping(obj: object, *path: str | int) -> Mapping[str, Any]:
    """Return the mapping at the path, or an empty one."""
    found = at(obj, *path)
    return found if isinstance(found, _MAPPING) else {}


def items(obj: object, *path: str | int) -> list[Any]:
    """Return the list at the path, or an empty one."""
    found = at(obj, *path)
    return list(found) if isinstance(found, _SEQUENCE) and not isinstance(found, str) else []


def mappings(obj: object, *path: str | int) -> Iterator[Mapping[str, Any]]:
    """Yield the mappings of the list at the path; anything else in it is passed over."""
    for item in items(obj, *path):
        if isinstance(item, _MAPPING):
            yield item


def text(obj: object, *path: str | int) -> str:
    """Return the non-empty string at the path, or an empty string."""
    here: Any = obj
    for step in path:
        if not isinstance(here, dict):
            here = at(obj, *path)
            break
        here = here.get(step)
    return here if isinstance(here, str) else ""


def integer(obj: object, *path: str | int, default: int | None = None) -> int | None:
    """Return the whole number at the path; Crossplane sends every number as a float."""
    found = at(obj, *path)
    if isinstance(found, bool) or not isinstance(found, (int, float)):
        return default
    # Not `found != int(found)`: that raises on the infinities and NaN that a Struct can carry.
    return int(found) if float(found).is_integer() else default


def name(obj: object) -> str:
    """Return the object's name, or an empty string."""
    return text(obj, "metadata", "name")


def namespace(obj: object) -> str:
    """Return the object's namespace, or an empty string."""
    return text(obj, "metadata", "namespace")


def labels(obj: object) -> Mapping[str, Any]:
    """Return the object's labels, or none."""
    return mapping(obj, "metadata", "labels")


def condition(obj: object, kind: str) -> Mapping[str, Any]:
    """Return the status condition of that type, or an empty mapping."""
    for found in mappings(obj, "status", "conditions"):
        if found.get("type") == kind:
            return found
    return {}


def said(condition: object, otherwise: str = "") -> str:
    """Return a condition's words as `Reason: message`, or what it has of both, or `otherwise`.

    The reason is what its controller's documentation explains; a message alone is often a bare name.
    """
    reason, message = text(condition, "reason"), text(condition, "message")
    if message.startswith(reason):
        reason = ""
    return ": ".join(part for part in (reason, message) if part) or otherwise


def is_true(obj: object, kind: str) -> bool:
    """Tell whether the status condition of that type is True; absent is not true."""
    return condition(obj, kind).get("status") == "True"
