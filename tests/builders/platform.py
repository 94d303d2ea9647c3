"""Classes, clusters, caches and whoever is on a cluster, with what their children report."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from modelplane import contracts as c
from modelplane import names
from modelplane.api import definitions
from modelplane.core import Answer, Inputs, Kind, paths, settle

Manifest = dict[str, Any]

KUBECONFIG = {"type": "Kubeconfig", "name": "north-kubeconfig", "key": "kubeconfig"}
RWX = "modelplane-rwx-efs"


def inference_class(name: str = "amber-4x", provisioning: Manifest | None = None, **spec: Any) -> Manifest:
    """A class with four L40S and a recipe for EKS; `provisioning={}` leaves the recipe out."""
    eks = {
        "instanceType": "g6e.12xlarge",
        "diskSizeGb": 300,
        "accelerator": {"type": "nvidia-l40s", "count": 4},
    }
    recipe = {"provider": "EKS", "eks": eks} if provisioning is None else provisioning
    devices = [
        {
            "name": "gpu",
            "driver": "gpu.nvidia.com",
            "deviceClassName": "gpu.nvidia.com",
            "count": 4,
            "attributes": {"architecture": {"string": "Ada Lovelace"}},
            "capacity": {"memory": {"value": "46068Mi"}},
        }
    ]
    wanted = {"devices": devices, "provisioning": recipe, **spec}
    return {
        "apiVersion": c.API,
        "kind": "InferenceClass",
        "metadata": {"name": name},
        "spec": {key: value for key, value in wanted.items() if value},
    }


def pool(name: str = "gpu", **over: Any) -> Manifest:
    """A pool of two to four nodes in one zone; None removes a field."""
    wanted = {
        "name": name,
        "className": "amber-4x",
        "nodeCount": 2,
        "minNodeCount": 1,
        "maxNodeCount": 4,
        "zones": ["eu-north-1a"],
        **over,
    }
    return {key: value for key, value in wanted.items() if value is not None}


def cluster(
    name: str = "north",
    source: str = c.EKS,
    pools: Sequence[Manifest] | None = None,
    labels: Mapping[str, str] | None = None,
    status: Manifest | None = None,
    block: Manifest | None = None,
    **spec: Any,
) -> Manifest:
    """A cluster as admitted: on EKS, or Existing with a cache class; defaults are the API server's."""
    blocks = {
        c.EKS: {"eks": {"region": "eu-north-1"}},
        c.EXISTING: {
            "existing": {
                "secretRef": {"name": f"{name}-kubeconfig"},
                "cache": {"storageClassName": "nfs-rwx"},
            }
        },
        "GKE": {"gke": {"region": "europe-north1"}},
    }
    where = copy.deepcopy(blocks.get(source, {}))
    for key in where:
        where[key].update(block or {})
    composite: Manifest = {
        "apiVersion": c.API,
        "kind": "InferenceCluster",
        "metadata": {"name": name, **({"labels": dict(labels)} if labels else {})},
        "spec": {
            "cluster": {"source": source, **where},
            "nodePools": [pool()] if pools is None else list(pools),
            **spec,
        },
    }
    found = definitions.load().default(composite)
    return {**found, "status": copy.deepcopy(status)} if status else found


def ready_cluster(name: str = "north", teams: Sequence[str] = ("lab",), **over: Any) -> Manifest:
    """A cluster as caches and replicas see it once it serves."""
    status = {
        "conditions": [{"type": c.READY, "status": "True", "reason": "Available"}],
        "providerConfigRef": {"name": names.cluster_config(name)},
        "namespace": c.SYSTEM_NAMESPACE,
        "cache": {"storageClassName": "shared-rwx"},
        "namespaces": list(teams),
        **over.pop("status", {}),
    }
    return cluster(name, status={k: v for k, v in status.items() if v is not None}, **over)


def on_cluster(
    kind: str = "ModelReplica", namespace: str = "lab", name: str = "x", to: str = "north"
) -> Manifest:
    """Something of a team's on a cluster."""
    metadata = {"name": name, "namespace": namespace, "labels": {c.CLUSTER_LABEL: to}}
    return {"apiVersion": c.API, "kind": kind, "metadata": metadata, "spec": {"clusterName": to}}


