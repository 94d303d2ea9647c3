"""A front door that is Envoy: keys, credentials, one path for all, and the way there from Traefik."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

import judges
from builders import routing as build
from modelplane import contracts as c
from modelplane import names
from modelplane.core import Answer, Manifest, paths
from modelplane.kinds import inference_gateway, model_endpoint, model_service
from modelplane.routes import envoy
from modelplane.routes.parts import Endpoint
from modelplane.routes.split import Group
from modelplane.routes.url import parse

CRDS = {"gateway-api": [build.crd("gatewayclasses.gateway.networking.k8s.io")]}
READY = {"conditions": [{"type": "Ready", "status": "True", "reason": "Available"}]}
ACCEPTED = {"type": "Accepted", "status": "True", "reason": "Accepted"}
SERVES = {"conditions": [ACCEPTED], "addresses": [{"type": "IPAddress", "value": "198.51.100.7"}]}
ROUTED = {"parents": [{"parentRef": {"name": c.FLEET_ENVOY}, "conditions": [ACCEPTED]}]}
SELECTOR = {"auth": {"apiKeys": {"secretSelector": {"matchLabels": {"keys": "yes"}}}}}


def keys(name: str = "callers", namespace: str = c.SYSTEM_NAMESPACE, **over: Any) -> Manifest:
    found = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace, "labels": {"keys": "yes"}},
        "type": "Opaque",
        "data": {"team-a": "czNjcg=="},
    }
    return {**found, **over}


def settle(composite: Manifest, required: dict[str, Any], **status: Any) -> tuple[list[set[str]], Answer]:
    """Reconcile a gateway until no new key appears; each pass's new keys, and the last answer."""
    statuses = {"envoy_gateway": READY, "metallb": READY, "certificate": READY} | {
        "envoy_class": {"conditions": [ACCEPTED]},
        "envoy_listener": SERVES,
        **status,
    }
    seen: dict[str, Manifest] = {}
    passes = []
    while True:
        reply = build.answer(inference_gateway.KIND, composite, seen, required)
        new = set(reply.resources) - set(seen)
        if not new:
            return passes, reply
        passes.append(new)
        seen = build.observed(reply, **statuses)


def test_envoy_is_installed_then_told_how_to_serve_and_only_then_opened(crds) -> None:
    passes, reply = settle(build.envoy_gateway(), CRDS)
    assert passes[0] == {"provider-config-helm"}
    order = {key: index for index, new in enumerate(passes) for key in new}
    assert order["envoy-gateway"] < order["envoy-proxy"] < order["envoy-class"] < order["envoy-listener"]
    assert build.conditions(reply) == {
        c.CONTROLLER_READY: (True, "ControllerHealthy"),
        c.GATEWAY_READY: (True, "Serving"),
    }
    assert reply.status == {"address": "198.51.100.7"}
    gateway = reply.resources["envoy-listener"].manifest
    assert gateway["metadata"] == {"name": c.FLEET_ENVOY, "namespace": c.SYSTEM_NAMESPACE}
    assert [p for made in reply.resources.values() for p in judges.problems(made.manifest, crds)] == []
    settings = reply.resources["envoy-proxy"].manifest["spec"]["telemetry"]["accessLog"]["settings"]
    log = json.dumps([entry["format"]["json"] for entry in settings])
    for private in ("AUTHORIZATION", "PATH", "BODY", "API-KEY"):
        assert private not in log.upper()


def test_envoy_gateway_goes_after_all_that_it_takes_down() -> None:
    _, reply = settle(build.envoy_gateway(**SELECTOR), {**CRDS, "api-keys": [keys()]})
    release = reply.resources["envoy-gateway"].manifest["metadata"]["name"]
    users = {
        made.manifest["spec"]["by"]["kind"]
        for made in reply.resources.values()
        if paths.text(made.manifest, "spec", "of", "resourceRef", "name") == release
    }
    assert users == {"Gateway", "GatewayClass", "EnvoyProxy"}


