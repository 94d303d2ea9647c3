"""What an InferenceGateway's composer reads of its spec."""

from typing import Literal

from pydantic import Field

from modelplane.api.base import Model


class MetalLB(Model):
    """The load balancer of bare clusters."""

    address_pool: str


class Traefik(Model):
    """The Traefik installation."""

    version: str
    load_balancer: Literal["MetalLB"] | None = None
    metallb: MetalLB | None = None


class EnvoyDoor(Model):
    """The Envoy Gateway installation; no version takes the one that runs, else the pinned one."""

    version: str = ""
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


class SecretSelector(Model):
    """Which Secrets of the gateway's namespace hold keys."""

    match_labels: dict[str, str] = Field(min_length=1)


class ApiKeys(Model):
    """Callers present a key."""

    secret_selector: SecretSelector


class GatewayAuth(Model):
    """Who may call."""

    api_keys: ApiKeys


class InferenceGatewaySpec(Model):
    """The fleet's front door."""

    backend: Literal["Traefik", "Envoy"]
    traefik: Traefik | None = None
    envoy: EnvoyDoor | None = None
    hostname: str = ""
    tls: GatewayTls | None = None
    auth: GatewayAuth | None = None
