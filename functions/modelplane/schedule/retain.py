"""What becomes of the replicas a deployment already has.

Nothing that runs is moved because something is missing from view, not ready, relabelled or declared anew: a
cluster that is gone from the list, a pool that is not published this time and a class edit all leave a
replica where it is. It leaves for its owner's reasons: a NoExecute taint, a pool taken out of the spec, or a
template that no longer fits where it stands.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from modelplane.core import paths
from modelplane.schedule import packing
from modelplane.schedule.ask import Ask, Engine, Member
from modelplane.schedule.fill import on_pool, unstaged
from modelplane.schedule.ledger import Holder, Ledger, Pods, charge
from modelplane.schedule.match import Refusal, Request
from modelplane.schedule.packing import Amounts
from modelplane.schedule.seats import Bench, Seat, State
from modelplane.schedule.views import Cluster, Pool, Replica, placed_requests, pods_of


class _DoubtError(Exception):
    """What decides about the replica is not in view: it stays as it is."""


class _LeaveError(Exception):
    """The replica cannot stay with the present template."""


def judge(ask: Ask, replica: Replica, cluster: Cluster | None, ledger: Ledger) -> Seat:
    """Return the seat of a replica that runs, and charge it what it will hold.

    A drained one is not judged here: it leaves whatever its shape.
    """

    def seat(state: State, why: str, benches: Mapping[str, Bench] | None = None) -> Seat:
        doubtful = state is State.AS_IS
        return Seat(replica.cluster, replica.index, state, benches or {}, replica, why, doubtful=doubtful)

    if cluster is None:
        gone = (
            f"InferenceCluster {replica.cluster} is not in view (if it is gone for good, delete the replica)"
        )
        return seat(State.AS_IS, gone)
    try:
        if ask.cache != paths.text(replica.raw, "spec", "modelCacheRef", "name"):
            _staged(ask, cluster)
        benches, pods = _benches(ask, replica, cluster, ledger)
        holder = (replica.namespace, replica.name)
        if benches and not _grows_into_room(cluster, ledger, holder, pods):
            raise _LeaveError("its pool has no room for the new shape")
    except _DoubtError as doubt:
        return seat(State.AS_IS, str(doubt))
    except _LeaveError as leave:
        return seat(State.LEAVING, str(leave))
    ledger.charge(cluster.name, holder, pods)
    return seat(State.KEPT, "", benches)


def _staged(ask: Ask, cluster: Cluster) -> None:
    """Raise where the cache the template newly names is not staged on the cluster."""
    if off := unstaged(ask, cluster):
        raise _LeaveError(off)


def _grows_into_room(cluster: Cluster, ledger: Ledger, holder: Holder, pods: Mapping[str, Pods]) -> bool:
    before = ledger.charged(cluster.name, holder)
    return all(
        before.get(pool) == more or ledger.fits(cluster.name, cluster.pools[pool], more, but=holder)
        for pool, more in pods.items()
        if pool in cluster.pools
    )


def _benches(
    ask: Ask, replica: Replica, cluster: Cluster, ledger: Ledger
) -> tuple[dict[str, Bench], dict[str, Counter[Amounts]]]:
    observed = {paths.text(e, "name"): e for e in paths.mappings(replica.raw, "spec", "engines")}
    if not observed:
        raise _DoubtError("its engines cannot be read")
    benches: dict[str, Bench] = {}
    pods: dict[str, Counter[Amounts]] = {}
    for engine in ask.engines:
        if engine.name in observed:
            bench, more = _again(engine, observed[engine.name], cluster)
        else:
            bench, more = _beside(engine, cluster, ledger, (replica.namespace, replica.name), pods)
        benches[engine.name] = bench
        pods[bench.pool] = pods.get(bench.pool, Counter()) + more
    return benches, pods


def _again(engine: Engine, observed: Mapping[str, Any], cluster: Cluster) -> tuple[Bench, Counter[Amounts]]:
    """Return the engine's place on the pool it has."""
    members = list(paths.mappings(observed, "members"))
    pool = _pool(cluster, paths.text(members[0], "nodePoolName") if members else "")
    if same := _unchanged(engine, observed, members):
        requests = [placed_requests(m) for m in same]
        bench = Bench(pool.name, tuple({r.name: r.device_class for r in rs} for rs in requests))
        pods: Counter[Amounts] = Counter()
        for member, asked in zip(engine.members, requests, strict=True):
            if asked:
                pods[charge(asked, pool.node)] += member.pods * engine.copies
        return bench, pods
    if not pool.node.devices:
        raise _DoubtError(f"pool {pool.name} of {cluster.name} publishes no devices")
    takes = on_pool(engine, pool, cluster)
    if isinstance(takes, Refusal):
        raise _LeaveError(f"{cluster.name}/{pool.name}: {takes.reason}")
    return Bench(pool.name, tuple(dict(t.classes) for t in takes)), engine.pods(takes)


