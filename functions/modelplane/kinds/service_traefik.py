"""A ModelService at a front door that is Traefik: its route, and the TraefikService beyond its limits."""

from collections.abc import Collection

from modelplane import contracts as c
from modelplane.core import Desired, Inputs, Ready, Waiting, paths
from modelplane.kinds.service_door import Door, Front, routed
from modelplane.routes import frontdoor
from modelplane.routes.frontdoor import Layout
from modelplane.routes.parts import BACKEND_LIMIT, Endpoint, Service, without
from modelplane.routes.selection import Selection

TOO_MANY_TLS_ENDPOINTS = "TooManyTLSEndpoints"

ROUTE = "httproute"
SPLIT = "split"
STRIP = "strip-prefix"
RETRY = "retry"
_REWRITE = "rewrite-"


def front(inputs: Inputs, service: Service, chosen: Selection, closed: str) -> Front:
    """Build before pointing to it, and point away before removing: each step waits for what is observed."""
    layout = frontdoor.arrange(chosen.groups, chosen.ready, routed(inputs, ROUTE, chosen.ready))
    extra = {RETRY: Desired(RETRY, frontdoor.retry(service), Ready.exists(), blocked=closed)}
    extra |= _middlewares(service, chosen, layout)
    resources: list[Desired | Waiting] = [*extra.values()]
    if not layout.folded:
        resources.append(_route(inputs, service, chosen, layout, closed))
        keep = {SPLIT} if _names_split(inputs) else set()
        return _front(resources, _still_used(inputs, keep, extra), layout)
    built = [
        name
        for name in layout.folded
        if all(key in inputs.observed for key in _keys(service, chosen.ready[name]))
    ]
    pending = layout.folded.keys() - set(built)
    now = frontdoor.arrange(
        without(chosen.groups, {*pending, *layout.left_out}), chosen.ready, layout.direct, fold=True
    )
    if not now.folded:
        resources.append(Waiting(SPLIT, "waiting for the middlewares that rewrite its paths"))
    else:
        resources.append(Desired(SPLIT, frontdoor.split(service, chosen.ready, now.folded), Ready.exists()))
    if SPLIT in inputs.observed and now.folded:
        resources.append(_route(inputs, service, chosen, now, closed))
    else:
        resources.append(Waiting(ROUTE, f"waiting for {SPLIT}, which holds its endpoints"))
    return _front(resources, _still_used(inputs, {SPLIT}, extra), layout)


def _front(resources: list[Desired | Waiting], keep: frozenset[str], layout: Layout) -> Front:
    left_out = None
    if layout.left_out:
        left_out = (
            TOO_MANY_TLS_ENDPOINTS,
            f"an HTTPRoute holds {BACKEND_LIMIT} backends and spec.tls works only there; these"
            f" ModelEndpoints take no requests: {', '.join(sorted(layout.left_out))}; spread them over"
            " several ModelServices",
        )
    return Front(resources, keep, ROUTE, c.FLEET_GATEWAY, left_out)


def _middlewares(service: Service, chosen: Selection, layout: Layout) -> dict[str, Desired]:
    found: dict[str, Desired] = {}
    for name in sorted(layout.folded):
        endpoint = chosen.ready[name]
        manifests = frontdoor.middlewares(service, endpoint)
        for key, manifest in zip(_keys(service, endpoint), manifests, strict=True):
            found[key] = Desired(key, manifest, Ready.exists())
    return found


def _keys(service: Service, endpoint: Endpoint) -> list[str]:
    chain = frontdoor.middlewares(service, endpoint)
    return [STRIP, f"{_REWRITE}{endpoint.name}"][: len(chain)]


def _route(inputs: Inputs, service: Service, chosen: Selection, layout: Layout, closed: str) -> Desired:
    manifest = frontdoor.route(service, chosen.ready, layout, retries=RETRY in inputs.observed)
    return Desired(ROUTE, manifest, Ready.exists(), blocked=closed)


def _still_used(inputs: Inputs, holders: Collection[str], wanted: Collection[str]) -> frozenset[str]:
    """Return what must outlast this pass: Crossplane deletes first, then updates what still points there."""
    if SPLIT not in holders or SPLIT not in inputs.observed:
        return frozenset()
    used = {
        paths.text(ref, "name")
        for entry in paths.mappings(inputs.observed[SPLIT], "spec", "weighted", "services")
        for ref in paths.mappings(entry, "middlewares")
    }
    chained = {
        key
        for key, seen in inputs.observed.items()
        if (key == STRIP or key.startswith(_REWRITE)) and paths.name(seen) in used and key not in wanted
    }
    return frozenset({*holders, *chained})


def _names_split(inputs: Inputs) -> bool:
    rules = paths.mappings(inputs.observed.get(ROUTE), "spec", "rules")
    return any(
        ref.get("kind") == "TraefikService" for rule in rules for ref in paths.mappings(rule, "backendRefs")
    )


DOOR = Door(front, (ROUTE, SPLIT, STRIP, RETRY, _REWRITE))
