"""Lets the DRA driver's pods use the system priority classes.

Clusters that limit these classes by quota (GKE does) admit no such pod in a namespace without one; where they
are not limited, a quota of a thousand pods changes nothing.
"""

from modelplane import contracts as c
from modelplane.stacks.component import ON_APPLY, Context, Document, ObjectsComponent

_CLASSES = ["system-node-critical", "system-cluster-critical"]


def _documents(_: Context) -> list[Document]:
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "allow-critical-pods", "namespace": c.DRA_DRIVER_NAMESPACE},
        "spec": {
            "hard": {"pods": "1k"},
            "scopeSelector": {
                "matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": _CLASSES}]
            },
        },
    }
    return [Document(quota, ON_APPLY)]


COMPONENT = ObjectsComponent(
    key="nvidia-dra-driver-quota",
    after=("nvidia-dra-driver-namespace",),
    documents=_documents,
)