def _pool(cluster: Cluster, name: str) -> Pool:
    pool = cluster.pools.get(name)
    if pool is not None:
        return pool
    if not name or not cluster.pools or not cluster.declared_pools or name in cluster.declared_pools:
        raise _DoubtError(f"pool {name} of {cluster.name} is not published")
    raise _LeaveError(f"{cluster.name} no longer has pool {name}")


def _unchanged(
    engine: Engine, observed: Mapping[str, Any], members: Sequence[Mapping[str, Any]]
) -> Sequence[Mapping[str, Any]] | None:
    """Return the observed members where they ask for what the engine asks for, else None.

    Such an engine runs on devices it holds: what its pool is declared to carry now does not matter to it.
    """
    if len(members) != len(engine.members):
        return None
    if (paths.integer(observed, "copies", default=1) or 1) != engine.copies:
        return None
    same = all(_same(member, there) for member, there in zip(engine.members, members, strict=True))
    return members if same and any(placed_requests(m) for m in members) else None


def _same(member: Member, observed: Mapping[str, Any]) -> bool:
    if (paths.text(observed, "role") or "Standalone") != member.role or pods_of(observed) != member.pods:
        return False
    placed = {Request(r.name, r.count, r.selectors) for r in placed_requests(observed)}
    return placed == set(member.requests)


def _beside(
    engine: Engine,
    cluster: Cluster,
    ledger: Ledger,
    holder: Holder,
    added: Mapping[str, Counter[Amounts]],
) -> tuple[Bench, Counter[Amounts]]:
    """Return a place for an engine the replica has not had before, on its own cluster."""
    if not cluster.pools:
        raise _DoubtError(f"{cluster.name} publishes no pools")
    for pool in cluster.pools.values():
        takes = on_pool(engine, pool, cluster)
        if not isinstance(takes, Refusal):
            more = engine.pods(takes)
            if ledger.fits(cluster.name, pool, added.get(pool.name, Counter()) + more, but=holder):
                return Bench(pool.name, tuple(dict(t.classes) for t in takes)), more
    raise _LeaveError(f"{cluster.name} has no pool for engine {engine.name}")


def lost(seat: Seat, cluster: Cluster | None, ledger: Ledger) -> str:
    """Return which pool of a replica that does not serve has too few nodes ready for what is on it, or "".

    Its pods may wait for a node, however sound they are: a cordoned or broken one is not theirs to mend.
    """
    if seat.ready or cluster is None:
        return ""
    for name in sorted({bench.pool for bench in seat.benches.values()}):
        pool = cluster.pools.get(name)
        if pool and pool.nodes < pool.declared and not ledger.fits(cluster.name, pool, {}):
            return f"{cluster.name}/{name} has {pool.nodes} of {pool.declared} nodes ready"
    return ""


def yields(replica: Replica, cluster: Cluster, ledger: Ledger, replicas: Mapping[Holder, Replica]) -> str:
    """Return whom the replica must give way to, or an empty string.

    Two deployments that place in the same moment do not see each other, and both may take the last room.
    Who serves already holds its devices; among the others the older one stays, then the earlier name: every
    deployment comes to the same answer from the same view, and the loser is placed elsewhere or waits.
    Judged by declared nodes, not ready ones: a cluster that loses nodes for a while is no race. Nor is a
    pool that its owner made too small for one deployment alone.
    """
    for pool in cluster.pools.values():
        holders = {
            h: pods
            for h, pods in ledger.holders(cluster.name, pool.name).items()
            if (other := replicas.get(h)) is not None and not other.leaving
        }
        if (replica.namespace, replica.name) in holders and (
            winner := _winner(replica, pool, holders, replicas)
        ):
            return f"{'/'.join(winner)} on {cluster.name}/{pool.name}"
    return ""


def _winner(
    replica: Replica, pool: Pool, holders: Mapping[Holder, Pods], replicas: Mapping[Holder, Replica]
) -> Holder | None:
    """Return the last replica of another deployment that takes the pool's room before this one could."""

    def fit(*pods: Pods) -> bool:
        total: Counter[Amounts] = Counter()
        for one in pods:
            total.update(one)
        return packing.fits(pool.node.counts, pool.declared, total)

    mine = (replica.namespace, replica.name)
    ours = {h for h in holders if _team(replicas[h]) == _team(replica)}
    if fit(*holders.values()) or not fit(*(holders[h] for h in ours)):
        return None
    before: list[Holder] = []
    for holder in sorted(holders, key=lambda h: (not replicas[h].ready, replicas[h].created, h)):
        room = fit(*(holders[h] for h in (*before, holder)))
        if holder == mine:
            return None if room else next((h for h in reversed(before) if h not in ours), None)
        if room or replicas[holder].ready:
            before.append(holder)
    return None


def _team(replica: Replica) -> tuple[str, str]:
    return replica.namespace, replica.deployment
