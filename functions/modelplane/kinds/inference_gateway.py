"""InferenceGateway: the fleet's front door on the control plane, Traefik behind the Gateway API.

Traefik because it rewrites paths per backend, which Envoy cannot (envoyproxy/gateway#7099): each replica
answers below a path of its own.
"""

import re
from collections.abc import Sequence

from modelplane import contracts as c
from modelplane import names
from modelplane.api.inference_gateway import InferenceGatewaySpec
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
    builders,
    paths,
    specs,
)
from modelplane.routes import metallb

CONTROLLER_HEALTHY = "ControllerHealthy"
INSTALLING = "Installing"
GATEWAY_API_MISSING = "GatewayAPIMissing"
SERVING = "Serving"
WAITING_FOR_CONTROLLER = "WaitingForController"
WAITING_FOR_CERTIFICATE = "WaitingForCertificate"
WAITING_FOR_ADDRESS = "WaitingForAddress"
NOT_ACCEPTED = "NotAccepted"
AUTH_NOT_SUPPORTED = "AuthNotSupported"

CONFIG = "provider-config-helm"
TRAEFIK = "traefik"
CERTIFICATE = "certificate"
CLASS = "gateway-class"
GATEWAY = "gateway"

GATEWAY_KINDS = "gateway-api"
CERTIFICATE_KIND = "certificate-api"
# The smallest of the Gateway API's CRDs: they come as one bundle, and HTTPRoute's is 400 kB.
_GATEWAY_CRD = "gatewayclasses.gateway.networking.k8s.io"
_CERTIFICATE_CRD = "certificates.cert-manager.io"
# The version Traefik 3.7 implements (doc.traefik.io/traefik/v3.7, Gateway API provider).
_INSTALL_GATEWAY_API = (
    "kubectl apply --server-side -f "
    "https://github.com/kubernetes-sigs/gateway-api/releases/download/v1.5.1/standard-install.yaml"
)
_CHART_VERSION = re.compile(r"v?(\d+)\.(\d+)")
# Chart 40.2.0 is the first without the Gateway API CRDs (traefik-helm-chart#1850, #1854; docs/adr/0006).
_FIRST_WITHOUT_CRDS = (40, 2)
_TRAEFIK_REPOSITORY = "https://traefik.github.io/charts"
_TLS_SECRET = names.child(c.FLEET_GATEWAY, "tls")
_TARGET = builders.Target(c.IN_CLUSTER_CONFIG, namespace=c.SYSTEM_NAMESPACE)


def requires(xr: Manifest) -> Sequence[Requirement]:
    """Return the CRDs that must stand before objects of their kinds can be created."""
    kinds = [(GATEWAY_KINDS, _GATEWAY_CRD)]
    if paths.at(xr, "spec", "tls", "issuerRef") is not None:
        kinds.append((CERTIFICATE_KIND, _CERTIFICATE_CRD))
    return [Requirement(name, c.CRD_API, "CustomResourceDefinition", match_name=crd) for name, crd in kinds]


def compose(inputs: Inputs) -> Plan:
    """Return the front door; what needs the Gateway API waits for its CRDs, and what stands stays."""
    spec = specs.parse(InferenceGatewaySpec, inputs.spec, c.CONTROLLER_READY)
    resources: list[Desired | Waiting] = [Desired(CONFIG, _config(), Ready.exists())]
    if spec.traefik.load_balancer == "MetalLB" and spec.traefik.metallb is not None:
        pool = spec.traefik.metallb.address_pool
        resources += metallb.resources(inputs.name, _TARGET, pool, after=CONFIG, outlives=TRAEFIK)
    resources.append(_traefik(inputs, spec))
    resources += _gateway(inputs, spec)
    controller, gateway = _controller(inputs, spec), _serving(inputs, spec)
    return Plan(
        resources=resources,
        status=_status(inputs),
        conditions=[controller, gateway],
        events=[Event(gateway.message, warning=True)] if gateway.reason == AUTH_NOT_SUPPORTED else [],
        ready=None if controller.status and gateway.status else False,
    )


def _config() -> Manifest:
    return {
        "apiVersion": c.HELM_API,
        "kind": "ProviderConfig",
        "metadata": {"name": c.IN_CLUSTER_CONFIG, "namespace": c.SYSTEM_NAMESPACE},
        "spec": {"credentials": {"source": "InjectedIdentity"}},
    }


