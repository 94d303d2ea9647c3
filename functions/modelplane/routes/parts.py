"""What every front door routes: a service, its endpoints, and the HTTPRoute between them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from modelplane import contracts as c
from modelplane import names
from modelplane.core.paths import Manifest
from modelplane.routes.split import Group
from modelplane.routes.url import Origin

# HTTPRoute spec.rules[].backendRefs and replacePrefixMatch (Gateway API v1.6.1).
BACKEND_LIMIT = 16
REWRITE_LIMIT = 1024


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An endpoint that can take requests.

    Attributes:
        name: of the ModelEndpoint.
        backend: name of its Service.
        origin: where it is.
        rewrite: path that replaces the service's prefix; None leaves the path as it came.
        pinned: whether a BackendTLSPolicy covers it; only an HTTPRoute's own backends heed one.
        replica: host name by which a cluster's gateway finds the replica; empty for others.
        credential: name of the HTTPRouteFilter that adds its credential; empty where it needs none.
    """

    name: str
    backend: str
    origin: Origin
    rewrite: str | None = None
    pinned: bool = False
    replica: str = ""
    credential: str = ""


@dataclass(frozen=True, slots=True)
class Service:
    """The ModelService that is routed."""

    namespace: str
    name: str

    @property
    def prefix(self) -> str:
        """The path below which callers find the service, without its last slash."""
        return f"/{self.namespace}/{self.name}"

    @property
    def split(self) -> str:
        """Name of the TraefikService."""
        return names.child(self.name, "split")

    @property
    def strip(self) -> str:
        """Name of the Middleware that takes the prefix away."""
        return names.child(self.name, "strip-prefix")

    @property
    def retry(self) -> str:
        """Name of the Middleware that tries another endpoint where one cannot be reached."""
        return names.child(self.name, "retry")

    def rewrite(self, endpoint: str) -> str:
        """Name of the Middleware that adds an endpoint's own prefix."""
        return names.child(self.name, "rewrite", endpoint)


def without(groups: Sequence[Group], members: Iterable[str]) -> list[Group]:
    """Return the groups less some of their members."""
    gone = set(members)
    return [replace(group, members=[m for m in group.members if m not in gone]) for group in groups]


def http_route(name: str, gateway: str, rule: Manifest) -> Manifest:
    """Return an HTTPRoute with one rule at a gateway of the fleet."""
    parent = {
        "group": "gateway.networking.k8s.io",
        "kind": "Gateway",
        "name": gateway,
        "namespace": c.SYSTEM_NAMESPACE,
    }
    return {
        "apiVersion": c.GATEWAY_API,
        "kind": "HTTPRoute",
        "metadata": {"name": name},
        "spec": {"parentRefs": [parent], "rules": [rule]},
    }


def path_rule(service: Service) -> Manifest:
    """Return a rule that takes all requests below the service's path, and sends them nowhere yet."""
    return {"matches": [{"path": {"type": "PathPrefix", "value": f"{service.prefix}/"}}]}
