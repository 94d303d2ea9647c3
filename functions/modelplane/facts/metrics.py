"""The metrics that are gathered from engines and pickers, with the source of each name."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

import yaml

ENGINES = ("vllm", "sglang")
PICKER = "picker"
# The series of a histogram and of a summary (prometheus.io/docs/concepts/metric_types).
_ENDINGS = "(_bucket|_sum|_count)?"


@dataclass(frozen=True, slots=True)
class Reporter:
    """What one program reports.

    Attributes:
        source: where its names were read.
        known: `source` or `text`, as in versions.yaml.
        note: where and when it reports.
        metrics: type by name; a histogram's name has no ending.
    """

    source: str
    known: str
    note: str
    metrics: Mapping[str, str]


@cache
def reporters() -> Mapping[str, Reporter]:
    """Return every program whose metrics are gathered, by name."""
    text = resources.files("modelplane.facts").joinpath("metrics.yaml").read_text(encoding="utf-8")
    return {
        name: Reporter(
            body["source"],
            body["known"],
            body["note"],
            {metric: str(about["type"]) for metric, about in body["metrics"].items()},
        )
        for name, body in yaml.safe_load(text).items()
    }


def pattern(names: Sequence[str]) -> str:
    """Return the expression that keeps the metrics of some programs, as Prometheus anchors it."""
    kept = []
    for name in names:
        for metric, kind in reporters()[name].metrics.items():
            kept.append(re.escape(metric) + (_ENDINGS if kind == "histogram" else ""))
    return "|".join(kept)
