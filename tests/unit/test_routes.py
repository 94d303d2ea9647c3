"""Reading endpoint URLs, spreading weights, and laying a service out over an HTTPRoute."""

from fractions import Fraction
from math import ceil, gcd

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.routing import NAMESPACE
from modelplane.routes import frontdoor, url
from modelplane.routes.frontdoor import Endpoint, Service
from modelplane.routes.split import MAX_WEIGHT, Group, capped, weights

READABLE = [
    ("http://192.0.2.1", ("http", "192.0.2.1", 80, "IPv4"), "http means port 80"),
    ("https://api.example.com/openai/v1", ("https", "api.example.com", 443, "FQDN"), "https means port 443"),
    ("https://API.Example.com.:8443", ("https", "api.example.com", 8443, "FQDN"), "case and last dot go"),
    ("http://[2001:DB8::1]:8000/v1", ("http", "2001:db8::1", 8000, "IPv6"), "brackets are not the address"),
    ("http://epp.lab.svc.cluster.local", ("http", "epp.lab.svc.cluster.local", 80, "FQDN"), "in the cluster"),
]
UNREADABLE = [
    ("", "must start with", "nothing"),
    ("api.example.com", "must start with", "no scheme"),
    ("ftp://example.com", "must start with", "another scheme"),
    ("http://", "has no host", "no host"),
    ("http://example.com:port", "host and port", "a port that is no number"),
    ("http://example.com:70000", "host and port", "a port out of range"),
    ("http://example.com:0", "port 0", "port 0 connects nowhere"),
    ("https://me:hunter2@example.com", "spec.auth", "a password in the URL"),
    ("https://@example.com", "spec.auth", "an empty user still marks user information"),
    ("http://exa mple.com", "space", "a space"),
    ("http://example.com\n", "control character", "urlsplit would drop the line break"),
    ("http://[fe80::1%25eth0]", "zone", "a zone is one machine's"),
    ("http://169.254.169.254", "only one machine", "link-local: a cloud's metadata service"),
    ("http://127.0.0.1:8000", "only one machine", "loopback"),
    ("http://0.0.0.0", "only one machine", "unspecified"),
    ("http://localhost:8000", "without a dot", "an EndpointSlice refuses a single label"),
    ("http://a_b.example.com", "neither", "an underscore"),
    ("http://300.1.1.1", "looks like an IP", "no such address"),
    ("http://exämple.com", "xn--", "not ASCII"),
    ("http://[::1", "host and port", "an open bracket"),
]


@pytest.mark.parametrize(("text", "expected", "reason"), READABLE, ids=[r[2] for r in READABLE])
def test_a_url_says_where_the_endpoint_is(text, expected, reason):
    origin = url.parse(text)
    assert (origin.scheme, origin.host, origin.port, origin.address_type) == expected, reason


@pytest.mark.parametrize(("text", "says", "reason"), UNREADABLE, ids=[r[2] for r in UNREADABLE])
def test_a_url_nobody_can_connect_to_is_refused_with_the_next_step(text, says, reason):
    with pytest.raises(url.UrlError, match=says):
        url.parse(text)


def test_a_refusal_never_repeats_a_password():
    with pytest.raises(url.UrlError) as caught:
        url.parse("https://me:hunter2@example.com")
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text):
    try:
        origin = url.parse(text)
    except url.UrlError:
        return
    assert 1 <= origin.port <= 65535
    assert origin.address_type in ("IPv4", "IPv6", "FQDN")


SPLITS = [
    ([(90, 3), (10, 1)], [3, 3, 3, 1], "C69: 90 to 10 whatever the number of endpoints"),
    ([(1, 3), (1, 1)], [1, 1, 1, 3], "no weights: the groups share evenly"),
    ([(1, 2)], [1, 1], "one group: its endpoints share evenly"),
    ([(50, 0), (10, 2)], [1, 1], "a group without endpoints takes no share"),
    ([(1, 0)], [], "nothing to spread"),
    ([(1_000_000, 1), (999_999, 1)], [1_000_000, 999_999], "the largest weights that fit"),
    ([(10, 3)], [1, 1, 1], "a remainder vanishes where all weigh the same"),
]


@pytest.mark.parametrize(("given_groups", "expected", "reason"), SPLITS, ids=[s[2] for s in SPLITS])
def test_groups_share_by_weight(given_groups, expected, reason):
    assert list(weights(_groups(given_groups)).values()) == expected, reason


