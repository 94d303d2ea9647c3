"""Envoy AI Gateway's controller: what turns a route to an InferencePool into calls to its endpoint picker."""

from modelplane import contracts as c
from modelplane.core.paths import Manifest
from modelplane.stacks.component import ChartComponent, Crds, Fixed, Images, pull_secrets
from modelplane.stacks.rival import deployment

_CONTROLLER = "docker.io/envoyproxy/ai-gateway-controller"
_EXTPROC = "docker.io/envoyproxy/ai-gateway-extproc"


def _mirrored(images: Images) -> Manifest:
    values: Manifest = {}
    if images.mirror:
        values["controller"] = {"image": {"repository": images.image(_CONTROLLER)}}
        values["extProc"] = {"image": {"repository": images.image(_EXTPROC)}}
    if secrets := pull_secrets(images):
        values["global"] = {"imagePullSecrets": secrets}
    return values


COMPONENT = ChartComponent(
    key="ai-gateway",
    pin="ai-gateway",
    # It reads Envoy Gateway's kinds, and looks for InferencePool once, when it starts.
    after=("ai-gateway-crds", "envoy-gateway", "inference-pool-crd"),
    namespace=c.AI_GATEWAY_NAMESPACE,
    mirrored=_mirrored,
    # In a chart of their own: ai-gateway-crds.
    crds=Crds.NONE,
    # Both are below `controller` (envoyproxy/ai-gateway, ai-gateway-helm, values.yaml and _helpers.tpl).
    fixed=(
        Fixed(("controller", "fullnameOverride"), "Envoy Gateway asks the controller under its own name"),
        Fixed(("controller", "service"), "Envoy Gateway asks the controller at its own port"),
    ),
    rivals=lambda _: [deployment(c.AI_GATEWAY_NAMESPACE, "ai-gateway-controller")],
)
