"""InferenceGateway: the fleet's front door on the control plane, behind the Gateway API.

Traefik rewrites paths per backend, as v0.4's manifests have it; Envoy checks API keys and adds providers'
credentials. Either serves the same ModelServices (docs/adr/0006, and the one on Envoy).
"""

from collections.abc import Mapping, Sequence

from modelplane import contracts as c
from modelplane.api.inference_gateway import InferenceGatewaySpec
from modelplane.core import Condition, Event, Inputs, Kind, Manifest, Plan, Requirement, paths, specs
from modelplane.kinds import front_door, front_envoy, front_traefik
from modelplane.kinds.front_door import CERTIFICATE, CERTIFICATE_KIND, GATEWAY_KINDS, KEYS, Door
from modelplane.routes import metallb

CONTROLLER_HEALTHY = "ControllerHealthy"
INSTALLING = "Installing"
GATEWAY_API_MISSING = "GatewayAPIMissing"
SERVING = "Serving"
WAITING_FOR_CONTROLLER = "WaitingForController"
WAITING_FOR_CERTIFICATE = "WaitingForCertificate"
WAITING_FOR_ADDRESS = "WaitingForAddress"
NOT_ACCEPTED = "NotAccepted"

_CERTIFICATE_CRD = "certificates.cert-manager.io"
# What a door of either kind leaves behind where the other is asked for.
_PARTS = frozenset(
    (
        *(front_traefik.RELEASE, front_traefik.CLASS, front_traefik.GATEWAY),
        *(front_envoy.RELEASE, front_envoy.PROXY, front_envoy.CLASS, front_envoy.CLASS_USAGE),
        *(front_envoy.GATEWAY, front_envoy.SECURITY),
        *(metallb.NAMESPACE, metallb.RELEASE, metallb.POOL, metallb.L2),
    )
)


def requires(xr: Manifest) -> Sequence[Requirement]:
    """Return the CRDs that must stand before objects of their kinds can be created, and callers' keys."""
    kinds = [(GATEWAY_KINDS, front_traefik.GATEWAY_CRD)]
    if paths.at(xr, "spec", "tls", "issuerRef") is not None:
        kinds.append((CERTIFICATE_KIND, _CERTIFICATE_CRD))
    found = [Requirement(name, c.CRD_API, "CustomResourceDefinition", match_name=crd) for name, crd in kinds]
    labels = paths.at(xr, "spec", "auth", "apiKeys", "secretSelector", "matchLabels")
    # Without labels every Secret of the platform would be found.
    if isinstance(labels, Mapping) and labels and all(isinstance(v, str) for v in labels.values()):
        found.append(
            Requirement(KEYS, "v1", "Secret", match_labels=dict(labels), namespace=c.SYSTEM_NAMESPACE)
        )
    return found


def compose(inputs: Inputs) -> Plan:
    """Return the front door; while a door of the other kind is being replaced both stand."""
    spec = specs.parse(InferenceGatewaySpec, inputs.spec, c.CONTROLLER_READY)
    door = (front_envoy if spec.backend == c.ENVOY else front_traefik).door(inputs, spec)
    controller, gateway = _controller(inputs, door), _serving(inputs, spec, door)
    act = door.obstacle is not None
    return Plan(
        resources=[front_door.config(), *door.resources],
        status=_status(inputs, door),
        conditions=[controller, gateway],
        events=[Event(gateway.message, warning=True)] if act else [],
        # Callers use what a door of the other kind has until this one has an address.
        keep=frozenset() if _address(inputs, door.gateway) else _former(inputs, door),
        ready=None if controller.status and gateway.status else False,
    )


def _former(inputs: Inputs, door: Door) -> frozenset[str]:
    """Return what is observed of a door of the other kind; none where none stands."""
    other = {front_traefik.GATEWAY, front_envoy.GATEWAY} - {door.gateway}
    return frozenset(_PARTS & inputs.observed.keys()) if other & inputs.observed.keys() else frozenset()


def _status(inputs: Inputs, door: Door) -> Manifest:
    address = _address(inputs, door.gateway) or paths.text(inputs.composite, "status", "address")
    return {"address": address} if address else {}


def _address(inputs: Inputs, gateway: str) -> str:
    return paths.text(inputs.observed.get(gateway), "status", "addresses", 0, "value")


def _controller(inputs: Inputs, door: Door) -> Condition:
    if inputs.is_ready(door.release):
        return Condition(c.CONTROLLER_READY, True, CONTROLLER_HEALTHY)
    there = door.release in inputs.observed
    if door.missing and not there:
        return Condition(c.CONTROLLER_READY, False, GATEWAY_API_MISSING, door.missing)
    found = paths.condition(inputs.observed.get(door.release), c.READY)
    why = paths.said(found, "see its events")
    message = f"Release {door.release} is not ready: {why}" if there else f"installing {door.controller}"
    return Condition(c.CONTROLLER_READY, False, INSTALLING, message)


def _serving(inputs: Inputs, spec: InferenceGatewaySpec, door: Door) -> Condition:
    reason, message = door.obstacle or _obstacle(inputs, spec, door)
    if not reason and inputs.name != c.DEFAULT_GATEWAY:
        message = f"ModelServices use the InferenceGateway named {c.DEFAULT_GATEWAY} only"
    parts = "; ".join(x for x in (message, door.remark) if x)
    return Condition(c.GATEWAY_READY, not reason, reason or SERVING, parts)


def _obstacle(inputs: Inputs, spec: InferenceGatewaySpec, door: Door) -> tuple[str, str]:
    standing = door.gateway in inputs.observed
    if front_door.awaits_certificate(inputs, spec):
        found = paths.condition(inputs.observed.get(CERTIFICATE), c.READY)
        lacks = "" if CERTIFICATE in inputs.observed else front_door.no_cert_manager(inputs)
        why = lacks or paths.said(found, "it is being issued")
        return WAITING_FOR_CERTIFICATE, f"Certificate {front_door.TLS_SECRET} is not ready: {why}"
    if not standing:
        missing = door.kinds_missing if inputs.is_ready(door.release) else ""
        reason = GATEWAY_API_MISSING if missing else WAITING_FOR_CONTROLLER
        return reason, missing or f"the Gateway is created once {door.controller} is ready"
    gateway = inputs.observed[door.gateway]
    for listener in paths.mappings(gateway, "status", "listeners"):
        for found in paths.mappings(listener, "conditions"):
            if found.get("type") in ("Accepted", "ResolvedRefs") and found.get("status") == "False":
                why = paths.said(found, "refused")
                return NOT_ACCEPTED, f"listener {paths.text(listener, 'name')}: {why}"
    if not paths.is_true(gateway, "Accepted"):
        waits = f"{door.controller} has not accepted the Gateway yet"
        return NOT_ACCEPTED, paths.said(paths.condition(gateway, "Accepted"), waits)
    if not _address(inputs, door.gateway):
        found = paths.condition(gateway, "Programmed")
        why = f" ({paths.said(found)})" if found.get("status") == "False" and paths.said(found) else ""
        return WAITING_FOR_ADDRESS, (
            f"the Gateway has no address{why}: where no cloud gives {door.controller}'s Service one, set "
            f"spec.{spec.backend.lower()}.loadBalancer to MetalLB"
        )
    return "", ""


KIND = Kind(
    c.API,
    "InferenceGateway",
    compose,
    conditions=(c.CONTROLLER_READY, c.GATEWAY_READY),
    requires=requires,
    # The CRDs may be installed by hand at any time, and cores up to 2.3 do not watch what is required.
    ttl=60,
)
