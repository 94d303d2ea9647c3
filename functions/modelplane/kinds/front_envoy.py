"""A front door that is Envoy: it checks API keys and adds providers' credentials, which Traefik cannot."""

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any

from modelplane import contracts as c
from modelplane import names
from modelplane.api.inference_gateway import EnvoyDoor, InferenceGatewaySpec
from modelplane.core import Desired, Inputs, Manifest, Ready, Waiting, builders, paths
from modelplane.facts import versions
from modelplane.kinds import front_door
from modelplane.kinds.front_door import CONFIG, KEYS, TARGET, Door
from modelplane.routes import metallb

NO_API_KEYS = "NoAPIKeys"
KEYS_REJECTED = "APIKeysRejected"

RELEASE = "envoy-gateway"
PROXY = "envoy-proxy"
CLASS = "envoy-class"
GATEWAY = "envoy-listener"
SECURITY = "envoy-security"
CLASS_USAGE = f"usage-{RELEASE}-by-{CLASS}"

_PIN = "envoy-gateway"
_PORTS = (80, 443)
_CONTROLLER = "gateway.envoyproxy.io/gatewayclass-controller"
_NAMED = 5
# What callers of OpenAI's and of Anthropic's API send; Envoy takes the first that is there, less `Bearer `.
_KEY_HEADERS = ("Authorization", "x-api-key")
# Neither headers nor the path with its query: a route's name says namespace and service.
_ACCESS_LOG = {
    "time": "%START_TIME%",
    "route": "%ROUTE_NAME%",
    "method": "%REQ(:METHOD)%",
    "code": "%RESPONSE_CODE%",
    "flags": "%RESPONSE_FLAGS%",
    "bytesIn": "%BYTES_RECEIVED%",
    "bytesOut": "%BYTES_SENT%",
    "duration": "%DURATION%",
    "firstByte": "%RESPONSE_DURATION%",
    "upstream": "%UPSTREAM_HOST%",
    "requestId": "%REQ(X-REQUEST-ID)%",
}


def door(inputs: Inputs, spec: InferenceGatewaySpec) -> Door:
    """Return the front door. Its chart brings the Gateway API where nobody has installed it."""
    envoy = spec.envoy or EnvoyDoor()
    resources: list[Desired | Waiting] = []
    if envoy.load_balancer == "MetalLB" and envoy.metallb is not None:
        pool = envoy.metallb.address_pool
        resources += metallb.resources(inputs.name, TARGET, pool, after=CONFIG, outlives=RELEASE)
    resources += [
        _release(inputs, envoy),
        Desired(PROXY, _proxy(), Ready.exists(), after=(RELEASE,)),
        Desired(CLASS, _class(), Ready.condition("Accepted"), after=(RELEASE, PROXY)),
        Desired(CLASS_USAGE, _class_usage(inputs), Ready.exists(), after=(CLASS,)),
        *front_door.certificates(inputs, spec),
    ]
    obstacle, remark = None, ""
    gates: list[str] = [CLASS]
    if spec.auth is not None:
        obstacle, remark = _keys(inputs, resources)
        gates.append(SECURITY)
    if front_door.awaits_certificate(inputs, spec):
        resources.append(Waiting(GATEWAY, "waiting for the certificate"))
    else:
        listening = front_door.listener(spec.hostname, front_door.tls_secret(spec), _PORTS)
        manifest = front_door.gateway(c.FLEET_ENVOY, c.FLEET_ENVOY, listening)
        # After the policy: no request comes in before keys are asked for.
        resources.append(Desired(GATEWAY, manifest, Ready.condition("Accepted"), after=tuple(gates)))
    return Door(resources, "Envoy Gateway", RELEASE, GATEWAY, obstacle=obstacle, remark=remark)


def _release(inputs: Inputs, envoy: EnvoyDoor) -> Desired:
    pin = versions.newest().pin(_PIN)
    # A newer package moves no front door: the version that runs stays until the spec names another.
    running = paths.text(inputs.observed.get(RELEASE), "spec", "forProvider", "chart", "version")
    values = {
        # The standard Gateway API manifest has the same policy, and Helm refuses what is not its own.
        "crds": {"gatewayAPI": {"safeUpgradePolicy": {"enabled": False}}},
    }
    chart = builders.Chart(
        pin.chart, pin.repository, envoy.version or running or pin.version, c.ENVOY_NAMESPACE
    )
    release = TARGET.release(
        names.child(inputs.name, RELEASE), chart, values, labels={c.RESOURCE_LABEL: RELEASE}
    )
    return Desired(RELEASE, release, after=(CONFIG,), outlives=(GATEWAY, PROXY))


def _proxy() -> Manifest:
    service: Manifest = {"name": c.FLEET_ENVOY, "externalTrafficPolicy": "Cluster"}
    log: Manifest = {
        "settings": [
            {
                "format": {"type": "JSON", "json": dict(_ACCESS_LOG)},
                "sinks": [{"type": "File", "file": {"path": "/dev/stdout"}}],
            }
        ]
    }
    return {
        "apiVersion": c.ENVOY_API,
        "kind": "EnvoyProxy",
        "metadata": {"name": c.FLEET_ENVOY, "namespace": c.SYSTEM_NAMESPACE},
        "spec": {
            "provider": {"type": "Kubernetes", "kubernetes": {"envoyService": service}},
            "telemetry": {"accessLog": log},
        },
    }


