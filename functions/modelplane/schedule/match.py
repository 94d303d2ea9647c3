"""Do the devices of one node answer a pod's requests, and which of them does the pod take?

A request takes devices of one device class, any number of kinds of it (that is what its DRA request can
name). Kinds are shared out by a flow, so neither the order of requests nor that of devices decides whether
they fit: a greedy pick would give the only large device to a request that a small one would have served.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from modelplane import contracts as c
from modelplane.schedule import cel
from modelplane.schedule.devices import Node

# Ways to choose classes that are tried before a pod counts as not fitting; real nodes have one or two.
_TRIES = 2000

_Group = tuple[bool, str]  # claimed, device class


@dataclass(frozen=True, slots=True)
class Request:
    """Devices one pod wants: a name, how many, and the selectors that all must hold.

    `device_class` narrows it to one class: a request that is already placed names it.
    """

    name: str
    count: int
    selectors: tuple[str, ...]
    device_class: str = ""


@dataclass(frozen=True, slots=True)
class Take:
    """What a pod takes of a node.

    Attributes:
        amounts: devices claimed, one number per kind of device on the node.
        classes: the device class of each claimed request, by request name.
    """

    amounts: tuple[int, ...]
    classes: tuple[tuple[str, str], ...] = ()

    @property
    def claims(self) -> bool:
        """Whether the pod claims any device."""
        return bool(self.classes)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a node does not answer the requests."""

    reason: str


@lru_cache(maxsize=16384)
def match(requests: tuple[Request, ...], node: Node) -> Take | Refusal:
    """Return what a pod with these requests takes of the node, or why it cannot."""
    wanted: list[tuple[Request, frozenset[int]]] = []
    for request in requests:
        kinds = _kinds(request, node)
        if not kinds:
            return Refusal(_unmatched(request, node))
        wanted.append((request, kinds))
    # A fixed order of requests, so that what is taken does not depend on how the author listed them.
    wanted.sort(key=lambda pair: (len(pair[1]), sorted(pair[1]), pair[0].count, pair[0].name))
    return _choose(wanted, node) or Refusal(_too_few(requests, node))


def _kinds(request: Request, node: Node) -> frozenset[int]:
    selectors = [cel.selector(text) for text in request.selectors]
    return frozenset(
        at
        for at, device in enumerate(node.devices)
        if device.count > 0
        and (not request.device_class or (device.claimed and device.device_class == request.device_class))
        and all(s.matches(device.shape) for s in selectors)
    )


def _choose(wanted: Sequence[tuple[Request, frozenset[int]]], node: Node) -> Take | Refusal | None:
    """Give each request a class so that the kinds of that class suffice for all that chose it."""
    torn = ""
    options = [_options(request, kinds, node) for request, kinds in wanted]
    picked: list[_Group] = []
    tries = 0

    def search(at: int) -> list[dict[int, int]] | None:
        nonlocal tries, torn
        if at == len(wanted):
            torn = _torn(wanted, picked, node)
            return None if torn else _share(wanted, picked, node)
        for group in options[at]:
            tries += 1
            if tries > _TRIES:
                return None
            picked.append(group)
            if _share(wanted[: at + 1], picked, node) is not None and (found := search(at + 1)) is not None:
                return found
            picked.pop()
        return None

    shares = search(0)
    if shares is None:
        return Refusal(torn) if torn else None
    amounts = [0] * len(node.devices)
    for share in shares:
        for kind, number in share.items():
            amounts[kind] += number if node.devices[kind].claimed else 0
    classes = ((r.name, group[1]) for (r, _), group in zip(wanted, picked, strict=True) if group[0])
    return Take(tuple(amounts), tuple(sorted(classes)))