def _traefik(inputs: Inputs, spec: InferenceGatewaySpec) -> Desired:
    # The chart's own Gateway would have the chart's name and admit routes of its namespace only.
    values = {
        "providers": {
            "kubernetesGateway": {"enabled": True, "statusAddress": {"service": {"enabled": True}}},
            "kubernetesCRD": {"enabled": True},
            "kubernetesIngress": {"enabled": False},
        },
        "gateway": {"enabled": False},
        "gatewayClass": {"enabled": False},
    }
    chart = builders.Chart(TRAEFIK, _TRAEFIK_REPOSITORY, spec.traefik.version, c.TRAEFIK_NAMESPACE)
    release = _TARGET.release(
        names.child(inputs.name, TRAEFIK), chart, values, labels={c.RESOURCE_LABEL: TRAEFIK}
    )
    blocked = "" if _brings_crds(spec.traefik.version) else _missing_kinds(inputs)
    return Desired(TRAEFIK, release, after=(CONFIG,), outlives=(GATEWAY,), blocked=blocked)


def _brings_crds(version: str) -> bool:
    found = _CHART_VERSION.match(version)
    return found is not None and (int(found[1]), int(found[2])) < _FIRST_WITHOUT_CRDS


def _missing_kinds(inputs: Inputs) -> str:
    if inputs.one(GATEWAY_KINDS) is not None:
        return ""
    return (
        f"the control plane has no CustomResourceDefinition {_GATEWAY_CRD}, and this version of the Traefik "
        f"chart does not bring it: run {_INSTALL_GATEWAY_API}"
    )


def _gateway(inputs: Inputs, spec: InferenceGatewaySpec) -> list[Desired | Waiting]:
    """Return the class, the listener's certificate and the Gateway, each once it can be created.

    No Usage orders the class before Traefik: it is outside namespaces, where a Usage joins it to no Release.
    Traefik puts no finalizer on it, so it goes either way.
    """
    blocked = _missing_kinds(inputs)
    gateway_class: Manifest = {
        "apiVersion": c.GATEWAY_API,
        "kind": "GatewayClass",
        "metadata": {"name": c.FLEET_GATEWAY_CLASS},
        "spec": {"controllerName": "traefik.io/gateway-controller"},
    }
    found: list[Desired | Waiting] = [
        Desired(CLASS, gateway_class, Ready.condition("Accepted"), after=(TRAEFIK,), blocked=blocked)
    ]
    secret = spec.tls.secret_ref.name if spec.tls and spec.tls.secret_ref else ""
    if spec.tls and spec.tls.issuer_ref:
        secret = _TLS_SECRET
        found.append(_certificate(inputs, spec))
        if not inputs.is_ready(CERTIFICATE):
            # A listener without its certificate serves nobody; what serves now goes on until it is there.
            return [*found, Waiting(GATEWAY, "waiting for the certificate")]
    manifest: Manifest = {
        "apiVersion": c.GATEWAY_API,
        "kind": "Gateway",
        "metadata": {"name": c.FLEET_GATEWAY, "namespace": c.SYSTEM_NAMESPACE},
        "spec": {"gatewayClassName": c.FLEET_GATEWAY_CLASS, "listeners": [_listener(spec.hostname, secret)]},
    }
    # Accepted, not Programmed: without a load balancer a Gateway never gets the latter.
    ready = Ready.condition("Accepted")
    if spec.auth is not None:
        blocked = blocked or _auth_message(exists=False)
    return [*found, Desired(GATEWAY, manifest, ready, after=(TRAEFIK,), blocked=blocked)]


def _listener(hostname: str, secret: str) -> Manifest:
    """Return the one listener; with a certificate it serves HTTPS only, so no key ever goes in clear."""
    # Traefik matches a listener to the entry point of its port; the chart's Service has them as 80 and 443.
    listener: Manifest = {
        "name": "websecure" if secret else "web",
        "port": c.FLEET_GATEWAY_TLS_PORT if secret else c.FLEET_GATEWAY_PORT,
        "protocol": "HTTPS" if secret else "HTTP",
        "allowedRoutes": {"namespaces": {"from": "All"}},
    }
    if hostname:
        listener["hostname"] = hostname
    if secret:
        ref = {"group": "", "kind": "Secret", "name": secret}
        listener["tls"] = {"mode": "Terminate", "certificateRefs": [ref]}
    return listener