def test_a_newer_package_does_not_move_a_front_door_that_runs() -> None:
    _, reply = settle(build.envoy_gateway(), CRDS)
    seen = build.observed(reply, envoy_gateway=READY)
    seen["envoy-gateway"]["spec"] = json.loads(json.dumps(seen["envoy-gateway"]["spec"]))
    seen["envoy-gateway"]["spec"]["forProvider"]["chart"]["version"] = "v1.8.0"

    def version(composite: Manifest) -> str:
        answer = build.answer(inference_gateway.KIND, composite, seen, CRDS)
        found: str = answer.resources["envoy-gateway"].manifest["spec"]["forProvider"]["chart"]["version"]
        return found

    assert version(build.envoy_gateway()) == "v1.8.0"
    assert version(build.envoy_gateway(envoy={"version": "v1.9.2"})) == "v1.9.2"


def test_keys_are_asked_for_before_the_door_opens_and_engines_never_see_them(crds) -> None:
    passes, reply = settle(build.envoy_gateway(**SELECTOR), {**CRDS, "api-keys": [keys("b"), keys("a")]})
    order = {key: index for index, new in enumerate(passes) for key in new}
    assert order["envoy-security"] < order["envoy-listener"]
    policy = reply.resources["envoy-security"].manifest
    auth = policy["spec"]["apiKeyAuth"]
    assert [x["name"] for x in auth["credentialRefs"]] == ["a", "b"]
    assert auth["extractFrom"] == [{"headers": ["Authorization", "x-api-key"]}]
    assert auth["sanitize"] is True
    assert policy["spec"]["targetRefs"][0]["name"] == c.FLEET_ENVOY
    assert judges.problems(policy, crds) == []
    assert build.conditions(reply)[c.GATEWAY_READY] == (True, "Serving")
    assert "czNjcg==" not in str(reply), "no key stands anywhere but in its Secret"


NO_KEYS = [
    ([], "nobody made a Secret yet"),
    ([keys(data={})], "a Secret without keys"),
    ([keys(type="kubernetes.io/tls")], "a Secret of another kind"),
    ([keys(namespace="lab")], "a team's Secret that carries the label"),
    ([{"metadata": None}], "junk"),
]


@pytest.mark.parametrize(("secrets", "reason"), NO_KEYS, ids=[n[1] for n in NO_KEYS])
def test_without_keys_nobody_is_let_in(secrets, reason, crds) -> None:
    _, reply = settle(build.envoy_gateway(**SELECTOR), {**CRDS, "api-keys": secrets})
    policy = reply.resources["envoy-security"].manifest
    assert policy["spec"]["authorization"] == {"defaultAction": "Deny"}, reason
    assert "apiKeyAuth" not in policy["spec"], reason
    assert judges.problems(policy, crds) == []
    assert build.conditions(reply)[c.GATEWAY_READY] == (False, "NoAPIKeys")
    assert "every call is refused" in build.message(reply, c.GATEWAY_READY)
    assert reply.events[0].warning


FLAWS = [
    (b"s3cret\n", "a line break", "made from a file"),
    (b" s3cret", "a space", "pasted"),
    (b"Bearer s3cret", "without Bearer", "the header's value in place of the key"),
    (b"bearer s3cret", "without Bearer", "in small letters"),
    (b"", "it is empty", "nothing"),
    (b"\n", "it is empty", "a line break alone"),
]


@pytest.mark.parametrize(("value", "says", "reason"), FLAWS, ids=[f[2] for f in FLAWS])
def test_a_key_that_no_caller_can_send_is_named_and_not_told(value, says, reason) -> None:
    data = {"team-a": base64.b64encode(value).decode(), "team-b": "czNjcg=="}
    _, reply = settle(build.envoy_gateway(**SELECTOR), {**CRDS, "api-keys": [keys(data=data)]})
    found = build.message(reply, c.GATEWAY_READY)
    assert "Secret callers, key team-a: " in found, reason
    assert says in found, reason
    assert "team-b" not in found
    assert "s3cret" not in found
    assert build.conditions(reply)[c.GATEWAY_READY] == (True, "Serving"), "the other callers are served"


