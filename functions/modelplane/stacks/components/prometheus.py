"""Prometheus: gathers what engines, pickers and the gateway report."""

from modelplane import contracts as c
from modelplane.core.paths import Manifest
from modelplane.stacks import monitors
from modelplane.stacks.component import ChartComponent, Context, Crds, Images, pull_secrets
from modelplane.stacks.rival import Rival, deployment

_OFF = {"enabled": False}
_ENVOY_METRICS_PORT = "19001"


def _scrape_envoy() -> Manifest:
    """Envoy's own figures: its pods are made by Envoy Gateway and carry no monitor."""
    label = "__meta_kubernetes_pod_label_app_kubernetes_io_component"
    return {
        "job_name": "envoy",
        "metrics_path": "/stats/prometheus",
        "kubernetes_sd_configs": [{"role": "pod", "namespaces": {"names": [c.ENVOY_NAMESPACE]}}],
        "relabel_configs": [
            {"action": "keep", "source_labels": [label], "regex": "proxy"},
            {
                "action": "keep",
                "source_labels": ["__meta_kubernetes_pod_container_port_number"],
                "regex": _ENVOY_METRICS_PORT,
            },
            {"source_labels": ["__meta_kubernetes_pod_name"], "target_label": "pod"},
        ],
    }


def _values(context: Context) -> Manifest:
    return {
        "grafana": _OFF,
        "alertmanager": _OFF,
        # A managed control plane shows none of these: their targets would be down for ever.
        "kubeControllerManager": _OFF,
        "kubeEtcd": _OFF,
        "kubeScheduler": _OFF,
        "kubeProxy": _OFF,
        # A webhook that fails closed on rules is one more thing that can block a removal.
        "prometheusOperator": {"admissionWebhooks": _OFF, "tls": _OFF},
        "prometheus-node-exporter": {"tolerations": context.node_tolerations},
        "prometheus": {
            "additionalPodMonitors": monitors.pod_monitors(),
            "prometheusSpec": {
                "podMonitorSelectorNilUsesHelmValues": False,
                "serviceMonitorSelectorNilUsesHelmValues": False,
                # No volume claim: a claim without a class that can bind keeps the whole stack from Ready.
                # Kept small, since it then fills the node's own disk.
                "retention": "15d",
                "retentionSize": "10GB",
                "additionalScrapeConfigs": [_scrape_envoy()],
            },
        },
    }


def _mirrored(images: Images) -> Manifest:
    settings: Manifest = {}
    if images.mirror:
        settings["imageRegistry"] = images.mirror
    if secrets := pull_secrets(images):
        settings["imagePullSecrets"] = secrets
    return {"global": settings} if settings else {}


def _rivals(_: Context) -> list[Rival]:
    # Two operators fight over every Prometheus of the cluster. Names: plain manifests, and the chart under
    # the two release names its documentation uses.
    found = ("prometheus-operator", "kube-prometheus-stack-operator", "prometheus-kube-prometheus-operator")
    advice = "leave ours out: spec.components.prometheus.enabled false"
    return [deployment(c.MONITORING_NAMESPACE, name, instead=advice) for name in found]


COMPONENT = ChartComponent(
    key="prometheus",
    pin="prometheus",
    namespace=c.MONITORING_NAMESPACE,
    values=_values,
    mirrored=_mirrored,
    # Its own upgrade Job pulls kubectl under the cluster's version, a tag that clouds' builds do not have.
    crds=Crds.FOLDER,
    rivals=_rivals,
    optional=True,
)
