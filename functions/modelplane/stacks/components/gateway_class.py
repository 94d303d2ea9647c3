"""The class of the cluster's gateway. Envoy Gateway's finalizer is on it while a gateway of it exists."""

from modelplane import contracts as c
from modelplane.stacks.component import Context, Document, ObjectsComponent, condition_true

_ACCEPTED = condition_true("Accepted")


def _documents(context: Context) -> list[Document]:
    gateway_class = {
        "apiVersion": c.GATEWAY_API,
        "kind": "GatewayClass",
        "metadata": {"name": context.gateway_class},
        "spec": {
            "controllerName": "gateway.envoyproxy.io/gatewayclass-controller",
            "parametersRef": {
                "group": c.ENVOY_API.partition("/")[0],
                "kind": "EnvoyProxy",
                "name": c.CLUSTER_GATEWAY,
                "namespace": c.SYSTEM_NAMESPACE,
            },
        },
    }
    return [Document(gateway_class, _ACCEPTED)]


COMPONENT = ObjectsComponent(
    key="gateway-class",
    own=True,
    needs=("gateway-proxy", "envoy-gateway"),
    documents=_documents,
)
