"""Splitting IPv4 ranges among zones so that no two subnets overlap, whatever the range and their number.

A zone has a slot. Each slot of the range is one private subnet, but for the last: that is cut into the
public ones, which hold only NAT gateways and load balancers. So a zone added later moves no other.
"""

from collections.abc import Sequence
from ipaddress import IPv4Network, ip_network

# AWS takes subnets from /16 to /28 (VPC User Guide, subnet sizing).
SMALLEST = 28
_WIDEST, _NARROWEST = 16, 24
_EIGHTHS, _QUARTERS = 3, 2
_PUBLIC = {_EIGHTHS: 3, _QUARTERS: 2}


class RangeError(ValueError):
    """A range that cannot be used; the message says why and what to do."""


def parse(text: str) -> IPv4Network:
    """Return the range.

    Raises:
        RangeError: for anything but an IPv4 network from /16 to /24.
    """
    try:
        found = ip_network(text)
    except ValueError as error:
        raise RangeError(f"{error}; write the first address of a range and its length") from None
    if not isinstance(found, IPv4Network) or not _WIDEST <= found.prefixlen <= _NARROWEST:
        raise RangeError(f"{text} has to be an IPv4 range from /{_WIDEST} to /{_NARROWEST}")
    return found


def slots(vpc: IPv4Network) -> int:
    """Return how many zones the range has room for."""
    return (1 << _bits(vpc)) - 1


def private(vpc: IPv4Network, slot: int) -> str:
    """Return the private subnet of a slot."""
    return str(_cut(vpc, _bits(vpc))[slot])


def public(vpc: IPv4Network, slot: int) -> str:
    """Return the public subnet of a slot, from the part of the range that no private one takes."""
    bits = _bits(vpc)
    return str(_cut(_cut(vpc, bits)[-1], _PUBLIC[bits])[slot])


def pods(secondary: IPv4Network, slot: int) -> str:
    """Return the subnet for pods of a slot, an eighth of the second range."""
    return str(_cut(secondary, _EIGHTHS)[slot])


def beside(vpc: IPv4Network, taken: Sequence[IPv4Network], count: int) -> list[str]:
    """Return `count` equal subnets, the largest that fit in the range beside what is taken.

    Raises:
        RangeError: where fewer fit.
    """
    for prefix in range(vpc.prefixlen + 1, SMALLEST + 1):
        free = []
        for candidate in vpc.subnets(new_prefix=prefix):
            if not any(candidate.overlaps(other) for other in taken):
                free.append(str(candidate))
            if len(free) == count:
                return free
    raise RangeError(f"{vpc} has no room for {count} private subnets beside the public ones; widen it")


def _bits(vpc: IPv4Network) -> int:
    return _EIGHTHS if vpc.prefixlen <= 22 else _QUARTERS


def _cut(network: IPv4Network, bits: int) -> list[IPv4Network]:
    return list(network.subnets(prefixlen_diff=bits))