def _torn(wanted: Sequence[tuple[Request, frozenset[int]]], picked: Sequence[_Group], node: Node) -> str:
    """Return why the claims of a pod may take each other's devices, or an empty string.

    What one claim cannot hold goes into several (`gangs.claims`), and KAI allocates one after the other. That
    always ends well where the requests of a class in several claims take the same kinds, or none in common.
    """
    sizes: dict[_Group, int] = {}
    for (request, _), group in zip(wanted, picked, strict=True):
        sizes[group] = sizes.get(group, 0) + request.count
    reach: dict[_Group, list[tuple[str, frozenset[int]]]] = {}
    for (request, kinds), group in zip(wanted, picked, strict=True):
        if group[0] and sizes[group] > c.DEVICES_A_CLAIM:
            here = frozenset(_of_class(group, kinds, node))
            for name, there in reach.setdefault(group, []):
                if here != there and here & there:
                    one, other = sorted((name, request.name))
                    common = node.devices[min(here & there)].name
                    return (
                        f"requests {one} and {other} both take {common}, and the {sizes[group]} devices "
                        f"of class {group[1]} are more than one claim holds "
                        f"({c.DEVICES_A_CLAIM}): give them selectors that no device answers both of"
                    )
            reach[group].append((request.name, here))
    return ""


def _options(request: Request, kinds: frozenset[int], node: Node) -> list[_Group]:
    """Return the classes that could serve the request alone, in the order the node lists them."""
    totals: dict[_Group, int] = {}
    for at in sorted(kinds):
        device = node.devices[at]
        group = (device.claimed, device.device_class)
        totals[group] = totals.get(group, 0) + device.count
    return [group for group, total in totals.items() if total >= request.count]


def _of_class(group: _Group, kinds: frozenset[int], node: Node) -> list[int]:
    return sorted(at for at in kinds if (node.devices[at].claimed, node.devices[at].device_class) == group)


def _share(
    wanted: Sequence[tuple[Request, frozenset[int]]], picked: Sequence[_Group], node: Node
) -> list[dict[int, int]] | None:
    """Return each request's devices per kind, by augmenting paths, or None where there are too few."""
    free = [d.count for d in node.devices]
    reach = [_of_class(group, kinds, node) for (_, kinds), group in zip(wanted, picked, strict=True)]
    shares: list[dict[int, int]] = [{} for _ in wanted]
    for at, (request, _) in enumerate(wanted):
        for kind in reach[at]:
            taken = min(free[kind], request.count - sum(shares[at].values()))
            if taken > 0:
                shares[at][kind] = taken
                free[kind] -= taken
        while sum(shares[at].values()) < request.count:
            if not _augment(at, reach, shares, free):
                return None
    return shares


def _augment(at: int, reach: Sequence[Sequence[int]], shares: list[dict[int, int]], free: list[int]) -> bool:
    """Give request `at` one more device by moving others to kinds that still have one."""
    came: dict[int, tuple[int, int | None]] = {}  # kind -> (request that takes it, kind it lets go)
    queue: list[int] = []
    for kind in reach[at]:
        came[kind] = (at, None)
        queue.append(kind)
    while queue:
        kind = queue.pop(0)
        if free[kind] > 0:
            free[kind] -= 1
            here: int | None = kind
            while here is not None:
                taker, lets_go = came[here]
                shares[taker][here] = shares[taker].get(here, 0) + 1
                if lets_go is not None:
                    shares[taker][lets_go] -= 1
                here = lets_go
            return True
        for other, share in enumerate(shares):
            if share.get(kind, 0) > 0:
                for next_kind in reach[other]:
                    if next_kind not in came:
                        came[next_kind] = (other, kind)
                        queue.append(next_kind)
    return False


def _unmatched(request: Request, node: Node) -> str:
    total = sum(d.count for d in node.devices)
    if not total:
        return "its nodes carry no devices"
    if request.device_class:
        return f"no device of class {request.device_class} answers request {request.name}"
    return f"the selectors of request {request.name} are true of 0 of {total} devices"


def _too_few(requests: Sequence[Request], node: Node) -> str:
    have = " + ".join(f"{d.count} {d.name}" for d in node.devices)
    want = " + ".join(f"{r.count} for {r.name}" for r in requests)
    total = sum(d.count for d in node.devices)
    true_of = ", ".join(
        f"{r.name} {sum(node.devices[at].count for at in _kinds(r, node))} of {total}" for r in requests
    )
    return f"a pod wants {want}, a node has {have}; devices that the selectors are true of: {true_of}"
