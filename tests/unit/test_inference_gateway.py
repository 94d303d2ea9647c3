"""InferenceGateway: what it installs in which order, and what it says while it does not serve."""

import pytest

import judges
from builders import routing as build
from modelplane import contracts as c
from modelplane.kinds.inference_gateway import KIND, requires

CRDS = {"gateway-api": [build.crd("gatewayclasses.gateway.networking.k8s.io")]}
CERT_MANAGER = {**CRDS, "certificate-api": [build.crd("certificates.cert-manager.io")]}
NOTHING = {"gateway-api": [], "certificate-api": []}
READY = {"conditions": [{"type": "Ready", "status": "True", "reason": "Available"}]}
ACCEPTED = {"conditions": [{"type": "Accepted", "status": "True", "reason": "Accepted"}]}
ADDRESS = {**ACCEPTED, "addresses": [{"type": "IPAddress", "value": "198.51.100.7"}]}
METALLB = {"loadBalancer": "MetalLB", "metallb": {"addressPool": "192.0.2.0/28"}}
ISSUED = {"hostname": "ai.example.com", "tls": {"issuerRef": {"name": "letsencrypt"}}}


def settle(composite, required, **status):
    """Reconcile until no new key appears; every pass's keys, and the last answer."""
    statuses = {"traefik": READY, "metallb": READY, "certificate": READY, "gateway_class": ACCEPTED}
    statuses |= {"gateway": ADDRESS, **status}
    seen: dict = {}
    passes = []
    while True:
        reply = build.answer(KIND, composite, seen, required)
        new = set(reply.resources) - set(seen)
        if not new:
            return passes, reply
        passes.append(new)
        seen = build.observed(reply, **statuses)


def test_v0_4_manifests_install_traefik_then_open_the_gateway(crds):
    passes, reply = settle(build.gateway(), CRDS)
    config = "usage-provider-config-helm-by-traefik"
    assert passes == [
        {"provider-config-helm"},
        {"traefik", config},
        {"gateway-class", "gateway", "usage-traefik-by-gateway"},
    ]
    assert build.conditions(reply) == {
        c.CONTROLLER_READY: (True, "ControllerHealthy"),
        c.GATEWAY_READY: (True, "Serving"),
    }
    assert reply.status == {"address": "198.51.100.7"}
    chart = reply.resources["traefik"].manifest["spec"]["forProvider"]["chart"]
    assert (chart["name"], chart["version"]) == ("traefik", "40.2.0")
    gateway = reply.resources["gateway"].manifest
    assert gateway["metadata"] == {"name": c.FLEET_GATEWAY, "namespace": c.SYSTEM_NAMESPACE}
    assert [(x["port"], x["protocol"]) for x in gateway["spec"]["listeners"]] == [(8000, "HTTP")]
    assert [p for made in reply.resources.values() for p in judges.problems(made.manifest, crds)] == []


def test_the_gateway_goes_before_traefik_and_traefik_before_metallb():
    _, reply = settle(build.gateway(traefik=METALLB), CRDS)
    usages = {
        (u["of"]["resourceRef"]["name"], u["by"]["resourceRef"]["name"])
        for u in (made.manifest["spec"] for key, made in reply.resources.items() if key.startswith("usage-"))
    }
    name = {key: made.manifest["metadata"]["name"] for key, made in reply.resources.items()}
    assert usages == {
        (name["traefik"], c.FLEET_GATEWAY),
        (name["metallb"], name["traefik"]),
        (c.IN_CLUSTER_CONFIG, name["traefik"]),
        (c.IN_CLUSTER_CONFIG, name["metallb"]),
    }


def test_metallb_hands_out_the_pool(crds):
    passes, reply = settle(build.gateway(traefik=METALLB), CRDS)
    assert {"metallb-pool", "metallb-l2"} <= passes[2]
    pool = reply.resources["metallb-pool"].manifest
    assert pool["spec"] == {"addresses": ["192.0.2.0/28"]}
    assert [p for made in reply.resources.values() for p in judges.problems(made.manifest, crds)] == []


VERSIONS = [
    ("40.2.0", False, "the first chart without the CRDs"),
    ("v41.5.0", False, "a later one"),
    ("latest", False, "a version nobody can read brings nothing"),
    ("40.1.0", True, "the last chart that brings them"),
    ("39.0.9", True, "an older one"),
]


