"""Builders around a ModelReplica: its engines, its cluster, its cache, and a cluster that plays along."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from modelplane import contracts as c
from modelplane import names
from modelplane.core import Answer, Condition, Inputs, Manifest, paths, settle
from modelplane.kinds.model_replica import KIND
from modelplane.sim import queries, remote

TEAM = "lab"
NAME = "heron-1a2b3c4d"


def container(name: str = "engine", image: str = "example.org/engine:1", **over: Any) -> Manifest:
    return {"name": name, "image": image, **over}


def member(
    role: str = "Standalone",
    *,
    pool: str = "gpu",
    gpus: int = 1,
    nodes: int | None = None,
    engine: Manifest | None = None,
    metadata: Manifest | None = None,
    requests: Sequence[Manifest] | None = None,
    **pod: Any,
) -> Manifest:
    """A member; `pod` goes into the pod spec beside the engine container, `gpus=0` claims nothing."""
    found: Manifest = {
        "role": role,
        "nodePoolName": pool,
        "template": {"spec": {"containers": [engine or container(), *pod.pop("sidecars", [])], **pod}},
    }
    if metadata:
        found["template"]["metadata"] = metadata
    if nodes is not None:
        found["worker"] = {"nodes": nodes}
    if requests is not None:
        found["deviceRequests"] = list(requests)
    elif gpus:
        found["deviceRequests"] = [device(count=gpus)]
    return found


def device(name: str = "gpu", count: int = 1, class_name: str = "gpu.nvidia.com") -> Manifest:
    return {
        "name": name,
        "deviceClassName": class_name,
        "count": count,
        "selectors": [{"cel": 'device.driver == "gpu.nvidia.com"'}],
    }


# As an InferenceClass with EFA interfaces has them claimed (chart aws-dranet).
NIC = {"name": "efa", "deviceClassName": "efa.networking.k8s.aws", "count": 4}


def engine(name: str = "main", *members: Manifest, **over: Any) -> Manifest:
    return {"name": name, "members": list(members) or [member()], **over}


def gang(
    name: str = "main", *, workers: int = 1, leader: Any = None, worker: Any = None, **over: Any
) -> Manifest:
    return engine(
        name,
        member("Leader", gpus=4, **(leader or {})),
        member("Worker", gpus=4, nodes=workers, **(worker or {})),
        **over,
    )


def pair(*, gangs: bool = False, **over: Any) -> list[Manifest]:
    make = gang if gangs else engine
    return [make("fill", phase="Prefill", **over), make("gen", phase="Decode", **over)]


def replica(
    *engines: Manifest, name: str = NAME, team: str = TEAM, cluster_name: str = "north", **spec: Any
) -> Manifest:
    return {
        "apiVersion": c.API,
        "kind": "ModelReplica",
        "metadata": {"name": name, "namespace": team},
        "spec": {"clusterName": cluster_name, "engines": list(engines) or [engine()], **spec},
    }


def split(*, name: str = NAME, **over: Any) -> Manifest:
    """A replica whose requests are split between prefill and decode."""
    return replica(*pair(**over), name=name, serving={"mode": "PrefillDecode"})


def cluster(
    name: str = "north",
    stack: str = "Standard",
    *,
    fabric: str = "",
    teams: Sequence[str] = (TEAM, "other"),
    pools: Sequence[str] = ("gpu", "gpu2"),
) -> Manifest:
    extra = {"fabric": {"type": fabric}} if fabric else {}
    return {
        "apiVersion": c.API,
        "kind": "InferenceCluster",
        "metadata": {"name": name},
        "spec": {"stack": stack, "nodePools": [{"name": p, "className": "amber-4x", **extra} for p in pools]},
        "status": {"providerConfigRef": {"name": f"{name}-pc"}, "namespaces": list(teams)},
    }


def cache(phase: str = "Ready", revision: str = "c0ffee", **status: Any) -> Manifest:
    found = {"phase": phase, **({"resolvedRevision": revision} if revision else {}), **status}
    return {
        "apiVersion": c.API,
        "kind": "ModelCacheReplica",
        "metadata": {"name": "w", "namespace": TEAM},
        "status": found,
    }


def secret(name: str, data: Mapping[str, str], type_: str = "Opaque") -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": TEAM},
        "type": type_,
        "data": dict(data),
    }


def required(composite: Manifest, *found: Manifest) -> dict[str, list[Manifest]]:
    """What the composite's requirements find among the objects, as Crossplane would answer."""
    answer: dict[str, list[Manifest]] = {}
    for requirement in KIND.requires(composite):
        answer[requirement.name] = [
            x
            for x in found
            if x["kind"] == requirement.kind
            and (requirement.kind == "ModelCacheReplica" or paths.name(x) == requirement.match_name)
        ]
    return answer


def inputs(composite: Manifest, *found: Manifest, observed: Mapping[str, Manifest] | None = None) -> Inputs:
    return Inputs(composite, observed or {}, required(composite, *(found or (cluster(),))))


def answer(composite: Manifest, *found: Manifest, observed: Mapping[str, Manifest] | None = None) -> Answer:
    return settle.compose(KIND, inputs(composite, *found, observed=observed))


