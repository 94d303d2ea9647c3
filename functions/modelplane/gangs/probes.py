"""Probes of the pod that answers requests. A user's own probe always stands."""

from collections.abc import Mapping
from typing import Any

from modelplane import contracts as c
from modelplane.core import paths
from modelplane.core.paths import Manifest

# SGLang answers /health in about a second, so the default timeout of one second makes it flap.
TIMEOUT_SECONDS = 5
_PERIOD_SECONDS = 10
# Four hours: a terabyte of weights from shared storage takes one, and Grove gives a gang as long.
_STARTUP_FAILURES = 4 * 3600 // _PERIOD_SECONDS
_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc")


def health(port: int) -> Manifest:
    """Return a readiness probe on the health path, every default written out."""
    return {
        "httpGet": {"path": c.HEALTH_PATH, "port": port, "scheme": "HTTP"},
        "timeoutSeconds": TIMEOUT_SECONDS,
        "periodSeconds": _PERIOD_SECONDS,
        "successThreshold": 1,
        "failureThreshold": 3,
    }


def serving(container: Mapping[str, Any], port: int) -> Manifest:
    """Return the probes to add to a serving engine: a startup and a readiness probe where it has none.

    The startup probe asks what the readiness probe asks, so an engine without the health path is not killed.
    """
    startup = health(port)
    added: Manifest = {}
    if own := paths.mapping(container, "readinessProbe"):
        startup = {k: v for k, v in startup.items() if k not in _HANDLERS}
        startup.update({k: own[k] for k in _HANDLERS if k in own})
        startup["timeoutSeconds"] = max(TIMEOUT_SECONDS, paths.integer(own, "timeoutSeconds") or 0)
    else:
        added["readinessProbe"] = health(port)
    if "startupProbe" not in container:
        added["startupProbe"] = {**startup, "failureThreshold": _STARTUP_FAILURES}
    return added
