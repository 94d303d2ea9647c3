"""A fleet to look at: what files or a control plane say, and what its clusters will publish once they stand.

A manifest has no status. Its cluster is taken as it will be when everything below it works, by the cluster's
own composer over children that report so: the same code decides what it publishes.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from modelplane import contracts as c
from modelplane.clouds.registry import CLOUDS
from modelplane.core import Condition, Inputs, Manifest, paths, settle
from modelplane.kinds import inference_cluster
from modelplane.sim.world import Ref, World, ref

CLUSTER = (c.API, "InferenceCluster")
CLASS = (c.API, "InferenceClass")
DEPLOYMENT = (c.API, "ModelDeployment")
REPLICA = (c.API, "ModelReplica")
ENDPOINT = (c.API, "ModelEndpoint")
CACHE = (c.API, "ModelCache")
CACHE_REPLICA = (c.API, "ModelCacheReplica")
SERVICE = (c.API, "ModelService")
GATEWAY = (c.API, "InferenceGateway")
# A place holder for what nobody knows before it is made.
FORESEEN_ADDRESS = "gateway.invalid"
_TRUE = {"status": "True", "reason": "Foreseen"}


@dataclass
class Fleet:
    """A fleet.

    Attributes:
        world: all objects.
        foreseen: clusters whose status nobody reported and that are taken as standing.
        failing: what keeps a foreseen cluster from ever standing, by its name.
    """

    world: World
    foreseen: list[str] = field(default_factory=list)
    failing: dict[str, list[Condition]] = field(default_factory=dict)

    @classmethod
    def of(cls, objects: Iterable[Mapping[str, Any]]) -> "Fleet":
        """Return the fleet of these objects; each cluster without status is foreseen."""
        fleet = cls(World.of(list(objects)))
        for cluster in list(fleet.all(CLUSTER)):
            if not paths.mapping(cluster, "status"):
                fleet._foresee(cluster)
        return fleet

    def all(self, kind: tuple[str, str]) -> list[Manifest]:
        """Return the objects of a kind, by namespace and name."""
        return list(self.world.of_kind(*kind))

    def _foresee(self, cluster: Manifest) -> None:
        kind = inference_cluster.KIND
        observed = _standing(cluster)
        required = {r.name: self.world.fetch(r) for r in kind.requires(cluster)}
        answer = settle.compose(kind, Inputs(cluster, observed, required))
        bad = [x for x in answer.conditions if x.status is False]
        state = {"type": c.READY, **_TRUE, "status": "False" if bad else "True"}
        target = ref(cluster)
        self.foreseen.append(target.name)
        if bad:
            self.failing[target.name] = bad
        self.world.report(target, {**answer.status, "conditions": [state]})


def _standing(cluster: Manifest) -> dict[str, Manifest]:
    """Return what an InferenceCluster composes, as it is once it works."""
    conditions = [{"type": t, **_TRUE} for t in (c.READY, c.REQUIREMENTS_MET)]
    secrets = [{"type": c.KUBECONFIG, "name": "foreseen", "key": c.KUBECONFIG_KEY}]
    metadata = {"name": paths.name(cluster), "namespace": c.SYSTEM_NAMESPACE}
    cloud = CLOUDS.get(paths.text(cluster, "spec", "cluster", "source"))
    found: dict[str, Manifest] = {
        inference_cluster.STACK: {
            "apiVersion": c.INFRA_API,
            "kind": "ServingStack",
            "metadata": metadata,
            "spec": {"secrets": secrets, "cloud": cloud.source if cloud else ""},
            "status": {"conditions": conditions, "gateway": {"address": FORESEEN_ADDRESS}},
        }
    }
    if cloud and cloud.provision:
        pools = [
            {"name": pool.get("name"), "readyNodes": paths.integer(pool, "nodeCount", default=1)}
            for pool in paths.mappings(cluster, "spec", "nodePools")
        ]
        found[cloud.provision.key] = {
            "apiVersion": c.INFRA_API,
            "kind": cloud.provision.kind,
            "metadata": metadata,
            "spec": {},
            "status": {
                "conditions": conditions,
                "secrets": secrets,
                "nodePools": pools,
                "cache": {"storageClassName": c.EFS_STORAGE_CLASS},
            },
        }
    return found


def cluster_of(obj: Mapping[str, Any]) -> str:
    """Return the InferenceCluster that an object is on or stands for; empty for one of the control plane."""
    if obj.get("kind") == "InferenceCluster":
        return paths.name(obj)
    return paths.text(obj, "spec", "clusterName") or str(paths.labels(obj).get(c.CLUSTER_LABEL, ""))


def matches(labels: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Tell whether the labels are all there."""
    return all(labels.get(key) == value for key, value in wanted.items())


def shown(target: Ref) -> str:
    """Return namespace and name as people write them."""
    return f"{target.namespace}/{target.name}" if target.namespace else target.name
