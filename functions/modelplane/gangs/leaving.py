"""How engine pods leave, so that what is under way is not cut off with them.

A pod that is being deleted gets no new requests once gateway and picker have noticed; its process is told to
stop only after that, and has the rest of its grace to finish what runs (Kubernetes, "Pod termination flow").
"""

from modelplane import contracts as c
from modelplane.api.model_replica import Member
from modelplane.core.paths import Manifest

# Kubernetes' own 30 seconds cut most generations.
GRACE_SECONDS = 120
_NOTICE_SECONDS = 15
# All pods of a gang are deleted at once, and a leader finishes nothing once its ring is broken: workers stay
# longer. The wait ends early where the process ends by itself (KEP-3960).
_RING_SECONDS = 45


def grace(member: Member) -> int:
    """Return the seconds a pod has to stop; the user's where given."""
    own = member.template.spec.termination_grace_period_seconds
    return GRACE_SECONDS if own is None else own


def lifecycle(member: Member) -> Manifest:
    """Return the engine container's lifecycle; empty where the grace leaves no time to wait."""
    wanted = _RING_SECONDS if member.role == c.WORKER else _NOTICE_SECONDS
    # Half at most: the process needs time of its own, and the API server refuses more than the whole.
    seconds = min(wanted, grace(member) // 2)
    return {"lifecycle": {"preStop": {"sleep": {"seconds": seconds}}}} if seconds > 0 else {}
