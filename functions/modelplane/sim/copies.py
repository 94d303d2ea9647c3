"""What the controllers of gangs make of them, as far as somebody looks at it: one part of one copy each.

Grove: operator/internal/controller/podclique/reconcilestatus.go and operator/api/common/namegen.go;
LeaderWorkerSet v0.10.0: a group's leader pod and the StatefulSet of its workers bear one name,
pkg/controllers/pod_controller.go. Which copy is short is this simulator's choice: the last one, of a pair the
decode engine's, and no pod of it has a node.
"""

from modelplane import contracts as c
from modelplane.core import Manifest, paths
from modelplane.sim import reach
from modelplane.sim.remote import condition
from modelplane.sim.world import World

_KINDS = {(c.GROVE_API, "PodClique"), ("apps/v1", "StatefulSet"), ("v1", "Pod")}
_OWNERS = ("PodCliqueSet", "LeaderWorkerSet")


def is_part(obj: Manifest) -> bool:
    """Tell whether an Object looks at what only a gang's controller makes."""
    manifest = reach.carried(obj)
    kind = paths.text(manifest, "apiVersion"), paths.text(manifest, "kind")
    return kind in _KINDS and paths.items(obj, "spec", "managementPolicies") == ["Observe"]


def status(obj: Manifest, world: World) -> Manifest | None:
    """Return the part's status as its owner's last one has it; None where nobody has made it."""
    wanted = reach.carried(obj)
    owner = _owner(obj, wanted, world)
    rest = paths.name(wanted).removeprefix(f"{paths.name(owner)}-").split("-")
    if not paths.mapping(owner, "status"):
        return None
    if owner["kind"] == "LeaderWorkerSet":
        return _group(wanted, owner, int(rest[0]))
    return _clique(owner, *rest)


def _owner(obj: Manifest, wanted: Manifest, world: World) -> Manifest:
    """Return what made it, as its own Object reports it."""
    for found in reach.consumers(world, reach.kubeconfig(obj, world)):
        manifest = paths.mapping(found, "status", "atProvider", "manifest")
        if (
            manifest.get("kind") in _OWNERS
            and paths.namespace(manifest) == paths.namespace(wanted)
            and paths.name(wanted).startswith(f"{paths.name(manifest)}-")
        ):
            return dict(manifest)
    return {}


def _group(wanted: Manifest, owner: Manifest, copy: int) -> Manifest | None:
    asked = paths.integer(owner, "spec", "replicas", default=1) or 0
    ready = copy < (paths.integer(owner, "status", "readyReplicas", default=0) or 0)
    if copy >= asked:
        return None
    workers = (paths.integer(owner, "spec", "leaderWorkerTemplate", "size", default=1) or 1) - 1
    if wanted["kind"] == "StatefulSet":
        return {"observedGeneration": 1, "replicas": workers, "readyReplicas": workers if ready else 0}
    if ready:
        return {"phase": "Running", "conditions": [condition("PodScheduled", ""), condition("Ready", "")]}
    # Kubernetes, "Pod conditions"; the words are the scheduler's for devices that nobody has free.
    why = "0/2 nodes are available: 2 cannot allocate all claims."
    return {"phase": "Pending", "conditions": [condition("PodScheduled", "Unschedulable", why, true=False)]}


def _clique(owner: Manifest, outer: str, group: str, inner: str, clique: str) -> Manifest | None:
    """Return the status of `<set>-<replica>-<group>-<replica>-<clique>`."""
    template = paths.mapping(owner, "spec", "template")
    groups = {g["name"]: g for g in paths.mappings(template, "podCliqueScalingGroups")}
    cliques = {q["name"]: q for q in paths.mappings(template, "cliques")}
    asked = paths.integer(owner, "spec", "replicas", default=0) or 0
    if int(outer) >= asked or group not in groups or clique not in cliques:
        return None
    copies = paths.integer(groups[group], "replicas", default=1) or 1
    if int(inner) >= copies:
        return None
    available = int(outer) < (paths.integer(owner, "status", "availableReplicas", default=0) or 0)
    # In a set that is short the last copy of its last group is.
    ready = available or group != list(groups)[-1] or int(inner) < copies - 1
    pods = paths.integer(cliques[clique], "spec", "replicas", default=1) or 1
    found = pods if ready else 0
    words = f"scheduled pods{' found' if ready else ''}. expected at least: {pods}, found: {found}"
    scheduled = (
        condition("PodCliqueScheduled", "SufficientScheduledPods", f"Sufficient {words}")
        if ready
        else condition("PodCliqueScheduled", "InsufficientScheduledPods", f"Insufficient {words}", true=False)
    )
    return {
        "observedGeneration": 1,
        "replicas": pods,
        "readyReplicas": found,
        "scheduledReplicas": found,
        "updatedReplicas": pods,
        "conditions": [scheduled],
    }
