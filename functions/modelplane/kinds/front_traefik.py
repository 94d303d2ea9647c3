"""A front door that is Traefik, as v0.4 has it: it rewrites paths per backend, and takes any number."""

import re

from modelplane import contracts as c
from modelplane import names
from modelplane.api.inference_gateway import InferenceGatewaySpec, Traefik
from modelplane.core import Desired, Inputs, InvalidSpecError, Manifest, Ready, Waiting, builders
from modelplane.kinds import front_door
from modelplane.kinds.front_door import CONFIG, GATEWAY_KINDS, TARGET, Door
from modelplane.routes import metallb

AUTH_NOT_SUPPORTED = "AuthNotSupported"

RELEASE = "traefik"
CLASS = "gateway-class"
GATEWAY = "gateway"

# The smallest of the Gateway API's CRDs: they come as one bundle, and HTTPRoute's is 400 kB.
GATEWAY_CRD = "gatewayclasses.gateway.networking.k8s.io"
# The version Traefik 3.7 implements (doc.traefik.io/traefik/v3.7, Gateway API provider).
_INSTALL_GATEWAY_API = (
    "kubectl apply --server-side -f "
    "https://github.com/kubernetes-sigs/gateway-api/releases/download/v1.5.1/standard-install.yaml"
)
_CHART_VERSION = re.compile(r"v?(\d+)\.(\d+)")
# Chart 40.2.0 is the first without the Gateway API CRDs (traefik-helm-chart#1850, #1854; docs/adr/0006).
_FIRST_WITHOUT_CRDS = (40, 2)
# Chart 41.0.0 renames logs.access to accessLog and refuses the old key (traefik-helm-chart#1887).
_FIRST_WITH_ACCESS_LOG = (41, 0)
_REPOSITORY = "https://traefik.github.io/charts"


def door(inputs: Inputs, spec: InferenceGatewaySpec) -> Door:
    """Return the front door; what needs the Gateway API waits for its CRDs, and what stands stays."""
    traefik = spec.traefik
    if traefik is None:
        raise InvalidSpecError(c.CONTROLLER_READY, "spec.traefik", "is missing; add it with version")
    kinds_missing = _missing_kinds(inputs)
    missing = "" if _brings_crds(traefik.version) else kinds_missing
    resources: list[Desired | Waiting] = []
    if traefik.load_balancer == "MetalLB" and traefik.metallb is not None:
        pool = traefik.metallb.address_pool
        resources += metallb.resources(inputs.name, TARGET, pool, after=CONFIG, outlives=RELEASE)
    resources.append(_release(inputs, traefik, missing))
    resources += _gateway(inputs, spec, kinds_missing)
    obstacle = None
    if spec.auth is not None:
        obstacle = (AUTH_NOT_SUPPORTED, _auth_message(exists=GATEWAY in inputs.observed))
    return Door(resources, "Traefik", RELEASE, GATEWAY, missing, kinds_missing, obstacle)


def _release(inputs: Inputs, traefik: Traefik, missing: str) -> Desired:
    # The chart's own Gateway would have the chart's name and admit routes of its namespace only.
    values = {
        "providers": {
            "kubernetesGateway": {"enabled": True, "statusAddress": {"service": {"enabled": True}}},
            "kubernetesCRD": {"enabled": True},
            "kubernetesIngress": {"enabled": False},
        },
        "gateway": {"enabled": False},
        "gatewayClass": {"enabled": False},
        **_access_log(traefik.version),
    }
    chart = builders.Chart(RELEASE, _REPOSITORY, traefik.version, c.TRAEFIK_NAMESPACE)
    release = TARGET.release(
        names.child(inputs.name, RELEASE), chart, values, labels={c.RESOURCE_LABEL: RELEASE}
    )
    return Desired(RELEASE, release, after=(CONFIG,), outlives=(GATEWAY,), blocked=missing)


def _access_log(version: str) -> Manifest:
    """Return the values of the access log. It has no bodies, so no prompts; no headers, so no keys."""
    log: Manifest = {"enabled": True, "format": "json"}
    if _before(version, _FIRST_WITH_ACCESS_LOG):
        return {"logs": {"access": {**log, "fields": {"headers": {"defaultmode": "drop"}}}}}
    drop = {"defaultMode": "drop"}
    return {"accessLog": {**log, "fields": {"headers": drop, "queryParameters": drop}}}


def _before(version: str, first: tuple[int, int]) -> bool:
    found = _CHART_VERSION.match(version)
    return found is not None and (int(found[1]), int(found[2])) < first


def _brings_crds(version: str) -> bool:
    return _before(version, _FIRST_WITHOUT_CRDS)


def _missing_kinds(inputs: Inputs) -> str:
    if inputs.one(GATEWAY_KINDS) is not None:
        return ""
    return (
        f"the control plane has no CustomResourceDefinition {GATEWAY_CRD}, and this version of the Traefik "
        f"chart does not bring it: run {_INSTALL_GATEWAY_API}"
    )


def _gateway(inputs: Inputs, spec: InferenceGatewaySpec, blocked: str) -> list[Desired | Waiting]:
    """Return the class, the listener's certificate and the Gateway, each once it can be created.

    No Usage orders the class before Traefik: it is outside namespaces, where a Usage joins it to no Release.
    Traefik puts no finalizer on it, so it goes either way.
    """
    gateway_class: Manifest = {
        "apiVersion": c.GATEWAY_API,
        "kind": "GatewayClass",
        "metadata": {"name": c.FLEET_GATEWAY_CLASS},
        "spec": {"controllerName": "traefik.io/gateway-controller"},
    }
    found: list[Desired | Waiting] = [
        Desired(CLASS, gateway_class, Ready.condition("Accepted"), after=(RELEASE,), blocked=blocked),
        *front_door.certificates(inputs, spec),
    ]
    if front_door.awaits_certificate(inputs, spec):
        # A listener without its certificate serves nobody; what serves now goes on until it is there.
        return [*found, Waiting(GATEWAY, "waiting for the certificate")]
    # Traefik matches a listener to the entry point of its port; the chart's Service has them as 80 and 443.
    ports = (c.FLEET_GATEWAY_PORT, c.FLEET_GATEWAY_TLS_PORT)
    listening = front_door.listener(spec.hostname, front_door.tls_secret(spec), ports)
    manifest = front_door.gateway(c.FLEET_GATEWAY, c.FLEET_GATEWAY_CLASS, listening)
    if spec.auth is not None:
        blocked = blocked or _auth_message(exists=False)
    # Accepted, not Programmed: without a load balancer a Gateway never gets the latter.
    ready = Ready.condition("Accepted")
    return [*found, Desired(GATEWAY, manifest, ready, after=(RELEASE,), blocked=blocked)]


def _auth_message(*, exists: bool) -> str:
    effect = "anybody who reaches the address may call" if exists else "so the front door is not opened"
    return (
        f"spec.auth is not in force, {effect}: Traefik checks API keys in its paid edition only; set "
        "spec.backend to Envoy, remove spec.auth, or put a gateway that checks keys before this one"
    )
