"""The copies of a gang one by one: what to look at on the cluster for each, and what it says.

Neither a LeaderWorkerSet nor a PodCliqueSet tells which of its copies is short: the first has counts only,
and the second's `podGangStatuses` is in Grove's API and never written
(operator/internal/controller/podcliqueset/reconcilestatus.go). What they make has names that follow from
theirs, so it can be looked at. The copies of a Deployment are all alike and have no names of their own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from modelplane import contracts as c
from modelplane.core import paths
from modelplane.core.paths import Manifest

KEY_PREFIX = "copy-"
POD_CLIQUE = "PodClique"
STATEFUL_SET = "StatefulSet"
POD = "Pod"

# While it does not hold the provider looks every 30 seconds, else at every poll.
_READY_REPLICAS = (
    "has(object.status) && has(object.status.readyReplicas) && object.status.readyReplicas >= {}"
)
_READY_POD = (
    "has(object.status) && has(object.status.conditions) && "
    'object.status.conditions.exists(c, c.type == "Ready" && c.status == "True")'
)


# Conditions that say why pods are not there, with the status that does (grove
# operator/internal/controller/podclique/reconcilestatus.go; Kubernetes, "Pod conditions").
_TROUBLE = (("PodScheduled", "False"), ("PodCliqueScheduled", "False"), ("MinAvailableBreached", "True"))
# What every container waits for while its pod is set up is no news.
_NO_NEWS = ("PodInitializing", "ContainerCreating")


@dataclass(frozen=True, slots=True)
class Part:
    """The pods of one member in one copy.

    Attributes:
        engine: its name.
        copy: counted from 0.
        role: `leader` or `workers`; `pod` of a single-pod engine.
        pods: how many there must be.
        manifest: what is looked at: its kind and name.
    """

    engine: str
    copy: int
    role: str
    pods: int
    manifest: Manifest

    @property
    def key(self) -> str:
        """Composition resource name; engine names hold no dot."""
        return f"{KEY_PREFIX}{self.engine}.{self.copy}.{self.role}"

    @property
    def ready_when(self) -> str:
        """CEL over the remote object."""
        return _READY_POD if self.manifest["kind"] == POD else _READY_REPLICAS.format(self.pods)

    def ready_pods(self, remote: Mapping[str, Any]) -> int:
        """Return how many of the pods are ready."""
        if self.manifest["kind"] == POD:
            return int(paths.is_true(remote, c.READY))
        return min(self.pods, paths.integer(remote, "status", "readyReplicas", default=0) or 0)


def at(api_version: str, kind: str, name: str, namespace: str) -> Manifest:
    """Return the manifest of an object that is only looked at."""
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": namespace}}


def complaint(remote: Mapping[str, Any]) -> str:
    """Return what a PodClique, StatefulSet or Pod says is wrong with it; empty where it says nothing.

    What a container wrote before it ended is not quoted: nobody knows what it holds.
    """
    if said := last_error(remote) or trouble(remote, _TROUBLE):
        return said
    statuses = [
        x for f in ("initContainerStatuses", "containerStatuses") for x in paths.mappings(remote, "status", f)
    ]
    return next((said for x in statuses if (said := _waiting(x))), "")


def last_error(remote: Mapping[str, Any]) -> str:
    """Return the first error that Grove met with one of its objects; empty where it met none."""
    errors = paths.mappings(remote, "status", "lastErrors")
    return next((said for e in errors if (said := paths.text(e, "description"))), "")


def trouble(remote: Mapping[str, Any], bad: Sequence[tuple[str, str]]) -> str:
    """Return the message of the first condition that has the bad status beside it; empty where none has."""
    found = ((paths.condition(remote, type_), status) for type_, status in bad)
    said = (paths.text(x, "message") for x, status in found if x.get("status") == status)
    return next(filter(None, said), "")


def _waiting(container: Mapping[str, Any]) -> str:
    waiting = paths.mapping(container, "state", "waiting")
    reason = paths.text(waiting, "reason")
    if not reason or reason in _NO_NEWS:
        return ""
    ended = paths.text(container, "lastState", "terminated", "reason")
    said = paths.text(waiting, "message") or (f"it ended with {ended}" if ended else "")
    return f"container {paths.text(container, 'name')} is in {reason}" + (f": {said}" if said else "")
