"""A ModelService at a front door that is Envoy."""

from modelplane import contracts as c
from modelplane.core import Desired, Inputs, Ready
from modelplane.kinds.service_door import Door, Front, routed
from modelplane.routes import envoy
from modelplane.routes.envoy import Layout
from modelplane.routes.parts import BACKEND_LIMIT, Service
from modelplane.routes.selection import Selection

PATHS_DIFFER = "PathsDiffer"
TOO_MANY_ENDPOINTS = "TooManyEndpoints"

ROUTE = "envoy-route"
UNAVAILABLE = "envoy-unavailable"
TRAFFIC = "envoy-traffic"


def front(inputs: Inputs, service: Service, chosen: Selection, closed: str) -> Front:
    """Return the route, its policy, and the filter that answers while nobody else can."""
    layout = envoy.arrange(chosen.groups, chosen.ready, routed(inputs, ROUTE, chosen.ready))
    route = envoy.route(service, chosen.ready, layout)
    resources = [
        Desired(UNAVAILABLE, envoy.unavailable(service), Ready.exists(), blocked=closed),
        Desired(TRAFFIC, envoy.traffic(service), Ready.exists(), blocked=closed),
        # Behind the filter: a route that names one which is not there answers 500.
        Desired(ROUTE, route, Ready.exists(), after=(UNAVAILABLE,), blocked=closed),
    ]
    return Front(resources, frozenset(), ROUTE, c.FLEET_ENVOY, _left_out(layout))


def _left_out(layout: Layout) -> tuple[str, str] | None:
    if layout.misfits:
        path = layout.path or "the path as it came"
        return PATHS_DIFFER, (
            f"Envoy takes one path for all endpoints of a service, here {path}; these ModelEndpoints take no"
            f" requests: {', '.join(layout.misfits)}; give them spec.rewritePath {path}, a service of their"
            " own, or an InferenceGateway with backend Traefik"
        )
    if layout.surplus:
        return TOO_MANY_ENDPOINTS, (
            f"an HTTPRoute holds {BACKEND_LIMIT} endpoints; these ModelEndpoints take no requests:"
            f" {', '.join(layout.surplus)}; spread them over several ModelServices, or have an"
            " InferenceGateway with backend Traefik"
        )
    return None


DOOR = Door(front, ("envoy-",))
