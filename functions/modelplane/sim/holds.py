"""What keeps an object on a cluster from being deleted, seen from the others that stand there."""

from collections.abc import Iterator, Sequence

from modelplane import contracts as c
from modelplane.core import Manifest, paths

# A finished pod mounts nothing any more, and a Job that stands has finished or is deleted with its pods. All
# else that names a claim runs pods for good.
_ENDS = "Job"


def mounted(claim: Manifest, others: Sequence[Manifest]) -> str:
    """Say which workload's pods mount a claim (finalizer kubernetes.io/pvc-protection)."""
    for other in others:
        same = paths.namespace(other) == paths.namespace(claim) and other.get("kind") != _ENDS
        if same and paths.name(claim) in _claims(other):
            return f"pods of {other['kind']} {paths.name(other)} mount it (kubernetes.io/pvc-protection)"
    return ""


def used_by_gateways(gateway_class: Manifest, others: Sequence[Manifest]) -> str:
    """Say which Gateway uses a class."""
    for other in others:
        kind = paths.text(other, "apiVersion"), paths.text(other, "kind")
        if kind == (c.GATEWAY_API, "Gateway") and paths.text(other, "spec", "gatewayClassName") == paths.name(
            gateway_class
        ):
            return f"Gateway {paths.name(other)} uses it"
    return ""


def parent_of_queues(queue: Manifest, others: Sequence[Manifest]) -> str:
    """Say which queue has this one as its parent."""
    for other in others:
        kind = paths.text(other, "apiVersion"), paths.text(other, "kind")
        if kind == (c.KAI_API, "Queue") and paths.text(other, "spec", "parentQueue") == paths.name(queue):
            return f"it has the child queue {paths.name(other)}"
    return ""


def _claims(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(name := value.get("claimName"), str):
            yield name
        for inner in value.values():
            yield from _claims(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _claims(inner)