@pytest.mark.parametrize("value", ["not base64!", 3, None])
def test_a_key_that_cannot_be_read_is_named(value) -> None:
    secret = keys(data={"team-a": value})
    _, reply = settle(build.envoy_gateway(**SELECTOR), {**CRDS, "api-keys": [secret, {"data": "junk"}]})
    assert "Secret callers, key team-a: it is " in build.message(reply, c.GATEWAY_READY)


def test_keys_that_are_not_found_in_one_pass_stay_in_force() -> None:
    composite = build.envoy_gateway(**SELECTOR)
    _, before = settle(composite, {**CRDS, "api-keys": [keys()]})
    seen = build.observed(before, envoy_gateway=READY, envoy_listener=SERVES)
    reply = build.answer(inference_gateway.KIND, composite, seen, {**CRDS, "api-keys": []})
    assert (
        reply.resources["envoy-security"].manifest["spec"]
        == before.resources["envoy-security"].manifest["spec"]
    )
    assert build.conditions(reply)[c.GATEWAY_READY] == (False, "NoAPIKeys")


def test_a_policy_that_is_refused_is_not_claimed() -> None:
    composite = build.envoy_gateway(**SELECTOR)
    words = {"reason": "Invalid", "message": "secret is of the wrong type"}
    refusal = {"type": "Accepted", "status": "False", **words}
    _, reply = settle(
        composite,
        {**CRDS, "api-keys": [keys()]},
        envoy_security={"ancestors": [{"conditions": [refusal]}]},
    )
    assert build.conditions(reply)[c.GATEWAY_READY] == (False, "APIKeysRejected")
    assert "Invalid: secret is of the wrong type" in build.message(reply, c.GATEWAY_READY)


@pytest.mark.parametrize(
    "auth", [None, "x", {"apiKeys": {}}, {"apiKeys": {"secretSelector": {"matchLabels": {}}}}, {"apiKeys": 3}]
)
def test_keys_are_looked_for_by_labels_in_the_platforms_namespace_only(auth) -> None:
    composite = build.envoy_gateway(auth=auth)
    assert "api-keys" not in [r.name for r in inference_gateway.requires(composite)]
    (found,) = [
        r for r in inference_gateway.requires(build.envoy_gateway(**SELECTOR)) if r.name == "api-keys"
    ]
    assert (found.namespace, found.match_labels) == (c.SYSTEM_NAMESPACE, {"keys": "yes"})


def test_the_other_door_stands_until_this_one_has_an_address() -> None:
    _, before = settle(
        build.gateway(),
        CRDS,
        traefik=READY,
        gateway_class={"conditions": [ACCEPTED]},
        gateway=SERVES,
    )
    seen = build.observed(before, traefik=READY, gateway=SERVES)
    traefik = {"traefik", "gateway-class", "gateway", "usage-traefik-by-gateway"}
    assert traefik <= set(seen)
    composite = {**build.envoy_gateway(), "status": {"address": "198.51.100.7"}}
    for _ in range(8):
        reply = build.answer(inference_gateway.KIND, composite, seen, CRDS)
        served = paths.at(seen.get("envoy-listener"), "status", "addresses") is not None
        assert (traefik <= set(reply.resources)) is not served
        seen = {
            key: {**made.manifest, "status": SERVES | READY}
            for key, made in reply.resources.items()
            if key not in ("envoy-class", "envoy-listener")
        } | {
            key: {**reply.resources[key].manifest, "status": SERVES}
            for key in ("envoy-class", "envoy-listener")
            if key in reply.resources
        }
    assert not traefik & set(seen)


# --- endpoints ---------------------------------------------------------------------------------

DOOR = {"gateway": [build.serving_envoy()]}
PROVIDER = {
    "name": "acme-1",
    "url": "https://api.example.com",
    "rewritePath": "/",
    "auth": {"secretRef": {"name": "acme", "key": "token"}},
}


def token(value: bytes = b"s3cret\n", name: str = "acme") -> dict[str, Any]:
    encoded = base64.b64encode(value).decode()
    return {**DOOR, "auth-secret": [{"metadata": {"name": name}, "data": {"token": encoded}}]}


