"""KAI queues that hold nothing back: how much a team may use is decided by the fleet's scheduler."""

from modelplane import contracts as c
from modelplane.core.paths import Manifest

_UNLIMITED = -1


def unlimited(name: str, parent: str = "") -> Manifest:
    """Return a queue without limits, below `parent` if one is given.

    A limit left out or 0 allows nothing, and a quota left out or 0 lets nothing run that cannot be preempted.
    """
    share = {"quota": _UNLIMITED, "limit": _UNLIMITED, "overQuotaWeight": 1}
    spec: Manifest = {"resources": {kind: dict(share) for kind in ("cpu", "gpu", "memory")}}
    if parent:
        spec["parentQueue"] = parent
    return {"apiVersion": c.KAI_API, "kind": "Queue", "metadata": {"name": name}, "spec": spec}
