"""EKSNodePool: one pool of an EKSCluster. This release admits it and says that it does not compose it."""

from modelplane import contracts as c
from modelplane.core import Condition, Inputs, Kind, Plan, keep

_MESSAGE = (
    "this release composes no node groups: point spec.crossplane.compositionRef at a Composition of your own"
    " that writes status.nodeGroups[]"
)


def compose(inputs: Inputs) -> Plan:
    """Return the Plan that keeps whatever is there and is never ready."""
    return Plan(
        status=keep.kept_status(inputs.composite),
        conditions=[Condition(c.ACCEPTED, False, c.REASON_NOT_COMPOSED_HERE, _MESSAGE)],
        keep_all=True,
        ready=False,
    )


KIND = Kind(c.INFRA_API, c.EKS_NODE_POOL, compose, (c.ACCEPTED,))
