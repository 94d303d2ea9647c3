"""The credential that a front door adds to requests for a provider: never in a route, a status or a message.

Envoy reads it from a Secret. Traefik could only be given it in an object that anybody who reads routes reads.
"""

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass

from modelplane import contracts as c
from modelplane import names
from modelplane.api.model_endpoint import EndpointAuth
from modelplane.core import Desired, Inputs, Manifest, Ready, Requirement, Waiting, paths

AUTH_NOT_SUPPORTED = "AuthNotSupported"
AUTH_SECRET_MISSING = "AuthSecretMissing"
WAITING_FOR_GATEWAY = "WaitingForGateway"

SOURCE = "auth-secret"
SECRET = "credential-secret"
FILTER = "credential-filter"
# The key that Envoy Gateway reads (HTTPRouteFilter spec.credentialInjection).
_KEY = "credential"


@dataclass(frozen=True, slots=True)
class Credential:
    """What becomes of a credential.

    Attributes:
        resources: what is composed for it.
        needed: keys without which no request may be sent.
        obstacle: reason and message why none is sent; None where nothing stands against it.
    """

    resources: Sequence[Desired | Waiting] = ()
    needed: Sequence[str] = ()
    obstacle: tuple[str, str] | None = None


def requirements(endpoint: Manifest) -> list[Requirement]:
    """Return the lookup of the Secret that the spec names; none where it names none."""
    namespace = paths.namespace(endpoint)
    name = paths.text(endpoint, "spec", "auth", "secretRef", "name")
    if not name or not namespace:
        return []
    return [Requirement(SOURCE, "v1", "Secret", match_name=name, namespace=namespace)]


def resolve(inputs: Inputs, auth: EndpointAuth, gateway: str) -> Credential:
    """Return the Secret and the filter; what was made stays while gateway or Secret cannot be read."""
    keys = (SECRET, FILTER)
    if gateway == c.TRAEFIK:
        return Credential(
            obstacle=(
                AUTH_NOT_SUPPORTED,
                f"spec.auth: Traefik cannot send what Secret {auth.secret_ref.name} holds without the value"
                " standing readable in an object, so no request is sent here; have an InferenceGateway with"
                " backend Envoy, or reach the provider through a proxy that adds the credential and remove"
                " spec.auth",
            )
        )
    where = f"Secret {inputs.namespace}/{auth.secret_ref.name}"
    value = _value(inputs, auth)
    made = all(key in inputs.observed for key in keys)
    if gateway != c.ENVOY or not value:
        lacks = f"{where} has no key {auth.secret_ref.key}: create it" if gateway == c.ENVOY else ""
        why = lacks or f"InferenceGateway {c.DEFAULT_GATEWAY} is not found or does not say its backend"
        reason = AUTH_SECRET_MISSING if lacks else WAITING_FOR_GATEWAY
        return Credential([Waiting(key, why) for key in keys], (), None if made else (reason, why))
    name = names.credential(inputs.name)
    secret: Manifest = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name},
        "type": "Opaque",
        "data": {_KEY: value},
    }
    injection: Manifest = {
        "header": auth.header,
        # A caller's own header must not reach a provider in its place.
        "overwrite": True,
        "credential": {"valueRef": {"group": "", "kind": "Secret", "name": name}},
    }
    filter_: Manifest = {
        "apiVersion": c.ENVOY_API,
        "kind": "HTTPRouteFilter",
        "metadata": {"name": name},
        "spec": {"credentialInjection": injection},
    }
    resources = [Desired(SECRET, secret, Ready.exists()), Desired(FILTER, filter_, Ready.exists())]
    return Credential(resources, keys)


def _value(inputs: Inputs, auth: EndpointAuth) -> str:
    """Return the header's whole value, encoded; empty where the Secret has none."""
    encoded = paths.text(inputs.one(SOURCE), "data", auth.secret_ref.key)
    try:
        # A line break at the end is in most Secrets made from files, and makes no header.
        token = base64.b64decode(encoded, validate=True).strip()
    except (binascii.Error, ValueError):
        return ""
    if not token or any(byte < 0x20 or byte == 0x7F for byte in token):
        return ""
    prefix = f"{auth.scheme} ".encode() if auth.scheme else b""
    return base64.b64encode(prefix + token).decode()