def manifests(given: Answer) -> dict[str, Manifest]:
    """The remote objects of an answer, by key."""
    return {
        key: paths.at(x.manifest, "spec", "forProvider", "manifest")
        for key, x in given.resources.items()
        if x.manifest.get("kind") == "Object"
    }


def observe(obj: Manifest, *, status: Manifest | None = None, age: int = 5) -> Manifest:
    """The Object as provider-kubernetes reports it once the cluster has acted on it."""
    seen = copy.deepcopy(paths.at(obj, "spec", "forProvider", "manifest"))
    seen["metadata"] = {**seen["metadata"], "generation": 1}
    rule = remote.rule_of(seen)
    reported = status if status is not None else rule.report(seen) if rule and age >= rule.after else None
    if reported:
        seen["status"] = reported
    query = paths.text(obj, "spec", "readiness", "celQuery")
    ready = queries.holds(query, seen) if query else True
    conditions = [
        {"type": "Ready", "status": "True" if ready else "False"},
        {"type": "Synced", "status": "True"},
    ]
    return {**copy.deepcopy(obj), "status": {"atProvider": {"manifest": seen}, "conditions": conditions}}


def settled(
    composite: Manifest, *found: Manifest, observed: Mapping[str, Manifest] | None = None, passes: int = 6
) -> tuple[Answer, dict[str, Manifest]]:
    """Reconcile until nothing changes; returns the last answer and what is observed then."""
    seen = dict(observed or {})
    for _ in range(passes):
        given = answer(composite, *found, observed=seen)
        now = {key: observe(x.manifest) for key, x in given.resources.items()}
        if now == seen:
            return given, seen
        seen = now
    raise AssertionError(f"no fixed point in {passes} passes: {given.held_back}")


def condition(given: Answer, type_: str) -> Condition:
    (found,) = [x for x in given.conditions if x.type == type_]
    return found


def workload(given: Answer) -> Manifest:
    """The only workload of an answer."""
    (found,) = workloads(given).values()
    return found


def workloads(given: Answer) -> dict[str, Manifest]:
    return {k: m for k, m in manifests(given).items() if k.startswith("model-serving")}


def pods(manifest: Manifest) -> dict[str, Manifest]:
    """Pod templates of a workload by role, each `{"metadata": ..., "spec": ...}`."""
    if manifest["kind"] == "Deployment":
        return {"standalone": manifest["spec"]["template"]}
    if manifest["kind"] == "LeaderWorkerSet":
        template = manifest["spec"]["leaderWorkerTemplate"]
        return {"leader": template["leaderTemplate"], "worker": template["workerTemplate"]}
    return {
        q["name"]: {
            "metadata": {k: q[k] for k in ("labels", "annotations") if k in q},
            "spec": q["spec"]["podSpec"],
        }
        for q in manifest["spec"]["template"]["cliques"]
    }


def engine_container(pod: Manifest) -> Manifest:
    return next(x for x in pod["spec"]["containers"] if x["name"] == "engine")


def env_of(pod: Manifest, name: str = "engine") -> dict[str, Any]:
    found = next(
        x for x in (*pod["spec"]["containers"], *pod["spec"].get("initContainers", [])) if x["name"] == name
    )
    return {e["name"]: e.get("value", e.get("valueFrom")) for e in found.get("env", [])}


def team_space(team: str = TEAM) -> str:
    return names.team_namespace(team)


def run(composite: Manifest, stack: str = "Standard", **of_cluster: Any) -> dict[str, Manifest]:
    """The workloads once everything before them stands."""
    given, _ = settled(composite, cluster(stack=stack, **of_cluster), cache())
    return workloads(given)


def one(composite: Manifest, stack: str = "Standard", **of_cluster: Any) -> Manifest:
    (found,) = run(composite, stack, **of_cluster).values()
    return found


def object_names(found: dict[str, Manifest]) -> set[str]:
    return {m["metadata"]["name"] for m in found.values()}


def all_pods(composite: Manifest, stack: str, **of_cluster: Any) -> dict[str, Manifest]:
    return {
        f"{key}/{role}": pod
        for key, manifest in run(composite, stack, **of_cluster).items()
        for role, pod in pods(manifest).items()
    }


SHAPES = [
    (replica(), "Standard", ["Deployment"], "one pod"),
    (replica(), "Dynamo", ["Deployment"], "one pod, whatever the stack"),
    (replica(gang()), "Standard", ["LeaderWorkerSet"], "a gang"),
    (replica(gang()), "Dynamo", ["PodCliqueSet"], "a gang"),
    (replica(gang("a"), engine("b")), "Dynamo", ["PodCliqueSet", "Deployment"], "each by its shape"),
    (split(), "Standard", ["Deployment", "Deployment"], "a pair of single pods"),
    (split(gangs=True), "Standard", ["LeaderWorkerSet", "LeaderWorkerSet"], "a pair of gangs"),
    (split(), "Dynamo", ["PodCliqueSet"], "case C54: both halves or neither, single pods too"),
    (split(gangs=True), "Dynamo", ["PodCliqueSet"], "case C54: both halves or neither"),
]
