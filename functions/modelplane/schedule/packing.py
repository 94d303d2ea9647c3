"""How many pods a pool's nodes hold: pods are packed into nodes, so free devices on two nodes are not one's.

First fit over pods in decreasing size, with equal pods and equal nodes counted instead of listed, is quick
and nearly always right: always where each size divides the next, as 1, 2, 4 and 8 do. Where it finds nothing
(4, 3, 3, 2, 2 and 2 on two nodes of eight), all layouts are searched, for as many pods and steps as stand
below; beyond them a replica may wait that could run. What is admitted can always be laid out.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

Amounts = tuple[int, ...]
_Pods = tuple[tuple[Amounts, int], ...]

_SEARCHED_PODS = 64
_SEARCHED_STEPS = 2000


@dataclass(slots=True)
class _Nodes:
    """Nodes that are alike: what each has free, and how many there are."""

    free: Amounts
    number: int


def fits(node: Amounts, nodes: int, pods: Mapping[Amounts, int]) -> bool:
    """Tell whether all the pods find room on that many nodes."""
    if _pack(node, nodes, pods) is not None:
        return True
    largest_first = sorted(_sized(node, pods), reverse=True)
    if sum(number for _, number in largest_first) > _SEARCHED_PODS:
        return False
    return _layout_exists(node, nodes, tuple((pod, number) for (_, pod), number in largest_first))


def room(node: Amounts, nodes: int, pods: Mapping[Amounts, int], pod: Amounts) -> int:
    """Return how many more of `pod` find room beside the pods; 0 where those already do not."""
    packed = _pack(node, nodes, pods)
    if not any(pod):
        return 0
    more = sum(group.number * _times(group.free, pod) for group in packed or ())
    while fits(node, nodes, {**pods, pod: pods.get(pod, 0) + more + 1}):
        more += 1
    return more


@lru_cache(maxsize=4096)
def _layout_exists(node: Amounts, nodes: int, pods: _Pods) -> bool:
    """Search node by node: some node holds the largest pod left, and may be filled to the brim with it.

    Filling it does no harm: what another layout keeps elsewhere can always be moved to where it fits.
    """
    steps = 0
    failed: set[tuple[int, tuple[int, ...]]] = set()

    def search(left: tuple[int, ...], number: int) -> bool:
        nonlocal steps
        steps += 1
        first = next((at for at, n in enumerate(left) if n), None)
        if first is None:
            return True
        if (number, left) in failed or not _enough(node, number, pods, left):
            return False
        for taken in _fillings(node, pods, left, first):
            if steps > _SEARCHED_STEPS:
                return False
            if search(tuple(n - t for n, t in zip(left, taken, strict=True)), number - 1):
                return True
        failed.add((number, left))
        return False

    return search(tuple(number for _, number in pods), nodes)


def _enough(node: Amounts, nodes: int, pods: _Pods, left: tuple[int, ...]) -> bool:
    """Tell whether there are as many devices of each kind as the pods take in all."""
    return nodes > 0 and all(
        sum(pod[kind] * n for (pod, _), n in zip(pods, left, strict=True)) <= have * nodes
        for kind, have in enumerate(node)
    )


def _fillings(node: Amounts, pods: _Pods, left: tuple[int, ...], first: int) -> Iterator[tuple[int, ...]]:
    """Yield the ways to fill one node until nothing more fits, the largest pod among them."""

    def fill(at: int, free: Amounts, taken: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if at == len(pods):
            if not any(n > t and _times(free, pod) for (pod, _), n, t in zip(pods, left, taken, strict=True)):
                yield taken
            return
        pod = pods[at][0]
        least = 1 if at == first else 0
        for number in range(min(left[at], _times(free, pod)), least - 1, -1):
            rest = tuple(have - number * n for have, n in zip(free, pod, strict=True))
            yield from fill(at + 1, rest, (*taken, number))

    return fill(0, node, ())


def _pack(node: Amounts, nodes: int, pods: Mapping[Amounts, int]) -> list[_Nodes] | None:
    groups = [_Nodes(node, nodes)] if nodes > 0 else []
    for pod, number in sorted(_sized(node, pods), reverse=True):
        left = number
        after: list[_Nodes] = []
        for group in groups:
            each = _times(group.free, pod[1])
            if not left or not each:
                after.append(group)
                continue
            full = min(left // each, group.number)
            left -= full * each
            rest = left if full < group.number else 0
            left -= rest
            after += _split(group, pod[1], ((each, full), (rest, 1 if rest else 0)))
        groups = after
        if left:
            return None
    return groups


def _sized(node: Amounts, pods: Mapping[Amounts, int]) -> Iterable[tuple[tuple[float, Amounts], int]]:
    """Yield ((share of a node, pod), number): the largest share of any kind of device is a pod's size."""
    for pod, number in pods.items():
        if number > 0 and any(pod):
            share = max(n / have if have else float("inf") for n, have in zip(pod, node, strict=True) if n)
            yield (share, pod), number


def _split(group: _Nodes, pod: Amounts, parts: Iterable[tuple[int, int]]) -> list[_Nodes]:
    """Take nodes out of the group that receive so many pods each; untouched ones stay at the end."""
    taken = 0
    found: list[_Nodes] = []
    for each, number in parts:
        if number:
            free = tuple(have - n * each for have, n in zip(group.free, pod, strict=True))
            found.append(_Nodes(free, number))
            taken += number
    if taken < group.number:
        found.append(_Nodes(group.free, group.number - taken))
    return found


def _times(free: Amounts, pod: Amounts) -> int:
    return min(have // n for have, n in zip(free, pod, strict=True) if n)
