"""ModelService: one URL at the front door, spread over the ModelEndpoints of its own namespace."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from modelplane import contracts as c
from modelplane.api.model_service import ModelServiceSpec
from modelplane.core import (
    Condition,
    Desired,
    Event,
    Inputs,
    Kind,
    Manifest,
    Plan,
    Ready,
    Requirement,
    Waiting,
    paths,
    specs,
)
from modelplane.routes import frontdoor, url
from modelplane.routes.frontdoor import Endpoint, Layout, Service
from modelplane.routes.selection import Selection, select

RESOLVED = "Resolved"
NO_ENDPOINTS = "NoEndpoints"
ROUTE_CONFIGURED = "RouteConfigured"
CONFIGURING = "Configuring"
WAITING_FOR_GATEWAY = "WaitingForGateway"
REFS_NOT_RESOLVED = "RefsNotResolved"
TOO_MANY_TLS_ENDPOINTS = "TooManyTLSEndpoints"

GATEWAY = "gateway"
ROUTE = "httproute"
SPLIT = "split"
STRIP = "strip-prefix"
_REWRITE = "rewrite-"
_NAMED = 5


def requires(xr: Manifest) -> Sequence[Requirement]:
    """Return the gateway, and the endpoints of each group; a group without readable labels asks for none."""
    namespace = paths.namespace(xr)
    found = [Requirement(GATEWAY, c.API, "InferenceGateway", match_name=c.DEFAULT_GATEWAY)]
    for index, group in enumerate(paths.items(xr, "spec", "endpoints")):
        labels = paths.at(group, "selector", "matchLabels")
        # Without a namespace the requirement would find the endpoints of every team.
        if namespace and isinstance(labels, Mapping) and all(isinstance(v, str) for v in labels.values()):
            found.append(
                Requirement(
                    f"endpoints-{index}",
                    c.API,
                    "ModelEndpoint",
                    match_labels=dict(labels),
                    namespace=namespace,
                )
            )
    return found


def compose(inputs: Inputs) -> Plan:
    """Return the service's route; it stays, answering 503, while no endpoint can take requests."""
    spec = specs.parse(ModelServiceSpec, inputs.spec, c.ENDPOINTS_RESOLVED)
    service = Service(inputs.namespace, inputs.name)
    chosen = select(inputs, spec)
    layout = frontdoor.arrange(chosen.groups, chosen.ready, _routed(inputs, chosen.ready))
    resources, keep = _resources(inputs, service, chosen, layout)
    resolved = _resolved(spec, chosen)
    routing = _routing(inputs, chosen, layout)
    events = [] if chosen.total else [Event(resolved.message, warning=True)]
    return Plan(
        resources=resources,
        status=_status(inputs, service, chosen),
        conditions=[resolved, routing],
        events=events,
        keep=keep,
        ready=None if routing.status else False,
    )


def _resources(
    inputs: Inputs, service: Service, chosen: Selection, layout: Layout
) -> tuple[list[Desired | Waiting], frozenset[str]]:
    """Build before pointing to it, and point away before removing: each step waits for what is observed."""
    extra = _middlewares(service, chosen, layout)
    resources: list[Desired | Waiting] = [*extra.values()]
    if not layout.folded:
        resources.append(_route(inputs, service, chosen, layout))
        keep = {SPLIT} if _names_split(inputs) else set()
        return resources, _still_used(inputs, keep, extra)
    built = [
        name
        for name in layout.folded
        if all(key in inputs.observed for key in _keys(service, chosen.ready[name]))
    ]
    pending = layout.folded.keys() - set(built)
    now = frontdoor.arrange(
        frontdoor.without(chosen.groups, {*pending, *layout.left_out}), chosen.ready, layout.direct, fold=True
    )
    if not now.folded:
        resources.append(Waiting(SPLIT, "waiting for the middlewares that rewrite its paths"))
    else:
        resources.append(Desired(SPLIT, frontdoor.split(service, chosen.ready, now.folded), Ready.exists()))
    if SPLIT in inputs.observed and now.folded:
        resources.append(_route(inputs, service, chosen, now))
    else:
        resources.append(Waiting(ROUTE, f"waiting for {SPLIT}, which holds its endpoints"))
    return resources, _still_used(inputs, {SPLIT}, extra)


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


def _route(inputs: Inputs, service: Service, chosen: Selection, layout: Layout) -> Desired:
    blocked = ""
    if not paths.is_true(inputs.one(GATEWAY), c.CONTROLLER_READY):
        # Before the gateway is installed there may be no HTTPRoute kind to create one of.
        blocked = f"waiting for InferenceGateway {c.DEFAULT_GATEWAY}"
    manifest = frontdoor.route(service, chosen.ready, layout)
    return Desired(ROUTE, manifest, Ready.exists(), blocked=blocked)


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


def _backend_refs(inputs: Inputs) -> list[Mapping[str, object]]:
    rules = paths.mappings(inputs.observed.get(ROUTE), "spec", "rules")
    return [ref for rule in rules for ref in paths.mappings(rule, "backendRefs")]


