"""Clusters with pools, deployments, and a fleet that plays along: what is composed is observed next time."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from modelplane import contracts as c
from modelplane import names
from modelplane.api import definitions
from modelplane.core import Answer, Inputs, Manifest, paths, settle
from modelplane.kinds.model_deployment import KIND

TEAM = "lab"
GPU = 'device.driver == "gpu.nvidia.com"'


def device(name: str = "gpu", count: int = 4, memory: str = "46068Mi", **over: Any) -> Manifest:
    """A kind of device as a cluster publishes it; None removes a field."""
    found = {
        "name": name,
        "claim": "DRA",
        "driver": "gpu.nvidia.com",
        "deviceClassName": "gpu.nvidia.com",
        "count": count,
        "capacity": {"memory": {"value": memory}},
        **over,
    }
    return {key: value for key, value in found.items() if value is not None}


def nic(name: str = "nic", count: int = 1, **over: Any) -> Manifest:
    """A device that steers placement and is never claimed."""
    kind = {"driver": "nic.example.org", "claim": "Synthetic", "deviceClassName": None}
    return device(name, count, **{**kind, **over})


def pool(name: str = "gpu", nodes: int = 4, *devices: Manifest, **over: Any) -> Manifest:
    """A published pool; by default its nodes carry four GPUs."""
    return {"name": name, "nodes": nodes, "devices": list(devices) or [device()], **over}


def cluster(
    name: str = "north",
    *pools: Manifest,
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Manifest] = (),
    ready: bool = True,
    gateway: str | None = "192.0.2.10",
    caches: bool = True,
    declared: Sequence[str] | None = None,
) -> Manifest:
    """A cluster that serves; `pools` replaces its one pool of four nodes with four GPUs each."""
    published = list(pools) or [pool()]
    state = "True" if ready else "False"
    status: Manifest = {
        "conditions": [{"type": c.READY, "status": state, "reason": "Available"}],
        "gpuPools": published,
    }
    if gateway:
        status["gateway"] = {"address": gateway}
    if caches:
        status["cache"] = {"storageClassName": "shared-rwx"}
    return {
        "apiVersion": c.API,
        "kind": "InferenceCluster",
        "metadata": {"name": name, "labels": dict(labels or {})},
        "spec": {
            "nodePools": [{"name": n} for n in (declared or [p["name"] for p in published])],
            **({"taints": list(taints)} if taints else {}),
        },
        "status": status,
    }


def taint(key: str = "maintenance", value: str = "yes", effect: str = c.NO_SCHEDULE) -> Manifest:
    return {"key": key, "value": value, "effect": effect}


def request(name: str = "gpu", count: int = 1, cel: str = GPU) -> Manifest:
    return {"name": name, "count": count, "selectors": [{"cel": cel}]}


def member(
    role: str = "Standalone", *, gpus: int = 1, nodes: int | None = None, requests: Any = None, **over: Any
) -> Manifest:
    """A member that asks for GPUs; `gpus=0` asks for nothing."""
    container = {"name": "engine", "image": "example.org/engine:1"}
    found: Manifest = {"role": role, "template": {"spec": {"containers": [container]}}, **over}
    wanted = [request(count=gpus)] if requests is None and gpus else requests
    if wanted:
        found["nodeSelector"] = {"devices": list(wanted)}
    if nodes is not None:
        found["worker"] = {"nodes": nodes}
    return found


def engine(name: str = "main", *members: Manifest, **over: Any) -> Manifest:
    return {"name": name, "members": list(members) or [member()], **over}


def gang(name: str = "main", gpus: int = 4, workers: int = 1, **over: Any) -> Manifest:
    return engine(name, member("Leader", gpus=gpus), member("Worker", gpus=gpus, nodes=workers), **over)


def deployment(
    *engines: Manifest,
    name: str = "heron",
    namespace: str = TEAM,
    replicas: int = 1,
    labels: Mapping[str, str] | None = None,
    selector: Mapping[str, str] | None = None,
    cache: str = "",
    policy: str = "",
    strategy: Manifest | None = None,
    **template: Any,
) -> Manifest:
    """A deployment as admitted: one replica of one single-GPU engine."""
    spec: Manifest = {"engines": list(engines) or [engine()], **template}
    if selector:
        spec["clusterSelector"] = {"matchLabels": dict(selector)}
    if cache:
        spec["modelCacheRef"] = {"name": cache}
    if policy:
        spec["placement"] = {"policy": policy}
    found = {
        "apiVersion": c.API,
        "kind": "ModelDeployment",
        "metadata": {"name": name, "namespace": namespace, "uid": f"{namespace}-{name}"},
        "spec": {
            "replicas": replicas,
            **({"strategy": strategy} if strategy else {}),
            "template": {**({"metadata": {"labels": dict(labels)}} if labels else {}), "spec": spec},
        },
    }
    return definitions.load().default(found)


def cache(name: str = "weights", namespace: str = TEAM, **selector: str) -> Manifest:
    return {
        "apiVersion": c.API,
        "kind": "ModelCache",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"source": "HuggingFace", "clusterSelector": {"matchLabels": selector}},
    }


def held(
    on: str = "north", to: str = "gpu", gpus: int = 4, nodes: int = 1, name: str = "theirs", **metadata: Any
) -> Manifest:
    """Another team's replica that holds GPUs of whole pods on a pool."""
    worker = {**member("Worker", gpus=0, nodes=nodes), "nodePoolName": to}
    worker["deviceRequests"] = [{**request(count=gpus), "deviceClassName": "gpu.nvidia.com"}]
    return {
        "apiVersion": c.API,
        "kind": "ModelReplica",
        "metadata": {"name": name, "namespace": "others", "labels": {}, **metadata},
        "spec": {"clusterName": on, "engines": [{"name": "main", "members": [worker]}]},
    }


