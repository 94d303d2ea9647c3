"""ModelEndpoint: the backend it composes, and what it says about auth and TLS."""

import pytest

import judges
from builders import routing as build
from modelplane import contracts as c
from modelplane.kinds.model_endpoint import KIND

BACKENDS = [
    ("http://192.0.2.9/x", "endpointslice-ipv4", ("IPv4", "192.0.2.9", "http", 80), "an IPv4 gateway"),
    ("http://[2001:db8::1]:8000", "endpointslice-ipv6", ("IPv6", "2001:db8::1", "http", 8000), "IPv6"),
    (
        "http://a.elb.example.com",
        "endpointslice-fqdn",
        ("FQDN", "a.elb.example.com", "http", 80),
        "a host name",
    ),
    (
        "https://api.example.com",
        "endpointslice-fqdn",
        ("FQDN", "api.example.com", "https", 443),
        "a provider",
    ),
]


@pytest.mark.parametrize(("url", "key", "expected", "reason"), BACKENDS, ids=[b[3] for b in BACKENDS])
def test_an_endpoint_becomes_a_service_and_a_slice(url, key, expected, reason, crds):
    reply = build.answer(KIND, build.endpoint(url=url))
    service, found = (reply.resources[k].manifest for k in ("service", key))
    (port,) = service["spec"]["ports"]
    assert (found["addressType"], *found["endpoints"][0]["addresses"], port["appProtocol"], port["port"]) == (
        expected
    ), reason
    # Traefik joins a Service's port and the slice's by name.
    assert found["ports"][0]["name"] == port["name"]
    assert found["metadata"]["labels"]["kubernetes.io/service-name"] == service["metadata"]["name"]
    assert "selector" not in service["spec"]
    assert [p for made in reply.resources.values() for p in judges.problems(made.manifest, crds)] == []


def test_the_backend_is_published_once_both_halves_stand():
    first = build.answer(KIND, build.endpoint())
    assert first.status == {}
    assert build.conditions(first)[c.ROUTING_READY] == (False, "WaitingForBackend")
    assert not any(made.ready for made in first.resources.values())
    second = build.answer(KIND, build.endpoint(), build.observed(first))
    assert second.status["routing"]["backendName"] == first.resources["service"].manifest["metadata"]["name"]
    assert build.conditions(second)[c.ROUTING_READY] == (True, "BackendConfigured")
    assert all(made.ready for made in second.resources.values())


def test_a_new_address_keeps_the_backend_published_while_the_slice_is_replaced():
    first = build.answer(KIND, build.endpoint())
    seen = build.observed(first)
    status = build.answer(KIND, build.endpoint(), seen).status
    moved = {**build.endpoint(url="http://a.elb.example.com"), "status": status}
    reply = build.answer(KIND, moved, seen)
    assert reply.status == status
    assert set(reply.resources) == {"service", "endpointslice-fqdn"}


@pytest.mark.parametrize(
    "url", ["http://localhost", "http://me:hunter2@example.com", "nonsense", "http://[::1"]
)
def test_a_url_that_cannot_be_read_keeps_what_runs_and_says_why(url):
    first = build.answer(KIND, build.endpoint())
    reply = build.answer(KIND, build.endpoint(url=url), build.observed(first))
    assert set(reply.resources) == set(first.resources)
    assert build.conditions(reply)[c.ROUTING_READY] == (False, "InvalidURL")
    assert build.message(reply, c.ROUTING_READY).startswith("spec.url ")
    assert "hunter2" not in str(reply)


def test_an_endpoint_with_a_credential_gets_no_request_without_it():
    provider = build.endpoint(url="https://api.example.com", auth={"secretRef": {"name": "key", "key": "k"}})
    found = {"gateway": [build.serving_gateway()]}
    first = build.answer(KIND, provider, required=found)
    reply = build.answer(KIND, provider, build.observed(first), found)
    assert reply.status == {}
    assert build.conditions(reply)[c.ROUTING_READY] == (False, "AuthNotSupported")
    assert "backend Envoy" in build.message(reply, c.ROUTING_READY)
    assert "Secret key" in build.message(reply, c.ROUTING_READY)
    assert reply.ready is False


