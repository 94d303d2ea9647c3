"""Collections: the observe-only Objects that provider-kubernetes makes of what it finds on a cluster.

provider-kubernetes internal/controller/namespaced/observedobjectcollection/reconciler.go (v1.2.1). What can
be found here are the Nodes of EKS node groups and what DRA drivers publish for them.
"""

from collections.abc import Iterator

from modelplane import contracts as c
from modelplane import names
from modelplane.core import Manifest, paths
from modelplane.sim import aws, reach
from modelplane.sim.remote import condition
from modelplane.sim.world import World, ref

MEMBER_LABEL = "kubernetes.crossplane.io/owned-by-collection"
# Each DRA driver: the label of the nodes it runs on, and its chart.
_DRIVERS = {
    c.GPU_DEVICE_CLASS: ("nvidia.com/gpu.present", "dra-driver-nvidia-gpu"),
    c.EFA_DRIVER: ("vpc.amazonaws.com/efa.present", "aws-dranet"),
}


def report(obj: Manifest, _: int, world: World) -> Manifest | None:
    """Make the members what is found now, and say so."""
    if why := reach.unreachable(obj, world):
        return {"conditions": [condition("Synced", "ReconcileError", why, true=False)]}
    mine, found = ref(obj), {m["metadata"]["name"]: m for m in _found(obj, world)}
    for name, manifest in found.items():
        member = _member(obj, name, manifest)
        world.adopt(mine, name, world.apply(member))
        world.report(
            ref(member), {"atProvider": {"manifest": manifest}, "conditions": [aws.AVAILABLE, aws.SYNCED]}
        )
    for key, child in list(world.children.get(mine, {}).items()):
        if key not in found and child not in world.deleting:
            world.delete(child)
    return {"membershipLabel": {MEMBER_LABEL: mine.name}, "conditions": [aws.AVAILABLE, aws.SYNCED]}


def _member(obj: Manifest, name: str, manifest: Manifest) -> Manifest:
    labels = dict(paths.mapping(obj, "spec", "objectTemplate", "metadata", "labels"))
    bare = {k: manifest[k] for k in ("apiVersion", "kind")}
    return {
        "apiVersion": c.KUBERNETES_API,
        "kind": "Object",
        "metadata": {
            "name": f"{paths.name(obj)}-{names.digest(manifest['kind'], name, length=7)}",
            "namespace": paths.namespace(obj),
            "labels": {**labels, MEMBER_LABEL: paths.name(obj)},
        },
        "spec": {
            "forProvider": {"manifest": {**bare, "metadata": {"name": name}}},
            "managementPolicies": ["Observe"],
            "providerConfigRef": dict(paths.mapping(obj, "spec", "providerConfigRef")),
        },
    }


def _found(obj: Manifest, world: World) -> Iterator[Manifest]:
    asked = paths.mapping(obj, "spec", "observeObjects")
    cluster = aws.cluster_of(obj)
    for group in aws.owned(world, c.EKS_API, "NodeGroup", cluster):
        pool = paths.text(group, "spec", "forProvider", "labels", c.POOL_LABEL)
        wanted = paths.mapping(asked, "selector", "matchLabels").get(c.POOL_LABEL)
        if paths.text(group, "status", "atProvider", "status") not in ("ACTIVE", "UPDATING"):
            continue
        for index in range(aws.desired_size(group)):
            node = f"{paths.name(group)}-{index}"
            if asked.get("kind") == "Node" and wanted in (None, pool):
                yield _node(node, pool)
            if asked.get("kind") == "ResourceSlice":
                yield from (_slice(node, driver) for driver in _publishing(obj, group, world))


def _publishing(obj: Manifest, group: Manifest, world: World) -> Iterator[str]:
    """Yield the drivers that run on a group's nodes: their chart stands, and the nodes bear their label."""
    labels = paths.mapping(group, "spec", "forProvider", "labels")
    charts = reach.charts(world, reach.kubeconfig(obj, world))
    for driver, (label, chart) in _DRIVERS.items():
        if label in labels and charts.get(chart) is True:
            yield driver


def _node(name: str, pool: str) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {c.POOL_LABEL: pool}},
        "status": {"conditions": [condition("Ready", "KubeletReady")]},
    }


def _slice(node: str, driver: str) -> Manifest:
    return {
        "apiVersion": c.DRA_API,
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node}-{driver}"},
        "spec": {
            "driver": driver,
            "nodeName": node,
            "pool": {"generation": 1, "name": node, "resourceSliceCount": 1},
        },
    }
