"""A synthetic fleet, and a deployment that wants places on it."""

from typing import Any

from modelplane import contracts as c

_DRIVER = "gpu.nvidia.com"
_READY = {
    "type": "Ready",
    "status": "True",
    "reason": "Available",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}

Manifest = dict[str, Any]


def device(architecture: str, memory: str, shape: int) -> Manifest:
    """Eight GPUs; a shape other than 0 is a kind of device of its own to every selector."""
    attributes: Manifest = {"architecture": {"string": architecture}}
    if shape:
        attributes["revision"] = {"int": shape}
    return {
        "name": "gpu",
        "claim": "DRA",
        "driver": _DRIVER,
        "deviceClassName": _DRIVER,
        "count": 8,
        "attributes": attributes,
        "capacity": {"memory": {"value": memory}},
    }


def cluster(number: int, pools: int, shapes: int = 1, nodes: int = 8) -> Manifest:
    """A ready cluster: on every second one the last pool fits, on the others none does."""
    name = f"cluster-{number:05d}"
    found = []
    for at in range(pools):
        fits = number % 2 == 0 and at == pools - 1
        kind = ("Hopper", "141Gi") if fits else ("Ada", "24Gi")
        shape = (number * pools + at) % shapes
        found.append({"name": f"pool-{at}", "nodes": nodes, "devices": [device(*kind, shape)]})
    return {
        "apiVersion": c.API,
        "kind": "InferenceCluster",
        "metadata": {"name": name, "uid": f"uid-{number}", "labels": {"modelplane.ai/region": "us"}},
        "spec": {
            "stack": "Standard" if number % 3 else "Dynamo",
            "cluster": {"source": "EKS", "eks": {"region": "us-east-1", "kubernetesVersion": "1.36"}},
            "nodePools": [{"name": p["name"], "className": "h200", "nodeCount": nodes} for p in found],
        },
        "status": {
            "conditions": [_READY],
            "gateway": {"address": f"10.{number >> 16}.{(number >> 8) & 255}.{number & 255}"},
            "providerConfigRef": {"name": name},
            "namespace": c.SYSTEM_NAMESPACE,
            "cache": {"storageClassName": "modelplane-rwx-efs"},
            "gpuPools": found,
        },
    }


def replica(number: int, pools: int) -> Manifest:
    """Another team's replica: one node of a cluster's last pool."""
    name = f"theirs-{number:05d}"
    claim = {"name": "gpu", "deviceClassName": _DRIVER, "count": 8}
    member = {"role": "Standalone", "nodePoolName": f"pool-{pools - 1}", "deviceRequests": [claim]}
    return {
        "apiVersion": c.API,
        "kind": "ModelReplica",
        "metadata": {"name": name, "namespace": "others", "uid": name},
        "spec": {"clusterName": f"cluster-{number:05d}", "engines": [{"name": "e", "members": [member]}]},
        "status": {"conditions": [_READY]},
    }


def deployment(replicas: int = 10, expressions: int = 2) -> Manifest:
    """A gang of two nodes with eight GPUs each, that many times; each pod with so many selectors."""
    texts = [
        f'device.capacity["{_DRIVER}"].memory.compareTo(quantity("80Gi")) >= 0',
        f'device.attributes["{_DRIVER}"].architecture == "Hopper"',
        *(f'device.driver != "other-{n}.example.org"' for n in range(expressions - 2)),
    ][:expressions]
    wants = {"devices": [{"name": "gpu", "count": 8, "selectors": [{"cel": text} for text in texts]}]}
    container = {"name": "engine", "image": "vllm/vllm-openai:v0.23.0", "command": ["vllm", "serve", "m"]}
    pods = {"template": {"spec": {"containers": [container]}}, "nodeSelector": wants}
    members = [{"role": "Leader", **pods}, {"role": "Worker", "worker": {"nodes": 1}, **pods}]
    return {
        "apiVersion": c.API,
        "kind": "ModelDeployment",
        "metadata": {"name": "m", "namespace": "ml-team", "uid": "u"},
        "spec": {
            "replicas": replicas,
            "template": {"spec": {"engines": [{"name": "e", "members": members}]}},
        },
    }
