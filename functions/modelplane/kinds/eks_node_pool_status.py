"""What an EKSNodePool says of itself: EKS's word for each group, the nodes that came, and what they offer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from modelplane import contracts as c
from modelplane.api.eks import EKSNodePoolSpec
from modelplane.clouds.eks import report as aws
from modelplane.clouds.eks import template
from modelplane.clouds.eks.groups import GROUP, PLACEMENT, TEMPLATE
from modelplane.core import Condition, Inputs, Manifest, keep, paths

NODES, SLICES = "nodes", "slices"
ACTIVE_REASON, CREATING, FAILED, PARKED = "NodesReady", "Creating", "NodeGroupFailed", "Parked"

# Worst first; what EKS may say of a group (EKS API, Nodegroup.status).
_WORST = ("CREATE_FAILED", "DELETE_FAILED", "DEGRADED", "DELETING", "CREATING", "UPDATING", aws.ACTIVE)
_BROKEN = {"CREATE_FAILED", "DELETE_FAILED", "DEGRADED"}


@dataclass(frozen=True, slots=True)
class Found:
    """The report of one pass.

    Attributes:
        fields: of status.
        nodes_ready: the condition.
        failure: what went wrong with a group; empty where nothing has.
    """

    fields: Manifest
    nodes_ready: Condition
    failure: str


@dataclass(frozen=True, slots=True)
class Nodes:
    """The pool's Nodes.

    Attributes:
        ready: names of those that are ready.
        silent: names of ready ones that a DRA driver should publish devices of and does not, by driver.
        slices: ResourceSlices of all of them, whatever their driver.
    """

    ready: frozenset[str]
    silent: Mapping[str, frozenset[str]]
    slices: int

    @property
    def usable(self) -> frozenset[str]:
        """Names of the ready ones whose GPUs can be claimed."""
        return self.ready - self.silent.get(c.GPU_DEVICE_CLASS, frozenset())


def report(inputs: Inputs, spec: EKSNodePoolSpec, current: Sequence[str], old: Sequence[str]) -> Found:
    """Return what is to be said of a pool with these groups, current ones and those being replaced."""
    entries = [_entry(inputs, key) for key in (*current, *old) if key in inputs.observed]
    nodes = _nodes(inputs, spec)
    counted = {"readyNodes": len(nodes.usable), "slices": nodes.slices} if nodes else {}
    failure = next((f"{e['name']}: {e['message']}" for e in entries if e.get("message")), "")
    # A group is not even asked for before its template, and stands nowhere but in its placement group.
    needs = sorted(key for key in inputs.observed if key.startswith((TEMPLATE, PLACEMENT)))
    failure = failure or aws.first_failure(inputs.observed, needs)
    said = [failure, _replacing(inputs, current, old), *_notes(inputs, spec, current, nodes)]
    fields: Manifest = {"nodeGroups": entries, "zones": sorted({e["zone"] for e in entries}), **counted}
    if states := [e["status"] for e in entries if e.get("status")]:
        fields["status"] = min(states, key=lambda x: _WORST.index(x) if x in _WORST else -1)
    if message := "; ".join(text for text in said if text):
        fields["message"] = message
    last = keep.kept_status(inputs.composite)
    fields.update({k: last[k] for k in ("readyNodes", "slices") if k not in fields and k in last})
    fields = {key: value for key, value in fields.items() if value not in ("", [])}
    return Found(fields, _condition(inputs, current, failure, counted), failure)


def _entry(inputs: Inputs, key: str) -> Manifest:
    seen = inputs.observed[key]
    entry: Manifest = {"name": paths.name(seen), "zone": key.removeprefix(GROUP).rpartition("-")[0]}
    state = aws.state(seen)
    told = {
        "status": state,
        "version": paths.text(seen, "status", "atProvider", "version"),
        "autoscalingGroup": paths.text(
            seen, "status", "atProvider", "resources", 0, "autoscalingGroups", 0, "name"
        ),
        "message": aws.failure(seen) or _broken(state),
    }
    return {**entry, **{name: value for name, value in told.items() if value}}


def _broken(state: str) -> str:
    if state == "CREATE_FAILED":
        return (
            "EKS could not create it and never tries again: see its health at EKS, then delete the NodeGroup"
        )
    return f"EKS reports {state}: see its health at EKS" if state in _BROKEN else ""


def _replacing(inputs: Inputs, current: Sequence[str], old: Sequence[str]) -> str:
    if not old:
        return ""
    waits = [key for key in current if aws.state(inputs.observed.get(key)) != aws.ACTIVE]
    olds = ", ".join(paths.name(inputs.observed[key]) for key in old)
    return f"{olds} stays until {len(waits)} of {len(current)} new node groups are active" if waits else ""


def _notes(inputs: Inputs, spec: EKSNodePoolSpec, current: Sequence[str], nodes: Nodes | None) -> list[str]:
    found = []
    asked = _asked(inputs, current)
    if nodes and len(nodes.ready) < asked and not _creating(inputs, current):
        found.append(
            f"{len(nodes.ready)} of {asked} nodes are ready: see the Auto Scaling group's activities for"
            " capacity"
        )
    if nodes:
        found += [
            f"{len(names)} of {len(nodes.ready)} ready nodes lack ResourceSlices of {driver}: their devices"
            " cannot be used until that driver publishes them"
            for driver, names in nodes.silent.items()
        ]
    block = template.purchase(spec) == template.CAPACITY_BLOCK
    if spec.role == c.GPU_ROLE and spec.min_node_count == 0 and spec.max_node_count > 0 and not block:
        found.append(
            "minNodeCount 0: a pool that claims devices does not wake from nothing, since the autoscaler sees"
            " ResourceSlices only of live nodes (kubernetes/autoscaler#7799); set 1 or more"
        )
    if block:
        found.append(
            "Capacity Block: EKS empties it 40 minutes before its end, and updates it only while it is empty"
        )
    return found


def _asked(inputs: Inputs, current: Sequence[str]) -> int:
    sizes = (
        paths.integer(inputs.observed.get(key), "status", "atProvider", "scalingConfig", "desiredSize")
        for key in current
    )
    return sum(size or 0 for size in sizes)


def _creating(inputs: Inputs, current: Sequence[str]) -> bool:
    return any(aws.state(inputs.observed.get(key)) != aws.ACTIVE for key in current)


def _nodes(inputs: Inputs, spec: EKSNodePoolSpec) -> Nodes | None:
    """Return the Nodes and what is published for them; None while nobody has looked, which is not none."""
    if not inputs.is_ready(NODES):
        return None
    nodes = {paths.name(node): node for obj in inputs.all(NODES) if paths.name(node := _carried(obj))}
    ready = frozenset(
        name
        for name, node in nodes.items()
        if paths.is_true(node, c.READY) and paths.at(node, "spec", "unschedulable") is not True
    )
    published = [
        (paths.text(x, "spec", "nodeName"), paths.text(x, "spec", "driver"))
        for x in map(_carried, inputs.all(SLICES))
    ]
    drivers = [c.GPU_DEVICE_CLASS] if spec.role == c.GPU_ROLE else []
    if spec.fabric == c.FABRIC_EFA:
        drivers.append(c.EFA_DRIVER)
    silent = {x: ready - {name for name, driver in published if driver == x} for x in drivers}
    slices = sum(1 for name, _ in published if name in nodes)
    return Nodes(ready, {driver: names for driver, names in silent.items() if names}, slices)


def _carried(obj: Mapping[str, Any]) -> Mapping[str, Any]:
    return paths.mapping(obj, "status", "atProvider", "manifest")


def _condition(inputs: Inputs, current: Sequence[str], failure: str, counted: Mapping[str, int]) -> Condition:
    if not current:
        return Condition(c.NODES_READY, True, PARKED, "the pool may have no nodes")
    if failure:
        return Condition(c.NODES_READY, False, FAILED, failure)
    if waits := [
        key for key in current if aws.state(inputs.observed.get(key)) not in (aws.ACTIVE, "UPDATING")
    ]:
        return Condition(c.NODES_READY, False, CREATING, f"waiting for {', '.join(waits)}")
    told = ", ".join(f"{value} {name}" for name, value in sorted(counted.items()))
    return Condition(c.NODES_READY, True, ACTIVE_REASON, told)
