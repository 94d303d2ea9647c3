"""What a deployment asks the scheduler for."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from modelplane import contracts as c
from modelplane.schedule.devices import Node
from modelplane.schedule.match import Refusal, Request, Take, match
from modelplane.schedule.packing import Amounts
from modelplane.schedule.views import Cluster, Taint


@dataclass(frozen=True, slots=True)
class Member:
    """Pods of one role: how many in one copy, and what each claims; no requests, no claim."""

    role: str
    pods: int
    requests: tuple[Request, ...] = ()


@dataclass(frozen=True, eq=False)
class Engine:
    """Members that go on one pool together, in so many copies."""

    name: str
    copies: int
    members: tuple[Member, ...]
    _known: dict[Node, "tuple[Take, ...] | Refusal"] = field(default_factory=dict, repr=False)

    def on(self, node: Node) -> "tuple[Take, ...] | Refusal":
        """Return what each member takes of such a node, or why the engine cannot run on a pool of them."""
        found = self._known.get(node)
        if found is None:
            found = self._known[node] = self._on(node)
        return found

    def _on(self, node: Node) -> "tuple[Take, ...] | Refusal":
        takes: list[Take] = []
        for member in self.members:
            found = match(member.requests, node)
            if isinstance(found, Refusal):
                return Refusal(f"engine {self.name}, {member.role}: {found.reason}")
            takes.append(found)
        if not any(t.claims for t in takes):
            return Refusal(f"engine {self.name}: no member would claim a device there")
        return tuple(takes)

    def pods(self, takes: Sequence[Take]) -> "Counter[Amounts]":
        """Return the pods it puts on a pool, counted by what each takes of its node."""
        found: Counter[Amounts] = Counter()
        for member, take in zip(self.members, takes, strict=True):
            if any(take.amounts):
                found[take.amounts] += member.pods * self.copies
        return found


@dataclass(frozen=True, slots=True)
class Toleration:
    """A toleration of cluster taints."""

    key: str = ""
    exists: bool = False
    value: str = ""
    effect: str = ""

    def covers(self, taint: Taint) -> bool:
        """Tell whether it tolerates the taint: an empty effect is every effect, an empty key every key."""
        if self.effect and self.effect != taint.effect:
            return False
        if self.exists:
            return self.key in ("", taint.key)
        return self.key == taint.key and self.value == taint.value


@dataclass(frozen=True, slots=True)
class Rolling:
    """How far replicas may go beyond and below the wanted number while a new template replaces them."""

    surge: int
    unavailable: int


@dataclass(frozen=True, slots=True)
class Ask:
    """One deployment's wish.

    Attributes:
        namespace: the team.
        name: of the deployment; with the namespace its identity.
        replicas: wanted over the fleet.
        engines: of each replica.
        labels: a new replica's cluster must carry them.
        cache: name of the ModelCache the engines read; empty for none.
        cache_labels: labels of the clusters the cache is staged on; None while the cache is not there, and
            then nothing new is placed and nothing that runs is changed.
        tolerations: of cluster taints.
        pack: fill one cluster after the other instead of spreading.
        revision: identifies the template.
        rolling: how a new template reaches what runs; None changes every replica where it stands.
    """

    namespace: str
    name: str
    replicas: int
    engines: tuple[Engine, ...]
    labels: Mapping[str, str] = field(default_factory=dict)
    cache: str = ""
    cache_labels: Mapping[str, str] | None = field(default_factory=dict)
    tolerations: tuple[Toleration, ...] = ()
    pack: bool = False
    revision: str = ""
    rolling: "Rolling | None" = None

    def repelled(self, cluster: Cluster, *effects: str) -> Taint | None:
        """Return the first taint of these effects that nothing tolerates."""
        for taint in cluster.taints:
            if taint.effect in effects and not any(t.covers(taint) for t in self.tolerations):
                return taint
        return None

    def drained(self, cluster: Cluster) -> Taint | None:
        """Return the taint that drives running replicas off the cluster, if there is one."""
        return self.repelled(cluster, c.NO_EXECUTE)