def stand(endpoint: Manifest, required: dict[str, Any]) -> Answer:
    first = build.answer(model_endpoint.KIND, endpoint, required=required)
    return build.answer(model_endpoint.KIND, endpoint, build.observed(first), required)


AUTHS = [
    ({}, "Authorization", b"Bearer s3cret", "as OpenAI has it"),
    ({"header": "x-api-key", "scheme": ""}, "x-api-key", b"s3cret", "as Anthropic has it"),
]


@pytest.mark.parametrize(("over", "header", "value", "reason"), AUTHS, ids=[a[3] for a in AUTHS])
def test_a_providers_credential_is_added_from_a_secret(over, header, value, reason, crds) -> None:
    endpoint = build.endpoint(**PROVIDER)
    endpoint["spec"]["auth"] |= over
    reply = stand(endpoint, token())
    secret, rule = (reply.resources[k].manifest for k in ("credential-secret", "credential-filter"))
    assert base64.b64decode(secret["data"]["credential"]) == value, reason
    injection = rule["spec"]["credentialInjection"]
    assert injection["header"] == header
    assert injection["overwrite"] is True, "a caller's own header must not reach a provider"
    assert injection["credential"]["valueRef"]["name"] == secret["metadata"]["name"]
    assert [p for made in reply.resources.values() for p in judges.problems(made.manifest, crds)] == []
    assert build.conditions(reply)[c.ROUTING_READY] == (True, "BackendConfigured")
    said = [*(x.message for x in reply.conditions), *(x.message for x in reply.events), str(reply.status)]
    assert "s3cret" not in " ".join(said)


@pytest.mark.parametrize(("scheme", "said"), [("http", "goes there in clear"), ("https", "")])
def test_a_credential_that_leaves_in_clear_is_said(scheme, said) -> None:
    url = f"{scheme}://llm-proxy.proxies.svc.cluster.local"
    reply = stand(build.endpoint(**PROVIDER | {"url": url}), token())
    assert build.conditions(reply)[c.ROUTING_READY] == (True, "BackendConfigured")
    found = build.message(reply, c.ROUTING_READY)
    assert said in found if said else not found


TOKENS = [
    (DOOR | {"auth-secret": []}, "no Secret"),
    (token(b""), "an empty value"),
    (token(b"a\r\nX-Evil: 1"), "a value that would add a header"),
    (DOOR | {"auth-secret": [{"data": {"token": "not base64!"}}]}, "no base64"),
    (DOOR | {"auth-secret": [{"data": "junk"}]}, "junk"),
]


@pytest.mark.parametrize(("required", "reason"), TOKENS, ids=[t[1] for t in TOKENS])
def test_without_its_credential_an_endpoint_takes_no_requests(required, reason) -> None:
    reply = stand(build.endpoint(**PROVIDER), required)
    assert reply.status == {}, reason
    assert build.conditions(reply)[c.ROUTING_READY] == (False, "AuthSecretMissing"), reason
    assert "Secret lab/acme has no key token" in build.message(reply, c.ROUTING_READY)
    assert not {"credential-secret", "credential-filter"} & set(reply.resources)


@pytest.mark.parametrize("gone", ["gateway", "auth-secret"])
def test_a_credential_that_was_made_outlasts_what_it_was_made_from(gone) -> None:
    endpoint = build.endpoint(**PROVIDER)
    first = stand(endpoint, token())
    composite = {**endpoint, "status": first.status}
    reply = build.answer(model_endpoint.KIND, composite, build.observed(first), {**token(), gone: []})
    assert set(reply.resources) == set(first.resources)
    assert reply.status == first.status


HTTPS = [
    ({"url": "https://api.example.com"}, True, "a provider: Envoy speaks TLS only where a policy says so"),
    ({"url": "http://192.0.2.9/lab/heron-1/v1"}, False, "a cluster's gateway"),
]


