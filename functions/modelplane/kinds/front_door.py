"""What the two kinds of front door share: how one is described, its listener and its certificate."""

from collections.abc import Sequence
from dataclasses import dataclass

from modelplane import contracts as c
from modelplane import names
from modelplane.api.inference_gateway import InferenceGatewaySpec
from modelplane.core import Desired, Inputs, Manifest, Ready, Waiting, builders

CONFIG = "provider-config-helm"
CERTIFICATE = "certificate"
GATEWAY_KINDS = "gateway-api"
CERTIFICATE_KIND = "certificate-api"
KEYS = "api-keys"

TLS_SECRET = names.child(c.FLEET_GATEWAY, "tls")
TARGET = builders.Target(c.IN_CLUSTER_CONFIG, namespace=c.SYSTEM_NAMESPACE)


@dataclass(frozen=True, slots=True)
class Door:
    """One front door.

    Attributes:
        resources: what is composed for it.
        controller: name of what runs it.
        release: key of its Release.
        gateway: key of its Gateway.
        missing: why its controller cannot be installed; empty where it can.
        kinds_missing: why no Gateway can be created; empty where one can.
        obstacle: reason and message of what keeps it from serving as asked; None where nothing does.
        remark: what is worth saying of one that serves.
    """

    resources: Sequence[Desired | Waiting]
    controller: str
    release: str
    gateway: str
    missing: str = ""
    kinds_missing: str = ""
    obstacle: tuple[str, str] | None = None
    remark: str = ""


def config() -> Desired:
    """Return how the Helm provider reaches the control plane it runs on."""
    manifest: Manifest = {
        "apiVersion": c.HELM_API,
        "kind": "ProviderConfig",
        "metadata": {"name": c.IN_CLUSTER_CONFIG, "namespace": c.SYSTEM_NAMESPACE},
        "spec": {"credentials": {"source": "InjectedIdentity"}},
    }
    return Desired(CONFIG, manifest, Ready.exists())


def tls_secret(spec: InferenceGatewaySpec) -> str:
    """Return the name of the Secret with the listener's certificate; empty without TLS."""
    if spec.tls and spec.tls.issuer_ref:
        return TLS_SECRET
    return spec.tls.secret_ref.name if spec.tls and spec.tls.secret_ref else ""


def listener(hostname: str, secret: str, ports: tuple[int, int]) -> Manifest:
    """Return the one listener; with a certificate it serves HTTPS only, so no key ever goes in clear."""
    found: Manifest = {
        "name": "websecure" if secret else "web",
        "port": ports[1] if secret else ports[0],
        "protocol": "HTTPS" if secret else "HTTP",
        "allowedRoutes": {"namespaces": {"from": "All"}},
    }
    if hostname:
        found["hostname"] = hostname
    if secret:
        ref = {"group": "", "kind": "Secret", "name": secret}
        found["tls"] = {"mode": "Terminate", "certificateRefs": [ref]}
    return found


def certificates(inputs: Inputs, spec: InferenceGatewaySpec) -> list[Desired]:
    """Return the certificate that an issuer makes; none where none is asked for."""
    issuer = spec.tls.issuer_ref if spec.tls else None
    if issuer is None:
        return []
    ref = {"group": "cert-manager.io", "kind": issuer.kind, "name": issuer.name}
    manifest: Manifest = {
        "apiVersion": c.CERT_MANAGER_API,
        "kind": "Certificate",
        "metadata": {"name": TLS_SECRET, "namespace": c.SYSTEM_NAMESPACE},
        "spec": {"secretName": TLS_SECRET, "dnsNames": [spec.hostname], "issuerRef": ref},
    }
    return [Desired(CERTIFICATE, manifest, blocked=no_cert_manager(inputs))]


def awaits_certificate(inputs: Inputs, spec: InferenceGatewaySpec) -> bool:
    """Tell whether the listener waits: without its certificate it serves nobody."""
    return bool(spec.tls and spec.tls.issuer_ref) and not inputs.is_ready(CERTIFICATE)


def no_cert_manager(inputs: Inputs) -> str:
    """Say that no certificate can be made here; empty where one can."""
    if inputs.one(CERTIFICATE_KIND) is not None:
        return ""
    return "spec.tls.issuerRef needs cert-manager on the control plane: install it, or set spec.tls.secretRef"


def gateway(name: str, class_name: str, listening: Manifest) -> Manifest:
    """Return the Gateway that ModelServices route at."""
    return {
        "apiVersion": c.GATEWAY_API,
        "kind": "Gateway",
        "metadata": {"name": name, "namespace": c.SYSTEM_NAMESPACE},
        "spec": {"gatewayClassName": class_name, "listeners": [listening]},
    }
