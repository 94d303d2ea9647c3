"""Single-pod engines: a Deployment on both stacks; on Dynamo KAI schedules its pods like all others."""

from collections.abc import Mapping
from typing import Any

from modelplane import contracts as c
from modelplane import names
from modelplane.api.model_replica import Engine
from modelplane.core import paths
from modelplane.core.paths import Manifest
from modelplane.gangs import pods, workload
from modelplane.gangs.copies import Part, trouble
from modelplane.gangs.site import Site
from modelplane.gangs.workload import Workload

# Condition Available lets as many copies be missing as a rollout may take; here every copy counts.
READY_WHEN = (
    "has(object.status) && has(object.status.observedGeneration) && "
    "object.status.observedGeneration >= object.metadata.generation && "
    "has(object.status.updatedReplicas) && object.status.updatedReplicas >= object.spec.replicas && "
    "has(object.status.availableReplicas) && object.status.availableReplicas >= object.spec.replicas"
)


class DeploymentBackend:
    """Hands single-pod engines to Kubernetes' own Deployment controller."""

    kind = "Deployment"
    ready_when = READY_WHEN
    pod_fields = r"spec\.template\.(?!metadata\.annotations\[\"kubectl)"

    def workload(self, site: Site, engines: tuple[Engine, ...], proxies: Mapping[str, Manifest]) -> Workload:
        """Return the Deployment of one engine."""
        (engine,) = engines
        name = names.workload(site.replica, engine.name)
        placed = pods.Placed(name, proxy=proxies.get(engine.name))
        manifest: Manifest = {
            "apiVersion": "apps/v1",
            "kind": self.kind,
            "metadata": workload.object_metadata(site, name),
            "spec": {
                "replicas": engine.copies,
                "selector": {"matchLabels": {c.WORKLOAD_LABEL: name}},
                # The scheduler counted devices for the copies and none for a surge: a surge pod would wait
                # for ever on a full pool.
                "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
                "template": {
                    "metadata": pods.metadata(site, engine, engine.serving, placed),
                    "spec": pods.spec(site, engine, engine.serving, placed),
                },
            },
        }
        return Workload(workload.key(engine.name), manifest, self, engines)

    def ready_copies(self, engine: Engine, remote: Mapping[str, Any]) -> int | None:
        """Return the available pods, at most the copies wanted; a status without the field has none."""
        if not paths.mapping(remote, "status"):
            return None
        return min(engine.copies, paths.integer(remote, "status", "availableReplicas", default=0) or 0)

    def complaint(self, remote: Mapping[str, Any]) -> str:
        """Return why pods are not made, or that nothing moves any more."""
        return complaint(remote)

    def parts(self, _run: Workload, _engine: Engine, /) -> list[Part]:
        """Return nothing: its pods have no names that could be known."""
        return []


def complaint(remote: Mapping[str, Any]) -> str:
    """Return what a Deployment says is wrong, the cause before the effect; empty where it says nothing.

    Kubernetes, "Deployment status": ReplicaFailure says why pods are not made (a quota, a policy), and
    Progressing False that nothing has moved for ten minutes; the load of a large model takes that too.
    """
    return trouble(remote, (("ReplicaFailure", "True"), ("Progressing", "False")))