class Fleet:
    """A control plane over one fleet: deployments are composed in turn, and what they compose is observed."""

    def __init__(self, *objects: Manifest) -> None:
        self.clusters = [o for o in objects if o["kind"] == "InferenceCluster"]
        self.others = [o for o in objects if o["kind"] == "ModelReplica"]
        self.caches = [o for o in objects if o["kind"] == "ModelCache"]
        self.composed: dict[tuple[str, str], dict[str, Manifest]] = {}
        self._age = 0

    def observed(self, xr: Manifest) -> dict[str, Manifest]:
        return self.composed.setdefault((paths.namespace(xr), paths.name(xr)), {})

    def inputs(self, xr: Manifest) -> Inputs:
        replicas = [*self.others]
        for found in self.composed.values():
            replicas += [o for o in found.values() if o["kind"] == "ModelReplica"]
        cache_ref = paths.text(xr, "spec", "template", "spec", "modelCacheRef", "name")
        caches = [
            x for x in self.caches if (paths.namespace(x), paths.name(x)) == (paths.namespace(xr), cache_ref)
        ]
        required = {"clusters": self.clusters, "all-replicas": replicas, "cache": caches}
        names_ = {r.name for r in KIND.requires(xr)}
        return Inputs(xr, dict(self.observed(xr)), {k: v for k, v in required.items() if k in names_})

    def ask(self, xr: Manifest, **required: list[Manifest]) -> Answer:
        """One call, with requirements replaced; nothing is applied."""
        inputs = self.inputs(xr)
        replaced = {k.replace("_", "-"): v for k, v in required.items()}
        return settle.compose(KIND, Inputs(xr, inputs.observed, {**inputs.required, **replaced}))

    def apply(self, xr: Manifest, *, ready: bool | None = True) -> Answer:
        """One call, after which what it composed is observed; `ready=None` leaves readiness as it was."""
        answer = self.ask(xr)
        self.record(xr, answer, ready=ready)
        return answer

    def record(self, xr: Manifest, answer: Answer, *, ready: bool | None = True) -> None:
        """Let what a call answered be observed; whoever asked before did not see it."""
        before = self.observed(xr)
        after = {}
        for key, composed in answer.resources.items():
            seen = copy.deepcopy(composed.manifest)
            old = before.get(key, {})
            self._age += 1
            now = f"2026-01-01T{self._age // 3600:02d}:{self._age // 60 % 60:02d}:{self._age % 60:02d}Z"
            created = paths.text(old, "metadata", "creationTimestamp") or now
            owner = {"uid": xr["metadata"]["uid"], "controller": True}
            seen["metadata"] |= {"creationTimestamp": created, "ownerReferences": [owner]}
            if ready is not None:
                seen["status"] = state(ready)
            elif "status" in old:
                seen["status"] = old["status"]
            after[key] = definitions.load().default(seen)
        self.composed[paths.namespace(xr), paths.name(xr)] = after


def state(ready: bool) -> Manifest:
    return {"conditions": [{"type": c.READY, "status": "True" if ready else "False", "reason": "x"}]}


def placed(answer: Answer) -> list[str]:
    """`cluster/index` of each replica, in order."""
    keys = (k.removeprefix("replica-") for k in answer.resources if k.startswith("replica-"))
    return sorted("/".join(key.rsplit("-", 1)) for key in keys)


def where(answer: Answer) -> dict[str, int]:
    """Replicas by cluster."""
    found: dict[str, int] = {}
    for place in placed(answer):
        cluster_name = place.rpartition("/")[0]
        found[cluster_name] = found.get(cluster_name, 0) + 1
    return found


def replica(answer: Answer, key: str = "north/0") -> Manifest:
    return dict(answer.resources["replica-" + key.replace("/", "-")].manifest)


def condition(answer: Answer, type_: str = c.REPLICAS_SCHEDULED) -> tuple[bool | None, str, str]:
    found = next(x for x in answer.conditions if x.type == type_)
    return found.status, found.reason, found.message


def replica_name(cluster_name: str = "north", index: int = 0, name: str = "heron") -> str:
    return names.replica(name, cluster_name, index)
