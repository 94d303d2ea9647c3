"""ModelService: the route it composes, whom it selects, and how it changes without losing requests."""

import pytest

import judges
from builders import routing as build
from modelplane import contracts as c
from modelplane.core import paths
from modelplane.kinds.model_service import KIND, requires

ACCEPTED = {
    "parents": [
        {
            "parentRef": {"name": c.FLEET_GATEWAY},
            "conditions": [
                {"type": "Accepted", "status": "True", "reason": "Accepted"},
                {"type": "ResolvedRefs", "status": "True", "reason": "ResolvedRefs"},
            ],
        }
    ]
}


def required(*endpoints, gateway=None, **more):
    found = {
        "gateway": [build.serving_gateway()] if gateway is None else gateway,
        "endpoints-0": list(endpoints),
    }
    return {**found, **{key.replace("_", "-"): value for key, value in more.items()}}


def refs(reply, key="httproute"):
    return paths.items(reply.resources[key].manifest, "spec", "rules", 0, "backendRefs")


def many(count, **over):
    return [build.ready_endpoint(f"heron-{index:02}", **over) for index in range(count)]


def test_a_service_routes_its_path_to_its_endpoints(crds):
    reply = build.answer(KIND, build.service(), required=required(*many(2)))
    route = reply.resources["httproute"].manifest
    assert route["spec"]["parentRefs"][0]["name"] == c.FLEET_GATEWAY
    assert route["spec"]["rules"][0]["matches"] == [{"path": {"type": "PathPrefix", "value": "/lab/birds/"}}]
    assert [(r["name"], r["port"], r["weight"]) for r in refs(reply)] == [
        ("heron-00-backend", 80, 1),
        ("heron-01-backend", 80, 1),
    ]
    assert refs(reply)[0]["filters"][0]["urlRewrite"]["path"]["replacePrefixMatch"] == "/lab/heron-00/"
    assert judges.problems(route, crds) == []
    assert reply.status == {"address": "http://198.51.100.7/lab/birds", "endpoints": {"total": 2, "ready": 2}}


def _verdicts(**over):
    """A route's status: what is given per condition type stands in place of True."""
    parent = {
        "parentRef": {"name": c.FLEET_GATEWAY},
        "conditions": [
            {"type": t, "status": "True", **over.get(t, {})} for t in ("Accepted", "ResolvedRefs")
        ],
    }
    return {"parents": [parent]}


NO = {"status": "False"}
REFUSALS = [
    (
        _verdicts(Accepted={**NO, "reason": "NotAllowedByListeners", "message": "namespace lab"}),
        "Configuring",
        "has not accepted the HTTPRoute: NotAllowedByListeners: namespace lab",
        "refused in words",
    ),
    (
        _verdicts(Accepted={**NO, "reason": "NoMatchingParent"}),
        "Configuring",
        "has not accepted the HTTPRoute: NoMatchingParent",
        "refused by a reason alone",
    ),
    ({"parents": []}, "Configuring", "has not accepted the HTTPRoute: no answer yet", "nobody answered"),
    ({"parents": "junk"}, "Configuring", "no answer yet", "a status nobody can read"),
    (
        _verdicts(ResolvedRefs={**NO, "reason": "BackendNotFound", "message": "Service heron-00-backend"}),
        "RefsNotResolved",
        "BackendNotFound: Service heron-00-backend",
        "a backend that is not found",
    ),
    (
        _verdicts(ResolvedRefs=NO),
        "RefsNotResolved",
        "a backend of the HTTPRoute is not found",
        "without a word",
    ),
]


@pytest.mark.parametrize(("status", "said", "words", "reason"), REFUSALS, ids=[r[3] for r in REFUSALS])
def test_a_route_that_the_gateway_refuses_says_so_in_its_words(status, said, words, reason):
    first = build.answer(KIND, build.service(), required=required(*many(1)))
    seen = build.observed(first, httproute=status)
    reply = build.answer(KIND, build.service(), seen, required(*many(1)))
    assert build.conditions(reply)[c.ROUTING_READY] == (False, said), reason
    assert words in build.message(reply, c.ROUTING_READY), reason
    assert reply.ready is False