def _names_split(inputs: Inputs) -> bool:
    return any(ref.get("kind") == "TraefikService" for ref in _backend_refs(inputs))


def _routed(inputs: Inputs, ready: Mapping[str, Endpoint]) -> list[str]:
    backends = {ref.get("name") for ref in _backend_refs(inputs)}
    return [name for name, endpoint in ready.items() if endpoint.backend in backends]


def _status(inputs: Inputs, service: Service, chosen: Selection) -> Manifest:
    status: Manifest = {"endpoints": {"total": chosen.total, "ready": len(chosen.ready)}}
    gateway = inputs.one(GATEWAY)
    address = paths.text(gateway, "status", "address")
    if address:
        scheme = "https" if paths.at(gateway, "spec", "tls") is not None else "http"
        host = paths.text(gateway, "spec", "hostname") or url.bracketed(address)
        status["address"] = f"{scheme}://{host}{service.prefix}"
    elif known := paths.text(inputs.composite, "status", "address"):
        # Callers keep what they were told; the condition says that the gateway has no address now.
        status["address"] = known
    return status


def _resolved(spec: ModelServiceSpec, chosen: Selection) -> Condition:
    if not chosen.total:
        message = (
            "no ModelEndpoint in this namespace carries the labels of spec.endpoints; a ModelDeployment "
            "creates one for each replica that is ready"
        )
        return Condition(c.ENDPOINTS_RESOLVED, False, NO_ENDPOINTS, message)
    parts = [f"{len(chosen.ready)} of {chosen.total} endpoints can take requests"]
    if len({group.priority for group in spec.endpoints}) > 1 and chosen.ready:
        parts.append(f"priority {chosen.priority} takes them")
    if chosen.waiting:
        parts.append(_listed(f"{name}: {why}" for name, why in sorted(chosen.waiting.items())))
    if chosen.empty:
        parts.append("nothing matches " + _listed(f"spec.endpoints[{index}]" for index in chosen.empty))
    return Condition(c.ENDPOINTS_RESOLVED, True, RESOLVED, "; ".join(parts))


def _listed(entries: Iterable[str]) -> str:
    named = list(entries)
    more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
    return ", ".join(named[:_NAMED]) + more


def _routing(inputs: Inputs, chosen: Selection, layout: Layout) -> Condition:
    reason, message = _obstacle(inputs, chosen, layout)
    return Condition(c.ROUTING_READY, not reason, reason or ROUTE_CONFIGURED, message)


def _obstacle(inputs: Inputs, chosen: Selection, layout: Layout) -> tuple[str, str]:
    if inputs.one(GATEWAY) is None:
        return WAITING_FOR_GATEWAY, (
            f"InferenceGateway {c.DEFAULT_GATEWAY} is not found: the platform team creates it"
        )
    if ROUTE not in inputs.observed:
        if not paths.is_true(inputs.one(GATEWAY), c.CONTROLLER_READY):
            return (
                WAITING_FOR_GATEWAY,
                f"InferenceGateway {c.DEFAULT_GATEWAY} is not ready: see its conditions",
            )
        return CONFIGURING, "the HTTPRoute is not created yet"
    accepted = _verdict(inputs, "Accepted")
    if accepted.get("status") != "True":
        why = paths.text(accepted, "message") or paths.text(accepted, "reason") or "no answer yet"
        return CONFIGURING, f"Gateway {c.FLEET_GATEWAY} has not accepted the HTTPRoute: {why}"
    resolved = _verdict(inputs, "ResolvedRefs")
    if chosen.ready and resolved.get("status") == "False":
        return REFS_NOT_RESOLVED, paths.text(resolved, "message") or "a backend of the HTTPRoute is not found"
    if not chosen.ready:
        return CONFIGURING, "no endpoint can take requests: callers get 503 until one can"
    if layout.left_out:
        return TOO_MANY_TLS_ENDPOINTS, (
            f"an HTTPRoute holds {frontdoor.BACKEND_LIMIT} backends and spec.tls works only there; these "
            f"ModelEndpoints take no requests: {', '.join(sorted(layout.left_out))}; spread them over "
            "several ModelServices"
        )
    return "", ""


def _verdict(inputs: Inputs, type_: str) -> Mapping[str, object]:
    for parent in paths.mappings(inputs.observed.get(ROUTE), "status", "parents"):
        if paths.text(parent, "parentRef", "name") == c.FLEET_GATEWAY:
            for found in paths.mappings(parent, "conditions"):
                if found.get("type") == type_:
                    return found
    return {}


KIND = Kind(
    c.API,
    "ModelService",
    compose,
    conditions=(c.ENDPOINTS_RESOLVED, c.ROUTING_READY),
    requires=requires,
    # Endpoints come and go with replicas, and cores up to 2.3 do not watch what is required.
    ttl=15,
)
