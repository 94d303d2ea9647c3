"""Where a replica's engines run, and what they find there: one value handed to every builder of pods."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from modelplane import contracts as c
from modelplane import names
from modelplane.core.paths import Manifest


@dataclass(frozen=True, slots=True)
class CacheMount:
    """A staged cache.

    Attributes:
        claim: its PersistentVolumeClaim, in the team's namespace.
        revision: the commit that was staged; empty for sources that have none.
        name: of the ModelCache.
    """

    claim: str
    revision: str = ""
    name: str = ""

    @property
    def identity(self) -> str:
        """Commit plus claim: two caches of one commit are still two sources of weights."""
        return f"{self.revision}-{self.claim}" if self.revision else self.claim


@dataclass(frozen=True, slots=True)
class Site:
    """One replica's place on a serving cluster.

    Attributes:
        replica: the ModelReplica's name.
        team: its namespace on the control plane.
        stack: the cluster's serving stack.
        fabrics: the type of node-to-node fabric by pool; a pool without one may be missing.
        cache: the staged weights; None where the engine fetches them itself.
        copied: names of copied references by (kind, name); what is missing keeps its own name.
        labels: the deployment's labels, for the workload objects.
        taints: of each pool's nodes, beside the GPU's own; a pool without may be missing.
        pull_secrets: what pulls our own images there, as a pod lists it.
    """

    replica: str
    team: str
    stack: str
    fabrics: Mapping[str, str] = field(default_factory=dict)
    cache: CacheMount | None = None
    copied: Mapping[tuple[str, str], str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: Mapping[str, Sequence[Manifest]] = field(default_factory=dict)
    pull_secrets: Sequence[Manifest] = ()

    @property
    def namespace(self) -> str:
        """The team's namespace on the cluster."""
        return names.team_namespace(self.team)

    @property
    def is_dynamo(self) -> bool:
        """Tell whether gangs go to Grove and every pod to KAI."""
        return self.stack == c.DYNAMO

    @property
    def scheduling(self) -> Mapping[str, str]:
        """KAI's queue and priority, as labels; none where it does not schedule.

        It reads them off a pod's owner before the pod, so they stand on both, over what users say.
        """
        if not self.is_dynamo:
            return {}
        return {c.KAI_QUEUE_LABEL: c.KAI_QUEUE, c.KAI_PRIORITY_KEY: c.KAI_PRIORITY}

    @property
    def shared_cache(self) -> str:
        """The label value of the cache whose weights engines hand to each other; empty where they do not."""
        return names.label_value(self.cache.name) if self.cache is not None and self.is_dynamo else ""

    def fabric(self, pool: str) -> str:
        """Return the pool's fabric; empty where it has none."""
        found = self.fabrics.get(pool, c.FABRIC_NONE)
        return "" if found == c.FABRIC_NONE else found

    def reference(self, kind: str, name: str) -> str:
        """Return the name under which a Secret or ConfigMap is found on the cluster."""
        return self.copied.get((kind, name), name)
