"""The cluster's gateway: where the fleet's traffic enters. It works once it has an address."""

from modelplane import contracts as c
from modelplane.core.builders import HAS_ADDRESS
from modelplane.stacks.component import Context, Document, ObjectsComponent


def _documents(context: Context) -> list[Document]:
    gateway = {
        "apiVersion": c.GATEWAY_API,
        "kind": "Gateway",
        "metadata": {"name": c.CLUSTER_GATEWAY, "namespace": c.SYSTEM_NAMESPACE},
        "spec": {
            "gatewayClassName": context.gateway_class,
            "listeners": [
                {
                    "name": listener.name,
                    "port": listener.port,
                    "protocol": listener.protocol,
                    "allowedRoutes": {"namespaces": {"from": "All"}},
                }
                for listener in context.listeners
            ],
        },
    }
    return [Document(gateway, HAS_ADDRESS)]


COMPONENT = ObjectsComponent(
    key="gateway",
    own=True,
    # The AI Gateway first: Envoy pods that start before its webhook lack the container it adds to them.
    needs=("gateway-class", "ai-gateway", "gateway-headers"),
    documents=_documents,
)
