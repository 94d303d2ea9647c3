"""Requests against devices, and pods into nodes."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import scheduling as b
from modelplane.schedule import packing
from modelplane.schedule.devices import node
from modelplane.schedule.match import Refusal, Request, Take, match

BIG, ANY, NIC = 'device.attributes["gpu.nvidia.com"].big', b.GPU, 'device.driver == "nic.example.org"'
MIXED = [
    b.device("small", 2, attributes={"big": {"bool": False}}),
    b.device("large", 2, attributes={"big": {"bool": True}}),
    b.nic(count=2),
    b.device("dra-nic", 2, driver="nic.example.org", deviceClassName="nic.example.org"),
]

MATCHED = [
    ([("a", 2, ANY)], (2, 0, 0, 0), "the first kind that answers"),
    ([("a", 2, ANY), ("b", 2, BIG)], (2, 2, 0, 0), "the picky request gets the only kind it takes"),
    ([("b", 2, BIG), ("a", 2, ANY)], (2, 2, 0, 0), "in whatever order they are listed"),
    ([("a", 3, ANY)], (2, 1, 0, 0), "one request may take several kinds of one class"),
    ([("a", 3, ANY), ("b", 1, BIG)], (2, 2, 0, 0), "sharing a kind with another"),
    ([("n", 1, NIC)], (0, 0, 0, 0), "a synthetic device is not claimed"),
    ([("a", 1, ANY), ("n", 2, NIC), ("m", 2, NIC)], (1, 0, 0, 2), "used up, a claimed one serves"),
    ([], (0, 0, 0, 0), "no request takes nothing"),
]  # fmt: skip

REFUSED = [
    ([("a", 5, ANY)], "a pod wants 5 for a, a node has 2 small + 2 large", "more than the node has"),
    ([("b", 3, BIG)], "devices that the selectors are true of: b 2 of 8", "more than answer"),
    ([("a", 3, ANY), ("b", 2, BIG)], "a pod wants 3 for a + 2 for b", "together more than it has"),
    ([("a", 1, "false")], "request a are true of 0 of 8 devices", "no device answers"),
    ([("a", 3, NIC)], "a pod wants 3 for a", "one request never mixes a claimed class and a synthetic kind"),
]  # fmt: skip


def requests(rows: list[tuple[str, int, str]]) -> tuple[Request, ...]:
    return tuple(Request(name, count, (cel,)) for name, count, cel in rows)


@pytest.mark.parametrize(("rows", "amounts", "reason"), MATCHED, ids=[row[2] for row in MATCHED])
def test_a_pod_takes_devices_that_answer(
    rows: list[tuple[str, int, str]], amounts: tuple[int, ...], reason: str
) -> None:
    found = match(requests(rows), node(MIXED))
    assert isinstance(found, Take), reason
    assert found.amounts == amounts, reason


@pytest.mark.parametrize(("rows", "says", "reason"), REFUSED, ids=[row[2] for row in REFUSED])
def test_a_node_that_does_not_answer_says_why(
    rows: list[tuple[str, int, str]], says: str, reason: str
) -> None:
    found = match(requests(rows), node(MIXED))
    assert isinstance(found, Refusal), reason
    assert says in found.reason, reason


def test_a_node_without_devices_says_so() -> None:
    found = match(requests([("a", 1, ANY)]), node([]))
    assert found == Refusal("its nodes carry no devices")


def test_claimed_requests_name_their_class_and_synthetic_ones_do_not() -> None:
    found = match(requests([("g", 1, ANY), ("n", 1, NIC)]), node(MIXED))
    assert isinstance(found, Take)
    assert found.classes == (("g", "gpu.nvidia.com"),)


def by_trying_everything(wanted: list[tuple[int, frozenset[int]]], free: tuple[int, ...]) -> bool:
    """Give every single device of every request some kind, in every way there is."""
    units = [kinds for count, kinds in wanted for _ in range(count)]
    for ways in itertools.product(*units):
        used = Counter(ways)
        if all(used[kind] <= have for kind, have in enumerate(free)):
            return True
    return False


@settings(max_examples=150)
@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=3),
    st.lists(st.tuples(st.integers(1, 2), st.frozensets(st.integers(0, 2), min_size=1)), max_size=3),
    st.randoms(use_true_random=False),
)
def test_matching_finds_a_share_exactly_where_there_is_one(
    counts: list[int], wanted: list[tuple[int, frozenset[int]]], shuffle: object
) -> None:
    devices = [b.device(f"d{i}", n, attributes={f"is{i}": {"bool": True}}) for i, n in enumerate(counts)]
    wanted = [(count, kinds & set(range(len(counts)))) for count, kinds in wanted]
    rows = [
        (
            f"r{at}",
            count,
            " || ".join(f'has(device.attributes["gpu.nvidia.com"].is{k})' for k in sorted(kinds)),
        )
        for at, (count, kinds) in enumerate(wanted)
        if kinds
    ]
    possible = by_trying_everything([w for w in wanted if w[1]], tuple(counts))
    takes = set()
    for order in itertools.permutations(rows):
        found = match(requests(list(order)), node(devices))
        assert isinstance(found, Take) is possible
        if isinstance(found, Take):
            takes.add(found)
            assert all(n <= have for n, have in zip(found.amounts, counts, strict=True))
            assert sum(found.amounts) == sum(count for _, count, _ in order)
    assert len(takes) <= 1


PACKED = [
    ((8,), 1, {(4,): 2}, True, "two pods of four share a node of eight"),
    ((8,), 1, {(5,): 2}, False, "two of five do not"),
    ((8,), 2, {(5,): 2}, True, "but take two nodes"),
    ((8,), 2, {(5,): 2, (3,): 2}, True, "whose rest others use"),
    ((8,), 2, {(5,): 2, (4,): 1}, False, "six free devices on two nodes are not four on one"),
    ((4,), 1, {(1,): 4}, True, "four pods of one device on one node"),
    ((4,), 1, {(4,): 1, (1,): 1}, False, "a full node takes no more"),
    ((8, 2), 1, {(4, 1): 2}, True, "two kinds of device at once"),
    ((8, 2), 1, {(4, 1): 1, (1, 2): 1}, False, "one of which runs out"),
    ((8,), 0, {}, True, "nothing on no nodes"),
    ((8,), 0, {(1,): 1}, False, "something on no nodes"),
    ((0,), 3, {(1,): 1}, False, "nodes without devices"),
    ((8,), 1000, {(8,): 1000}, True, "as many as there are"),
    ((8,), 1000, {(8,): 1001}, False, "and one more"),
    ((8,), 3, {(0,): 99}, True, "pods that claim nothing ride free"),
]  # fmt: skip


@pytest.mark.parametrize(("have", "nodes", "pods", "fits", "reason"), PACKED, ids=[row[4] for row in PACKED])
def test_pods_fit_on_nodes(
    have: tuple[int, ...], nodes: int, pods: dict[tuple[int, ...], int], fits: bool, reason: str
) -> None:
    assert packing.fits(have, nodes, pods) is fits, reason


def layout_exists(have: tuple[int, ...], nodes: int, pods: list[tuple[int, ...]]) -> bool:
    """Put each pod on each node in turn."""
    if not pods:
        return True
    free = [have] * nodes

    def put(at: int) -> bool:
        if at == len(pods):
            return True
        for n in range(nodes):
            left = tuple(a - x for a, x in zip(free[n], pods[at], strict=True))
            if min(left) >= 0:
                before, free[n] = free[n], left
                if put(at + 1):
                    return True
                free[n] = before
        return False

    return put(0)


@settings(max_examples=200)
@given(
    st.tuples(st.integers(1, 6), st.integers(0, 3)),
    st.integers(0, 3),
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2)), max_size=6),
)
def test_what_fits_can_be_laid_out_and_room_is_true(
    have: tuple[int, int], nodes: int, pods: list[tuple[int, int]]
) -> None:
    pods = [p for p in pods if any(p)]
    fits = packing.fits(have, nodes, Counter(pods))
    if fits:
        assert layout_exists(have, nodes, list(pods))
    for pod in ((1, 0), (2, 1)):
        room = packing.room(have, nodes, Counter(pods), pod)
        assert room == 0 or layout_exists(have, nodes, [*pods, *[pod] * min(room, 3)])


@settings(max_examples=200)
@given(st.integers(1, 8), st.integers(0, 4), st.lists(st.sampled_from([1, 2, 4, 8]), max_size=10))
def test_sizes_that_divide_each_other_are_packed_exactly(power: int, nodes: int, pods: list[int]) -> None:
    have = 2 ** (power % 4)
    possible = sum(pods) <= have * nodes and all(p <= have for p in pods)
    assert packing.fits((have,), nodes, Counter((p,) for p in pods)) is possible
