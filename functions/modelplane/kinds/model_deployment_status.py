"""What a ModelDeployment says about itself: counts, places, and why what is missing is missing."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from modelplane import contracts as c
from modelplane import names
from modelplane.core import Condition
from modelplane.schedule.ask import Ask
from modelplane.schedule.fill import nearest
from modelplane.schedule.seats import NEARNESS, Cause, Outcome, Seat, State, Why

REPLICAS_CREATED = "ReplicasCreated"
SCHEDULING = "Scheduling"
NO_CLUSTERS = "NoClusters"
INSUFFICIENT_CAPACITY = "InsufficientCapacity"
INVALID_NODE_SELECTOR = "InvalidNodeSelector"
PARKED = "Parked"
ALL_REPLICAS_READY = "AllReplicasReady"
MODEL_STARTING = "ModelStarting"
CAPACITY_LOST = "CapacityLost"
NO_REPLICAS_SCHEDULED = "NoReplicasScheduled"
CACHE_RESOLVED = "ModelCacheResolved"
CACHE_NOT_FOUND = "ModelCacheNotFound"
NO_CACHE = "NoModelCache"

# The API lists so many; a condition's message names fewer, since people read it in one line.
_LISTED = 64
_NAMED = 3


def fields(ask: Ask, outcome: Outcome) -> dict[str, Any]:
    """Return the status fields."""
    seats = outcome.seats
    found: dict[str, Any] = {
        "replicas": {
            "total": len(seats),
            "ready": sum(1 for s in seats if s.ready),
            "unschedulable": outcome.missing,
        }
    }
    if seats:
        found["placements"] = [_placement(ask, s) for s in seats]
    if outcome.whys:
        found["unschedulable"] = [_unschedulable(w) for w in outcome.whys[:_LISTED]]
    if len(outcome.whys) > _LISTED:
        found["unschedulableMore"] = len(outcome.whys) - _LISTED
    return found


def _placement(ask: Ask, seat: Seat) -> dict[str, Any]:
    name = seat.replica.name if seat.replica else names.replica(ask.name, seat.cluster, seat.index)
    benches = {b.pool for b in seat.benches.values()}
    pools = benches or {claim.pool for claim in (seat.replica.claims if seat.replica else ())}
    found: dict[str, Any] = {"replica": name, "cluster": seat.cluster, "ready": seat.ready}
    return {**found, "pools": sorted(pools)} if pools else found


def _unschedulable(why: Why) -> dict[str, Any]:
    found = {"cluster": why.cluster, "reason": why.reason}
    return {**found, "pool": why.pool} if why.pool else found


def conditions(ask: Ask, outcome: Outcome) -> list[Condition]:
    """Return every condition of the kind."""
    return [_scheduled(ask, outcome), _ready(ask, outcome), _cache(ask)]


def _scheduled(ask: Ask, outcome: Outcome) -> Condition:
    placed = ask.replicas - outcome.missing
    counts = f"{placed} of {ask.replicas} replicas placed"
    notes = _notes(outcome)
    if outcome.missing and ask.cache_labels is None:
        return Condition(c.REPLICAS_SCHEDULED, False, CACHE_NOT_FOUND, f"{counts}; {cache_missing(ask)}")
    if outcome.missing and not outcome.checked:
        message = f"{counts}; there is no InferenceCluster: create one, or wait until one is there"
        return Condition(c.REPLICAS_SCHEDULED, False, NO_CLUSTERS, message + notes)
    if outcome.missing:
        reason = NO_CLUSTERS if all(w.cause is Cause.LABELS for w in outcome.whys) else INSUFFICIENT_CAPACITY
        message = f"{counts}; {outcome.missing} without a place: {_causes(outcome)}"
        return Condition(c.REPLICAS_SCHEDULED, False, reason, message + notes)
    if not ask.replicas:
        return Condition(c.REPLICAS_SCHEDULED, True, PARKED, f"spec.replicas is 0{notes}")
    if all(s.state is State.NEW for s in outcome.seats):
        return Condition(c.REPLICAS_SCHEDULED, False, SCHEDULING, f"{counts}, none created yet")
    return Condition(c.REPLICAS_SCHEDULED, True, REPLICAS_CREATED, counts + notes)


def _notes(outcome: Outcome) -> str:
    """Say of what stays without running the template where it is, up to three of each kind."""
    leaving = [s for s in outcome.seats if s.state is State.LEAVING]
    as_is = [s for s in outcome.seats if s.state is State.AS_IS]
    waits = ""
    if any(s.outdated for s in leaving) and outcome.whys and not outcome.missing:
        waits = f"; no room to surge: {_causes(outcome)}"
    return waits + _note("stays until its replacement serves", leaving) + _note("stays as it is", as_is)


def _note(what: str, seats: Sequence[Seat]) -> str:
    named = "".join(f"; {_replica_name(s)} {what}: {s.why}" for s in seats[:_NAMED])
    return f"{named} and {len(seats) - _NAMED} more" if len(seats) > _NAMED else named


def _replica_name(seat: Seat) -> str:
    return seat.replica.name if seat.replica else f"{seat.cluster}-{seat.index}"


def _causes(outcome: Outcome) -> str:
    """Count the clusters by what ruled them out, and name the ones nearest to a fit."""
    by_cluster: dict[str, list[Why]] = {}
    for why in outcome.whys:
        by_cluster.setdefault(why.cluster, []).append(why)
    causes = sorted((nearest(whys) for whys in by_cluster.values()), key=NEARNESS.__getitem__)
    counts = ", ".join(f"{len(list(same))} {cause.value}" for cause, same in groupby(causes))
    first = "; ".join(f"{_where(w)} {w.reason}" for w in outcome.whys[:_NAMED])
    more = len(outcome.whys) - _NAMED
    rest = f"; {more} more in status.unschedulable" if more > 0 else ""
    clusters = "1 cluster" if len(by_cluster) == 1 else f"{len(by_cluster)} clusters"
    return f"{clusters}, of them {counts}: {first}{rest}"


def _where(why: Why) -> str:
    return f"{why.cluster}/{why.pool}" if why.pool else f"{why.cluster}:"


def _ready(ask: Ask, outcome: Outcome) -> Condition:
    ready = sum(1 for s in outcome.seats if s.ready)
    if not ask.replicas:
        return Condition(c.REPLICAS_READY, True, PARKED, "spec.replicas is 0")
    if not outcome.seats:
        return Condition(c.REPLICAS_READY, False, NO_REPLICAS_SCHEDULED, "no replica has a place yet")
    if ready >= ask.replicas and not outcome.missing:
        return Condition(
            c.REPLICAS_READY, True, ALL_REPLICAS_READY, f"{ready} of {ask.replicas} replicas ready"
        )
    starting = _some(_placement(ask, s)["replica"] for s in outcome.seats if not s.ready)
    waits = f"; waiting for ModelReplica {starting}" if starting else ""
    message = f"{ready} of {ask.replicas} replicas ready{waits}"
    lost = _some({s.lost for s in outcome.seats if s.lost})
    if lost:
        message += (
            f"; {lost}, fewer than what is placed there needs: see status.pools of the InferenceCluster"
        )
    return Condition(c.REPLICAS_READY, False, CAPACITY_LOST if lost else MODEL_STARTING, message)


def _some(found: Iterable[str]) -> str:
    all_of = sorted(found)
    more = f" and {len(all_of) - _NAMED} more" if len(all_of) > _NAMED else ""
    return ", ".join(all_of[:_NAMED]) + more


def _cache(ask: Ask) -> Condition:
    if not ask.cache:
        return Condition(c.CACHE_RESOLVED, True, NO_CACHE, "the deployment names no ModelCache")
    if ask.cache_labels is None:
        return Condition(c.CACHE_RESOLVED, False, CACHE_NOT_FOUND, cache_missing(ask))
    return Condition(c.CACHE_RESOLVED, True, CACHE_RESOLVED, f"ModelCache {ask.cache} is there")


def cache_missing(ask: Ask) -> str:
    """Return what people must know while the cache is not there."""
    return (
        f"ModelCache {ask.namespace}/{ask.cache} does not exist: nothing new is placed and nothing that runs "
        "is changed; create it or correct spec.template.spec.modelCacheRef"
    )
