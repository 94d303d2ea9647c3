"""Finding a place for a new replica, and saying for every cluster and pool why it is none."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from modelplane import contracts as c
from modelplane.schedule.ask import Ask, Engine
from modelplane.schedule.ledger import Ledger
from modelplane.schedule.match import Refusal, Request, Take, match
from modelplane.schedule.packing import Amounts
from modelplane.schedule.seats import NEARNESS, Bench, Cause, Why
from modelplane.schedule.views import Cluster, Pool

# Ways to share engines out over pools that are tried on one cluster: 8 engines, of which few compete.
_TRIES = 512
_NAMED = 3
TOGETHER = "has no room for all engines together: free devices or add nodes"


@dataclass(frozen=True, slots=True)
class Fit:
    """A place for all engines on one cluster: benches by engine, and the pods it adds by pool."""

    benches: Mapping[str, Bench]
    pods: Mapping[str, Counter[Amounts]]


def barred(ask: Ask, cluster: Cluster) -> Why | None:
    """Return why the cluster takes no new replica at all, or None."""

    def why(cause: Cause, reason: str) -> Why:
        return Why(cluster.name, cause, lambda: reason)

    if off := _unlike(cluster, ask.labels):
        return why(Cause.LABELS, f"the cluster selector asks for {off}")
    if off := unstaged(ask, cluster):
        return why(Cause.FOOTPRINT, off)
    if taint := ask.repelled(cluster, c.NO_SCHEDULE, c.NO_EXECUTE):
        return why(Cause.TAINT, f"taint {taint} is not tolerated")
    if not cluster.ready:
        return why(Cause.NOT_READY, "the cluster is not Ready")
    if not cluster.gateway:
        return why(Cause.GATEWAY, "the cluster has no gateway address yet")
    if ask.cache and not cluster.caches:
        return why(Cause.CACHE_CLASS, f"no storage class for ModelCache {ask.cache}")
    if not cluster.pools:
        return why(Cause.POOLS, "the cluster publishes no pools")
    return None


def unstaged(ask: Ask, cluster: Cluster) -> str:
    """Return why the ask's cache is not staged on the cluster, or an empty string."""
    off = _unlike(cluster, ask.cache_labels or {})
    return f"ModelCache {ask.cache} is staged only where {off}" if off else ""


def _unlike(cluster: Cluster, labels: Mapping[str, str]) -> str:
    for key in sorted(labels):
        if cluster.labels.get(key) != labels[key]:
            return f"{key}={labels[key]}"
    return ""


def seat(ask: Ask, cluster: Cluster, ledger: Ledger) -> Fit | None:
    """Return a place for all engines on the cluster, earlier pools first, or None."""
    options = [list(_candidates(engine, cluster, ledger)) for engine in ask.engines]
    tries = 0

    def search(at: int, added: Mapping[str, Counter[Amounts]], benches: dict[str, Bench]) -> Fit | None:
        nonlocal tries
        if at == len(options):
            return Fit(benches, added)
        engine = ask.engines[at]
        for pool, takes in options[at]:
            tries += 1
            if tries > _TRIES:
                return None
            more = added.get(pool.name, Counter()) + engine.pods(takes)
            if ledger.fits(cluster.name, pool, more):
                bench = Bench(pool.name, tuple(dict(t.classes) for t in takes))
                found = search(at + 1, {**added, pool.name: more}, {**benches, engine.name: bench})
                if found is not None:
                    return found
        return None

    return search(0, {}, {})


def _candidates(engine: Engine, cluster: Cluster, ledger: Ledger) -> Iterator[tuple[Pool, tuple[Take, ...]]]:
    """Yield the pools that hold the engine alone."""
    for pool in cluster.pools.values():
        found = on_pool(engine, pool, cluster)
        if not isinstance(found, Refusal) and ledger.fits(cluster.name, pool, engine.pods(found)):
            yield pool, found


def on_pool(engine: Engine, pool: Pool, cluster: Cluster) -> tuple[Take, ...] | Refusal:
    """Return what each member takes on the pool, or why the engine cannot go there.

    A member that could claim devices on another pool of the cluster must not go where it would claim none:
    it would run without the devices it asks for.
    """
    found = engine.on(pool.node)
    if isinstance(found, Refusal):
        return found
    for member, take in zip(engine.members, found, strict=True):
        if member.requests and not take.claims and _claims_somewhere(member.requests, cluster):
            return Refusal(f"engine {engine.name}, {member.role}: it would claim no device there")
    return found


def _claims_somewhere(requests: tuple[Request, ...], cluster: Cluster) -> bool:
    found = (match(requests, pool.node) for pool in cluster.pools.values())
    return any(isinstance(take, Take) and take.claims for take in found)


def explain(ask: Ask, cluster: Cluster, ledger: Ledger) -> list[Why]:
    """Return for each pool of an admitted cluster why it cannot take a replica.

    The words come when they are read: of a large fleet only the first few are.
    """
    for engine in ask.engines:
        if next(_candidates(engine, cluster, ledger), None) is None:
            return [_explain(engine, pool, cluster, ledger) for pool in cluster.pools.values()]
    return [Why(cluster.name, Cause.ROOM, lambda: TOGETHER, pool) for pool in cluster.pools]


def _explain(engine: Engine, pool: Pool, cluster: Cluster, ledger: Ledger) -> Why:
    found = on_pool(engine, pool, cluster)
    if isinstance(found, Refusal):
        return Why(cluster.name, Cause.DEVICES, partial(str, found.reason), pool.name)
    return Why(
        cluster.name, Cause.ROOM, partial(_lacks, engine.pods(found), pool, cluster, ledger), pool.name
    )


def _lacks(wanted: Mapping[Amounts, int], pool: Pool, cluster: Cluster, ledger: Ledger) -> str:
    lacks = [_lack(pods, number, pool, cluster, ledger) for pods, number in sorted(wanted.items())]
    return f"{' and '.join(lacks)}{_held_by(cluster.name, pool, ledger)}"


def _lack(pod: Amounts, number: int, pool: Pool, cluster: Cluster, ledger: Ledger) -> str:
    free = ledger.room(cluster.name, pool, pod)
    if pod == pool.node.counts:
        return f"needs {number} {'node' if number == 1 else 'nodes'}, {free} free"
    what = pool.node.describe(pod)
    return f"needs {number} x {what}, room for {free}"


def _held_by(cluster: str, pool: Pool, ledger: Ledger) -> str:
    """Name who holds the pool, up to three replicas."""
    holders = sorted(f"{namespace}/{name}" for namespace, name in ledger.holders(cluster, pool.name))
    if not holders:
        return ""
    more = f" and {len(holders) - _NAMED} more" if len(holders) > _NAMED else ""
    return f", held by {', '.join(holders[:_NAMED])}{more}"


def nearest(whys: Sequence[Why]) -> Cause:
    """Return the cause of a cluster with several pools: the one nearest to a fit."""
    return min((w.cause for w in whys), key=NEARNESS.__getitem__)
