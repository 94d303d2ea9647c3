"""What a composer may read: the composite, what it composed, and what it required. All of it read-only."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from modelplane import contracts as c
from modelplane.core import paths
from modelplane.core.paths import Manifest
from modelplane.core.plan import Plan, Requirement


@dataclass(frozen=True, slots=True)
class Inputs:
    """One call's snapshot.

    Attributes:
        composite: the composite resource as observed.
        observed: its composed resources by composition resource name.
        required: what its requirements found, by requirement name; empty list = looked for, not found.
    """

    composite: Manifest
    observed: Mapping[str, Manifest] = field(default_factory=dict)
    required: Mapping[str, Sequence[Manifest]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The composite's name."""
        return paths.name(self.composite)

    @property
    def namespace(self) -> str:
        """The composite's namespace; empty for a cluster-scoped one."""
        return paths.namespace(self.composite)

    @property
    def spec(self) -> Mapping[str, Any]:
        """The composite's spec."""
        return paths.mapping(self.composite, "spec")

    def all(self, requirement: str) -> Sequence[Manifest]:
        """Return what the requirement found; none where it found nothing."""
        return self.required.get(requirement, ())

    def one(self, requirement: str) -> Manifest | None:
        """Return the single object the requirement found, or None where there is none."""
        found = self.required.get(requirement, ())
        return found[0] if found else None

    def remote(self, key: str) -> Mapping[str, Any]:
        """Return the object that a composed provider-kubernetes Object reports, or an empty mapping."""
        return paths.mapping(self.observed.get(key), "status", "atProvider", "manifest")

    def is_ready(self, key: str) -> bool:
        """Tell whether the composed resource is observed with condition Ready True."""
        return paths.is_true(self.observed.get(key), c.READY)


def _nothing(_: Manifest) -> Sequence[Requirement]:
    return ()


@dataclass(frozen=True, slots=True)
class Kind:
    """A composite kind the function can compose.

    Attributes:
        api_version: of the composite.
        kind: of the composite.
        compose: makes the Plan; may raise `Hold`.
        conditions: every condition type it sets, on every Plan.
        requires: the requirements, from the composite alone, so they are the same on every call.
        ttl: seconds after which Crossplane asks again (cores that do not watch what is required) about one
            that rests, see `settle.patience`; 0: never.
        health: the condition type that says whether it works; empty: the last one.
        watched: the condition types that, once all is composed, become True by what is composed alone. Core
            watches that, so nobody needs to ask.
    """

    api_version: str
    kind: str
    compose: Callable[[Inputs], Plan]
    conditions: tuple[str, ...]
    requires: Callable[[Manifest], Sequence[Requirement]] = _nothing
    ttl: int = 0
    health: str = ""
    watched: frozenset[str] = frozenset()

    @property
    def working(self) -> str:
        """The condition type that says whether it works; empty for a kind without conditions."""
        return self.health or next(reversed(self.conditions), "")
