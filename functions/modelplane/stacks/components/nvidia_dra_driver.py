"""NVIDIA's DRA driver: publishes GPUs as devices and prepares claims. No device plugin runs beside it."""

from modelplane import contracts as c
from modelplane.core.paths import Manifest
from modelplane.stacks.component import (
    ON_APPLY,
    ChartComponent,
    Check,
    Context,
    Crds,
    Fixed,
    Images,
    pull_secrets,
)
from modelplane.stacks.rival import Rival, never

_IMAGE = "registry.k8s.io/dra-driver-nvidia/dra-driver-nvidia-gpu"


def _values(context: Context) -> Manifest:
    return {
        # The chart refuses to render without it: our word that no device plugin allocates the same GPUs.
        "gpuResourcesEnabledOverride": True,
        # Node images carry the driver (EKS GPU images). With GPU operator's driver container it is
        # /run/nvidia/driver, set through spec.components.
        "nvidiaDriverRoot": "/",
        # Multi-node NVLink is not composed yet; on, it would start daemons that find no hardware.
        "resources": {"gpus": {"enabled": True}, "computeDomains": {"enabled": False}},
        "kubeletPlugin": {"tolerations": context.node_tolerations},
    }


def _mirrored(images: Images) -> Manifest:
    values: Manifest = {}
    if images.mirror:
        values["image"] = {"repository": images.image(_IMAGE)}
    if secrets := pull_secrets(images):
        values["imagePullSecrets"] = secrets
    return values


# A device plugin hands out the same GPUs behind the driver's back. Its static manifest and GPU operator both
# use this name.
_PLUGIN = "nvidia-device-plugin-daemonset"


def _rivals(_: Context) -> list[Rival]:
    advice = "turn it off (GPU operator: devicePlugin.enabled false)"
    return [
        Rival(c.DRA_API, "DeviceClass", c.GPU_DEVICE_CLASS),
        *(
            Rival("apps/v1", "DaemonSet", _PLUGIN, space, instead=advice, ours=never)
            for space in ("kube-system", "gpu-operator")
        ),
    ]


COMPONENT = ChartComponent(
    key="nvidia-dra-driver",
    pin="nvidia-dra-driver",
    needs=("nvidia-dra-driver-namespace",),
    after=("node-feature-discovery", "nvidia-dra-driver-quota"),
    namespace=c.DRA_DRIVER_NAMESPACE,
    values=_values,
    mirrored=_mirrored,
    crds=Crds.FOLDER,
    fixed=(
        Fixed(("gpuResourcesEnabledOverride",), "the chart refuses to render"),
        Fixed(("resources", "gpus", "enabled"), "no GPU is published and every claim pends"),
    ),
    rivals=_rivals,
    provides=(Check(c.DRA_API, "DeviceClass", c.GPU_DEVICE_CLASS, ON_APPLY),),
)
