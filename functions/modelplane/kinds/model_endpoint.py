"""ModelEndpoint: a selector-less Service and its EndpointSlice, which the front door routes to.

An ExternalName Service would be shorter; Traefik's Gateway API provider does not follow one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from modelplane import contracts as c
from modelplane import names
from modelplane.api.model_endpoint import EndpointTls, ModelEndpointSpec
from modelplane.core import (
    Condition,
    Desired,
    Hold,
    Inputs,
    InvalidSpecError,
    Kind,
    Manifest,
    Plan,
    Ready,
    Requirement,
    Waiting,
    paths,
    specs,
)
from modelplane.kinds import endpoint_credential
from modelplane.kinds.endpoint_credential import Credential
from modelplane.routes import url

BACKEND_CONFIGURED = "BackendConfigured"
WAITING_FOR_BACKEND = "WaitingForBackend"
INVALID_URL = "InvalidURL"
TLS_POLICY_REJECTED = "TLSPolicyRejected"

GATEWAY = "gateway"
SERVICE = "service"
TLS_POLICY = "tls-policy"
# The only key that Traefik 3.7 reads in a Secret of caCertificateRefs (traefik#12927).
_CA_KEY = "ca.crt"
_CLEAR = "spec.url is http: the credential of spec.auth goes there in clear; write https where it can"
_NO_NAME = "is needed where spec.url has an IP address: set it"


@dataclass(frozen=True, slots=True)
class _Backend:
    """What both halves of the backend share."""

    name: str
    origin: url.Origin

    @property
    def port(self) -> Manifest:
        # The name and appProtocol decide the scheme; without them Traefik takes port 443 for TLS and any
        # other for plain HTTP (traefik, pkg/provider/kubernetes/gateway).
        scheme = self.origin.scheme
        return {"name": scheme, "port": self.origin.port, "protocol": "TCP", "appProtocol": scheme}


def requires(endpoint: Manifest) -> list[Requirement]:
    """Return the gateway, and the Secret with the credential where one is named."""
    found = [Requirement(GATEWAY, c.API, "InferenceGateway", match_name=c.DEFAULT_GATEWAY)]
    return [*found, *endpoint_credential.requirements(endpoint)]


def compose(inputs: Inputs) -> Plan:
    """Return the backend of one endpoint; with a URL nobody can connect to, what runs stays."""
    spec = specs.parse(ModelEndpointSpec, inputs.spec, c.ROUTING_READY)
    try:
        origin = url.parse(spec.url)
    except url.UrlError as error:
        raise Hold(c.ROUTING_READY, INVALID_URL, f"spec.url {error}") from None
    backend = _Backend(names.child(inputs.name, "backend"), origin)
    gateway = paths.text(inputs.one(GATEWAY), "spec", "backend")
    slice_key = f"endpointslice-{origin.address_type.lower()}"
    resources: list[Desired | Waiting] = [
        Desired(SERVICE, _service(backend), Ready.exists()),
        Desired(slice_key, _slice(inputs.name, backend), Ready.exists()),
    ]
    needed, keep = [SERVICE, slice_key], set()
    tls, obstacle = spec.tls, None
    if tls is None and gateway == c.ENVOY and origin.scheme == "https":
        # Traefik takes the scheme from the port; Envoy would send plain HTTP (envoyproxy/gateway#6302).
        if origin.address_type == "FQDN":
            tls = EndpointTls()
        else:
            obstacle = (c.REASON_INVALID_SPEC, f"spec.tls.serverName: {_NO_NAME}")
    if tls is not None:
        resources.append(Desired(TLS_POLICY, _policy(inputs.name, backend, tls), Ready.exists()))
        needed.append(TLS_POLICY)
    elif gateway not in (c.TRAEFIK, c.ENVOY) or _implied(inputs, backend):
        # Envoy's route may stand beside Traefik's for a while, and would send plain HTTP without it.
        keep.add(TLS_POLICY)
    credential = endpoint_credential.resolve(inputs, spec.auth, gateway) if spec.auth else Credential()
    resources += credential.resources
    needed += credential.needed
    obstacle = obstacle or credential.obstacle
    clear = spec.auth is not None and origin.scheme == "http"
    condition = _routing(inputs, obstacle, needed, _CLEAR if clear else "")
    return Plan(
        resources=resources,
        status={} if obstacle else _status(inputs, backend.name, needed),
        conditions=[condition],
        keep=frozenset(keep),
        ready=None if condition.status else False,
    )


def _implied(inputs: Inputs, backend: _Backend) -> bool:
    """Tell whether the observed policy says what an https URL alone says."""
    seen = paths.mapping(inputs.observed.get(TLS_POLICY), "spec", "validation")
    said = {"hostname": backend.origin.host, "wellKnownCACertificates": "System"}
    return backend.origin.scheme == "https" and seen == said


def _service(backend: _Backend) -> Manifest:
    port = backend.port
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": backend.name},
        "spec": {"type": "ClusterIP", "ports": [{**port, "targetPort": port["port"]}]},
    }


def _slice(endpoint: str, backend: _Backend) -> Manifest:
    kind = backend.origin.address_type
    return {
        "apiVersion": c.DISCOVERY_API,
        "kind": "EndpointSlice",
        "metadata": {
            # addressType cannot change: each type is an object of its own.
            "name": names.child(endpoint, "backend", kind),
            "labels": {
                "kubernetes.io/service-name": backend.name,
                "endpointslice.kubernetes.io/managed-by": "modelplane",
            },
        },
        "addressType": kind,
        # Traefik passes over endpoints whose ready condition is not set.
        "endpoints": [{"addresses": [backend.origin.host], "conditions": {"ready": True}}],
        "ports": [backend.port],
    }


def _policy(endpoint: str, backend: _Backend, tls: EndpointTls) -> Manifest:
    if backend.origin.scheme != "https":
        raise InvalidSpecError(c.ROUTING_READY, "spec.tls", "is only for an https spec.url: remove it")
    validation: Manifest = {"hostname": _server_name(backend.origin, tls)}
    if tls.ca_secret_ref is None:
        validation["wellKnownCACertificates"] = "System"
    elif tls.ca_secret_ref.key != _CA_KEY:
        raise InvalidSpecError(
            c.ROUTING_READY,
            "spec.tls.caSecretRef.key",
            f"the gateway reads only {_CA_KEY}: store the certificates under it",
        )
    else:
        validation["caCertificateRefs"] = [{"group": "", "kind": "Secret", "name": tls.ca_secret_ref.name}]
    return {
        "apiVersion": c.GATEWAY_API,
        "kind": "BackendTLSPolicy",
        "metadata": {"name": names.child(endpoint, "backend", "tls")},
        "spec": {
            "targetRefs": [{"group": "", "kind": "Service", "name": backend.name}],
            "validation": validation,
        },
    }


def _server_name(origin: url.Origin, tls: EndpointTls) -> str:
    if not tls.server_name and origin.address_type != "FQDN":
        raise InvalidSpecError(c.ROUTING_READY, "spec.tls.serverName", _NO_NAME)
    try:
        return url.host_name(tls.server_name) if tls.server_name else origin.host
    except url.UrlError as error:
        raise InvalidSpecError(c.ROUTING_READY, "spec.tls.serverName", str(error)) from None


def _status(inputs: Inputs, name: str, needed: Sequence[str]) -> Manifest:
    # Once published the name stays while the Service does: a slice that is being replaced must not take the
    # endpoint out of its service's route.
    published = paths.text(inputs.composite, "status", "routing", "backendName") == name
    standing = SERVICE in inputs.observed and (published or all(key in inputs.observed for key in needed))
    if not standing:
        return {}
    policy = paths.name(inputs.observed.get(TLS_POLICY))
    return {"routing": {"backendName": name, **({"tlsPolicyName": policy} if policy else {})}}


def _routing(
    inputs: Inputs, obstacle: tuple[str, str] | None, needed: Sequence[str], remark: str
) -> Condition:
    if obstacle:
        return Condition(c.ROUTING_READY, False, *obstacle)
    if missing := [key for key in needed if key not in inputs.observed]:
        message = f"waiting for {', '.join(missing)} to be created"
        return Condition(c.ROUTING_READY, False, WAITING_FOR_BACKEND, message)
    if TLS_POLICY in needed and (why := _rejection(inputs)):
        message = f"spec.tls is not in force: {why}; requests to this endpoint fail until it is"
        return Condition(c.ROUTING_READY, False, TLS_POLICY_REJECTED, message)
    return Condition(c.ROUTING_READY, True, BACKEND_CONFIGURED, remark)


def _rejection(inputs: Inputs) -> str:
    """Say why a gateway refuses the policy; empty where none has said so."""
    for ancestor in paths.mappings(inputs.observed.get(TLS_POLICY), "status", "ancestors"):
        for found in paths.mappings(ancestor, "conditions"):
            if found.get("type") in ("Accepted", "ResolvedRefs") and found.get("status") == "False":
                return paths.said(found, "the gateway refuses it")
    return ""


KIND = Kind(
    c.API,
    "ModelEndpoint",
    compose,
    (c.ROUTING_READY,),
    requires,
    # A gateway's kind and a Secret change without an event here on cores up to 2.3.
    ttl=300,
)
