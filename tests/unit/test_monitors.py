"""What is gathered of engines and pickers: whom Prometheus asks, and which names are kept."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import judges
from modelplane import contracts as c
from modelplane.facts import metrics, versions
from modelplane.gangs import picker
from modelplane.gangs.site import Site
from modelplane.stacks.component import Context
from modelplane.stacks.components import prometheus

CONTEXT = Context(versions.newest())
SITE = Site("heron-1", "lab", c.STANDARD)


def monitor(name: str) -> dict[str, Any]:
    """A PodMonitor as the chart writes it."""
    found = {
        x["name"]: x for x in prometheus.COMPONENT.values(CONTEXT)["prometheus"]["additionalPodMonitors"]
    }
    spec = {key: value for key, value in found[f"modelplane-{name}"].items() if key != "name"}
    head = {"apiVersion": "monitoring.coreos.com/v1", "kind": "PodMonitor"}
    return {**head, "metadata": {"name": name, "namespace": "monitoring"}, "spec": spec}


@pytest.mark.parametrize("name", ["engines", "pickers"])
def test_a_monitor_is_one_that_the_operator_admits(name: str, crds: Path) -> None:
    assert judges.problems(monitor(name), crds) == []


KEPT: list[tuple[str, str, bool]] = [
    ("engines", "vllm:num_requests_waiting", True),
    ("engines", "vllm:time_to_first_token_seconds_bucket", True),
    ("engines", "vllm:time_to_first_token_seconds_sum", True),
    ("engines", "sglang:num_queue_reqs", True),
    ("engines", "vllm:num_requests_waiting_bucket", False),
    ("engines", "vllm:corrupted_requests", False),
    ("engines", "python_gc_objects_collected_total", False),
    ("engines", "llm_d_router_epp_request_total", False),
    ("pickers", "llm_d_router_epp_scheduler_e2e_duration_seconds_count", True),
    ("pickers", "go_goroutines", False),
]


@pytest.mark.parametrize(("name", "metric", "kept"), KEPT, ids=[f"{k[0]}-{k[1]}" for k in KEPT])
def test_what_is_listed_is_kept_and_nothing_else(name: str, metric: str, kept: bool) -> None:
    (endpoint,) = monitor(name)["spec"]["podMetricsEndpoints"]
    (rule,) = endpoint["metricRelabelings"]
    assert (re.fullmatch(rule["regex"], metric) is not None) is kept


def test_pickers_are_found_by_labels_and_port_as_they_are_composed() -> None:
    pod = picker.deployment(SITE, "", "image")["spec"]["template"]
    wanted = monitor("pickers")["spec"]
    assert wanted["selector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
    ports = [p["name"] for x in pod["spec"]["containers"] for p in x["ports"]]
    assert wanted["podMetricsEndpoints"][0]["port"] in ports


def test_only_pods_that_serve_are_asked() -> None:
    """Workers of a gang have no request metrics, and a proxy's would be the engine's a second time."""
    (wanted,) = monitor("engines")["spec"]["selector"]["matchExpressions"]
    assert wanted == {"key": c.SERVING_LABEL, "operator": "Exists"}
    assert monitor("engines")["spec"]["podMetricsEndpoints"][0]["port"] == "http"


def test_every_name_says_where_it_was_read() -> None:
    for reporter in metrics.reporters().values():
        assert reporter.source.startswith("https://")
        assert reporter.known in ("source", "text")
        assert set(reporter.metrics.values()) <= {"gauge", "counter", "histogram"}
        assert not [name for name in reporter.metrics if name.endswith(("_bucket", "_sum", "_count"))]
