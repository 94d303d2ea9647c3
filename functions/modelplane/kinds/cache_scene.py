"""What one pass knows of a cache on a cluster: all that decides, read once and in one place."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from modelplane import contracts as c
from modelplane import names
from modelplane.api.model_cache import HuggingFace, ModelCacheReplicaSpec
from modelplane.core import Inputs, builders, paths
from modelplane.kinds.cache_staging import Artifact, Place

CLUSTER = "cluster"
AUTH_SECRET = "auth-secret"

VOLUME = "volume"
AUTH = "auth"
_STAGING = "staging-"
_BOUND = "Bound"


@dataclass(frozen=True, slots=True)
class Scene:
    """What one pass knows.

    Attributes:
        inputs: of the pass.
        spec: of the replica.
        source: its repository.
        cluster: the required InferenceCluster.
        what: the artifact that is asked for.
    """

    inputs: Inputs
    spec: ModelCacheReplicaSpec
    source: HuggingFace
    cluster: Mapping[str, Any]
    what: Artifact

    @property
    def place(self) -> Place:
        """Where the weights go."""
        return Place(self.inputs.namespace, self.spec.cache_name)

    @property
    def key(self) -> str:
        """Key of the Job that stages the artifact: Job specs are fixed, so each artifact has one."""
        return f"{_STAGING}{self.what.id}"

    @property
    def target(self) -> builders.Target:
        """The cluster, as Objects name it."""
        config = (
            paths.text(self.cluster, "status", "providerConfigRef", "name")
            or paths.text(self.inputs.observed.get(VOLUME), "spec", "providerConfigRef", "name")
            or names.cluster_config(self.spec.cluster_name)
        )
        labels = {
            c.CLUSTER_LABEL: names.label_value(self.spec.cluster_name),
            c.CACHE_LABEL: names.label_value(self.spec.cache_name),
        }
        return builders.Target(config, "ClusterProviderConfig", self.inputs.namespace, labels)

    @property
    def closed(self) -> str:
        """Why nothing may be created on the cluster yet; empty where it may."""
        name, team = self.spec.cluster_name, self.inputs.namespace
        if not paths.text(self.cluster, "status", "providerConfigRef", "name"):
            return f"InferenceCluster {name} cannot be reached yet"
        if team not in paths.items(self.cluster, "status", "namespaces"):
            return f"InferenceCluster {name} has not prepared the namespace of {team} yet"
        if not paths.text(self.cluster, "status", "cache", "storageClassName"):
            return (
                f"InferenceCluster {name} has no storage class for ReadWriteMany volumes"
                " (status.cache.storageClassName)"
            )
        return ""

    @property
    def token(self) -> str:
        """The token as its Secret holds it; empty where none is asked for or none is there."""
        if self.source.auth_secret is None:
            return ""
        return paths.text(self.inputs.one(AUTH_SECRET), "data", self.source.auth_secret.key)

    @property
    def lacks(self) -> str:
        """What of a token that is asked for is not there; empty where nothing is."""
        wanted = self.source.auth_secret
        if wanted is None or self.token:
            return ""
        return f"Secret {self.inputs.namespace}/{wanted.name} has no key {wanted.key}"

    @property
    def bound(self) -> bool:
        """Whether the volume is bound."""
        return self._volume_phase == _BOUND

    @property
    def lost(self) -> bool:
        """Whether there is no volume, or a new one; one the provider does not show now is not judged."""
        return VOLUME not in self.inputs.observed or self._volume_phase not in ("", _BOUND)

    @property
    def _volume_phase(self) -> str:
        return paths.text(self.inputs.remote(VOLUME), "status", "phase")

    @property
    def settled(self) -> bool:
        """Whether status has on record that the volume holds the artifact: Job and token may go."""
        recorded = paths.text(self.inputs.composite, "status", "artifact") == self.what.text
        return recorded and not self.lost

    @property
    def staged(self) -> bool:
        """Whether the volume holds the artifact, on record or by the Job's word in this pass."""
        return self.settled or (self.job_says("Complete") is not None and not self.lost)

    def job_says(self, type_: str) -> str | None:
        """Return the message of the Job's condition that is True, or None where it is not."""
        found = paths.condition(self.inputs.remote(self.key), type_)
        return paths.text(found, "message") if found.get("status") == "True" else None
