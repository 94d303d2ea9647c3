"""How many pods a pool's nodes hold: pods are packed into nodes, so free devices on two nodes are not one's.

First fit over pods in decreasing size, with equal pods and equal nodes counted instead of listed. It may miss
a packing that exists (then a replica waits that could run), but never finds one that does not: what it admits
can be laid out on the nodes.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

Amounts = tuple[int, ...]


@dataclass(slots=True)
class _Nodes:
    """Nodes that are alike: what each has free, and how many there are."""

    free: Amounts
    number: int


def fits(node: Amounts, nodes: int, pods: Mapping[Amounts, int]) -> bool:
    """Tell whether all the pods find room on that many nodes."""
    return _pack(node, nodes, pods) is not None


def room(node: Amounts, nodes: int, pods: Mapping[Amounts, int], pod: Amounts) -> int:
    """Return how many more of `pod` find room beside the pods; 0 where those already do not."""
    packed = _pack(node, nodes, pods)
    if packed is None or not any(pod):
        return 0
    return sum(group.number * _times(group.free, pod) for group in packed)


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
