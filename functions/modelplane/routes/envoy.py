"""A service's part of a front door that is Envoy, which rewrites a path for a whole rule only.

So all endpoints of a rule share a path. A replica's takes requests at the root of a host name by which its
cluster's gateway finds it; others share what they have in common.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from modelplane import contracts as c
from modelplane import names
from modelplane.core.paths import Manifest
from modelplane.routes.parts import BACKEND_LIMIT, Endpoint, Service, http_route, path_rule, without
from modelplane.routes.split import Group, capped

_ROOT = "/"
_GROUP = "gateway.envoyproxy.io"
_UNAVAILABLE = '{"error": {"message": "no endpoint of this service can take requests", "code": 503}}'


@dataclass(frozen=True, slots=True)
class Layout:
    """What the one rule holds.

    Attributes:
        shares: weights by endpoint name.
        path: what replaces the service's prefix; None leaves it.
        misfits: endpoints that take another path.
        surplus: endpoints beyond what a rule holds.
    """

    shares: Mapping[str, int] = field(default_factory=dict)
    path: str | None = None
    misfits: Sequence[str] = ()
    surplus: Sequence[str] = ()


def arrange(groups: Sequence[Group], endpoints: Mapping[str, Endpoint], routed: Sequence[str] = ()) -> Layout:
    """Return what the rule holds; those already `routed` keep their place before new ones."""
    members = sorted({m for group in groups for m in group.members})
    path = _path([endpoints[m] for m in members])
    misfits = [m for m in members if _wanted(endpoints[m]) != path]
    fitting = sorted(set(members) - set(misfits), key=lambda m: (m not in routed, m))
    surplus = sorted(fitting[BACKEND_LIMIT:])
    shares = capped(without(groups, [*misfits, *surplus]))
    return Layout(shares, path, misfits, surplus)


def _wanted(endpoint: Endpoint) -> str | None:
    return _ROOT if endpoint.replica else endpoint.rewrite


def _path(endpoints: Sequence[Endpoint]) -> str | None:
    """Return the path of replicas where there are any, else the one that most endpoints take."""
    if any(e.replica for e in endpoints):
        return _ROOT
    counts = Counter(_wanted(e) for e in endpoints)
    return min(counts, key=lambda path: (-counts[path], path or ""), default=None)


def route(service: Service, endpoints: Mapping[str, Endpoint], layout: Layout) -> Manifest:
    """Return the service's HTTPRoute; without endpoints it answers 503 itself."""
    rule = path_rule(service)
    if layout.shares:
        if layout.path is not None:
            path = {"type": "ReplacePrefixMatch", "replacePrefixMatch": layout.path}
            rule["filters"] = [{"type": "URLRewrite", "urlRewrite": {"path": path}}]
        rule["backendRefs"] = [_backend(endpoints[n], share) for n, share in sorted(layout.shares.items())]
        # Off, with Envoy's idle limit of five minutes: a long prefill sends nothing for as long as it takes.
        rule["timeouts"] = {"request": "0s"}
    else:
        rule["filters"] = [_extension(unavailable_name(service))]
    return http_route(route_name(service), c.FLEET_ENVOY, rule)


def route_name(service: Service) -> str:
    """Return the name of the service's HTTPRoute."""
    return names.child(service.name, "route", "envoy")


def unavailable_name(service: Service) -> str:
    """Return the name of the filter that answers while no endpoint can."""
    return names.child(service.name, "unavailable")


def unavailable(service: Service) -> Manifest:
    """Return the filter that answers 503: a rule without backends would answer 500."""
    response = {
        "statusCode": 503,
        "contentType": "application/json",
        "body": {"type": "Inline", "inline": _UNAVAILABLE},
    }
    return {
        "apiVersion": c.ENVOY_API,
        "kind": "HTTPRouteFilter",
        "metadata": {"name": unavailable_name(service)},
        "spec": {"directResponse": response},
    }


def traffic(service: Service) -> Manifest:
    """Return the policy of the route: a request is sent again only where an endpoint cannot have begun it."""
    target = {"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": route_name(service)}
    triggers = ["connect-failure", "refused-stream", "reset-before-request"]
    return {
        "apiVersion": c.ENVOY_API,
        "kind": "BackendTrafficPolicy",
        "metadata": {"name": names.child(service.name, "traffic")},
        "spec": {"targetRefs": [target], "retry": {"numRetries": 2, "retryOn": {"triggers": triggers}}},
    }


def _backend(endpoint: Endpoint, share: int) -> Manifest:
    filters: list[Manifest] = []
    # A provider answers only to its own name; else the caller's Host header would reach it.
    named = endpoint.origin.host if endpoint.origin.address_type == "FQDN" else ""
    if host := endpoint.replica or named:
        filters.append({"type": "URLRewrite", "urlRewrite": {"hostname": host}})
    if endpoint.credential:
        filters.append(_extension(endpoint.credential))
    ref: Manifest = {
        "group": "",
        "kind": "Service",
        "name": endpoint.backend,
        "port": endpoint.origin.port,
        "weight": share,
    }
    return {**ref, "filters": filters} if filters else ref


def _extension(name: str) -> Manifest:
    ref = {"group": _GROUP, "kind": "HTTPRouteFilter", "name": name}
    return {"type": "ExtensionRef", "extensionRef": ref}
