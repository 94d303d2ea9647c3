"""Which Secret pulls what we run ourselves, as an InferenceCluster says."""

from collections.abc import Mapping
from typing import Any

from modelplane import contracts as c
from modelplane.core import paths
from modelplane.core.paths import Manifest


def pull_secret(cluster: Mapping[str, Any]) -> str:
    """Return the name of the mirror's pull Secret; empty without a mirror.

    Sent to a public registry its credentials would turn anonymous pulls into failed ones.
    """
    images = paths.mapping(cluster, "spec", "images")
    return paths.text(images, "pullSecretRef", "name") if paths.text(images, "mirror") else ""


def pull_secrets(cluster: Mapping[str, Any]) -> list[Manifest]:
    """Return the imagePullSecrets of a pod of ours in a team's namespace; none without a mirror."""
    return [{"name": c.PULL_SECRET}] if pull_secret(cluster) else []