@pytest.mark.parametrize(("over", "policy", "reason"), HTTPS, ids=[h[2] for h in HTTPS])
def test_https_is_verified(over, policy, reason, crds) -> None:
    reply = stand(build.endpoint(**over), DOOR)
    assert ("tls-policy" in reply.resources) is policy, reason
    if policy:
        found = reply.resources["tls-policy"].manifest
        assert found["spec"]["validation"] == {
            "hostname": "api.example.com",
            "wellKnownCACertificates": "System",
        }
        assert judges.problems(found, crds) == []
        seen = build.observed(reply)
        lost = build.answer(model_endpoint.KIND, build.endpoint(**over), seen, {"gateway": []})
        assert "tls-policy" in lost.resources, "a gateway that is not found takes no protection away"


def test_an_https_address_without_a_name_takes_no_requests_rather_than_plain_ones() -> None:
    """Envoy speaks TLS where a policy says so, and a policy needs a name to verify."""
    running = {**build.endpoint(url="https://192.0.2.1"), "status": {"routing": {"backendName": "x"}}}
    reply = stand(running, DOOR)
    assert reply.status == {}
    assert build.conditions(reply)[c.ROUTING_READY] == (False, c.REASON_INVALID_SPEC)
    assert build.message(reply, c.ROUTING_READY).startswith("spec.tls.serverName: is needed where spec.url")
    named = stand(build.endpoint(url="https://192.0.2.1", tls={"serverName": "api.example.com"}), DOOR)
    assert build.conditions(named)[c.ROUTING_READY] == (True, "BackendConfigured")


def test_a_policy_is_published_once_it_stands() -> None:
    endpoint = build.endpoint(url="https://api.example.com")
    first = build.answer(model_endpoint.KIND, endpoint, required=DOOR)
    seen = build.observed(first)
    policy = seen.pop("tls-policy")
    composite = {**endpoint, "status": {"routing": {"backendName": names.child("heron-1", "backend")}}}
    published = build.answer(model_endpoint.KIND, composite, seen, DOOR)
    assert "tlsPolicyName" not in published.status["routing"], "published before, behind Traefik"
    reply = build.answer(model_endpoint.KIND, composite, {**seen, "tls-policy": policy}, DOOR)
    assert reply.status["routing"]["tlsPolicyName"] == paths.name(policy)


MOVES = [
    ({}, {}, True, "Envoy's route may still stand, and would send plain HTTP"),
    ({"tls": {"caSecretRef": {"name": "ca"}}}, {}, False, "certificates that were taken out of the spec"),
    ({"tls": {"serverName": "a.example.com"}}, {}, False, "a name that was taken out of the spec"),
    ({}, {"url": "http://api.example.com"}, False, "no https any more"),
    ({}, {"url": "https://other.example.com"}, False, "another host's"),
]


@pytest.mark.parametrize(("before", "after", "stays", "reason"), MOVES, ids=[m[3] for m in MOVES])
def test_a_policy_that_the_url_implies_outlasts_a_move_to_traefik(before, after, stays, reason) -> None:
    made = stand(build.endpoint(**{"url": "https://api.example.com", **before}), DOOR)
    moved = build.endpoint(**{"url": "https://api.example.com", **after})
    traefik = {"gateway": [build.serving_gateway()]}
    reply = build.answer(model_endpoint.KIND, moved, build.observed(made), traefik)
    assert ("tls-policy" in reply.resources) is stays, reason


# --- services ----------------------------------------------------------------------------------


def route_of(reply: Answer) -> Manifest:
    found: Manifest = reply.resources["envoy-route"].manifest["spec"]["rules"][0]
    return found


def host(name: str) -> str:
    return f"{name}.lab.replicas.modelplane.internal"


def serve(*endpoints: Manifest, composite: Manifest | None = None) -> Answer:
    """A service once everything stands."""
    required = {**DOOR, "endpoints-0": list(endpoints)}
    seen: dict[str, Manifest] = {}
    for _ in range(4):
        reply = build.answer(model_service.KIND, composite or build.service(), seen, required)
        seen = build.observed(reply, envoy_route=ROUTED)
    return reply


def replicas(count: int) -> list[Manifest]:
    return [build.ready_endpoint(f"heron-{i:02}") for i in range(count)]


