"""Which endpoints a service selects, and which of them take its requests now."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from modelplane import contracts as c
from modelplane import names
from modelplane.api.model_service import ModelServiceSpec
from modelplane.core import Inputs, paths
from modelplane.routes import parts, url
from modelplane.routes.parts import Endpoint
from modelplane.routes.split import Group

_POLICY = ("status", "routing", "tlsPolicyName")


@dataclass(frozen=True, slots=True)
class Selection:
    """What the groups select.

    Attributes:
        total: endpoints that match.
        ready: those that can take requests, by name.
        waiting: what keeps each other one, by name.
        groups: ready endpoints of the groups that take requests now.
        priority: of those groups.
        empty: indexes of groups that match nothing.
    """

    total: int
    ready: Mapping[str, Endpoint]
    waiting: Mapping[str, str]
    groups: Sequence[Group]
    priority: int
    empty: Sequence[int]


def select(inputs: Inputs, spec: ModelServiceSpec, *, by_policy: bool = False) -> Selection:
    """Return what the requirements `endpoints-<i>` found, those of other namespaces passed over.

    An endpoint that several groups match belongs to the first. Only the groups of the lowest priority that
    has a ready endpoint take requests.

    Args:
        inputs: of the pass.
        spec: of the service.
        by_policy: whether the gateway uses TLS only where a BackendTLSPolicy says so.
    """
    ready: dict[str, Endpoint] = {}
    waiting: dict[str, str] = {}
    members: list[list[str]] = []
    empty: list[int] = []
    for index in range(len(spec.endpoints)):
        own: list[str] = []
        found = [e for e in inputs.all(f"endpoints-{index}") if paths.namespace(e) == inputs.namespace]
        # In a fixed order, so the remainder of a weight never moves.
        for observed in sorted(found, key=paths.name):
            name = paths.name(observed)
            if not name or name in ready or name in waiting:
                continue
            endpoint = _endpoint(observed, by_policy)
            if isinstance(endpoint, Endpoint):
                ready[name] = endpoint
                own.append(name)
            else:
                waiting[name] = endpoint
        members.append(own)
        if not any(paths.name(e) for e in found):
            empty.append(index)
    tiers = [g.priority for g, own in zip(spec.endpoints, members, strict=True) if own]
    first = min(tiers, default=0)
    groups = [
        Group(group.weight, own)
        for group, own in zip(spec.endpoints, members, strict=True)
        if group.priority == first
    ]
    return Selection(len(ready) + len(waiting), ready, waiting, groups, first, empty)


def _endpoint(observed: Mapping[str, object], by_policy: bool) -> Endpoint | str:
    """Return the endpoint, or why it takes no requests."""
    backend = paths.text(observed, "status", "routing", "backendName")
    if not backend:
        return paths.text(paths.condition(observed, c.ROUTING_READY), "message") or "has no backend yet"
    if paths.at(observed, "metadata", "deletionTimestamp"):
        return "is being deleted"
    try:
        origin = url.parse(paths.text(observed, "spec", "url"))
    except url.UrlError as error:
        return f"spec.url {error}"
    if by_policy and origin.scheme == "https" and not paths.text(observed, *_POLICY):
        return "waits for the BackendTLSPolicy without which requests would leave in clear"
    name = paths.name(observed)
    rewrite = paths.text(observed, "spec", "rewritePath")
    if len(rewrite) >= parts.REWRITE_LIMIT:
        return f"spec.rewritePath is longer than {parts.REWRITE_LIMIT - 1} characters: shorten it"
    path = f"/{rewrite.lstrip('/')}" if rewrite else None
    pinned = paths.at(observed, "spec", "tls") is not None
    # Composed for a replica: the path is the one that its cluster's gateway knows it by.
    space = paths.namespace(observed)
    own = c.DEPLOYMENT_LABEL in paths.labels(observed) and path == f"/{space}/{name}/"
    replica = names.replica_host(space, name) if own else ""
    credential = names.credential(name) if paths.at(observed, "spec", "auth") is not None else ""
    return Endpoint(name, backend, origin, path, pinned, replica, credential)
