"""What a ModelService asks of a front door, whichever gateway it is."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from modelplane.core import Desired, Inputs, Waiting, paths
from modelplane.routes.parts import Endpoint, Service
from modelplane.routes.selection import Selection


@dataclass(frozen=True, slots=True)
class Front:
    """A service's part of the front door.

    Attributes:
        resources: what is composed for it.
        keep: observed keys that something observed still names.
        route: key of the HTTPRoute.
        gateway: name of the Gateway that it is at.
        left_out: reason and message where endpoints that are ready take no requests; empty where none.
    """

    resources: Sequence[Desired | Waiting]
    keep: frozenset[str]
    route: str
    gateway: str
    left_out: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Door:
    """A kind of front door.

    Attributes:
        front: makes a service's part, given why nothing new may be created (empty where it may).
        prefixes: what its composition resource names begin with.
    """

    front: Callable[[Inputs, Service, Selection, str], Front]
    prefixes: tuple[str, ...]

    def keys(self, inputs: Inputs) -> frozenset[str]:
        """Return the observed keys that are this door's."""
        return frozenset(key for key in inputs.observed if key.startswith(self.prefixes))


def routed(inputs: Inputs, route: str, ready: Mapping[str, Endpoint]) -> list[str]:
    """Return the ready endpoints that the observed route names."""
    rules = paths.mappings(inputs.observed.get(route), "spec", "rules")
    backends = {ref.get("name") for rule in rules for ref in paths.mappings(rule, "backendRefs")}
    return [name for name, endpoint in ready.items() if endpoint.backend in backends]
