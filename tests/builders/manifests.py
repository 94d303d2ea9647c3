"""Manifest files as users write them, for tests of what reads files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

LARGE = 'device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("20Gi")) >= 0'
Manifest = dict[str, Any]


def gpu_class(name: str = "l4", *, disk: int = 200, count: int = 1, memory: str = "23034Mi") -> Manifest:
    """A class on EKS with so many GPUs a node."""
    instance = {1: "g6.8xlarge", 4: "g6.12xlarge", 8: "p5en.48xlarge"}[count]
    return {
        "apiVersion": "modelplane.ai/v1alpha1",
        "kind": "InferenceClass",
        "metadata": {"name": name},
        "spec": {
            "provisioning": {
                "provider": "EKS",
                "eks": {
                    "instanceType": instance,
                    "diskSizeGb": disk,
                    "accelerator": {"type": "nvidia-l4", "count": count},
                },
            },
            "devices": [
                {
                    "name": "gpu",
                    "driver": "gpu.nvidia.com",
                    "deviceClassName": "gpu.nvidia.com",
                    "count": count,
                    "capacity": {"memory": {"value": memory}},
                }
            ],
        },
    }


def cluster(
    name: str = "north",
    *,
    stack: str = "Dynamo",
    class_name: str = "l4",
    nodes: int = 2,
    labels: Mapping[str, str] | None = None,
    taints: list[Manifest] | None = None,
) -> Manifest:
    """A cluster on EKS with one pool."""
    spec: Manifest = {
        "stack": stack,
        "cluster": {"source": "EKS", "eks": {"region": "us-west-2"}},
        "nodePools": [{"name": "gpu", "className": class_name, "nodeCount": nodes}],
    }
    if taints:
        spec["taints"] = taints
    metadata: Manifest = {"name": name, "labels": dict(labels or {})}
    return {
        "apiVersion": "modelplane.ai/v1alpha1",
        "kind": "InferenceCluster",
        "metadata": metadata,
        "spec": spec,
    }


def existing(name: str = "lab", storage_class: str = "rwx") -> Manifest:
    """A cluster that somebody else runs."""
    found = cluster(name)
    block: Manifest = {"secretRef": {"name": "lab"}}
    if storage_class:
        block["cache"] = {"storageClassName": storage_class}
    found["spec"]["cluster"] = {"source": "Existing", "existing": block}
    return found


def member(
    role: str = "Standalone",
    *,
    count: int = 1,
    cel: str = LARGE,
    command: str = "vllm serve Qwen/Qwen2.5-7B-Instruct",
    workers: int = 1,
    image: str = "vllm/vllm-openai:v0.23.0",
) -> Manifest:
    """A member whose pods claim so many devices."""
    found: Manifest = {
        "role": role,
        "nodeSelector": {"devices": [{"name": "gpu", "count": count, "selectors": [{"cel": cel}]}]},
        "template": {
            "spec": {
                "containers": [{"name": "engine", "image": image, "command": ["/bin/sh", "-c", command]}]
            }
        },
    }
    if role == "Worker":
        found["worker"] = {"nodes": workers}
    return found


def deployment(
    *members: Manifest,
    name: str = "qwen",
    namespace: str = "ml-team",
    replicas: int = 1,
    cache: str = "",
    labels: Mapping[str, str] | None = None,
    **spec: Any,
) -> Manifest:
    """A deployment of one engine."""
    template: Manifest = {"engines": [{"name": "qwen", "members": list(members) or [member()]}]}
    if cache:
        template["modelCacheRef"] = {"name": cache}
    if labels:
        template["clusterSelector"] = {"matchLabels": dict(labels)}
    return {
        "apiVersion": "modelplane.ai/v1alpha1",
        "kind": "ModelDeployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"replicas": replicas, "template": {"spec": {**template, **spec}}},
    }


def cache(
    name: str = "qwen",
    *,
    repo: str = "Qwen/Qwen2.5-7B-Instruct",
    size: int = 40,
    labels: Mapping[str, str] | None = None,
) -> Manifest:
    """A cache of a hub repository."""
    spec: Manifest = {"source": "HuggingFace", "huggingFace": {"repo": repo, "sizeGiB": size}}
    if labels:
        spec["clusterSelector"] = {"matchLabels": dict(labels)}
    return {
        "apiVersion": "modelplane.ai/v1alpha1",
        "kind": "ModelCache",
        "metadata": {"name": name, "namespace": "ml-team"},
        "spec": spec,
    }


def service(**labels: str) -> Manifest:
    """A service over endpoints with these labels."""
    wanted = labels or {"modelplane.ai/deployment": "qwen"}
    return {
        "apiVersion": "modelplane.ai/v1alpha1",
        "kind": "ModelService",
        "metadata": {"name": "qwen", "namespace": "ml-team"},
        "spec": {"endpoints": [{"selector": {"matchLabels": wanted}}]},
    }


def front_door(name: str = "default") -> Manifest:
    """The fleet's front door."""
    return {
        "apiVersion": "modelplane.ai/v1alpha1",
        "kind": "InferenceGateway",
        "metadata": {"name": name},
        "spec": {"backend": "Envoy"},
    }


def write(folder: Path, *manifests: Manifest, name: str = "all.yaml") -> Path:
    """Write the manifests into a file of the folder, which is made, and return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(yaml.safe_dump_all(manifests, sort_keys=False))
    return folder