@pytest.mark.parametrize(("version", "installs", "reason"), VERSIONS, ids=[v[2] for v in VERSIONS])
def test_a_chart_without_the_gateway_api_waits_for_its_crds(version, installs, reason):
    composite = build.gateway(traefik={"version": version})
    _, reply = settle(composite, NOTHING)
    assert ("traefik" in reply.resources) is installs, reason
    assert "gateway" not in reply.resources
    blamed = c.GATEWAY_READY if installs else c.CONTROLLER_READY
    assert build.conditions(reply)[blamed] == (False, "GatewayAPIMissing")
    assert "kubectl apply --server-side" in build.message(reply, blamed)
    assert reply.ready is False


def test_what_stands_stays_when_the_crds_cannot_be_found():
    _, before = settle(build.gateway(), CRDS)
    seen = build.observed(before, traefik=READY, gateway=ADDRESS, gateway_class=ACCEPTED)
    reply = build.answer(KIND, build.gateway(), seen, NOTHING)
    assert {k: v.manifest for k, v in reply.resources.items()} == {
        k: v.manifest for k, v in before.resources.items()
    }
    assert build.conditions(reply)[c.GATEWAY_READY] == (True, "Serving")


def test_a_certificate_of_ones_own_serves_https_only(crds):
    composite = build.gateway(hostname="ai.example.com", tls={"secretRef": {"name": "front"}})
    _, reply = settle(composite, CRDS)
    (listener,) = reply.resources["gateway"].manifest["spec"]["listeners"]
    assert (listener["port"], listener["protocol"], listener["hostname"]) == (8443, "HTTPS", "ai.example.com")
    assert listener["tls"]["certificateRefs"][0]["name"] == "front"
    assert judges.problems(reply.resources["gateway"].manifest, crds) == []


def test_an_issuer_makes_the_certificate_before_the_gateway_opens(crds):
    pending = {"conditions": [{"type": "Ready", "status": "False", "message": "order is pending"}]}
    passes, reply = settle(build.gateway(**ISSUED), CERT_MANAGER, certificate=pending)
    assert "certificate" in passes[0]
    assert "gateway" not in reply.resources
    assert build.conditions(reply)[c.GATEWAY_READY] == (False, "WaitingForCertificate")
    assert "order is pending" in build.message(reply, c.GATEWAY_READY)
    _, reply = settle(build.gateway(**ISSUED), CERT_MANAGER)
    certificate, gateway = (reply.resources[key].manifest for key in ("certificate", "gateway"))
    ref = gateway["spec"]["listeners"][0]["tls"]["certificateRefs"][0]
    assert ref["name"] == certificate["spec"]["secretName"]
    assert certificate["spec"]["dnsNames"] == ["ai.example.com"]
    assert judges.problems(certificate, crds) == []


def test_a_gateway_that_serves_goes_on_until_its_certificate_is_there():
    _, before = settle(build.gateway(), CRDS)
    seen = build.observed(before, traefik=READY, gateway=ADDRESS, gateway_class=ACCEPTED)
    reply = build.answer(KIND, build.gateway(**ISSUED), seen, CERT_MANAGER)
    assert reply.resources["gateway"].manifest == before.resources["gateway"].manifest
    assert build.conditions(reply)[c.GATEWAY_READY] == (False, "WaitingForCertificate")


def test_an_issuer_without_cert_manager_says_what_to_install():
    _, reply = settle(build.gateway(**ISSUED), {**CRDS, "certificate-api": []})
    assert "certificate" not in reply.resources
    assert "needs cert-manager" in build.message(reply, c.GATEWAY_READY)


LOGS = [
    ("40.2.0", "logs", "access", "headers", "defaultmode", "v0.4's chart"),
    ("41.5.0", "accessLog", None, "headers", "defaultMode", "the chart that renamed the keys"),
    ("latest", "accessLog", None, "queryParameters", "defaultMode", "a version nobody can read"),
]


@pytest.mark.parametrize(
    ("version", "key", "inner", "field", "mode", "reason"), LOGS, ids=[x[5] for x in LOGS]
)
def test_the_access_log_has_no_prompts_and_no_keys(version, key, inner, field, mode, reason):
    """A chart of the other side of 41.0.0 refuses the other's key."""
    _, reply = settle(build.gateway(traefik={"version": version}), CRDS)
    values = reply.resources["traefik"].manifest["spec"]["forProvider"]["values"]
    assert {"logs", "accessLog"} & set(values) == {key}, reason
    log = values[key][inner] if inner else values[key]
    assert (log["enabled"], log["format"]) == (True, "json"), reason
    assert log["fields"][field] == {mode: "drop"}, reason


