"""Whatever goes missing or unreadable, the front door's kinds keep every key they had."""

import copy

import pytest

from builders import routing as build
from modelplane import contracts as c
from modelplane.core import Kind
from modelplane.kinds import inference_gateway, model_endpoint, model_service

READY = {"type": "Ready", "status": "True", "reason": "Available"}
ACCEPTED = {"type": "Accepted", "status": "True", "reason": "Accepted"}
STATUS = {
    "conditions": [READY, ACCEPTED],
    "addresses": [{"type": "IPAddress", "value": "198.51.100.7"}],
    "parents": [
        {"parentRef": {"name": name}, "conditions": [ACCEPTED]} for name in (c.FLEET_GATEWAY, c.FLEET_ENVOY)
    ],
}
CRDS = [build.crd("gatewayclasses.gateway.networking.k8s.io")]
FLEET = [build.ready_endpoint(f"heron-{index:02}", url=f"http://c{index}.example.com") for index in range(17)]
KEYS = {
    "metadata": {"name": "callers", "namespace": c.SYSTEM_NAMESPACE},
    "type": "Opaque",
    "data": {"a": "czNjcg=="},
}
WHOLE = {
    "endpoint": (model_endpoint.KIND, build.endpoint(url="https://a.example.com", tls={}), {}),
    "service": (
        model_service.KIND,
        build.service(),
        {"gateway": [build.serving_gateway()], "endpoints-0": FLEET[:3]},
    ),
    "large service": (
        model_service.KIND,
        build.service(),
        {"gateway": [build.serving_gateway()], "endpoints-0": FLEET},
    ),
    "provider behind Envoy": (
        model_endpoint.KIND,
        build.endpoint(url="https://a.example.com", auth={"secretRef": {"name": "acme", "key": "token"}}),
        {
            "gateway": [build.serving_envoy()],
            "auth-secret": [{"metadata": {"name": "acme"}, "data": {"token": "czNjcg=="}}],
        },
    ),
    "service behind Envoy": (
        model_service.KIND,
        build.service(),
        {"gateway": [build.serving_envoy()], "endpoints-0": FLEET[:3]},
    ),
    "Envoy": (
        inference_gateway.KIND,
        build.envoy_gateway(
            envoy={"loadBalancer": "MetalLB", "metallb": {"addressPool": "192.0.2.0/28"}},
            hostname="ai.example.com",
            tls={"issuerRef": {"name": "letsencrypt"}},
            auth={"apiKeys": {"secretSelector": {"matchLabels": {"keys": "yes"}}}},
        ),
        {"gateway-api": CRDS, "certificate-api": CRDS, "api-keys": [KEYS]},
    ),
    "gateway": (
        inference_gateway.KIND,
        build.gateway(
            traefik={"loadBalancer": "MetalLB", "metallb": {"addressPool": "192.0.2.0/28"}},
            hostname="ai.example.com",
            tls={"issuerRef": {"name": "letsencrypt"}},
        ),
        {"gateway-api": CRDS, "certificate-api": CRDS},
    ),
}
JUNK = [
    {},
    {"metadata": None, "spec": "text", "status": 7},
    {"status": {"conditions": "x", "addresses": [1]}},
]


def settled(kind: Kind, composite, required):
    """The state in which nothing changes any more, and the last answer."""
    seen: dict = {}
    for _ in range(10):
        reply = build.answer(kind, composite, seen, required)
        following = {
            key: {**copy.deepcopy(made.manifest), "status": STATUS} for key, made in reply.resources.items()
        }
        if following == seen:
            return seen, reply
        seen = following
    raise AssertionError("never settles")


@pytest.mark.parametrize("case", WHOLE)
def test_it_settles_ready(case):
    kind, composite, required = WHOLE[case]
    _, reply = settled(kind, composite, required)
    assert reply.held_back == {}
    assert reply.ready is None
    assert all(made.ready for made in reply.resources.values())
    assert all(status for status, _ in build.conditions(reply).values())


@pytest.mark.parametrize("case", WHOLE)
def test_nothing_goes_when_one_observed_object_does(case):
    kind, composite, required = WHOLE[case]
    seen, before = settled(kind, composite, required)
    for key in seen:
        for junk in (None, *JUNK):
            doubtful = {k: v for k, v in seen.items() if k != key}
            if junk is not None:
                doubtful[key] = junk
            reply = build.answer(kind, composite, doubtful, required)
            # An object that is gone may wait for its turn again; nothing else may change.
            lost = before.resources.keys() - reply.resources.keys()
            assert not {k for k in lost if not k.startswith("usage-")} - ({key} if junk is None else set())


@pytest.mark.parametrize("case", WHOLE)
def test_nothing_goes_when_one_required_object_does(case):
    kind, composite, required = WHOLE[case]
    seen, before = settled(kind, composite, required)
    for name, found in required.items():
        for index in range(len(found)):
            for junk in ([], *([x] for x in JUNK)):
                doubtful = {**required, name: [*found[:index], *junk, *found[index + 1 :]]}
                reply = build.answer(kind, composite, seen, doubtful)
                assert reply.resources.keys() >= before.resources.keys()


@pytest.mark.parametrize("case", WHOLE)
def test_the_order_of_what_is_found_changes_nothing(case):
    kind, composite, required = WHOLE[case]
    seen, before = settled(kind, composite, required)
    turned = {name: list(reversed(found)) for name, found in required.items()}
    assert build.answer(kind, composite, dict(reversed(seen.items())), turned) == before
