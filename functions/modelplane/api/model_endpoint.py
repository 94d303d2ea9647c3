"""What a ModelEndpoint's composer reads of its spec."""

from modelplane.api.base import Model


class CaSecretRef(Model):
    """The Secret with the certificates to trust."""

    name: str
    key: str = "ca.crt"


class EndpointTls(Model):
    """How to verify an https endpoint."""

    ca_secret_ref: CaSecretRef | None = None
    server_name: str = ""


class EndpointSecretRef(Model):
    """The Secret with the credential."""

    name: str
    key: str = ""


class EndpointAuth(Model):
    """The credential to send."""

    secret_ref: EndpointSecretRef
    header: str = "Authorization"
    scheme: str = "Bearer"


class ModelEndpointSpec(Model):
    """Where the endpoint is and how to reach it."""

    url: str
    auth: EndpointAuth | None = None
    tls: EndpointTls | None = None
