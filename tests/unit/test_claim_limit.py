"""Kubernetes allocates one ResourceClaim 32 devices: what is placed and what is rendered agree on it."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from builders import replicas as r
from builders import scheduling as b
from modelplane import contracts as c
from modelplane.api.model_replica import DeviceRequest
from modelplane.core import Manifest
from modelplane.gangs.claims import _parts
from modelplane.schedule.devices import node
from modelplane.schedule.match import Request, Take, match

EFA = 'device.driver == "efa.networking.k8s.aws"'
BIG = 'device.attributes["gpu.nvidia.com"].big'
SMALL = f"!{BIG}"
P5 = [
    b.device(count=8),
    b.device("efa", 32, driver="efa.networking.k8s.aws", deviceClassName="efa.networking.k8s.aws"),
]
MIXED = [
    b.device("small", 32, attributes={"big": {"bool": False}}),
    b.device("large", 32, attributes={"big": {"bool": True}}),
]
TWO_CLASSES = [b.device(count=64), b.device("old", 64, deviceClassName="old.example.org", driver="old")]

# devices of a node, requests (name, count, selector), claims (none: not placed), why
CLAIMS: list[tuple[list[Manifest], list[tuple[str, int, str]], list[list[str]], str]] = [
    ([b.device(count=64)], [("gpu", 8, b.GPU)], [["gpu:8"]], "one claim"),
    ([b.device(count=64)], [("gpu", 32, b.GPU)], [["gpu:32"]], "the most one claim holds"),
    ([b.device(count=64)], [("gpu", 33, b.GPU)], [["gpu:32"], ["gpu:1"]], "one more is another claim"),
    ([b.device(count=64)], [("gpu", 64, b.GPU)], [["gpu:32"], ["gpu:32"]], "the most a request may ask"),
    (P5, [("gpu", 8, b.GPU), ("efa", 16, EFA)], [["gpu:8", "efa:16"]], "two classes in one claim"),
    (P5, [("gpu", 8, b.GPU), ("efa", 32, EFA)], [["gpu:8"], ["efa:32"]], "a whole p5 node: 40 devices"),
    (P5, [("gpu", 8, b.GPU), ("efa", 33, EFA)], [], "a node without so many devices"),
    (
        [b.device(count=64)],
        [("a", 20, b.GPU), ("b", 20, b.GPU)],
        [["a:20"], ["b:20"]],
        "two requests of one class that take the same devices",
    ),
    (
        MIXED,
        [("a", 20, BIG), ("b", 20, SMALL)],
        [["a:20"], ["b:20"]],
        "two requests of one class that have no device in common",
    ),
    (
        MIXED,
        [("any", 16, b.GPU), ("big", 16, BIG)],
        [["any:16", "big:16"]],
        "in one claim, a request that may take another's devices is served with it",
    ),
    (MIXED, [("any", 20, b.GPU), ("big", 20, BIG)], [], "in two, the first may take what the second needs"),
    (
        TWO_CLASSES,
        [("gpu", 10, b.GPU), ("old", 30, 'device.driver == "old"'), ("more", 10, b.GPU)],
        [["gpu:10", "more:10"], ["old:30"]],
        "requests of one class stay in one claim",
    ),
    (
        TWO_CLASSES,
        [("old", 1, 'device.driver == "old"'), ("gpu", 16, b.GPU), ("more", 16, b.GPU)],
        [["old:1"], ["gpu:16", "more:16"]],
        "even where the first of them would fit beside another class",
    ),
]  # fmt: skip


def deployment(rows: list[tuple[str, int, str]]) -> Manifest:
    wanted = [{"name": n, "count": count, "selectors": [{"cel": cel}]} for n, count, cel in rows]
    return b.deployment(b.engine("main", b.member(requests=wanted)))


@pytest.mark.parametrize(("devices", "rows", "claims", "reason"), CLAIMS, ids=[row[3] for row in CLAIMS])
def test_a_pod_is_placed_where_its_claims_can_be_allocated(
    devices: list[Manifest], rows: list[tuple[str, int, str]], claims: list[list[str]], reason: str
) -> None:
    answer = b.Fleet(b.cluster("north", b.pool("gpu", 1, *devices))).ask(deployment(rows))
    assert b.placed(answer) == (["north/0"] if claims else []), reason
    if claims:
        assert rendered(b.replica(answer)) == claims, reason


def rendered(replica: Manifest) -> list[list[str]]:
    """The claims of the one pod of a replica, request by request."""
    given, _ = r.settled(replica)
    pod = r.pods(r.workload(given))["standalone"]["spec"]
    templates = {
        m["metadata"]["name"]: [
            f"{q['name']}:{q['exactly']['count']}" for q in m["spec"]["spec"]["devices"]["requests"]
        ]
        for m in r.manifests(given).values()
        if m["kind"] == "ResourceClaimTemplate"
    }
    used = r.engine_container({"spec": pod})["resources"]["claims"]
    assert [x["name"] for x in used] == [x["name"] for x in pod["resourceClaims"]]
    return [templates[x["resourceClaimTemplateName"]] for x in pod["resourceClaims"]]


def test_requests_that_may_rob_each_other_are_told_apart_by_name() -> None:
    fleet = b.Fleet(b.cluster("north", b.pool("gpu", 1, *MIXED)))
    says = b.condition(fleet.ask(deployment([("any", 20, b.GPU), ("big", 20, BIG)])))[2]
    assert (
        "requests any and big both take large, and the 40 devices of class gpu.nvidia.com are more than one "
        "claim holds (32): give them selectors that no device answers both of"
    ) in says


def test_another_class_that_serves_a_request_is_taken_before_it_is_refused() -> None:
    other = b.device("spare", 20, deviceClassName="spare.example.org", attributes={"big": {"bool": True}})
    found = match((Request("any", 20, (b.GPU,)), Request("big", 20, (BIG,))), node([*MIXED, other]))
    assert isinstance(found, Take)
    assert dict(found.classes)["big"] != dict(found.classes)["any"]


def ways(free: tuple[int, ...], claim: list[tuple[int, frozenset[int]]]) -> set[tuple[int, ...]]:
    """What may be left of the devices once one claim is allocated, in every way there is."""
    found = {free}
    for count, kinds in claim:
        after: set[tuple[int, ...]] = set()
        for left in found:
            for share in itertools.product(
                *(range(n + 1 if at in kinds else 1) for at, n in enumerate(left))
            ):
                if sum(share) == count:
                    after.add(tuple(n - s for n, s in zip(left, share, strict=True)))
        found = after
    return found


def never_stuck(free: tuple[int, ...], claims: list[list[tuple[int, frozenset[int]]]]) -> bool:
    """Allocate claim by claim; whatever devices one takes, the next finds its own."""
    states = {free}
    for claim in claims:
        nexts = [ways(state, claim) for state in states]
        if not all(nexts):
            return False
        states = set().union(*nexts)
    return True


@settings(max_examples=150, derandomize=True)
@given(
    st.lists(st.integers(0, 24), min_size=1, max_size=3),
    st.lists(
        st.tuples(st.integers(8, 24), st.frozensets(st.integers(0, 2), min_size=1)), min_size=2, max_size=4
    ),
)
def test_claims_that_are_allocated_one_by_one_never_get_stuck(
    counts: list[int], wanted: list[tuple[int, frozenset[int]]]
) -> None:
    wanted = [(count, kinds & set(range(len(counts)))) for count, kinds in wanted]
    assume(all(kinds for _, kinds in wanted))
    devices = [b.device(f"d{i}", n, attributes={f"is{i}": {"bool": True}}) for i, n in enumerate(counts)]
    cel = [
        " || ".join(f'has(device.attributes["gpu.nvidia.com"].is{k})' for k in sorted(kinds))
        for _, kinds in wanted
    ]
    found = match(
        tuple(Request(f"r{at}", count, (cel[at],)) for at, (count, _) in enumerate(wanted)), node(devices)
    )
    made = parts([count for count, _ in wanted])
    assert all(sum(count for _, count in claim) <= c.DEVICES_A_CLAIM for claim in made)
    claims = [[(count, wanted[at][1]) for at, count in claim] for claim in made]
    stuck = not never_stuck(tuple(counts), claims)
    if isinstance(found, Take):
        assert not stuck
    elif sum(count for count, _ in wanted) <= c.DEVICES_A_CLAIM:
        assert stuck, "one claim is refused only where it cannot be allocated"


def parts(counts: list[int]) -> list[list[tuple[int, int]]]:
    """The claims of such requests of one class: (which request, devices)."""
    requests: Any = tuple(
        DeviceRequest.model_validate({"name": f"r{at}", "deviceClassName": "gpu.nvidia.com", "count": count})
        for at, count in enumerate(counts)
    )
    return [
        [(int(q["name"].removeprefix("r")), q["exactly"]["count"]) for q in claim]
        for claim in _parts(requests)
    ]