def test_a_service_names_each_replica_by_host_and_rewrites_one_path(crds) -> None:
    reply = serve(*replicas(2))
    rule = route_of(reply)
    assert rule["filters"][0]["urlRewrite"]["path"] == {
        "type": "ReplacePrefixMatch",
        "replacePrefixMatch": "/",
    }
    assert [(r["name"], r["weight"], r["filters"]) for r in rule["backendRefs"]] == [
        (f"heron-0{i}-backend", 1, [{"type": "URLRewrite", "urlRewrite": {"hostname": host(f"heron-0{i}")}}])
        for i in (0, 1)
    ]
    assert rule["timeouts"] == {"request": "0s"}, "C66: no stream is cut"
    assert reply.resources["envoy-route"].manifest["spec"]["parentRefs"][0]["name"] == c.FLEET_ENVOY
    assert build.conditions(reply)[c.ROUTING_READY] == (True, "RouteConfigured")
    assert reply.status["address"] == "http://198.51.100.7/lab/birds"
    assert [p for made in reply.resources.values() for p in judges.problems(made.manifest, crds)] == []


def test_a_request_is_sent_again_only_where_nobody_can_have_begun_it() -> None:
    policy = serve(*replicas(1)).resources["envoy-traffic"].manifest
    assert policy["spec"]["retry"]["retryOn"]["triggers"] == [
        "connect-failure",
        "refused-stream",
        "reset-before-request",
    ]
    assert "httpStatusCodes" not in policy["spec"]["retry"]["retryOn"]


def test_without_a_ready_endpoint_envoy_answers_503_itself(crds) -> None:
    reply = serve(build.endpoint())
    rule = route_of(reply)
    assert "backendRefs" not in rule
    answer = reply.resources["envoy-unavailable"].manifest
    assert rule["filters"][0]["extensionRef"]["name"] == answer["metadata"]["name"]
    assert answer["spec"]["directResponse"]["statusCode"] == 503
    assert json.loads(answer["spec"]["directResponse"]["body"]["inline"])["error"]["code"] == 503
    assert [p for made in reply.resources.values() for p in judges.problems(made.manifest, crds)] == []


def test_a_provider_gets_its_host_and_its_credential() -> None:
    provider = build.ready_endpoint(**PROVIDER)
    rule = route_of(serve(*replicas(1), provider))
    ref = next(r for r in rule["backendRefs"] if r["name"] == "acme-1-backend")
    kinds = [f["type"] for f in ref["filters"]]
    assert kinds == ["URLRewrite", "ExtensionRef"]
    assert ref["filters"][0]["urlRewrite"] == {"hostname": "api.example.com"}, "paths only by rule"
    assert ".internal" not in json.dumps(ref)


CLEAR = build.ready_endpoint("acme-1", url="https://api.example.com", rewritePath="/")
CLEAR["status"]["routing"].pop("tlsPolicyName")


def test_no_request_leaves_in_clear_while_a_policy_is_waited_for() -> None:
    reply = serve(CLEAR)
    assert "backendRefs" not in route_of(reply)
    assert reply.status["endpoints"] == {"total": 1, "ready": 0}
    assert "acme-1: waits for the BackendTLSPolicy" in build.message(reply, c.ENDPOINTS_RESOLVED)


def test_traefiks_route_serves_on_while_the_only_endpoint_waits_for_its_policy() -> None:
    groups = {"endpoints-0": [CLEAR]}
    seen: dict[str, Manifest] = {}
    for _ in range(3):
        traefik = {"gateway": [build.serving_gateway()], **groups}
        reply = build.answer(model_service.KIND, build.service(), seen, traefik)
        seen = build.observed(reply)
    assert reply.resources["httproute"].manifest["spec"]["rules"][0]["backendRefs"], (
        "Traefik takes the URL's word"
    )
    for _ in range(4):
        reply = build.answer(model_service.KIND, build.service(), seen, {**DOOR, **groups})
        seen = build.observed(reply, envoy_route=ROUTED)
        assert "httproute" in seen
    groups = {"endpoints-0": [build.ready_endpoint("acme-1", url="https://api.example.com", rewritePath="/")]}
    for _ in range(2):
        reply = build.answer(model_service.KIND, build.service(), seen, {**DOOR, **groups})
        seen = build.observed(reply, envoy_route=ROUTED)
    assert route_of(reply)["backendRefs"]
    assert "httproute" not in reply.resources


