"""Which backend runs which engine: by the cluster's stack and the engine's shape."""

from collections.abc import Mapping

from modelplane import contracts as c
from modelplane.api.model_replica import Engine, ModelReplicaSpec
from modelplane.core.paths import Manifest
from modelplane.gangs.deployment import DeploymentBackend
from modelplane.gangs.leader_worker_set import LeaderWorkerSetBackend
from modelplane.gangs.pod_clique_set import PodCliqueSetBackend
from modelplane.gangs.site import Site
from modelplane.gangs.workload import Backend, Workload

_SINGLE = DeploymentBackend()
_GANG: Mapping[str, Backend] = {c.STANDARD: LeaderWorkerSetBackend(), c.DYNAMO: PodCliqueSetBackend()}

# Per kind: the field paths whose change makes new pods.
POD_FIELDS: Mapping[str, str] = {b.kind: b.pod_fields for b in (_SINGLE, *_GANG.values())}


def workloads(site: Site, spec: ModelReplicaSpec, proxies: Mapping[str, Manifest]) -> list[Workload]:
    """Return the objects that run the replica's engines.

    On Dynamo a prefill/decode pair is one set, so that neither half holds GPUs while the other waits.
    """
    if site.is_dynamo and spec.serving.mode == c.PREFILL_DECODE:
        return [_GANG[site.stack].workload(site, spec.engines, proxies)]
    return [_backend(site, engine).workload(site, (engine,), proxies) for engine in spec.engines]


def _backend(site: Site, engine: Engine) -> Backend:
    return _GANG[site.stack] if engine.is_gang else _SINGLE


def stack_of(kind: str, scheduler: str) -> str:
    """Return the stack an observed workload was made for; empty where it does not tell.

    Args:
        kind: of the remote object.
        scheduler: that its pods name; empty for Kubernetes' own.
    """
    for stack, backend in _GANG.items():
        if kind == backend.kind:
            return stack
    if kind == _SINGLE.kind:
        return c.DYNAMO if scheduler == c.KAI_SCHEDULER else c.STANDARD
    return ""
