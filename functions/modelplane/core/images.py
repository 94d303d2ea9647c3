"""Which Secret pulls what we run ourselves, as an InferenceCluster says."""

from collections.abc import Mapping
from typing import Any

from modelplane import contracts as c
from modelplane.core import paths
from modelplane.core.paths import Manifest

# The one key of a pull Secret that kubelet reads.
DOCKER_CONFIG = ".dockerconfigjson"


def pull_secret(cluster: Mapping[str, Any]) -> str:
    """Return the name of the mirror's pull Secret; empty without a mirror.

    Sent to a public registry its credentials would turn anonymous pulls into failed ones.
    """
    images = paths.mapping(cluster, "spec", "images")
    return paths.text(images, "pullSecretRef", "name") if paths.text(images, "mirror") else ""


def pull_secrets(cluster: Mapping[str, Any]) -> list[Manifest]:
    """Return the imagePullSecrets of a pod of ours in a team's namespace; none without a mirror."""
    return [{"name": c.PULL_SECRET}] if pull_secret(cluster) else []


def copied(namespace: str, encoded: str, labels: Mapping[str, str]) -> Manifest:
    """Return a copy of the mirror's pull Secret for a namespace on a cluster: no more than kubelet reads."""
    metadata: Manifest = {"name": c.PULL_SECRET, "namespace": namespace}
    if labels:
        metadata["labels"] = dict(labels)
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata,
        "type": "kubernetes.io/dockerconfigjson",
        "data": {DOCKER_CONFIG: encoded},
    }


def mirrored(mirror: str, image: str) -> str:
    """Return where an image is pulled from: its first part is the source registry; none, no mirror."""
    return f"{mirror}/{image.partition('/')[2]}" if mirror else image
