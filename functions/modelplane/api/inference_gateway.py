"""What an InferenceGateway's composer reads of its spec."""

from typing import Any, Literal

from modelplane.api.base import Model


class MetalLB(Model):
    """The load balancer of bare clusters."""

    address_pool: str


class Traefik(Model):
    """The Traefik installation."""

    version: str
    load_balancer: Literal["MetalLB"] | None = None
    metallb: MetalLB | None = None


class CertificateRef(Model):
    """A Secret of type kubernetes.io/tls in the gateway's namespace."""

    name: str


class IssuerRef(Model):
    """A cert-manager issuer."""

    name: str
    kind: str = "ClusterIssuer"


class GatewayTls(Model):
    """Where the certificate comes from: one of the two."""

    secret_ref: CertificateRef | None = None
    issuer_ref: IssuerRef | None = None


class InferenceGatewaySpec(Model):
    """The fleet's front door."""

    backend: Literal["Traefik"]
    traefik: Traefik
    hostname: str = ""
    tls: GatewayTls | None = None
    # Only whether it is set matters: see the composer.
    auth: dict[str, Any] | None = None
