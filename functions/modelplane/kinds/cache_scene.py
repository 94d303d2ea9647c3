"""What one pass knows of a cache on a cluster: all that decides, read once and in one place."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from modelplane import contracts as c
from modelplane import names
from modelplane.api.model_cache import ModelCacheReplicaSpec
from modelplane.core import Inputs, builders, paths
from modelplane.kinds import cache_report
from modelplane.kinds.cache_report import Report
from modelplane.kinds.cache_sources import Artifact, Source
from modelplane.kinds.cache_staging import Place

CLUSTER = "cluster"
AUTH_SECRET = "auth-secret"

VOLUME = "volume"
AUTH = "auth"
_STAGING = "staging-"
BOUND = "Bound"


@dataclass(frozen=True, slots=True)
class Ground:
    """A cache's cluster.

    Attributes:
        inputs: of the pass.
        spec: of the replica.
        cluster: the required InferenceCluster.
    """

    inputs: Inputs
    spec: ModelCacheReplicaSpec
    cluster: Mapping[str, Any]

    @property
    def place(self) -> Place:
        """Where the weights go."""
        return Place(self.inputs.namespace, self.spec.cache_name)

    @property
    def target(self) -> builders.Target:
        """The cluster, as Objects name it; one that is not reported now is the one they named before."""
        before = (
            paths.text(seen, "spec", "providerConfigRef", "name") for seen in self.inputs.observed.values()
        )
        config = (
            paths.text(self.cluster, "status", "providerConfigRef", "name")
            or next((name for name in before if name), "")
            or names.cluster_config(self.spec.cluster_name)
        )
        labels = {
            c.CLUSTER_LABEL: names.label_value(self.spec.cluster_name),
            c.CACHE_LABEL: names.label_value(self.spec.cache_name),
        }
        return builders.Target(config, "ClusterProviderConfig", self.inputs.namespace, labels)

    @property
    def unprepared(self) -> str:
        """Why nothing of the team may be on the cluster yet; empty where it may."""
        name, team = self.spec.cluster_name, self.inputs.namespace
        if not paths.text(self.cluster, "status", "providerConfigRef", "name"):
            return f"InferenceCluster {name} cannot be reached yet"
        if team not in paths.items(self.cluster, "status", "namespaces"):
            return f"InferenceCluster {name} has not prepared the namespace of {team} yet"
        return ""


@dataclass(frozen=True, slots=True)
class Scene(Ground):
    """What one pass knows of weights that are copied.

    Attributes:
        source: they come from.
    """

    source: Source

    @property
    def what(self) -> Artifact:
        """The artifact that is asked for."""
        return self.source.artifact

    @property
    def key(self) -> str:
        """Key of the Job that stages the artifact: Job specs are fixed, so each artifact has one."""
        return f"{_STAGING}{self.what.id}"

    def part(self, name: str) -> str:
        """Return the key of an object that the Job needs."""
        return f"{name}-{self.what.id}"

    @property
    def report(self) -> Report:
        """What the run that stages the artifact says of itself."""
        return cache_report.read(self.inputs.remote(self.part("report")), self.what.id)

    @property
    def without_class(self) -> str:
        """Why there can be no volume; empty where there can."""
        if paths.text(self.cluster, "status", "cache", "storageClassName"):
            return ""
        return (
            f"InferenceCluster {self.spec.cluster_name} has no storage class for ReadWriteMany volumes"
            " (status.cache.storageClassName)"
        )

    @property
    def closed(self) -> str:
        """Why nothing may be created on the cluster yet; empty where it may."""
        return self.unprepared or self.without_class

    @property
    def credential(self) -> dict[str, str]:
        """What of the named Secret goes to the cluster; nothing where none is named or it has nothing."""
        return self.source.credential(self.inputs.one(AUTH_SECRET)) if self.source.secret else {}

    @property
    def lacks(self) -> str:
        """What of a credential that is asked for is not there; empty where nothing is."""
        if not self.source.secret or self.credential:
            return ""
        return f"Secret {self.inputs.namespace}/{self.source.secret} has no {self.source.wants}"

    @property
    def bound(self) -> bool:
        """Whether the volume is bound."""
        return self._volume_phase == BOUND

    @property
    def lost(self) -> bool:
        """Whether there is no volume, or a new one; one the provider does not show now is not judged."""
        return VOLUME not in self.inputs.observed or self._volume_phase not in ("", BOUND)

    @property
    def _volume_phase(self) -> str:
        return paths.text(self.inputs.remote(VOLUME), "status", "phase")

    @property
    def settled(self) -> bool:
        """Whether status has on record that the volume holds the artifact: all else may go."""
        recorded = paths.text(self.inputs.composite, "status", "artifact") == self.what.text
        return recorded and not self.lost

    @property
    def staged(self) -> bool:
        """Whether the volume holds the artifact, on record or by the run's word in this pass.

        A Job that is complete has written its report: it fails where the report is not taken. So the report
        is waited for, which alone says what a branch was resolved to.
        """
        return self.settled or (self.report.state == cache_report.STAGED and not self.lost)

    def job_says(self, type_: str) -> str | None:
        """Return the words of the Job's condition that is True, or None where it is not."""
        found = paths.condition(self.inputs.remote(self.key), type_)
        return paths.said(found) if found.get("status") == "True" else None
