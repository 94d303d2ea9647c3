"""What differs between two states of a control plane: which objects, on which cluster, and what it costs.

Objects are told apart by who composed them and under which key, not by name: a key whose object has another
name now is an object that goes while another comes, and that is what hurts.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from modelplane import names
from modelplane.core import Manifest, paths
from modelplane.gangs.backends import POD_FIELDS
from modelplane.review.fleet import CLUSTER, cluster_of, shown
from modelplane.sim.world import Ref, ref

ADDED, REMOVED, CHANGED, RECREATED = "added", "removed", "changed", "recreated"
CONTROL_PLANE = "control plane"
RESTARTS = "restarts pods"
# A team's namespace, a CRD: its Object goes, and may not delete (docs/adr/0003-team-namespaces.md).
LEFT = "left on the cluster"
HIDDEN = "(not shown)"
_LONG = 100
_SECRET_FIELDS = re.compile(r"^(data|stringData)\b")
_SECRET_NAMES = re.compile(
    r"token|secret|password|passwd|credential|api[-_]?key|private[-_]?key", re.IGNORECASE
)

# By owner and key: what was composed; a root has no owner and its own identity for a key.
State = Mapping[tuple[str, str], Manifest]


@dataclass(frozen=True, slots=True)
class Field:
    """One field that differs; a side that lacks it is None."""

    path: str
    old: str | None
    new: str | None


@dataclass(frozen=True, slots=True)
class Change:
    """One object that differs.

    Attributes:
        cluster: where; CONTROL_PLANE for what stands there.
        change: ADDED, REMOVED, CHANGED or RECREATED.
        what: the object, a carried one by what it carries.
        was: its former identity, where it is another now.
        effect: what the change does to what runs, where that is known.
        fields: what differs.
    """

    cluster: str
    change: str
    what: str
    was: str = ""
    effect: str = ""
    fields: tuple[Field, ...] = ()


def changes(old: State, new: State) -> list[Change]:
    """Return the differences, by cluster, then recreations and removals first."""
    places = _places(old, new)
    pairs = list(_pairs(old, new))
    found = [change for before, after in pairs if (change := _change(before, after, places)) is not None]
    order = {RECREATED: 0, REMOVED: 1, CHANGED: 2, ADDED: 3}
    return sorted(found, key=lambda x: (x.cluster, order[x.change], x.what))


def _pairs(old: State, new: State) -> Iterator[tuple[Manifest | None, Manifest | None]]:
    """Pair what stands under one key; then what left and came under keys that differ in a digest alone."""
    gone = {key: obj for key, obj in old.items() if key not in new}
    came = {key: obj for key, obj in new.items() if key not in old}
    for key in sorted(old.keys() & new.keys()):
        yield old[key], new[key]
    for key, before in sorted(gone.items()):
        owner, name = key
        stem = name.partition(".")[0]
        twins = [k for k in came if k[0] == owner and "." in name and k[1].partition(".")[0] == stem]
        yield before, came.pop(min(twins)) if twins else None
    for _, after in sorted(came.items()):
        yield None, after


def _places(*states: State) -> dict[str, str]:
    """Return the cluster that each provider config reaches."""
    found: dict[str, str] = {}
    for state in states:
        for obj in state.values():
            if (obj.get("apiVersion"), obj.get("kind")) == CLUSTER:
                found[names.cluster_config(paths.name(obj))] = paths.name(obj)
    return found


def _cluster(obj: Mapping[str, Any], places: Mapping[str, str]) -> str:
    config = paths.text(obj, "spec", "providerConfigRef", "name")
    return places.get(config) or cluster_of(obj) or CONTROL_PLANE


def _change(before: Manifest | None, after: Manifest | None, places: Mapping[str, str]) -> Change | None:
    seen = after if after is not None else before
    assert seen is not None
    where, what = _cluster(seen, places), name(seen)
    if before is None:
        return Change(where, ADDED, what)
    if after is None:
        return Change(where, REMOVED, what, "", "" if _deletes(before) else LEFT)
    fields = tuple(differences(before, after))
    if not fields:
        return None
    was = name(before)
    if _identity(before) != _identity(after):
        return Change(where, RECREATED, what, was if was != what else "", "", fields)
    return Change(where, CHANGED, what, "", _effect(after, fields), fields)


def _deletes(obj: Manifest) -> bool:
    """Tell whether what the object stands for goes with it."""
    policies = paths.items(obj, "spec", "managementPolicies")
    return not policies or not {"*", "Delete"}.isdisjoint(policies)


def _identity(obj: Manifest) -> tuple[Ref, Ref]:
    return ref(obj), ref(carried(obj))


def carried(obj: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the object that an Object puts on a cluster, or the object itself."""
    inner = paths.mapping(obj, "spec", "forProvider", "manifest")
    return inner if obj.get("kind") == "Object" and inner else obj


