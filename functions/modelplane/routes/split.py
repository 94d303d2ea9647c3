"""Spreading requests: from group weights to whole numbers per endpoint that keep the groups' exact ratio."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, gcd, lcm

# HTTPRoute backendRefs[].weight (Gateway API v1.6.1).
MAX_WEIGHT = 1_000_000


@dataclass(frozen=True, slots=True)
class Group:
    """Endpoints that share one weight.

    Attributes:
        weight: the group's share relative to the other groups.
        members: names of its endpoints, each in one group only.
    """

    weight: int
    members: Sequence[str]


def weights(groups: Sequence[Group]) -> dict[str, int]:
    """Return a weight for each member; the members of a group sum to its weight, up to one common factor.

    Members of one group weigh the same wherever that fits an HTTPRoute; else the first ones take the
    remainder, and no member gets nothing. A group without members takes no share. The result may exceed
    `MAX_WEIGHT` where no smaller whole numbers keep the ratio.
    """
    filled = [group for group in groups if group.members]
    if not filled:
        return {}
    common = gcd(*(group.weight for group in filled))
    shares = [(group.weight // common, group.members) for group in filled]
    even = _spread(shares, lcm(*(len(m) // gcd(len(m), weight) for weight, m in shares)))
    if max(even.values()) <= MAX_WEIGHT:
        return even
    return _spread(shares, max(ceil(len(members) / weight) for weight, members in shares))


def capped(shares: Mapping[str, int]) -> dict[str, int]:
    """Return the weights with the largest at most `MAX_WEIGHT`; the ratio then holds only roughly."""
    largest = max(shares.values(), default=0)
    if largest <= MAX_WEIGHT:
        return dict(shares)
    return {name: max(1, share * MAX_WEIGHT // largest) for name, share in shares.items()}


def _spread(shares: Sequence[tuple[int, Sequence[str]]], scale: int) -> dict[str, int]:
    result: dict[str, int] = {}
    for weight, members in shares:
        each, rest = divmod(weight * scale, len(members))
        result.update({name: each + (index < rest) for index, name in enumerate(members)})
    divisor = gcd(*result.values())
    return {name: share // divisor for name, share in result.items()}