IMPOSTORS = [
    (
        {"rewritePath": "/lab/other/"},
        "a path of another replica",
    ),
    ({"labels": {}}, "no label of a deployment"),
    ({"rewritePath": "/shop/heron-1/"}, "another team's replica"),
]


@pytest.mark.parametrize(("over", "reason"), IMPOSTORS, ids=[i[1] for i in IMPOSTORS])
def test_only_a_replicas_own_endpoint_is_found_by_its_host(over, reason) -> None:
    over = dict(over)
    labels = over.pop("labels", None)
    found = build.ready_endpoint("heron-1", **over)
    if labels is not None:
        found["metadata"]["labels"] = labels
    assert ".internal" not in json.dumps(route_of(serve(found))), reason


def test_endpoints_of_another_path_are_named_and_take_no_requests() -> None:
    other = build.ready_endpoint("acme-1", url="https://api.example.com", rewritePath="/openai/")
    reply = serve(*replicas(1), other)
    assert [r["name"] for r in route_of(reply)["backendRefs"]] == ["heron-00-backend"]
    assert build.conditions(reply)[c.ROUTING_READY] == (False, "PathsDiffer")
    assert "acme-1" in build.message(reply, c.ROUTING_READY)
    alone = serve(other)
    assert route_of(alone)["filters"][0]["urlRewrite"]["path"]["replacePrefixMatch"] == "/openai/"


def test_more_endpoints_than_a_rule_holds_are_named() -> None:
    reply = serve(*replicas(18))
    assert len(route_of(reply)["backendRefs"]) == 16
    assert build.conditions(reply)[c.ROUTING_READY] == (False, "TooManyEndpoints")
    assert "heron-16, heron-17" in build.message(reply, c.ROUTING_READY)


def test_an_endpoint_that_is_routed_keeps_its_place_before_a_new_one() -> None:
    origin = parse("http://192.0.2.9")
    endpoints = {f"e{i:02}": Endpoint(f"e{i:02}", "b", origin, "/") for i in range(18)}
    layout = envoy.arrange([Group(1, sorted(endpoints))], endpoints, ["e17", "e16"])
    assert {"e16", "e17"} <= layout.shares.keys()
    assert list(layout.surplus) == ["e14", "e15"]


def test_a_route_moves_from_traefik_to_envoy_without_a_gap() -> None:
    groups = {"endpoints-0": replicas(2)}
    seen: dict[str, Manifest] = {}
    for _ in range(3):
        reply = build.answer(
            model_service.KIND, build.service(), seen, {"gateway": [build.serving_gateway()], **groups}
        )
        seen = build.observed(reply)
    assert set(seen) == {"httproute", "retry"}
    moving = build.answer(model_service.KIND, build.service(), seen, {**DOOR, **groups})
    assert {"httproute", "retry", "envoy-unavailable"} <= set(moving.resources)
    seen = build.observed(moving)
    for _ in range(3):
        reply = build.answer(model_service.KIND, build.service(), seen, {**DOOR, **groups})
        assert "httproute" in reply.resources, "until the new one is accepted"
        seen = build.observed(reply)
    seen["envoy-route"]["status"] = ROUTED
    done = build.answer(model_service.KIND, build.service(), seen, {**DOOR, **groups})
    assert set(done.resources) == {"envoy-route", "envoy-traffic", "envoy-unavailable"}


@pytest.mark.parametrize("gateway", [[], [{"spec": None}], [{"spec": {"backend": "Other"}}]])
def test_a_gateway_that_does_not_say_what_it_is_moves_no_route(gateway) -> None:
    groups = {"endpoints-0": replicas(2)}
    seen = build.observed(serve(*replicas(2)), envoy_route=ROUTED)
    reply = build.answer(model_service.KIND, build.service(), seen, {"gateway": gateway, **groups})
    assert set(reply.resources) == set(seen)
    assert reply.resources["envoy-route"].manifest["spec"] == seen["envoy-route"]["spec"]