def _class() -> Manifest:
    ref = {
        "group": c.ENVOY_API.partition("/")[0],
        "kind": "EnvoyProxy",
        "name": c.FLEET_ENVOY,
        "namespace": c.SYSTEM_NAMESPACE,
    }
    return {
        "apiVersion": c.GATEWAY_API,
        "kind": "GatewayClass",
        "metadata": {"name": c.FLEET_ENVOY},
        "spec": {"controllerName": _CONTROLLER, "parametersRef": ref},
    }


def _class_usage(inputs: Inputs) -> Manifest:
    """Return the order of removal: Envoy Gateway goes after its class.

    Its finalizer is on the class until it has taken down what it made for the Gateway, the load balancer too.
    The class is outside namespaces, and a Usage of a namespace finds it all the same.
    """
    release = {"apiVersion": c.HELM_API, "kind": "Release"}
    name = names.child(inputs.name, RELEASE)
    return {
        "apiVersion": c.PROTECTION_API,
        "kind": "Usage",
        "metadata": {"name": names.child(inputs.name, CLASS_USAGE), "namespace": c.SYSTEM_NAMESPACE},
        "spec": {
            "of": {**release, "resourceRef": {"name": name}},
            "by": {
                "apiVersion": c.GATEWAY_API,
                "kind": "GatewayClass",
                "resourceRef": {"name": c.FLEET_ENVOY},
            },
            "replayDeletion": True,
        },
    }


def _security(spec: Mapping[str, Any]) -> Desired:
    target = {"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": c.FLEET_ENVOY}
    manifest: Manifest = {
        "apiVersion": c.ENVOY_API,
        "kind": "SecurityPolicy",
        "metadata": {"name": c.FLEET_ENVOY, "namespace": c.SYSTEM_NAMESPACE},
        "spec": {"targetRefs": [target], **spec},
    }
    return Desired(SECURITY, manifest, Ready.exists(), after=(RELEASE,))


def _keys(inputs: Inputs, resources: list[Desired | Waiting]) -> tuple[tuple[str, str] | None, str]:
    """Add the policy that asks for keys; return what keeps it from being in force, and a remark.

    With no Secret to check against it lets nobody in; one that stands stays while none is found, since Envoy
    Gateway closes a route whose keys are gone.
    """
    sound, other = _secrets(inputs)
    passed = f"{', '.join(other)} is not of type Opaque with keys in it and is passed over" if other else ""
    remark = "; ".join(x for x in (passed, *_unusable(inputs, sound)) if x)
    seen = inputs.observed.get(SECURITY)
    if not sound and paths.at(seen, "spec", "apiKeyAuth") is not None:
        resources.append(Waiting(SECURITY, "a Secret with keys"))
        return (NO_API_KEYS, f"{_NO_SECRET}; the keys that were asked for last are"), remark
    if not sound:
        resources.append(_security({"authorization": {"defaultAction": "Deny"}}))
        return (NO_API_KEYS, f"{_NO_SECRET}; every call is refused until there is one"), remark
    auth = {
        "credentialRefs": [{"group": "", "kind": "Secret", "name": name} for name in sound],
        "extractFrom": [{"headers": list(_KEY_HEADERS)}],
        # A key opens this door only: engines and providers never see it.
        "sanitize": True,
    }
    resources.append(_security({"apiKeyAuth": auth}))
    why = _refused(seen)
    return ((KEYS_REJECTED, f"spec.auth is not in force: {why}") if why else None), remark


_NO_SECRET = (
    f"no Secret in {c.SYSTEM_NAMESPACE} carries the labels of spec.auth.apiKeys.secretSelector and holds keys"
)


def _secrets(inputs: Inputs) -> tuple[list[str], Sequence[str]]:
    """Return the selected Secrets that hold keys, and those that cannot, by name."""
    sound: set[str] = set()
    other: set[str] = set()
    for secret in inputs.all(KEYS):
        if paths.namespace(secret) != c.SYSTEM_NAMESPACE or not paths.name(secret):
            continue
        holds = secret.get("type") == "Opaque" and bool(paths.mapping(secret, "data"))
        (sound if holds else other).add(paths.name(secret))
    return sorted(sound), sorted(other)


def _unusable(inputs: Inputs, sound: Sequence[str]) -> list[str]:
    """Return what is wrong with keys that no caller can send, by Secret and client; never a value."""
    found: dict[tuple[str, str], str] = {}
    for secret in inputs.all(KEYS):
        if paths.namespace(secret) != c.SYSTEM_NAMESPACE or paths.name(secret) not in sound:
            continue
        for client, encoded in sorted(paths.mapping(secret, "data").items()):
            if why := _flaw(encoded):
                found[paths.name(secret), client] = why
    return [f"Secret {name}, key {client}: {why}" for (name, client), why in sorted(found.items())][:_NAMED]


def _flaw(encoded: object) -> str:
    """Say why no caller can send a key; Envoy takes `Bearer ` off what comes in, and compares the rest."""
    try:
        key = base64.b64decode(encoded if isinstance(encoded, str) else "", validate=True)
    except (binascii.Error, ValueError):
        return "it is no base64"
    if not key.strip():
        return "it is empty"
    if key != key.strip():
        return "it begins or ends with a space or a line break, which no header has: store it without"
    return "store the bare key, without Bearer" if key[:7].lower() == b"bearer " else ""


def _refused(policy: Manifest | None) -> str:
    """Say why Envoy Gateway refuses the policy; empty where it has not said so."""
    for ancestor in paths.mappings(policy, "status", "ancestors"):
        for found in paths.mappings(ancestor, "conditions"):
            if found.get("type") == "Accepted" and found.get("status") == "False":
                return paths.said(found, "Envoy Gateway refuses the policy")
    return ""