@given(st.lists(st.tuples(st.integers(1, MAX_WEIGHT), st.integers(0, 40)), min_size=1, max_size=8))
def test_the_ratio_of_the_groups_is_exact_and_nobody_gets_nothing(shape):
    groups = _groups(shape)
    shares = weights(groups)
    assert all(share >= 1 for share in shares.values())
    ratios = {
        Fraction(sum(shares[name] for name in group.members), group.weight)
        for group in groups
        if group.members
    }
    assert len(ratios) <= 1


CAPPED = [
    ([(1_000_000, 1), (1, 3)], [1_000_000, 1, 1, 1], "three of a millionth together: each gets the least"),
    ([(1_000_000, 1), (3, 2)], [1_000_000, 2, 1], "what a group has of whole units its members share"),
    ([(1_000_000, 2), (3, 1), (1, 3)], [1_000_000, 1_000_000, 6, 1, 1, 1], "the rest stays exact"),
    ([(2_000_000, 1), (1_000_001, 1)], [1_000_000, 500_001], "the nearest, not the next below"),
    ([(4_000_000, 1), (2_000_000, 1)], [2, 1], "large numbers with a common factor are small ones"),
    ([], [], "nothing"),
]


@pytest.mark.parametrize(("given_groups", "expected", "reason"), CAPPED, ids=[s[2] for s in CAPPED])
def test_weights_that_do_not_fit_are_the_nearest_that_do(given_groups, expected, reason):
    assert list(capped(_groups(given_groups)).values()) == expected, reason


# Weights that fit, and the sums that stand for all that a TraefikService holds.
SHARES = st.integers(1, MAX_WEIGHT) | st.integers(1, 200 * MAX_WEIGHT)


@given(st.lists(st.tuples(SHARES, st.integers(0, 40)), min_size=1, max_size=8))
def test_weights_that_fit_an_httproute_are_exact_or_half_a_unit_off(shape):
    groups = [group for group in _groups(shape) if group.members]
    shares = capped(_groups(shape))
    assert all(1 <= share <= MAX_WEIGHT for share in shares.values())
    assert set(shares) == {name for group in groups for name in group.members}
    sums = [sum(shares[name] for name in group.members) for group in groups]
    if shares == weights(groups):
        return
    unit = min(Fraction(MAX_WEIGHT * len(group.members), group.weight) for group in groups)
    for group, total in zip(groups, sums, strict=True):
        ideal = group.weight * unit
        assert abs(total - ideal) <= Fraction(1, 2) or (total == len(group.members) and ideal < total)
        assert max(shares[n] for n in group.members) - min(shares[n] for n in group.members) <= 1


