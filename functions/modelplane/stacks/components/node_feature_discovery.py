"""Node Feature Discovery: labels nodes with an NVIDIA device, as the DRA driver's affinity asks for."""

from modelplane.core.paths import Manifest
from modelplane.stacks.component import ChartComponent, Context, Images, pull_secrets


def _values(context: Context) -> Manifest:
    # Without it no worker runs on a tainted GPU node: no label, no DRA plugin, every claim pends while all
    # else is green.
    return {"worker": {"tolerations": context.node_tolerations}}


def _mirrored(images: Images) -> Manifest:
    values: Manifest = {}
    if images.mirror:
        values["image"] = {"repository": images.image("registry.k8s.io/nfd/node-feature-discovery")}
    if secrets := pull_secrets(images):
        values["imagePullSecrets"] = secrets
    return values


# Nothing to check on a Provided cluster: a node label set by hand serves the DRA driver as well.
COMPONENT = ChartComponent(
    key="node-feature-discovery",
    pin="node-feature-discovery",
    namespace="node-feature-discovery",
    values=_values,
    mirrored=_mirrored,
)
