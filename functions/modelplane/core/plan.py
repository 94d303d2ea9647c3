"""The Plan: everything one composite wants, as a value.

A composer builds a Plan and returns it; `settle` turns it into what Crossplane is told. Nothing here knows
gRPC. A Plan checks itself when it is made: a duplicate key, an edge to a key it does not hold or two
conditions of one type are bugs of ours, and raise `PlanError` before anything reaches a cluster.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from modelplane import contracts as c
from modelplane.core import paths
from modelplane.core.paths import Manifest


class PlanError(Exception):
    """A Plan that contradicts itself: always our bug, never the user's."""


class Hold(Exception):  # noqa: N818  (a decision a composer takes, not a failure)
    """Raised by a composer that cannot decide: what runs stays as it is, and the condition says why.

    Args:
        condition: the condition type that carries the reason.
        reason: its CamelCase reason.
        message: what is missing, on which object or field, and the next step.
    """

    def __init__(self, condition: str, reason: str, message: str) -> None:
        super().__init__(message)
        self.condition, self.reason, self.message = condition, reason, message


class InvalidSpecError(Hold):
    """Raised for a spec that admission could not catch; names the field. What runs keeps running."""

    def __init__(self, condition: str, field_path: str, message: str) -> None:
        super().__init__(condition, c.REASON_INVALID_SPEC, f"{field_path}: {message}")


class _ReadyKind(Enum):
    CONDITION = "condition"
    EXISTS = "exists"
    FIELD = "field"


@dataclass(frozen=True, slots=True)
class Ready:
    """How a composed resource shows that it is ready, judged from what is observed only."""

    kind: _ReadyKind
    path: tuple[str, ...] = ()
    value: Any = None

    @classmethod
    def condition(cls, type_: str = c.READY) -> "Ready":
        """Ready when its status condition of that type is True."""
        return cls(_ReadyKind.CONDITION, (type_,))

    @classmethod
    def exists(cls) -> "Ready":
        """Ready when it is observed: for kinds without a runtime state of their own."""
        return cls(_ReadyKind.EXISTS)

    @classmethod
    def at(cls, *path: str, value: Any = None) -> "Ready":
        """Ready when the observed field has that value; without a value, when it has any."""
        return cls(_ReadyKind.FIELD, path, value)

    def holds(self, observed: Mapping[str, Any] | None) -> bool:
        """Tell whether the rule holds for what is observed; nothing observed is never ready."""
        if observed is None:
            return False
        if self.kind is _ReadyKind.EXISTS:
            return True
        if self.kind is _ReadyKind.CONDITION:
            return paths.is_true(observed, self.path[0])
        found = paths.at(observed, *self.path)
        return found is not None and (self.value is None or found == self.value)


@dataclass(frozen=True, slots=True)
class Desired:
    """One composed resource.

    Attributes:
        key: the composition resource name: unique in the Plan, stable over releases.
        manifest: the object to apply; only fields we mean to own.
        ready: its readiness rule.
        after: keys that must be ready before this is first created; once observed it always stays.
        outlives: keys that must be gone before this may be deleted (each becomes a Usage).
        blocked: why it may not be created yet, for a cause outside this Plan; empty where it may.
    """

    key: str
    manifest: Manifest
    ready: Ready = field(default_factory=Ready.condition)
    after: tuple[str, ...] = ()
    outlives: tuple[str, ...] = ()
    blocked: str = ""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A resource whose manifest needs a value nobody has reported yet.

    Before its first creation it is left out; once observed it is kept as it is.
    """

    key: str
    needs: str


@dataclass(frozen=True, slots=True)
class Condition:
    """A status condition of the composite; `status` None reads Unknown."""

    type: str
    status: bool | None
    reason: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class Event:
    """An event on the composite; `warning` ones ask a person to act."""

    message: str
    warning: bool = False


@dataclass(frozen=True, slots=True)
class Requirement:
    """Objects a composer reads besides its own: by name, by labels, or (neither) all of the kind."""

    name: str
    api_version: str
    kind: str
    match_name: str | None = None
    match_labels: Mapping[str, str] | None = None
    namespace: str | None = None

    def __post_init__(self) -> None:
        if self.match_name is not None and self.match_labels is not None:
            raise PlanError(f"requirement {self.name} asks for a name and for labels: one of them")


@dataclass(frozen=True, slots=True)
class Plan:
    """What one composite wants.

    Attributes:
        resources: what to compose, `Waiting` entries included.
        status: the composite's status fields; a field left out is removed from the composite.
        conditions: one per condition type of the kind.
        events: what to tell people.
        keep: observed keys to keep as they are (missing ones are not created); `keep_all` keeps every one.
        unused: keys that may go although what they outlive stays, since that uses them no more.
        ready: False forces the composite not ready, True ready, whatever its resources say: a replacement
            that comes up beside what serves must not take the endpoint away. None leaves it to them.
    """

    resources: Sequence[Desired | Waiting] = ()
    status: Mapping[str, Any] = field(default_factory=dict)
    conditions: Sequence[Condition] = ()
    events: Sequence[Event] = ()
    keep: frozenset[str] = frozenset()
    keep_all: bool = False
    unused: frozenset[str] = frozenset()
    ready: bool | None = None

    def __post_init__(self) -> None:
        keys = [r.key for r in self.resources]
        _unique("resource key", keys)
        _unique("condition type", [x.type for x in self.conditions])
        known = set(keys) | self.keep
        for resource in self.resources:
            if isinstance(resource, Desired):
                for edge in (*resource.after, *resource.outlives):
                    if edge not in known:
                        raise PlanError(f"{resource.key} names {edge}, which the plan does not hold")
                if not paths.name(resource.manifest):
                    raise PlanError(f"{resource.key} has no metadata.name")


def _unique(what: str, values: Sequence[str]) -> None:
    seen: set[str] = set()
    for value in values:
        if value in seen:
            raise PlanError(f"{what} {value} stands twice in the plan")
        seen.add(value)
