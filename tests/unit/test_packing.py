"""Packing pods into nodes: exact where it can be searched, and never more than can be laid out."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modelplane.schedule import packing

LAYOUTS = [
    (8, 2, {4: 1, 3: 2, 2: 3}, True, "first fit leaves a 2 over, another layout does not"),
    (8, 2, {4: 1, 3: 2, 2: 4}, False, "one device too many"),
    (10, 3, {6: 1, 5: 2, 4: 2, 3: 2}, True, "30 of 30 devices"),
    (8, 64, {5: 65}, False, "a search that ends at once"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("have", "nodes", "pods", "fits", "reason"), LAYOUTS, ids=[row[4] for row in LAYOUTS]
)
def test_pods_fit_where_a_layout_exists(
    have: int, nodes: int, pods: dict[int, int], fits: bool, reason: str
) -> None:
    assert packing.fits((have,), nodes, {(n,): number for n, number in pods.items()}) is fits, reason


def layout_exists(free: list[tuple[int, ...]], pods: list[tuple[int, ...]]) -> bool:
    """Put the pods one by one on every node in turn, over all that the nodes can then have free."""
    states = {tuple(sorted(free))}
    for pod in pods:
        after = set()
        for state in states:
            for at, have in enumerate(state):
                rest = tuple(h - n for h, n in zip(have, pod, strict=True))
                if min(rest) >= 0:
                    after.add(tuple(sorted([*state[:at], rest, *state[at + 1 :]])))
        states = after
    return bool(states)


@st.composite
def questions(draw: st.DrawFn) -> tuple[tuple[int, ...], int, list[tuple[int, ...]]]:
    kinds = draw(st.integers(1, 2))
    node = tuple(draw(st.lists(st.integers(1, 9), min_size=kinds, max_size=kinds)))
    pod = st.tuples(*(st.integers(0, have) for have in node)).filter(any)
    return node, draw(st.integers(1, 3)), draw(st.lists(pod, max_size=7))


@settings(max_examples=150, derandomize=True)
@given(questions())
def test_packing_is_exact_for_what_can_be_searched(
    question: tuple[tuple[int, ...], int, list[tuple[int, ...]]],
) -> None:
    node, nodes, pods = question
    counted = {pod: pods.count(pod) for pod in pods}
    exists = layout_exists([node] * nodes, sorted(pods, reverse=True))
    assert packing.fits(node, nodes, counted) is exists
    if exists and pods:
        more = packing.room(node, nodes, counted, pods[0])
        assert layout_exists([node] * nodes, [*pods, *[pods[0]] * more])
        assert not layout_exists([node] * nodes, [*pods, *[pods[0]] * (more + 1)])


def test_a_search_ends_soon_whatever_the_sizes() -> None:
    sizes = {(n,): 4 for n in (17, 19, 23, 29, 31, 37, 41, 43, 47, 53)}
    start = time.process_time()
    packing.fits((101,), 13, sizes)
    assert time.process_time() - start < 2


def test_a_large_pool_is_packed_without_a_search() -> None:
    assert packing.fits((8,), 1000, {(8,): 500, (4,): 500, (2,): 1000, (1,): 0})
    assert not packing.fits((8,), 1000, {(8,): 500, (4,): 500, (2,): 1001})