def name(obj: Mapping[str, Any]) -> str:
    """Return what a person calls the object."""
    if obj.get("kind") == "Release":
        chart = paths.text(obj, "spec", "forProvider", "chart", "name")
        return f"Release {chart or paths.name(obj)}"
    target = ref(carried(obj))
    return f"{target.kind} {shown(target)}"


def _effect(after: Manifest, fields: Sequence[Field]) -> str:
    pattern = POD_FIELDS.get(paths.text(carried(after), "kind"))
    if pattern and any(re.match(pattern, f.path) for f in fields):
        return RESTARTS
    return ""


def differences(before: Manifest, after: Manifest) -> Iterator[Field]:
    """Yield the fields that differ; values of Secrets, and of fields that sound like one, are not shown."""
    secret = "Secret" in (before.get("kind"), paths.text(carried(after), "kind"))
    for whole, old, new in _walk("", before, after):
        path = whole.removeprefix("spec.forProvider.manifest.")
        hidden = (secret and _SECRET_FIELDS.match(path)) or _SECRET_NAMES.search(path)
        yield Field(path, _said(old, hidden=bool(hidden)), _said(new, hidden=bool(hidden)))


_ABSENT = object()


def _walk(path: str, old: Any, new: Any) -> Iterator[tuple[str, Any, Any]]:
    if old == new:
        return
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in sorted(old.keys() | new.keys()):
            step = f".{key}" if re.fullmatch(r"[\w-]+", str(key)) else f'["{key}"]'
            yield from _walk(f"{path}{step}".lstrip("."), old.get(key, _ABSENT), new.get(key, _ABSENT))
    elif isinstance(old, list) and isinstance(new, list) and (by := _named(old, new)):
        before, after = ({item["name"]: item for item in side} for side in (old, new))
        for key in by:
            yield from _walk(f'{path}["{key}"]', before.get(key, _ABSENT), after.get(key, _ABSENT))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for at, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from _walk(f"{path}[{at}]", one, other)
    else:
        yield path, old, new


def _named(old: list[Any], new: list[Any]) -> list[str]:
    """Return the names in lists whose items have one each, as containers and variables do; else nothing."""
    found = [item.get("name") if isinstance(item, Mapping) else None for item in (*old, *new)]
    if not all(isinstance(x, str) for x in found) or len(set(found[: len(old)])) != len(old):
        return []
    return list(dict.fromkeys(str(x) for x in found)) if len(set(found[len(old) :])) == len(new) else []


def _said(value: Any, *, hidden: bool) -> str | None:
    if value is _ABSENT:
        return None
    if hidden:
        return HIDDEN
    if isinstance(value, Mapping) and _SECRET_NAMES.search(str(value.get("name", ""))) and "value" in value:
        value = {**value, "value": HIDDEN}
    text = _flat(value)
    return text if len(text) <= _LONG else f"{text[:_LONG]}…"


def _flat(value: Any) -> str:
    if isinstance(value, Mapping):
        inner = ", ".join(
            f"{k}: {HIDDEN if _SECRET_NAMES.search(str(k)) else _flat(v)}" for k, v in sorted(value.items())
        )
        return f"{{{inner}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_flat, value))}]"
    return " ".join(value.split()) if isinstance(value, str) else str(value)