def test_the_route_is_ready_when_the_gateway_accepts_it():
    first = build.answer(KIND, build.service(), required=required(*many(1)))
    assert build.conditions(first)[c.ROUTING_READY] == (False, "Configuring")
    assert first.resources["httproute"].ready is False
    seen = build.observed(first, httproute=ACCEPTED)
    reply = build.answer(KIND, build.service(), seen, required(*many(1)))
    assert build.conditions(reply) == {
        c.ENDPOINTS_RESOLVED: (True, "Resolved"),
        c.ROUTING_READY: (True, "RouteConfigured"),
    }
    assert reply.resources["httproute"].ready
    assert reply.ready is None


EMPTY = [
    ([], (False, "NoEndpoints"), {"total": 0, "ready": 0}, "nothing matches"),
    ([build.endpoint()], (True, "Resolved"), {"total": 1, "ready": 0}, "one matches and has no backend"),
    (
        [build.ready_endpoint(namespace="shop")],
        (False, "NoEndpoints"),
        {"total": 0, "ready": 0},
        "another team's endpoint carries the labels",
    ),
]


@pytest.mark.parametrize(("endpoints", "condition", "counts", "reason"), EMPTY, ids=[e[3] for e in EMPTY])
def test_without_a_ready_endpoint_the_route_stays_and_answers_503(endpoints, condition, counts, reason, crds):
    first = build.answer(KIND, build.service(), required=required(*many(1)))
    reply = build.answer(
        KIND, build.service(), build.observed(first, httproute=ACCEPTED), required(*endpoints)
    )
    assert "backendRefs" not in reply.resources["httproute"].manifest["spec"]["rules"][0], reason
    assert judges.problems(reply.resources["httproute"].manifest, crds) == []
    assert reply.status["endpoints"] == counts
    assert build.conditions(reply)[c.ENDPOINTS_RESOLVED] == condition
    assert build.conditions(reply)[c.ROUTING_READY] == (False, "Configuring")
    assert "503" in build.message(reply, c.ROUTING_READY)
    assert reply.ready is False


SPLITS = [
    (
        [build.group("heron", weight=90), build.group("crane", weight=10)],
        [("heron", 3), ("crane", 1)],
        {"heron": 9, "crane": 1},
        "C69: 90 to 10 over 3 and 1",
    ),
    (
        [build.group("heron"), build.group("crane")],
        [("heron", 3), ("crane", 1)],
        {"heron": 3, "crane": 3},
        "C69: no weights share evenly",
    ),
    (
        [build.group("heron", weight=7), build.group("crane", weight=3)],
        [("heron", 2)],
        {"heron": 2},
        "C69: an entry without a match takes no share and breaks nothing",
    ),
    (
        [build.group("heron", priority=1), build.group("crane", priority=0)],
        [("heron", 2), ("crane", 1)],
        {"crane": 1},
        "the lower priority takes all",
    ),
    (
        [build.group("heron", priority=1), build.group("crane", priority=0)],
        [("heron", 2)],
        {"heron": 2},
        "the next priority when none before it is ready",
    ),
]


@pytest.mark.parametrize(("groups", "ready", "expected", "reason"), SPLITS, ids=[s[3] for s in SPLITS])
def test_groups_take_their_share(groups, ready, expected, reason):
    endpoints = [build.ready_endpoint(f"{name}-{i}") for name, count in ready for i in range(count)]
    found = {
        f"endpoints-{index}": [
            e for e in endpoints if paths.labels(e).items() >= group["selector"]["matchLabels"].items()
        ]
        for index, group in enumerate(groups)
    }
    reply = build.answer(
        KIND, build.service(*groups), required={"gateway": [build.serving_gateway()], **found}
    )
    shares: dict[str, int] = {}
    for ref in refs(reply):
        name = ref["name"].partition("-")[0]
        shares[name] = shares.get(name, 0) + ref["weight"]
    assert shares == expected, reason


