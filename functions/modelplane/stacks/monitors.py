"""What Prometheus gathers of engines and endpoint pickers, in every team's namespace.

Only pods that serve are asked: in a gang no other has request metrics. What is kept is listed in
facts/metrics.yaml. The chart makes the PodMonitors: as objects of their own they would be six more of
what core applies in one go.
"""

from modelplane import contracts as c
from modelplane.core.paths import Manifest
from modelplane.facts import metrics

_INTERVAL = "15s"
# A team could make any number of series; past this a scrape counts as failed, which is seen.
_SAMPLE_LIMIT = 20_000


def pod_monitors() -> list[Manifest]:
    """Return the chart's `prometheus.additionalPodMonitors`: names beside specs of PodMonitors."""
    serving: Manifest = {"matchExpressions": [{"key": c.SERVING_LABEL, "operator": "Exists"}]}
    pickers: Manifest = {"matchLabels": {c.ROLE_LABEL: c.ROLE_PICKER}}
    return [
        # The engine's own port, by name: an engine may listen elsewhere than at 8000, and the proxy before a
        # decode engine would answer a second time for it.
        _monitor("engines", serving, "http", metrics.ENGINES, (c.SERVING_LABEL, c.ENGINE_LABEL)),
        _monitor("pickers", pickers, "metrics", (metrics.PICKER,), (c.REPLICA_LABEL,)),
    ]


def _monitor(
    name: str, selector: Manifest, port: str, kept: tuple[str, ...], labels: tuple[str, ...]
) -> Manifest:
    keep = {"action": "keep", "sourceLabels": ["__name__"], "regex": metrics.pattern(kept)}
    return {
        "name": f"modelplane-{name}",
        "namespaceSelector": {"any": True},
        "selector": selector,
        "podTargetLabels": list(labels),
        "sampleLimit": _SAMPLE_LIMIT,
        "podMetricsEndpoints": [
            {"port": port, "path": "/metrics", "interval": _INTERVAL, "metricRelabelings": [keep]}
        ],
    }