def model_cache(
    name: str = "osprey-weights", selector: Mapping[str, str] | None = None, **spec: Any
) -> Manifest:
    """A cache of a hub repository on the cold clusters; `selector={}` takes all."""
    labels = {"climate": "cold"} if selector is None else dict(selector)
    composite = {
        "apiVersion": c.API,
        "kind": "ModelCache",
        "metadata": {"name": name, "namespace": "lab"},
        "spec": {
            "source": "HuggingFace",
            "huggingFace": {"repo": "example-org/mid-14b", "sizeGiB": 40},
            **({"clusterSelector": {"matchLabels": labels}} if labels else {}),
            **spec,
        },
    }
    return definitions.load().default(composite)


def cache_replica(status: Manifest | None = None, **hugging_face: Any) -> Manifest:
    """A cache on the cluster north; `hugging_face` overrides fields of its repository."""
    source = {"repo": "example-org/mid-14b", "sizeGiB": 40, **hugging_face}
    composite: Manifest = {
        "apiVersion": c.API,
        "kind": "ModelCacheReplica",
        "metadata": {"name": names.cache_replica("osprey-weights", "north"), "namespace": "lab"},
        "spec": {
            "cacheName": "osprey-weights",
            "clusterName": "north",
            "source": "HuggingFace",
            "huggingFace": source,
            "storage": {"sizeGiB": source["sizeGiB"]},
        },
    }
    found = definitions.load().default(composite)
    return {**found, "status": copy.deepcopy(status)} if status else found


def secret(name: str = "hub", **data: str) -> Manifest:
    """A Secret with encoded data."""
    metadata = {"name": name, "namespace": "lab"}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}


def required(kind: Kind, composite: Manifest, *objects: Manifest) -> dict[str, list[Manifest]]:
    """What the kind's requirements find among the objects, as Crossplane matches them."""
    found = {}
    for r in kind.requires(composite):
        found[r.name] = [
            x
            for x in objects
            if (x["apiVersion"], x["kind"]) == (r.api_version, r.kind)
            and r.match_name in (None, paths.name(x))
            and r.namespace in (None, paths.namespace(x))
            and all(paths.labels(x).get(k) == v for k, v in (r.match_labels or {}).items())
        ]
    return found


def compose(
    kind: Kind, composite: Manifest, *objects: Manifest, observed: Mapping[str, Manifest] | None = None
) -> Answer:
    """One call of a composer over what its requirements find among the objects."""
    return settle.compose(kind, Inputs(composite, dict(observed or {}), required(kind, composite, *objects)))


def reported(manifest: Mapping[str, Any], *, ready: bool = True, **status: Any) -> Manifest:
    """A composed object as observed, with its status; an Object shows what it made."""
    seen = copy.deepcopy(dict(manifest))
    state = "True" if ready else "False"
    seen["status"] = {"conditions": [{"type": c.READY, "status": state}], **copy.deepcopy(status)}
    if seen["kind"] == "Object":
        seen["status"].setdefault("atProvider", {"manifest": copy.deepcopy(remote(seen))})
    return seen


def remote(obj: Mapping[str, Any]) -> Manifest:
    """What an Object makes on the cluster."""
    found: Manifest = obj["spec"]["forProvider"]["manifest"]
    return found


def observed_of(answer: Answer, *, ready: bool = True, **over: Manifest) -> dict[str, Manifest]:
    """Everything of an answer as observed; `over` replaces single keys, with underscores for hyphens."""
    seen = {key: reported(x.manifest, ready=ready) for key, x in answer.resources.items()}
    return {**seen, **{key.replace("_", "-"): value for key, value in over.items()}}


def eks_status(**over: Any) -> Manifest:
    """What an EKSCluster reports once its cluster serves."""
    found = {
        "secrets": [dict(KUBECONFIG)],
        "cache": {"storageClassName": RWX},
        "nodePools": [{"name": "gpu", "status": "ACTIVE", "readyNodes": 2, "zones": ["eu-north-1a"]}],
        **over,
    }
    return {key: value for key, value in found.items() if value is not None}


def condition(answer: Answer, type_: str) -> tuple[bool | None, str, str]:
    """Status, reason and message of a condition of an answer."""
    found = next(x for x in answer.conditions if x.type == type_)
    return found.status, found.reason, found.message