def test_an_endpoint_that_two_groups_match_belongs_to_the_first():
    groups = [build.group("heron", weight=1), build.group("heron", weight=5)]
    reply = build.answer(KIND, build.service(*groups), required=required(*many(2), endpoints_1=many(2)))
    assert [r["weight"] for r in refs(reply)] == [1, 1]
    assert reply.status["endpoints"] == {"total": 2, "ready": 2}


def test_an_endpoint_that_is_going_takes_no_requests():
    going = build.ready_endpoint("heron-1")
    going = {**going, "metadata": {**going["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}
    reply = build.answer(KIND, build.service(), required=required(going, build.ready_endpoint("heron-2")))
    assert [r["name"] for r in refs(reply)] == ["heron-2-backend"]
    assert "heron-1: is being deleted" in build.message(reply, c.ENDPOINTS_RESOLVED)


def test_a_provider_gets_its_own_host_name():
    provider = build.ready_endpoint("groq-1", url="https://api.example.com", rewritePath="openai")
    (ref,) = refs(build.answer(KIND, build.service(), required=required(provider)))
    assert ref["port"] == 443
    assert ref["filters"][0]["urlRewrite"] == {
        "hostname": "api.example.com",
        "path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/openai"},
    }


GATEWAYS = [
    ([], (False, "WaitingForGateway"), None, False, "no gateway yet"),
    ([build.gateway()], (False, "WaitingForGateway"), None, False, "a gateway that is being installed"),
    ([build.serving_gateway("")], (False, "Configuring"), None, True, "a gateway without an address"),
    (
        [build.serving_gateway("2001:db8::9")],
        (False, "Configuring"),
        "http://[2001:db8::9]/lab/birds",
        True,
        "an IPv6 address",
    ),
    (
        [build.serving_gateway(hostname="ai.example.com", tls={"secretRef": {"name": "cert"}})],
        (False, "Configuring"),
        "https://ai.example.com/lab/birds",
        True,
        "a host name and TLS",
    ),
]


@pytest.mark.parametrize(
    ("gateway", "routing", "address", "composed", "reason"), GATEWAYS, ids=[g[4] for g in GATEWAYS]
)
def test_the_address_follows_the_gateway(gateway, routing, address, composed, reason):
    reply = build.answer(KIND, build.service(), required=required(*many(1), gateway=gateway))
    assert build.conditions(reply)[c.ROUTING_READY] == routing, reason
    assert reply.status.get("address") == address
    assert ("httproute" in reply.resources) is composed


@pytest.mark.parametrize("gateway", [[], [{"metadata": None}], [{"status": "junk"}]])
def test_a_gateway_that_cannot_be_read_leaves_route_and_address_alone(gateway):
    replies, seen = settle(2)
    composite = {**build.service(), "status": dict(replies[-1].status)}
    reply = build.answer(KIND, composite, seen, required(*many(2), gateway=gateway))
    assert reply.resources["httproute"].manifest == replies[-1].resources["httproute"].manifest
    assert reply.status == replies[-1].status


def test_a_dead_endpoint_is_tried_again_before_anything_was_sent_and_streams_have_no_limit(crds):
    first = build.answer(KIND, build.service(), required=required(*many(2)))
    assert "filters" not in first.resources["httproute"].manifest["spec"]["rules"][0], "not there yet"
    replies, seen = settle(2)
    (rule,) = replies[-1].resources["httproute"].manifest["spec"]["rules"]
    assert rule["filters"][0]["extensionRef"]["name"] == seen["retry"]["metadata"]["name"]
    # Without `status` Traefik retries a request only while it has written nothing of it to an endpoint.
    assert seen["retry"]["spec"] == {"retry": {"attempts": 3, "initialInterval": "100ms"}}
    assert "timeouts" not in rule, "Traefik has none of its own"
    for made in replies[-1].resources.values():
        assert judges.problems(made.manifest, crds) == []


def settle(count, seen=None, **over):
    """Reconcile until nothing changes; the answers, oldest first."""
    replies = []
    for _ in range(8):
        reply = build.answer(KIND, build.service(), seen, required(*many(count, **over)))
        replies.append(reply)
        following = build.observed(reply, httproute=ACCEPTED)
        if following == seen:
            return replies, seen
        seen = following
    raise AssertionError("never settles")


def test_seventeen_endpoints_all_take_requests(crds):
    replies, seen = settle(17)
    (ref,) = refs(replies[-1])
    assert (ref["kind"], ref["group"]) == ("TraefikService", "traefik.io")
    services = seen["split"]["spec"]["weighted"]["services"]
    assert ref["name"] == seen["split"]["metadata"]["name"]
    assert {(s["name"], s["weight"], s["passHostHeader"]) for s in services} == {
        (f"heron-{i:02}-backend", 1, True) for i in range(17)
    }
    assert build.conditions(replies[-1])[c.ROUTING_READY] == (True, "RouteConfigured")
    assert [p for made in replies[-1].resources.values() for p in judges.problems(made.manifest, crds)] == []


def test_each_step_to_the_larger_split_points_only_to_what_stands():
    _, seen = settle(16)
    for count in (17, 20, 18, 3):
        replies, _ = settle(count, seen)
        for reply in replies:
            following = build.observed(reply, httproute=ACCEPTED)
            route, split = following["httproute"], following.get("split")
            names = {paths.name(m) for m in seen.values()}
            for ref in paths.mappings(route, "spec", "rules", 0, "backendRefs"):
                assert ref["kind"] != "TraefikService" or ref["name"] in names
            for entry in paths.mappings(split, "spec", "weighted", "services"):
                assert {m["name"] for m in entry["middlewares"]} <= names
            # Crossplane deletes first: what goes may not be named by anything observed that stays.
            gone = {paths.name(m) for key, m in seen.items() if key not in following}
            staying = str([m["spec"] for key, m in seen.items() if key in following])
            assert not [name for name in gone if name in staying]
            seen = following
    assert set(seen) == {"httproute", "retry"}


def test_more_tls_endpoints_than_a_route_holds_are_named_and_the_rest_routed():
    tls = {"url": "https://api.example.com", "tls": {"serverName": "inner.example.com"}}
    replies, _ = settle(18, **tls)
    reply = replies[-1]
    assert len(refs(reply)) == 16
    assert build.conditions(reply)[c.ROUTING_READY] == (False, "TooManyTLSEndpoints")
    assert "heron-16, heron-17" in build.message(reply, c.ROUTING_READY)
    assert reply.ready is False


def test_requirements_stay_in_the_services_namespace():
    found = requires(build.service(build.group("heron"), {"selector": {"matchLabels": {}}}))
    assert [(r.name, r.namespace) for r in found] == [
        ("gateway", None),
        ("endpoints-0", "lab"),
        ("endpoints-1", "lab"),
    ]


JUNK = [
    {"spec": "text"},
    {"metadata": {"namespace": "lab"}, "spec": {"endpoints": ["x", None, {"selector": {"matchLabels": 3}}]}},
    {"metadata": {"namespace": "lab"}, "spec": {"endpoints": [{"selector": {"matchLabels": {"a": 1}}}]}},
    {"spec": {"endpoints": [{"selector": {"matchLabels": {"a": "b"}}}]}},
]


@pytest.mark.parametrize("composite", JUNK)
def test_requirements_of_a_spec_that_makes_no_sense_never_reach_beyond_it(composite):
    assert [r.name for r in requires(composite)] == ["gateway"]


def test_a_spec_that_admission_missed_keeps_the_route():
    first = build.answer(KIND, build.service(), required=required(*many(1)))
    broken = build.service({"selector": {}})
    reply = build.answer(KIND, broken, build.observed(first), required(*many(1)))
    assert set(reply.resources) == {"httproute", "retry"}
    assert build.message(reply, c.ENDPOINTS_RESOLVED).startswith("spec.endpoints[0].selector.matchLabels")
