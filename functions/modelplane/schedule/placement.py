"""The fleet scheduler: from a deployment's ask and one view of the fleet to a seat for every replica.

In order: what runs is judged and kept; what is beyond the wanted number goes, from the fullest cluster; what
is missing gets new places; what must leave stays until its replacement serves. Capacity is charged all along,
so one pass never gives one device to two replicas. Passes of other deployments are not seen: when two take
the last room at once, the next pass of each settles it (`retain.yields`). That it stays rare, each deployment
that spreads has an order of the clusters of its own (`_order_of_clusters`).

The answer depends on the objects' contents alone, never on the order they come in.
"""

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from modelplane import names
from modelplane.schedule import bridge, fill, retain, rolling
from modelplane.schedule.ask import Ask
from modelplane.schedule.ledger import Holder, Ledger
from modelplane.schedule.seats import NEARNESS, Outcome, Seat, State, Why
from modelplane.schedule.views import Cluster, Replica

Namer = Callable[[str, int], str]
Rank = Callable[[str], str]


def place(
    ask: Ask,
    own: Iterable[Replica],
    clusters: Iterable[Cluster],
    replicas: Iterable[Replica],
    name: Namer,
) -> Outcome:
    """Return the seats of a deployment.

    Args:
        ask: what it wants.
        own: its replicas that are composed.
        clusters: all InferenceClusters.
        replicas: all ModelReplicas of all teams; its own among them count as `own` says.
        name: gives the name of a new replica from its cluster and index.
    """
    fleet = {cluster.name: cluster for cluster in sorted(clusters, key=lambda x: x.name)}
    mine = _one_per_seat(own)
    everyone: dict[Holder, Replica] = {(r.namespace, r.name): r for r in replicas}
    everyone.update(((r.namespace, r.name), r) for r in mine)
    ledger = Ledger(fleet, everyone.values())
    seats = [_judged(ask, replica, fleet, ledger, everyone) for replica in mine]
    rank = _order_of_clusters(ask, by_name=ask.pack)
    good = _scaled_down([s for s in seats if s.state is not State.LEAVING], ask.replicas, rank)
    leaving = [s for s in seats if s.state is State.LEAVING and not s.outdated]
    old = [s for s in seats if s.outdated]
    free = _Free({(r.cluster, r.index) for r in mine}, everyone, ask.namespace, name)
    number = 0 if ask.cache_labels is None else rolling.allowance(ask, len(good), len(old))
    if any(s.yields for s in seats):
        rank = _order_of_clusters(ask, by_name=False)
    new, whys = _filled(ask, number, good, fleet, ledger, free, rank)
    good = [*good, *new]
    kept_old = rolling.kept(ask, old, good)
    missing = max(0, ask.replicas - len(good) - len(kept_old))
    bridging, good = bridge.bridged(leaving, good, missing, {r.name for r in mine} - {""})
    stay = (*good, *kept_old, *bridging)
    there = {_order(s) for s in stay}
    gone = [s for s in seats if _order(s) not in there]
    short = whys if len(new) < number else ()
    return Outcome(
        [_told(s, fleet, ledger) for s in sorted(stay, key=_order)], missing, short, len(fleet), gone
    )


def _told(seat: Seat, fleet: Mapping[str, Cluster], ledger: Ledger) -> Seat:
    lost = retain.lost(seat, fleet.get(seat.cluster), ledger)
    return replace(seat, lost=lost) if lost else seat


def _order(seat: Seat) -> tuple[str, int]:
    return seat.cluster, seat.index


def _order_of_clusters(ask: Ask, *, by_name: bool) -> Rank:
    """Return the order in which clusters that are equal otherwise are taken; given back in the reverse.

    Symptom of one order for all: 200 deployments applied together chose the same few clusters of a hundred,
    four times what these hold, and moved one cluster on at each pass. The order is as good as random, and
    nobody's but the deployment's (rendezvous hashing, Thaler and Ravishankar 1998). Who packs fills clusters
    by name, together with all others that do, until it has lost such a race.
    """
    return str if by_name else partial(names.digest, ask.namespace, ask.name)


def _one_per_seat(own: Iterable[Replica]) -> list[Replica]:
    """Return one replica per cluster and index, the first by name."""
    found: dict[tuple[str, int], Replica] = {}
    for replica in sorted(own, key=lambda r: r.name):
        found.setdefault((replica.cluster, replica.index), replica)
    return [found[key] for key in sorted(found)]


