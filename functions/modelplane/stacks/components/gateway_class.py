"""The class of the cluster's gateway. Envoy Gateway's finalizer is on it while a gateway of it exists."""

from collections.abc import Mapping
from typing import Any

from modelplane import contracts as c
from modelplane.core import paths
from modelplane.stacks.component import Context, Document, ObjectsComponent, condition_true
from modelplane.stacks.rival import Rival

_ACCEPTED = condition_true("Accepted")


def _ours(manifest: Mapping[str, Any], _: str) -> bool:
    here = paths.mapping(manifest, "spec", "parametersRef")
    return (here.get("namespace"), here.get("name")) == (c.SYSTEM_NAMESPACE, c.CLUSTER_GATEWAY)


def _rivals(context: Context) -> list[Rival]:
    # Applied over it, ours would turn the gateways of another team's class, and delete the class in the end.
    advice = "or give ours another name: spec.gateway.className of the ServingStack"
    return [Rival(c.GATEWAY_API, "GatewayClass", context.gateway_class, instead=advice, ours=_ours)]


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
    rivals=_rivals,
)