POLICIES = [
    (
        {},
        {"hostname": "api.example.com", "wellKnownCACertificates": "System"},
        "system certificates",
    ),
    (
        {"serverName": "Inner.example.com"},
        {"hostname": "inner.example.com", "wellKnownCACertificates": "System"},
        "another name on the certificate",
    ),
    (
        {"caSecretRef": {"name": "ca"}},
        {"hostname": "api.example.com", "caCertificateRefs": [{"group": "", "kind": "Secret", "name": "ca"}]},
        "certificates of one's own",
    ),
]


@pytest.mark.parametrize(("tls", "validation", "reason"), POLICIES, ids=[p[2] for p in POLICIES])
def test_tls_settings_become_a_policy_on_the_backend(tls, validation, reason, crds):
    reply = build.answer(KIND, build.endpoint(url="https://api.example.com", tls=tls))
    policy = reply.resources["tls-policy"].manifest
    assert policy["spec"]["validation"] == validation, reason
    assert policy["spec"]["targetRefs"][0]["name"] == reply.resources["service"].manifest["metadata"]["name"]
    assert judges.problems(policy, crds) == []


REFUSED_TLS = [
    ("http://api.example.com", {}, "spec.tls:", "TLS settings on a plain URL"),
    ("https://192.0.2.1", {}, "spec.tls.serverName", "no name to verify"),
    ("https://api.example.com", {"serverName": "no_name"}, "spec.tls.serverName", "no host name"),
    (
        "https://api.example.com",
        {"caSecretRef": {"name": "ca", "key": "root.pem"}},
        "spec.tls.caSecretRef.key",
        "a key that the gateway does not read",
    ),
]


@pytest.mark.parametrize(("url", "tls", "field", "reason"), REFUSED_TLS, ids=[r[3] for r in REFUSED_TLS])
def test_tls_that_cannot_be_in_force_is_never_claimed(url, tls, field, reason):
    reply = build.answer(KIND, build.endpoint(url=url, tls=tls))
    assert build.conditions(reply)[c.ROUTING_READY] == (False, c.REASON_INVALID_SPEC), reason
    assert build.message(reply, c.ROUTING_READY).startswith(field)
    assert reply.status == {}


REFUSALS = [
    ({"reason": "Invalid", "message": "Secret ca not found"}, "Invalid: Secret ca not found", "both words"),
    ({"reason": "Conflicted"}, "Conflicted", "a reason alone"),
    ({}, "the gateway refuses it", "no word at all"),
]


@pytest.mark.parametrize(("words", "said", "reason"), REFUSALS, ids=[r[2] for r in REFUSALS])
@pytest.mark.parametrize("type_", ["Accepted", "ResolvedRefs"])
def test_a_policy_the_gateway_refuses_is_reported(type_, words, said, reason):
    endpoint = build.endpoint(url="https://api.example.com", tls={"caSecretRef": {"name": "ca"}})
    refusal = {"type": type_, "status": "False", **words}
    first = build.answer(KIND, endpoint)
    seen = build.observed(first, tls_policy={"ancestors": [{"conditions": [refusal]}]})
    reply = build.answer(KIND, endpoint, seen)
    assert build.conditions(reply)[c.ROUTING_READY] == (False, "TLSPolicyRejected")
    assert f"not in force: {said};" in build.message(reply, c.ROUTING_READY), reason


def test_two_teams_endpoints_of_one_name_are_the_same_in_their_own_namespaces():
    mine, theirs = (build.answer(KIND, build.endpoint(namespace=team)) for team in ("lab", "shop"))
    assert set(mine.resources) == set(theirs.resources)
    assert not any("namespace" in made.manifest["metadata"] for made in mine.resources.values())
