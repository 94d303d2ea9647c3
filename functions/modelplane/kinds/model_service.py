"""ModelService: one URL at the front door, spread over the ModelEndpoints of its own namespace."""

from collections.abc import Iterable, Mapping, Sequence

from modelplane import contracts as c
from modelplane.api.model_service import ModelServiceSpec
from modelplane.core import Condition, Event, Inputs, Kind, Manifest, Plan, Requirement, paths, specs
from modelplane.kinds import service_envoy, service_traefik
from modelplane.kinds.service_door import Door, Front
from modelplane.routes import url
from modelplane.routes.parts import Service
from modelplane.routes.selection import Selection, select

RESOLVED = "Resolved"
NO_ENDPOINTS = "NoEndpoints"
ROUTE_CONFIGURED = "RouteConfigured"
CONFIGURING = "Configuring"
WAITING_FOR_GATEWAY = "WaitingForGateway"
REFS_NOT_RESOLVED = "RefsNotResolved"

GATEWAY = "gateway"
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
    door, former = _doors(inputs)
    chosen = select(inputs, spec, by_policy=door is service_envoy.DOOR)
    front = door.front(inputs, service, chosen, _closed(inputs))
    accepted = _verdict(inputs, front, "Accepted").get("status") == "True"
    pending = bool(chosen.waiting) and not chosen.ready
    resolved = _resolved(spec, chosen)
    routing = _routing(inputs, chosen, front)
    events = [] if chosen.total else [Event(resolved.message, warning=True)]
    return Plan(
        resources=front.resources,
        status=_status(inputs, service, chosen),
        conditions=[resolved, routing],
        events=events,
        # What another front door routes stays until this one does.
        keep=front.keep if accepted and not pending else front.keep | former.keys(inputs),
        ready=None if routing.status else False,
    )


def _doors(inputs: Inputs) -> tuple[Door, Door]:
    """Return the front door's kind and the other one; the one in use where the gateway does not say."""
    backend = paths.text(inputs.one(GATEWAY), "spec", "backend")
    if backend not in (c.TRAEFIK, c.ENVOY):
        backend = c.ENVOY if service_envoy.DOOR.keys(inputs) else c.TRAEFIK
    doors = (service_traefik.DOOR, service_envoy.DOOR)
    return doors if backend == c.TRAEFIK else (doors[1], doors[0])


def _closed(inputs: Inputs) -> str:
    # Before the gateway is installed there may be no HTTPRoute kind to create one of.
    ready = paths.is_true(inputs.one(GATEWAY), c.CONTROLLER_READY)
    return "" if ready else f"waiting for InferenceGateway {c.DEFAULT_GATEWAY}"


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


def _routing(inputs: Inputs, chosen: Selection, front: Front) -> Condition:
    reason, message = _obstacle(inputs, chosen, front)
    return Condition(c.ROUTING_READY, not reason, reason or ROUTE_CONFIGURED, message)


def _obstacle(inputs: Inputs, chosen: Selection, front: Front) -> tuple[str, str]:
    if inputs.one(GATEWAY) is None:
        return WAITING_FOR_GATEWAY, (
            f"InferenceGateway {c.DEFAULT_GATEWAY} is not found: the platform team creates it"
        )
    if front.route not in inputs.observed:
        if not paths.is_true(inputs.one(GATEWAY), c.CONTROLLER_READY):
            return (
                WAITING_FOR_GATEWAY,
                f"InferenceGateway {c.DEFAULT_GATEWAY} is not ready: see its conditions",
            )
        return CONFIGURING, "the HTTPRoute is not created yet"
    accepted = _verdict(inputs, front, "Accepted")
    if accepted.get("status") != "True":
        why = paths.said(accepted, "no answer yet")
        return CONFIGURING, f"Gateway {front.gateway} has not accepted the HTTPRoute: {why}"
    resolved = _verdict(inputs, front, "ResolvedRefs")
    if chosen.ready and resolved.get("status") == "False":
        return REFS_NOT_RESOLVED, paths.said(resolved, "a backend of the HTTPRoute is not found")
    if not chosen.ready:
        return CONFIGURING, "no endpoint can take requests: callers get 503 until one can"
    return front.left_out or ("", "")


def _verdict(inputs: Inputs, front: Front, type_: str) -> Mapping[str, object]:
    for parent in paths.mappings(inputs.observed.get(front.route), "status", "parents"):
        if paths.text(parent, "parentRef", "name") == front.gateway:
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