AUTH = {"auth": {"apiKeys": {"secretSelector": {"matchLabels": {"keys": "yes"}}}}}


def test_a_front_door_that_cannot_check_keys_is_not_opened():
    _, reply = settle(build.gateway(**AUTH), CRDS)
    assert "traefik" in reply.resources
    assert "gateway" not in reply.resources
    assert build.conditions(reply)[c.GATEWAY_READY] == (False, "AuthNotSupported")
    assert reply.events[0].warning


def test_an_open_front_door_stays_and_says_that_keys_are_not_checked():
    _, before = settle(build.gateway(), CRDS)
    seen = build.observed(before, traefik=READY, gateway=ADDRESS, gateway_class=ACCEPTED)
    reply = build.answer(KIND, build.gateway(**AUTH), seen, CRDS)
    assert "gateway" in reply.resources
    assert build.conditions(reply)[c.GATEWAY_READY] == (False, "AuthNotSupported")
    assert "anybody who reaches the address" in build.message(reply, c.GATEWAY_READY)


REFUSED = {
    "type": "ResolvedRefs",
    "status": "False",
    "reason": "InvalidCertificateRef",
    "message": "secret front not found",
}
NO_ADDRESS = {"type": "Programmed", "status": "False", "reason": "AddressNotAssigned", "message": "none yet"}
NO_CLASS = {"type": "Accepted", "status": "False", "reason": "Pending", "message": "waiting for controller"}
NOT_SERVING = [
    (
        {"gateway": {"conditions": [*ACCEPTED["conditions"], NO_ADDRESS]}},
        "WaitingForAddress",
        "has no address (AddressNotAssigned: none yet): where no cloud",
        "a controller that says why there is no address",
    ),
    (
        {"gateway": {"conditions": [NO_CLASS]}},
        "NotAccepted",
        "Pending: waiting for controller",
        "a Gateway that nobody took",
    ),
    ({"gateway": {"conditions": [{**NO_CLASS, "message": ""}]}}, "NotAccepted", "Pending", "no message"),
    ({"gateway": ACCEPTED}, "WaitingForAddress", "MetalLB", "C88: no address although the Gateway stands"),
    ({"gateway": {"addresses": "junk"}}, "NotAccepted", "Traefik", "a status nobody can read"),
    (
        {"gateway": {**ADDRESS, "listeners": [{"name": "websecure", "conditions": [REFUSED]}]}},
        "NotAccepted",
        "listener websecure: InvalidCertificateRef: secret front not found",
        "a listener without its certificate",
    ),
]


@pytest.mark.parametrize(("status", "said", "text", "reason"), NOT_SERVING, ids=[n[3] for n in NOT_SERVING])
def test_a_gateway_that_does_not_serve_says_why(status, said, text, reason):
    _, reply = settle(build.gateway(), CRDS, **status)
    assert build.conditions(reply)[c.GATEWAY_READY] == (False, said), reason
    assert text in build.message(reply, c.GATEWAY_READY)


def test_an_address_that_cannot_be_read_is_kept():
    composite = {**build.gateway(), "status": {"address": "198.51.100.7"}}
    _, reply = settle(composite, CRDS, gateway=ACCEPTED)
    assert reply.status == {"address": "198.51.100.7"}


def test_traefik_that_fails_says_what_helm_said():
    failed = {"type": "Ready", "status": "False", "reason": "ReconcileError", "message": "chart not found"}
    _, reply = settle(build.gateway(), CRDS, traefik={"conditions": [failed]})
    assert build.conditions(reply)[c.CONTROLLER_READY] == (False, "Installing")
    assert "not ready: ReconcileError: chart not found" in build.message(reply, c.CONTROLLER_READY)


def test_a_second_gateway_says_that_services_do_not_use_it():
    _, reply = settle(build.gateway("other"), CRDS)
    assert "named default only" in build.message(reply, c.GATEWAY_READY)


@pytest.mark.parametrize("composite", [{}, {"spec": None}, {"spec": {"tls": "junk"}}])
def test_requirements_never_fail(composite):
    assert [r.name for r in requires(composite)] == ["gateway-api"]
