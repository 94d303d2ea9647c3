"""How many nodes each zone's group of a pool has, and when the number of nodes is ours to say."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from modelplane.core import paths
from modelplane.core.paths import Manifest


@dataclass(frozen=True, slots=True)
class Counts:
    """Nodes of one group: those it starts with, the fewest and the most."""

    start: int
    low: int
    high: int

    @property
    def parked(self) -> bool:
        """Whether it may have no nodes at all; EKS makes no such group, its ceiling is one at least."""
        return self.high < 1


def shares(start: int, low: int, high: int, zones: int, *, block: bool = False) -> Sequence[Counts]:
    """Return the counts of a pool's groups: their sums are the pool's, the first zones get what remains.

    A Capacity Block ends by EKS scaling to nothing forty minutes before its time, which a floor would fight.
    """
    found = []
    for index in range(zones):
        a, b, n = (count // zones + (1 if index < count % zones else 0) for count in (low, high, start))
        found.append(Counts(min(max(n, a), b), 0 if block else min(a, b), b))
    return found


def settings(counts: Counts, seen: Mapping[str, Any]) -> tuple[Manifest, Manifest]:
    """Return the scaling to hold and the scaling to start with.

    The number of nodes is only started with: the autoscaler has it from then on. It is named again while the
    bounds change: EKS refuses bounds that leave it out, and the provider would send what the group started
    with beside new ones (provider-upjet-aws#1907), so that serving nodes were drained.

    Args:
        counts: of the group.
        seen: the scaling it is observed to have; empty before it is made.
    """
    high = max(counts.high, 1)
    held = {"maxSize": high, "minSize": counts.low}
    live = paths.integer(seen, "desiredSize")
    if live is None:
        return held, {"desiredSize": counts.start}
    inside = min(max(live, counts.low), high)
    if live != inside or any(
        paths.integer(seen, name, default=bound) != bound for name, bound in held.items()
    ):
        held["desiredSize"] = inside
    if counts.parked and live > 0:
        held["desiredSize"] = 0
    return held, {"desiredSize": counts.start}