def _judged(
    ask: Ask,
    replica: Replica,
    fleet: Mapping[str, Cluster],
    ledger: Ledger,
    everyone: Mapping[Holder, Replica],
) -> Seat:
    cluster = fleet.get(replica.cluster)
    seat = _leaving(ask, replica, cluster, ledger, everyone) if cluster is not None else None
    if seat is None:
        seat = retain.judge(ask, replica, cluster, ledger)
    if ask.cache_labels is None:
        # Without the cache nothing can take a replica's place, so nothing is driven out or changed either.
        why = f"ModelCache {ask.cache} is not there"
        doubtful = seat.state is not State.KEPT
        return Seat(replica.cluster, replica.index, State.AS_IS, {}, replica, why, doubtful=doubtful)
    return seat


def _leaving(
    ask: Ask, replica: Replica, cluster: Cluster, ledger: Ledger, everyone: Mapping[Holder, Replica]
) -> Seat | None:
    """Return the seat of a replica that must go whatever its shape, or None."""
    here = Seat(replica.cluster, replica.index, State.LEAVING, {}, replica, urgent=True)
    if taint := ask.drained(cluster):
        return replace(here, why=f"taint {taint} drains {cluster.name}")
    if not replica.ready and (winner := retain.yields(replica, cluster, ledger, everyone)):
        return replace(here, why=f"it gives way to {winner}", yields=True)
    return rolling.outdated(ask, replica)


def _scaled_down(seats: Sequence[Seat], wanted: int, rank: Rank) -> list[Seat]:
    """Drop what is beyond the wanted number: from the fullest cluster, then the last in order, then index.

    Those that do not serve go first: a drain that is called off leaves one that serves beside a replacement
    that does not yet, and taking the former would break before it made.

    A doubtful one is not dropped and makes nobody else surplus: while a replacement starts there are more
    than wanted, and losing sight of a cluster then must not cost one of them. Parked, all go.
    """
    left = [s for s in seats if not s.doubtful]
    while len(left) > wanted:
        counts = Counter(s.cluster for s in left)
        left.remove(max(left, key=lambda s: (not s.ready, counts[s.cluster], rank(s.cluster), s.index)))
    return [s for s in seats if s in left or (s.doubtful and wanted > 0)]


class _Free:
    """Hands out the lowest free index on a cluster."""

    def __init__(
        self,
        taken: set[tuple[str, int]],
        everyone: Mapping[Holder, Replica],
        namespace: str,
        name: Namer,
    ) -> None:
        self._taken, self._everyone, self._namespace, self._name = set(taken), everyone, namespace, name

    def take(self, cluster: str) -> tuple[int, Holder]:
        """Take the index; one whose name a replica on its way out still carries is passed over."""
        index = 0
        while (cluster, index) in self._taken or (
            self._namespace,
            self._name(cluster, index),
        ) in self._everyone:
            index += 1
        self._taken.add((cluster, index))
        return index, (self._namespace, self._name(cluster, index))


def _filled(
    ask: Ask,
    number: int,
    good: Sequence[Seat],
    fleet: Mapping[str, Cluster],
    ledger: Ledger,
    free: _Free,
    rank: Rank,
) -> tuple[list[Seat], list[Why]]:
    """Place that many; return the new seats, and why each cluster took no more."""
    if number <= 0:
        return [], []
    whys: list[Why] = []
    counts = Counter(s.cluster for s in good)
    sign = -1 if ask.pack else 1
    heap: list[tuple[int, str, str]] = []
    for cluster in fleet.values():
        why = fill.barred(ask, cluster)
        if why is None:
            heap.append((sign * counts[cluster.name], rank(cluster.name), cluster.name))
        else:
            whys.append(why)
    heapq.heapify(heap)
    new: list[Seat] = []
    while heap and len(new) < number:
        count, order, name = heap[0]
        fit = fill.seat(ask, fleet[name], ledger)
        if fit is None:
            # Room only shrinks within a pass, so a cluster that is full stays full.
            heapq.heappop(heap)
            whys += fill.explain(ask, fleet[name], ledger)
            continue
        index, holder = free.take(name)
        ledger.charge(name, holder, fit.pods)
        new.append(Seat(name, index, State.NEW, fit.benches))
        heapq.heapreplace(heap, (count + sign, order, name))
    whys.sort(key=lambda w: (NEARNESS[w.cause], w.cluster))
    return new, whys