@given(st.lists(st.tuples(st.integers(1, MAX_WEIGHT), st.integers(0, 40)), min_size=1, max_size=8))
def test_weights_leave_the_limit_only_where_no_whole_numbers_within_it_keep_the_ratio(shape):
    groups = [group for group in _groups(shape) if group.members]
    common = gcd(*(group.weight for group in groups))
    # The smallest multiple of the ratio that gives every member something, spread as evenly as it goes.
    least = max((ceil(len(g.members) * common / g.weight) for g in groups), default=0)
    fits = all(ceil(Fraction(g.weight // common * least, len(g.members))) <= MAX_WEIGHT for g in groups)
    assert (max(weights(groups).values(), default=0) <= MAX_WEIGHT) is fits


@given(
    st.lists(st.tuples(st.integers(1, MAX_WEIGHT), st.integers(0, 30)), min_size=1, max_size=5),
    st.integers(0, 15),
)
def test_seventeen_and_more_endpoints_keep_the_groups_ratio_over_both_levels(shape, pinned):
    """What of a service stands in the HTTPRoute itself and what in its TraefikService, taken together."""
    groups = _groups(shape)
    everyone = [name for group in groups for name in group.members]
    origin = url.parse("http://192.0.2.1")
    endpoints = {n: Endpoint(n, n, origin, pinned=i < pinned) for i, n in enumerate(everyone)}
    layout = frontdoor.arrange(groups, endpoints)
    assert not layout.left_out
    shares = {**layout.direct, **layout.folded}
    assert set(shares) == set(everyone)
    assert len({Fraction(sum(shares[n] for n in g.members), g.weight) for g in groups if g.members}) <= 1
    service = Service(NAMESPACE, "birds")
    rule = frontdoor.route(service, endpoints, layout)["spec"]["rules"][0]
    sent = {ref["name"]: ref["weight"] for ref in rule.get("backendRefs", [])}
    wanted = dict(layout.direct)
    if layout.folded:
        wanted[service.split] = sum(layout.folded.values())
    assert set(sent) == set(wanted)
    assert len(sent) <= 16
    assert all(1 <= weight <= MAX_WEIGHT for weight in sent.values())
    divisor = gcd(*wanted.values())
    if all(share // divisor <= MAX_WEIGHT for share in wanted.values()):
        assert len({Fraction(sent[name], share) for name, share in wanted.items()}) <= 1


LAYOUTS = [
    (16, 0, (16, 0, 0), "16 plain endpoints fit the HTTPRoute"),
    (17, 0, (0, 17, 0), "one more and all stand in the TraefikService"),
    (200, 0, (0, 200, 0), "which has no limit"),
    (10, 10, (10, 10, 0), "endpoints with a TLS policy stay in the HTTPRoute"),
    (0, 16, (16, 0, 0), "16 with a TLS policy fit"),
    (0, 20, (16, 0, 4), "what a TLS policy covers cannot be folded"),
    (5, 20, (15, 5, 5), "the TraefikService takes one place itself"),
]


@pytest.mark.parametrize(("plain", "pinned", "expected", "reason"), LAYOUTS, ids=[x[3] for x in LAYOUTS])
def test_more_endpoints_than_an_httproute_holds_are_folded(plain, pinned, expected, reason):
    endpoints = _endpoints(plain, pinned)
    layout = frontdoor.arrange([Group(1, sorted(endpoints))], endpoints)
    assert (len(layout.direct), len(layout.folded), len(layout.left_out)) == expected, reason
    assert {*layout.direct, *layout.folded, *layout.left_out} == endpoints.keys()


def test_weights_beyond_an_httproute_are_folded_and_stay_exact():
    endpoints = _endpoints(11, 0)
    names = sorted(endpoints)
    layout = frontdoor.arrange([Group(1_000_000, names[:1]), Group(1, names[1:])], endpoints)
    assert layout.direct == {}
    assert layout.folded[names[0]] == 1_000_000 * sum(layout.folded[name] for name in names[1:])


def test_an_endpoint_that_is_routed_keeps_its_place_before_a_new_one():
    endpoints = _endpoints(0, 17)
    routed = sorted(endpoints)[1:]
    layout = frontdoor.arrange([Group(1, sorted(endpoints))], endpoints, routed)
    assert layout.left_out == [sorted(endpoints)[0]]


def test_the_folded_ones_keep_their_share_beside_direct_ones():
    endpoints = _endpoints(20, 2)
    layout = frontdoor.arrange([Group(1, sorted(endpoints))], endpoints)
    manifest = frontdoor.route(Service(NAMESPACE, "birds"), endpoints, layout)
    shares = {ref["kind"]: ref["weight"] for ref in manifest["spec"]["rules"][0]["backendRefs"]}
    assert shares == {"TraefikService": 20, "Service": 1}


REWRITES = [
    (None, [], "no rewritePath leaves the path as it came"),
    ("/", ["stripPrefix"], "the root needs no prefix of its own"),
    ("/lab/heron-1/", ["stripPrefix", "addPrefix"], "the service's prefix goes, the endpoint's comes"),
]


@pytest.mark.parametrize(("rewrite", "kinds", "reason"), REWRITES, ids=[r[2] for r in REWRITES])
def test_a_folded_endpoint_rewrites_its_path_by_middlewares(rewrite, kinds, reason):
    endpoint = Endpoint("heron-1", "backend", url.parse("http://192.0.2.1"), rewrite)
    found = frontdoor.middlewares(Service(NAMESPACE, "birds"), endpoint)
    assert [next(iter(m["spec"])) for m in found] == kinds, reason


def _groups(shape):
    return [
        Group(weight, [f"e{index}-{member}" for member in range(count)])
        for index, (weight, count) in enumerate(shape)
    ]


def _endpoints(plain, pinned):
    origin = url.parse("http://192.0.2.1")
    made = [Endpoint(f"plain-{i:03}", f"b{i}", origin, "/x/") for i in range(plain)]
    made += [Endpoint(f"tls-{i:03}", f"t{i}", origin, pinned=True) for i in range(pinned)]
    return {endpoint.name: endpoint for endpoint in made}
