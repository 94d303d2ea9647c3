"""Gangs on the Standard stack: a LeaderWorkerSet, one group a copy (components 6; lws v0.10.0)."""

from collections.abc import Mapping
from typing import Any

from modelplane import contracts as c
from modelplane import names
from modelplane.api.model_replica import Engine, Member
from modelplane.core import paths
from modelplane.core.paths import Manifest
from modelplane.gangs import copies, env, pods, workload
from modelplane.gangs.copies import Part
from modelplane.gangs.site import Site
from modelplane.gangs.workload import Workload

READY_WHEN = (
    "has(object.status) && has(object.status.observedGeneration) && "
    "object.status.observedGeneration >= object.metadata.generation && "
    "has(object.status.updatedReplicas) && object.status.updatedReplicas >= object.spec.replicas && "
    "has(object.status.readyReplicas) && object.status.readyReplicas >= object.spec.replicas"
)
_GROUP_INDEX = "leaderworkerset.sigs.k8s.io/group-index"
_LEADER_ADDRESS = "$(LWS_LEADER_ADDRESS)"
# Counts the pods of a group, the leader being 0, in both templates.
_RANK = "$(LWS_WORKER_INDEX)"


class LeaderWorkerSetBackend:
    """Hands gangs to the LeaderWorkerSet controller."""

    kind = "LeaderWorkerSet"
    ready_when = READY_WHEN
    pod_fields = r"spec\.leaderWorkerTemplate\.(leader|worker)Template\."

    def workload(self, site: Site, engines: tuple[Engine, ...], proxies: Mapping[str, Manifest]) -> Workload:
        """Return the LeaderWorkerSet of one engine."""
        (engine,) = engines
        name = names.leader_worker_set(site.replica, engine.name)
        templates = {
            m.role: _template(site, engine, m, name, proxies.get(engine.name)) for m in engine.members
        }
        manifest: Manifest = {
            "apiVersion": c.LWS_API,
            "kind": self.kind,
            "metadata": workload.object_metadata(site, name),
            # Every default the webhook would write stands here, so that an apply changes nothing.
            "spec": {
                "replicas": engine.copies,
                # LeaderReady would wait for a leader that is ready only once its workers have joined.
                "startupPolicy": "LeaderCreated",
                "networkConfig": {"subdomainPolicy": "Shared"},
                "rolloutStrategy": {
                    "type": "RollingUpdate",
                    "rollingUpdateConfiguration": {"partition": 0, "maxUnavailable": 1, "maxSurge": 0},
                },
                "leaderWorkerTemplate": {
                    "size": engine.gang_size,
                    # A gang that lost one pod is a broken ring (lws #508).
                    "restartPolicy": "RecreateGroupOnPodRestart",
                    "leaderTemplate": templates[c.LEADER],
                    "workerTemplate": templates[c.WORKER],
                },
            },
        }
        # Another kind than the Deployment the engine may have been before: another key.
        return Workload(workload.key(engine.name, "gang"), manifest, self, engines)

    def ready_copies(self, engine: Engine, remote: Mapping[str, Any]) -> int | None:
        """Return the groups whose pods are all ready, at most the copies wanted."""
        if not paths.mapping(remote, "status"):
            return None
        return min(engine.copies, paths.integer(remote, "status", "readyReplicas", default=0) or 0)

    def complaint(self, remote: Mapping[str, Any]) -> str:
        """Return that groups are being replaced; of what goes wrong it says nothing.

        Only what is True: a condition that turns False keeps its message, so an Available that is not reads
        "All replicas are ready" (lws pkg/controllers/leaderworkerset_controller.go, setCondition).
        """
        found = paths.condition(remote, "UpdateInProgress")
        return paths.text(found, "message") if found.get("status") == "True" else ""

    def parts(self, run: Workload, engine: Engine, /) -> list[Part]:
        """Return each group's leader pod and the StatefulSet of its workers, which bear the same name."""
        space = paths.namespace(run.manifest)
        found = []
        for copy in range(engine.copies):
            name = f"{paths.name(run.manifest)}-{copy}"
            leader = copies.at("v1", copies.POD, name, space)
            workers = copies.at("apps/v1", copies.STATEFUL_SET, name, space)
            found += [
                Part(engine.name, copy, "leader", 1, leader),
                Part(engine.name, copy, "workers", engine.gang_size - 1, workers),
            ]
        return found


def _template(site: Site, engine: Engine, member: Member, name: str, proxy: Manifest | None) -> Manifest:
    leads = member.role == c.LEADER
    placed = pods.Placed(
        name,
        contract=env.contract(_LEADER_ADDRESS, _RANK, engine.gang_size),
        labels={c.LWS_ROLE_LABEL: "leader"} if leads else {},
        copy_label=_GROUP_INDEX,
        proxy=proxy if leads else None,
    )
    return {
        "metadata": pods.metadata(site, engine, member, placed),
        "spec": pods.spec(site, engine, member, placed),
    }
