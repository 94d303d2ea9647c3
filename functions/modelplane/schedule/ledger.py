"""Who holds which devices of which pool, in one view of the fleet."""

from collections import Counter
from collections.abc import Iterable, Mapping

from modelplane.schedule import packing
from modelplane.schedule.devices import Node
from modelplane.schedule.match import Refusal, Request, match
from modelplane.schedule.packing import Amounts
from modelplane.schedule.views import Cluster, Pool, Replica

Holder = tuple[str, str]  # namespace and name of a ModelReplica
Pods = Mapping[Amounts, int]


class Ledger:
    """Devices charged to replicas: what is observed at first, then what this pass decides.

    A pool that is no longer published is charged nothing. A replica on its way out is charged until it is
    gone: its pods still hold their devices.
    """

    def __init__(self, clusters: Mapping[str, Cluster], replicas: Iterable[Replica]) -> None:
        self._clusters = clusters
        self._replicas: dict[str, list[Replica]] = {}
        for replica in replicas:
            self._replicas.setdefault(replica.cluster, []).append(replica)
        self._held: dict[str, dict[str, dict[Holder, Counter[Amounts]]]] = {}

    def holders(self, cluster: str, pool: str) -> Mapping[Holder, Pods]:
        """Return the pods that each replica has on the pool."""
        return self._of(cluster).get(pool, {})

    def pods(self, cluster: str, pool: str, *, but: Holder | None = None) -> Counter[Amounts]:
        """Return all pods on the pool, without one replica's where `but` names it."""
        found: Counter[Amounts] = Counter()
        for holder, pods in self.holders(cluster, pool).items():
            if holder != but:
                found.update(pods)
        return found

    def fits(self, cluster: str, pool: Pool, more: Pods, *, but: Holder | None = None) -> bool:
        """Tell whether the pool holds these pods beside what it holds."""
        pods = self.pods(cluster, pool.name, but=but)
        pods.update(more)
        return packing.fits(pool.node.counts, pool.nodes, pods)

    def room(self, cluster: str, pool: Pool, pod: Amounts) -> int:
        """Return how many more such pods the pool holds."""
        return packing.room(pool.node.counts, pool.nodes, self.pods(cluster, pool.name), pod)

    def charged(self, cluster: str, holder: Holder) -> Mapping[str, Pods]:
        """Return what the replica is charged, by pool."""
        return {pool: pods[holder] for pool, pods in self._of(cluster).items() if holder in pods}

    def charge(self, cluster: str, holder: Holder, pools: Mapping[str, Pods]) -> None:
        """Charge the replica these pods, in place of what it was charged before."""
        held = self._of(cluster)
        for pods in held.values():
            pods.pop(holder, None)
        for pool, more in pools.items():
            held.setdefault(pool, {})[holder] = Counter(more)

    def _of(self, cluster: str) -> dict[str, dict[Holder, Counter[Amounts]]]:
        held = self._held.get(cluster)
        if held is None:
            held = self._held[cluster] = {}
            known = self._clusters.get(cluster)
            for replica in self._replicas.get(cluster, ()) if known else ():
                for claim in replica.claims:
                    pool = known.pools.get(claim.pool) if known else None
                    if pool is not None:
                        holder = (replica.namespace, replica.name)
                        pods = held.setdefault(claim.pool, {}).setdefault(holder, Counter())
                        pods[charge(claim.requests, pool.node)] += claim.pods
        return held


def charge(requests: tuple[Request, ...], node: Node) -> Amounts:
    """Return what a placed pod holds of its node.

    Where the pool's devices have been declared anew and no longer answer its selectors, its classes alone
    count; where not even those are left, the whole node does.
    """
    found = match(requests, node)
    if isinstance(found, Refusal):
        found = match(tuple(Request(r.name, r.count, (), r.device_class) for r in requests), node)
    return node.counts if isinstance(found, Refusal) else found.amounts
