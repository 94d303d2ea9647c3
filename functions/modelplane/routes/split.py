"""Spreading requests: from group weights to whole numbers per endpoint that keep the groups' exact ratio."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
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
    remainder, and no member gets nothing. A group without members takes no share. The result exceeds
    `MAX_WEIGHT` only where no smaller whole numbers keep the ratio.
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


def capped(groups: Sequence[Group]) -> dict[str, int]:
    """Return `weights`, or where those exceed `MAX_WEIGHT` the nearest that do not.

    Then a group's sum is half a unit from its share at most, of as many units as fit; but no member gets
    nothing, so a group of which each would get less than one gets one for each.
    """
    exact = weights(groups)
    if max(exact.values(), default=0) <= MAX_WEIGHT:
        return exact
    filled = [group for group in groups if group.members]
    unit = min(Fraction(MAX_WEIGHT * len(group.members), group.weight) for group in filled)
    totals = [max(len(group.members), int(group.weight * unit + Fraction(1, 2))) for group in filled]
    return _split((total, group.members) for total, group in zip(totals, filled, strict=True))


def _spread(shares: Sequence[tuple[int, Sequence[str]]], scale: int) -> dict[str, int]:
    result = _split((weight * scale, members) for weight, members in shares)
    divisor = gcd(*result.values())
    return {name: share // divisor for name, share in result.items()}


def _split(totals: Iterable[tuple[int, Sequence[str]]]) -> dict[str, int]:
    """Return each total spread over its members; the first ones take the remainder."""
    result: dict[str, int] = {}
    for total, members in totals:
        each, rest = divmod(total, len(members))
        result.update({name: each + (index < rest) for index, name in enumerate(members)})
    return result
