"""EKSCluster: this release admits it and says that it does not compose it.

The kind is a seam: a platform's own Composition may fulfil it today by writing `status.secrets[]` with a
Kubeconfig, `status.cache.storageClassName` and `status.nodePools[]`. An InferenceCluster reads nothing else.
"""

from modelplane import contracts as c
from modelplane.core import Condition, Inputs, Kind, Plan, keep

_MESSAGE = (
    "this release composes no AWS resources: point spec.crossplane.compositionRef at a Composition of your"
    " own that writes status.secrets[] with an entry of type Kubeconfig once the cluster serves"
)


def compose(inputs: Inputs) -> Plan:
    """Return the Plan that keeps whatever is there and is never ready."""
    return Plan(
        status=keep.kept_status(inputs.composite),
        conditions=[Condition(c.CLUSTER_READY, False, c.REASON_NOT_COMPOSED_HERE, _MESSAGE)],
        keep_all=True,
        ready=False,
    )


KIND = Kind(c.INFRA_API, c.EKS_CLUSTER, compose, (c.CLUSTER_READY,))
