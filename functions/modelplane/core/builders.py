"""Builders for what Modelplane composes through providers: one envelope each, so no composer repeats it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from modelplane import contracts as c
from modelplane import names
from modelplane.core.paths import Manifest

# What a provider may do with an object that must not be deleted on the cluster when it leaves the plan.
WITHOUT_DELETE = ("Create", "Observe", "Update", "LateInitialize")
OBSERVE_ONLY = ("Observe",)

# Queries for provider-kubernetes readiness: `object` is the remote object. Each guards with has(), since a
# query that errors before the status exists reads as a failure (provider-kubernetes, DeriveFromCelQuery).
AVAILABLE = (
    "has(object.status) && has(object.status.conditions) && "
    'object.status.conditions.exists(c, c.type == "Available" && c.status == "True")'
)
ROLLED_OUT = (
    "has(object.status) && has(object.status.observedGeneration) && "
    "object.status.observedGeneration >= object.metadata.generation && " + AVAILABLE
)
JOB_COMPLETE = (
    "has(object.status) && has(object.status.conditions) && "
    'object.status.conditions.exists(c, c.type == "Complete" && c.status == "True")'
)
CLAIM_BOUND = 'has(object.status) && has(object.status.phase) && object.status.phase == "Bound"'
HAS_ADDRESS = "has(object.status) && has(object.status.addresses) && size(object.status.addresses) > 0"
# A PodCliqueSet has no Available condition; availableReplicas counts copies, old ones too, and an update that
# runs has not said yet when it ended (grove PodCliqueSet status).
GANGS_AVAILABLE = (
    "has(object.status) && has(object.status.observedGeneration) && "
    "object.status.observedGeneration >= object.metadata.generation && "
    "has(object.status.availableReplicas) && object.spec.replicas > 0 && "
    "object.status.availableReplicas >= object.spec.replicas && "
    "(!has(object.status.updateProgress) || has(object.status.updateProgress.updateEndedAt))"
)


@dataclass(frozen=True, slots=True)
class Chart:
    """A Helm chart at a pinned version, and the namespace it goes to.

    Attributes:
        name: the chart's name; with `mp-` before it the Helm release's, unless `release_name` is given.
        repository: an `oci://` or `https://` address.
        version: as the repository spells it.
        namespace: on the cluster.
        release_name: for charts that insist on one.
        pull_secret: Secret for the repository, in the Release's own namespace; empty for none.
    """

    name: str
    repository: str
    version: str
    namespace: str
    release_name: str = ""
    pull_secret: str = ""


@dataclass(frozen=True, slots=True)
class Target:
    """The cluster that Objects and Releases of one composite go to.

    Attributes:
        config: name of the provider config.
        config_kind: `ProviderConfig` or `ClusterProviderConfig`.
        namespace: control-plane namespace the Objects and Releases live in; None: the composite's own.
        labels: on each of them, for selectors of other composites.
    """

    config: str
    config_kind: str = "ProviderConfig"
    namespace: str | None = None
    labels: Mapping[str, str] | None = None

    def object(
        self,
        name: str,
        manifest: Manifest,
        *,
        ready_when: str = "",
        policies: Sequence[str] | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> Manifest:
        """Return a provider-kubernetes Object that applies `manifest` on the cluster.

        Without `ready_when` (a CEL query over the remote object) it is ready once created.
        """
        readiness = (
            {"policy": "DeriveFromCelQuery", "celQuery": ready_when}
            if ready_when
            else {"policy": "SuccessfulCreate"}
        )
        spec: Manifest = {
            "forProvider": {"manifest": manifest},
            "providerConfigRef": self._config(),
            "readiness": readiness,
        }
        if policies:
            spec["managementPolicies"] = list(policies)
        return {
            "apiVersion": c.KUBERNETES_API,
            "kind": "Object",
            "metadata": self._metadata(name, labels),
            "spec": spec,
        }

    def release(
        self,
        name: str,
        chart: Chart,
        values: Mapping[str, Any],
        *,
        policies: Sequence[str] | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> Manifest:
        """Return a provider-helm Release of a chart; it waits, so Ready means the pods run.

        The Helm release name is an annotation: fixed per chart, so it never grows with the cluster's name and
        cannot adopt a user's own release.
        """
        chart_spec: Manifest = {
            "name": chart.name,
            "repository": chart.repository,
            "version": chart.version,
        }
        if chart.pull_secret:
            chart_spec["pullSecretRef"] = {"name": chart.pull_secret}
        spec: Manifest = {
            # Without it a failed first install is never retried (provider-helm, spec.rollbackLimit).
            "rollbackLimit": 3,
            "forProvider": {
                "chart": chart_spec,
                "namespace": chart.namespace,
                "values": dict(values),
                "wait": True,
                "waitTimeout": "10m",
            },
            "providerConfigRef": self._config(),
        }
        if policies:
            spec["managementPolicies"] = list(policies)
        metadata = self._metadata(name, labels)
        release_name = chart.release_name or names.release(chart.name)
        metadata["annotations"] = {c.EXTERNAL_NAME_ANNOTATION: release_name}
        return {"apiVersion": c.HELM_API, "kind": "Release", "metadata": metadata, "spec": spec}

    def _config(self) -> Manifest:
        return {"kind": self.config_kind, "name": self.config}

    def _metadata(self, name: str, labels: Mapping[str, str] | None) -> Manifest:
        metadata: Manifest = {"name": name}
        if self.namespace:
            metadata["namespace"] = self.namespace
        if merged := {**(self.labels or {}), **(labels or {})}:
            metadata["labels"] = merged
        return metadata


@dataclass(frozen=True, slots=True)
class SecretKey:
    """One key of a Secret on the control plane."""

    namespace: str
    name: str
    key: str


@dataclass(frozen=True, slots=True)
class Identity:
    """A cloud identity layered on a kubeconfig; `type` is the provider's own word for it."""

    type: str
    secret: SecretKey


def provider_config(
    api_version: str,
    kind: str,
    name: str,
    kubeconfig: SecretKey,
    identity: Identity | None,
    namespace: str | None,
) -> Manifest:
    """Return a helm or kubernetes (Cluster)ProviderConfig that reads a kubeconfig Secret.

    The four kinds share one spec (provider-helm and provider-kubernetes, apis/namespaced/v1beta1).
    """
    spec: Manifest = {"credentials": {"source": "Secret", "secretRef": _secret_ref(kubeconfig)}}
    if identity is not None:
        spec["identity"] = {
            "type": identity.type,
            "source": "Secret",
            "secretRef": _secret_ref(identity.secret),
        }
    metadata: Manifest = {"name": name}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}


def _secret_ref(secret: SecretKey) -> Manifest:
    return {"namespace": secret.namespace, "name": secret.name, "key": secret.key}
