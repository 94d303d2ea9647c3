"""A service's part of a front door that is Traefik: its HTTPRoute, and what serves where one is too small.

An HTTPRoute rule holds 16 backends and weights up to 1,000,000. Beyond either, the endpoints stand in one
TraefikService, which has no such limits, and the route names it (docs/adr/0005-more-than-16-endpoints.md).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from modelplane import contracts as c
from modelplane import names
from modelplane.core.paths import Manifest
from modelplane.routes.parts import BACKEND_LIMIT, Endpoint, Service, http_route, path_rule, without
from modelplane.routes.split import MAX_WEIGHT, Group, capped, weights

_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class Layout:
    """Where each endpoint stands.

    Attributes:
        direct: weights of the HTTPRoute's own backends, by endpoint name.
        folded: weights inside the TraefikService.
        left_out: endpoints that fit in neither.
    """

    direct: Mapping[str, int] = field(default_factory=dict)
    folded: Mapping[str, int] = field(default_factory=dict)
    left_out: Sequence[str] = ()


def arrange(
    groups: Sequence[Group],
    endpoints: Mapping[str, Endpoint],
    routed: Iterable[str] = (),
    *,
    fold: bool = False,
) -> Layout:
    """Return where each endpoint stands; those already `routed` keep their place before new ones.

    `fold` uses the TraefikService even where the HTTPRoute would suffice.
    """
    shares = weights(groups)
    if not fold and len(shares) <= BACKEND_LIMIT and max(shares.values(), default=0) <= MAX_WEIGHT:
        return Layout(direct=shares)
    already = set(routed)
    pinned = sorted((n for n in shares if endpoints[n].pinned), key=lambda n: (n not in already, n))
    room = BACKEND_LIMIT - (len(pinned) < len(shares))
    direct, left_out = pinned[:room], pinned[room:]
    shares = weights(without(groups, left_out))
    return Layout(
        direct={name: shares[name] for name in direct},
        folded={name: share for name, share in shares.items() if name not in direct},
        left_out=left_out,
    )


def route(
    service: Service, endpoints: Mapping[str, Endpoint], layout: Layout, *, retries: bool = False
) -> Manifest:
    """Return the service's HTTPRoute; without endpoints its rule stands alone, which answers 5xx, not 404.

    `retries` names the Middleware of that kind, which must stand by then.
    """
    shares = dict(layout.direct)
    if layout.folded:
        shares[""] = sum(layout.folded.values()) if shares else 1
    refs = [
        _backend(endpoints[name], share) if name else _split_ref(service, share)
        for name, share in sorted(capped([Group(share, [name]) for name, share in shares.items()]).items())
    ]
    rule = path_rule(service)
    if retries:
        ref = {"group": "traefik.io", "kind": "Middleware", "name": service.retry}
        rule["filters"] = [{"type": "ExtensionRef", "extensionRef": ref}]
    if refs:
        rule["backendRefs"] = refs
    return http_route(names.child(service.name, "route"), c.FLEET_GATEWAY, rule)


def retry(service: Service) -> Manifest:
    """Return the Middleware that tries again as long as nothing was sent to an endpoint.

    Traefik retries where no connection came about, whatever the method. Once it has written a request it
    never does, so no prompt runs twice and no stream starts anew (traefik, pkg/middlewares/retry).
    """
    return _middleware(service.retry, {"retry": {"attempts": _ATTEMPTS, "initialInterval": "100ms"}})


def split(service: Service, endpoints: Mapping[str, Endpoint], folded: Mapping[str, int]) -> Manifest:
    """Return the TraefikService with a weight for each folded endpoint."""
    return {
        "apiVersion": c.TRAEFIK_API,
        "kind": "TraefikService",
        "metadata": {"name": service.split},
        "spec": {
            "weighted": {
                "services": [
                    _weighted(service, endpoints[name], share) for name, share in sorted(folded.items())
                ]
            }
        },
    }


def middlewares(service: Service, endpoint: Endpoint) -> list[Manifest]:
    """Return what rewrites the path for a folded endpoint, in the order of use; nothing where it stays."""
    if endpoint.rewrite is None:
        return []
    chain = [_middleware(service.strip, {"stripPrefix": {"prefixes": [service.prefix]}})]
    if own := endpoint.rewrite.rstrip("/"):
        chain.append(_middleware(service.rewrite(endpoint.name), {"addPrefix": {"prefix": own}}))
    return chain


def _middleware(name: str, spec: Manifest) -> Manifest:
    return {"apiVersion": c.TRAEFIK_API, "kind": "Middleware", "metadata": {"name": name}, "spec": spec}


def _split_ref(service: Service, share: int) -> Manifest:
    return {"group": "traefik.io", "kind": "TraefikService", "name": service.split, "weight": share}


def _backend(endpoint: Endpoint, share: int) -> Manifest:
    rewrite: Manifest = {}
    if endpoint.origin.address_type == "FQDN":
        # A provider answers only to its own name; else the caller's Host header would reach it.
        rewrite["hostname"] = endpoint.origin.host
    if endpoint.rewrite is not None:
        rewrite["path"] = {"type": "ReplacePrefixMatch", "replacePrefixMatch": endpoint.rewrite}
    ref: Manifest = {
        "group": "",
        "kind": "Service",
        "name": endpoint.backend,
        "port": endpoint.origin.port,
        "weight": share,
    }
    return {**ref, "filters": [{"type": "URLRewrite", "urlRewrite": rewrite}]} if rewrite else ref


def _weighted(service: Service, endpoint: Endpoint, share: int) -> Manifest:
    entry: Manifest = {
        "kind": "Service",
        "name": endpoint.backend,
        "port": endpoint.origin.port,
        "scheme": endpoint.origin.scheme,
        "weight": share,
        "passHostHeader": endpoint.origin.address_type != "FQDN",
    }
    chain = [{"name": m["metadata"]["name"]} for m in middlewares(service, endpoint)]
    return {**entry, "middlewares": chain} if chain else entry