def _certificate(inputs: Inputs, spec: InferenceGatewaySpec) -> Desired:
    issuer = spec.tls.issuer_ref if spec.tls else None
    ref = {"group": "cert-manager.io", "kind": issuer.kind, "name": issuer.name} if issuer else {}
    manifest: Manifest = {
        "apiVersion": c.CERT_MANAGER_API,
        "kind": "Certificate",
        "metadata": {"name": _TLS_SECRET, "namespace": c.SYSTEM_NAMESPACE},
        "spec": {"secretName": _TLS_SECRET, "dnsNames": [spec.hostname], "issuerRef": ref},
    }
    return Desired(CERTIFICATE, manifest, blocked=_no_cert_manager(inputs))


def _no_cert_manager(inputs: Inputs) -> str:
    if inputs.one(CERTIFICATE_KIND) is not None:
        return ""
    return "spec.tls.issuerRef needs cert-manager on the control plane: install it, or set spec.tls.secretRef"


def _status(inputs: Inputs) -> Manifest:
    address = _address(inputs) or paths.text(inputs.composite, "status", "address")
    return {"address": address} if address else {}


def _address(inputs: Inputs) -> str:
    return paths.text(inputs.observed.get(GATEWAY), "status", "addresses", 0, "value")


def _controller(inputs: Inputs, spec: InferenceGatewaySpec) -> Condition:
    if inputs.is_ready(TRAEFIK):
        return Condition(c.CONTROLLER_READY, True, CONTROLLER_HEALTHY)
    missing = _missing_kinds(inputs)
    if missing and TRAEFIK not in inputs.observed and not _brings_crds(spec.traefik.version):
        return Condition(c.CONTROLLER_READY, False, GATEWAY_API_MISSING, missing)
    found = paths.condition(inputs.observed.get(TRAEFIK), c.READY)
    said = paths.text(found, "message") or "see its events"
    message = f"Release traefik is not ready: {said}" if TRAEFIK in inputs.observed else "installing Traefik"
    return Condition(c.CONTROLLER_READY, False, INSTALLING, message)


def _auth_message(*, exists: bool) -> str:
    effect = "anybody who reaches the address may call" if exists else "so the front door is not opened"
    return (
        f"spec.auth is not in force, {effect}: Traefik checks API keys in its paid edition only; remove "
        "spec.auth, or put a gateway that checks keys before this one"
    )


def _serving(inputs: Inputs, spec: InferenceGatewaySpec) -> Condition:
    reason, message = _obstacle(inputs, spec)
    if not reason and inputs.name != c.DEFAULT_GATEWAY:
        message = f"ModelServices use the InferenceGateway named {c.DEFAULT_GATEWAY} only"
    return Condition(c.GATEWAY_READY, not reason, reason or SERVING, message)


def _obstacle(inputs: Inputs, spec: InferenceGatewaySpec) -> tuple[str, str]:
    standing = GATEWAY in inputs.observed
    if spec.auth is not None:
        return AUTH_NOT_SUPPORTED, _auth_message(exists=standing)
    if spec.tls and spec.tls.issuer_ref and not inputs.is_ready(CERTIFICATE):
        found = paths.condition(inputs.observed.get(CERTIFICATE), c.READY)
        said = "" if CERTIFICATE in inputs.observed else _no_cert_manager(inputs)
        why = said or paths.text(found, "message") or "it is being issued"
        return WAITING_FOR_CERTIFICATE, f"Certificate {_TLS_SECRET} is not ready: {why}"
    if not standing:
        missing = _missing_kinds(inputs) if inputs.is_ready(TRAEFIK) else ""
        reason = GATEWAY_API_MISSING if missing else WAITING_FOR_CONTROLLER
        return reason, missing or "the Gateway is created once Traefik is ready"
    for listener in paths.mappings(inputs.observed[GATEWAY], "status", "listeners"):
        for found in paths.mappings(listener, "conditions"):
            if found.get("type") in ("Accepted", "ResolvedRefs") and found.get("status") == "False":
                said = paths.text(found, "message") or paths.text(found, "reason")
                return NOT_ACCEPTED, f"listener {paths.text(listener, 'name')}: {said}"
    if not paths.is_true(inputs.observed[GATEWAY], "Accepted"):
        found = paths.condition(inputs.observed[GATEWAY], "Accepted")
        return NOT_ACCEPTED, paths.text(found, "message") or "Traefik has not accepted the Gateway yet"
    if not _address(inputs):
        return WAITING_FOR_ADDRESS, (
            "the Gateway has no address: where no cloud gives Traefik's Service one, set "
            "spec.traefik.loadBalancer to MetalLB"
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
