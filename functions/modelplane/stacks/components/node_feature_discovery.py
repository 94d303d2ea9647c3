"""Node Feature Discovery: labels nodes with an NVIDIA device, as the DRA driver's affinity asks for."""

from modelplane.core.paths import Manifest
from modelplane.stacks.component import ChartComponent, Context, Crds, Images, pull_secrets
from modelplane.stacks.rival import deployment

_NAMESPACE = "node-feature-discovery"
# Names of its own manifests, of its chart as documented, and of the one in GPU operator.
_MASTERS = (
    (_NAMESPACE, "nfd-master"),
    (_NAMESPACE, "nfd-node-feature-discovery-master"),
    ("gpu-operator", "gpu-operator-node-feature-discovery-master"),
)


def _values(context: Context) -> Manifest:
    # Without it no worker runs on a tainted GPU node: no label, no DRA plugin, every claim pends while all
    # else is green.
    return {
        "worker": {"tolerations": context.node_tolerations},
        # On, uninstalling it takes its labels off the nodes (chart, templates/post-delete-job.yaml), and with
        # them the DRA plugin from under what runs there.
        "postDeleteCleanup": False,
    }


def _mirrored(images: Images) -> Manifest:
    values: Manifest = {}
    if images.mirror:
        values["image"] = {"repository": images.image("registry.k8s.io/nfd/node-feature-discovery")}
    if secrets := pull_secrets(images):
        values["imagePullSecrets"] = secrets
    return values


# Optional, and nothing to check on a Provided cluster: where nodes carry nvidia.com/gpu.present=true, or
# another NFD labels them, the DRA driver asks for no more.
COMPONENT = ChartComponent(
    key="node-feature-discovery",
    pin="node-feature-discovery",
    namespace=_NAMESPACE,
    values=_values,
    mirrored=_mirrored,
    crds=Crds.FOLDER,
    rivals=lambda _: [
        deployment(*master, instead="leave ours out: spec.components.node-feature-discovery.enabled false")
        for master in _MASTERS
    ],
    optional=True,
)
