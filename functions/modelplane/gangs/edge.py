"""What takes requests for a replica: one route, one pool and one picker, for one pod and for many alike.

Swapping a plain Service for a pool when copies grow would drop requests, so there is always a pool.
"""

from modelplane import contracts as c
from modelplane import names
from modelplane.core.paths import Manifest
from modelplane.gangs.site import Site

ROUTE_KEY = "model-route"
HOST_ROUTE_KEY = "model-host-route"
POOL_KEY = "inference-pool"

# A route that no gateway took, or whose pool nobody resolved, answers 404 or 500.
ROUTE_READY_WHEN = (
    "has(object.status) && has(object.status.parents) && object.status.parents.exists(p, "
    "has(p.conditions) && "
    'p.conditions.exists(c, c.type == "Accepted" && c.status == "True") && '
    'p.conditions.exists(c, c.type == "ResolvedRefs" && c.status == "True"))'
)
# A pool is in no gateway's hands before a route leads to it, so nothing said yet is no refusal; the gateway
# refuses one whose picker has no Service (envoyproxy/ai-gateway, internal/controller/inference_pool.go).
POOL_READY_WHEN = (
    "!has(object.status) || !has(object.status.parents) || !object.status.parents.exists(p, "
    "has(p.conditions) && p.conditions.exists(c, "
    '(c.type == "Accepted" || c.type == "ResolvedRefs") && c.status == "False"))'
)


def path(site: Site) -> str:
    """Return the path prefix of the replica at its cluster's gateway."""
    return f"/{site.team}/{site.replica}/"


def pool(site: Site, port: int) -> Manifest:
    """Return the InferencePool: the replica's serving pods, and the picker that chooses among them."""
    return {
        "apiVersion": c.INFERENCE_API,
        "kind": "InferencePool",
        "metadata": {"name": names.inference_pool(site.replica), "namespace": site.namespace},
        "spec": {
            # Leaders only: a worker has no API, and one without a role label passes for a decode endpoint.
            "selector": {"matchLabels": {c.SERVING_LABEL: names.label_value(site.replica)}},
            "targetPorts": [{"number": port}],
            "appProtocol": "http",
            "endpointPickerRef": {
                "group": "",
                "kind": "Service",
                "name": names.picker(site.replica),
                "port": {"number": c.EPP_PORT},
                # Any pod is better than none while no picker answers.
                "failureMode": "FailOpen",
            },
        },
    }


def route(site: Site) -> Manifest:
    """Return the HTTPRoute from the cluster's gateway to the pool, by the replica's path."""
    rule = {
        "matches": [{"path": {"type": "PathPrefix", "value": path(site)}}],
        "filters": [
            {
                "type": "URLRewrite",
                "urlRewrite": {"path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/"}},
            }
        ],
    }
    return _http_route(site, names.route(site.replica), rule)


def host_route(site: Site) -> Manifest:
    """Return the HTTPRoute by the replica's host name, for a front door that rewrites no path per backend.

    By host and not by header: among routes of one host the longest path wins before any header, so the path
    of a request could lead to another replica.
    """
    rule = {"matches": [{"path": {"type": "PathPrefix", "value": "/"}}]}
    route = _http_route(site, names.host_route(site.replica), rule)
    route["spec"]["hostnames"] = [names.replica_host(site.team, site.replica)]
    return route


def _http_route(site: Site, name: str, rule: Manifest) -> Manifest:
    # One pool a rule: Envoy AI Gateway stops updating the whole gateway where a rule has two.
    pool = {
        "group": "inference.networking.k8s.io",
        "kind": "InferencePool",
        "name": names.inference_pool(site.replica),
        "weight": 1,
    }
    parent = {
        "group": "gateway.networking.k8s.io",
        "kind": "Gateway",
        "name": c.CLUSTER_GATEWAY,
        "namespace": c.SYSTEM_NAMESPACE,
    }
    # Off: Envoy's own 15 seconds cut long generations (Envoy Gateway, HTTP timeouts).
    served = {**rule, "backendRefs": [pool], "timeouts": {"request": "0s"}}
    return {
        "apiVersion": c.GATEWAY_API,
        "kind": "HTTPRoute",
        "metadata": {"name": name, "namespace": site.namespace},
        "spec": {"parentRefs": [parent], "rules": [served]},
    }
