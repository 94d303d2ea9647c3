"""Envoy Gateway, with the Gateway API CRDs its chart carries, set up to ask Envoy AI Gateway."""

from modelplane import contracts as c
from modelplane.core.paths import Manifest
from modelplane.stacks.component import (
    ChartComponent,
    Check,
    Context,
    Crds,
    Fixed,
    Images,
    pull_secrets,
)
from modelplane.stacks.rival import deployment

_SETTINGS = ("config", "envoyGateway")


def _values(_: Context) -> Manifest:
    group, _slash, version = c.INFERENCE_API.partition("/")
    every = {"includeAll": True}
    return {
        "config": {
            "envoyGateway": {
                "extensionApis": {"enableBackend": True},
                # Without the manager a route to an InferencePool is admitted and never served.
                "extensionManager": {
                    "backendResources": [{"group": group, "kind": "InferencePool", "version": version}],
                    "hooks": {
                        "xdsTranslator": {
                            "translation": {
                                "listener": every,
                                "route": every,
                                "cluster": every,
                                "secret": every,
                            },
                            "post": ["Translation", "Cluster", "Route"],
                        }
                    },
                    "service": {"fqdn": {"hostname": c.AI_GATEWAY_HOST, "port": c.AI_GATEWAY_PORT}},
                },
            }
        }
    }


def _mirrored(images: Images) -> Manifest:
    settings: Manifest = {}
    if images.mirror:
        settings["imageRegistry"] = images.mirror
    if secrets := pull_secrets(images):
        settings["imagePullSecrets"] = secrets
    return {"global": settings} if settings else {}


COMPONENT = ChartComponent(
    key="envoy-gateway",
    pin="envoy-gateway",
    # It watches the kinds named in backendResources, so they must be served when it starts.
    needs=("inference-pool-crd",),
    namespace=c.ENVOY_NAMESPACE,
    values=_values,
    mirrored=_mirrored,
    # Its upgrade guide has them applied by hand (gateway.envoyproxy.io, "Install with Helm", upgrading).
    crds=Crds.FOLDER,
    fixed=(
        Fixed((*_SETTINGS, "extensionManager"), "a route to an InferencePool is never served"),
        Fixed((*_SETTINGS, "extensionApis", "enableBackend"), "the AI Gateway's routes are refused"),
        Fixed((*_SETTINGS, "gateway", "controllerName"), "nobody serves the gateway's class"),
        Fixed(
            (*_SETTINGS, "provider", "kubernetes", "deploy"),
            "the gateway's Service is made where neither its hold nor Prometheus looks for it",
        ),
    ),
    # The chart gives its Deployment this name in whatever release. Two of them claim the same classes.
    rivals=lambda _: [deployment(c.ENVOY_NAMESPACE, "envoy-gateway")],
    provides=(Check.serves(c.GATEWAY_API), Check.serves(c.ENVOY_API)),
)
