"""Who mounts a cache: what keeps it from being deleted, and a cluster from losing it."""

from collections.abc import Sequence

from modelplane import contracts as c
from modelplane import names
from modelplane.core import Desired, Inputs, Manifest, paths
from modelplane.kinds import looks

REPLICAS = "replicas"
GUARD = "usage-replicas"
_NAMED = 5


def guard(inputs: Inputs) -> list[Desired]:
    """Return the usage that refuses deletion while engines mount the weights, and says whose.

    Without `by`, as it also refuses what no composed object of this cache would.
    """
    seen, users = inputs.observed.get(GUARD), mounting(inputs)
    reason = (
        f"{listed(users)} mount this cache. Delete them or take spec.modelCacheRef out of their"
        " ModelDeployments. Mind that a refused delete is remembered: it is replayed as soon as the last of"
        " them has left."
    )
    if not users:
        reason = paths.text(seen, "spec", "reason") or "replicas mounted this cache a moment ago"
    manifest: Manifest = {
        "apiVersion": c.PROTECTION_API,
        "kind": "Usage",
        "metadata": {"name": names.child(inputs.name, GUARD), "namespace": inputs.namespace},
        "spec": {
            "of": {"apiVersion": c.API, "kind": "ModelCache", "resourceRef": {"name": inputs.name}},
            "reason": reason,
            "replayDeletion": True,
        },
    }
    return looks.guard(GUARD, manifest, seen, busy=bool(users))


def mounting(inputs: Inputs, cluster: str = "") -> list[Manifest]:
    """Return the team's replicas that mount this cache, by name; on one cluster where it is given."""
    found = [
        replica
        for replica in inputs.all(REPLICAS)
        if paths.namespace(replica) == inputs.namespace
        and paths.text(replica, "spec", "modelCacheRef", "name") == inputs.name
        and (not cluster or _may_be_on(replica, cluster))
    ]
    return sorted(found, key=paths.name)


def serving(inputs: Inputs, cluster: str) -> bool:
    """Tell whether the team has any replica on the cluster."""
    return REPLICAS not in inputs.required or any(_may_be_on(r, cluster) for r in inputs.all(REPLICAS))


def listed(replicas: Sequence[Manifest]) -> str:
    """Return replicas in words: the first few, and how many more."""
    more = f" and {len(replicas) - _NAMED} more" if len(replicas) > _NAMED else ""
    return ", ".join(_named(replica) for replica in replicas[:_NAMED]) + more


def _may_be_on(replica: Manifest, cluster: str) -> bool:
    """Tell whether a replica is on the cluster; one that does not say where it is may be there."""
    where = {paths.text(replica, "spec", "clusterName"), paths.labels(replica).get(c.CLUSTER_LABEL)}
    return cluster in where or not where - {"", None}


def _named(replica: Manifest) -> str:
    deployment = paths.labels(replica).get(c.DEPLOYMENT_LABEL)
    of = f" (ModelDeployment {deployment})" if isinstance(deployment, str) else ""
    return f"ModelReplica {paths.name(replica)}{of}"
