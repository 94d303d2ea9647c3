"""Headers that steer requests inside the cluster: what clients send of them is dropped at the gateway.

The picker names the pod that answers, and the decode engine's proxy opens a connection to whatever host a
header names (llm-d-router, pkg/sidecar/proxy). From a client they would reach whatever the cluster reaches.
"""

from modelplane import contracts as c
from modelplane.stacks.component import ON_APPLY, Context, Document, ObjectsComponent

STEERING = (
    "x-gateway-destination-endpoint",
    "x-prefiller-host-port",
    "x-encoder-hosts-ports",
    "x-data-parallel-host-port",
)


def _documents(_: Context) -> list[Document]:
    policy = {
        "apiVersion": c.ENVOY_API,
        "kind": "ClientTrafficPolicy",
        "metadata": {"name": c.CLUSTER_GATEWAY, "namespace": c.SYSTEM_NAMESPACE},
        "spec": {
            "targetRefs": [
                {"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": c.CLUSTER_GATEWAY}
            ],
            # Early: a route's own header filters run after the picker, and would drop what it says.
            "headers": {"earlyRequestHeaders": {"remove": list(STEERING)}},
        },
    }
    return [Document(policy, ON_APPLY)]


# Before the gateway, so that it never stands without.
COMPONENT = ObjectsComponent(
    key="gateway-headers",
    own=True,
    needs=("gateway-namespace", "envoy-gateway"),
    documents=_documents,
)
