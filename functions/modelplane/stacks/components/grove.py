"""Grove: the Dynamo stack's gangs."""

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

_NAMESPACE = "grove-system"

_REGISTRY = "ghcr.io/ai-dynamo/grove"


def _values(_: Context) -> Manifest:
    return {
        # Helm never upgrades a chart's crds/ folder; Grove's own installer does, on every start.
        "crdInstaller": {"enabled": True},
        # Otherwise each upgrade overwrites the generated certificate with an empty Secret.
        "webhookServerSecret": {"enabled": False},
        # Off by default until ai-dynamo/grove#743: the pod then is Ready before the webhook on gangs answers,
        # and the release with it.
        "config": {"server": {"healthProbes": {"enable": True}}},
    }


def _mirrored(images: Images) -> Manifest:
    values: Manifest = {}
    if images.mirror:
        source = images.image(_REGISTRY)
        values["image"] = {"repository": f"{source}/grove-operator"}
        values["crdInstaller"] = {"image": {"repository": f"{source}/grove-install-crds"}}
        values["deployment"] = {
            "env": [{"name": "GROVE_INIT_CONTAINER_IMAGE", "value": f"{source}/grove-initc"}]
        }
    if secrets := pull_secrets(images):
        values["imagePullSecrets"] = secrets
    return values


COMPONENT = ChartComponent(
    key="grove",
    pin="grove",
    # It makes KAI's PodGroups, so their API must be there first.
    needs=("kai-scheduler",),
    namespace=_NAMESPACE,
    values=_values,
    mirrored=_mirrored,
    crds=Crds.ITSELF,
    fixed=(
        Fixed(("crdInstaller", "enabled"), "its CRDs stay old when it is upgraded"),
        Fixed(("webhookServerSecret", "enabled"), "an upgrade empties the webhook's certificate"),
        Fixed(("config", "server", "healthProbes", "enable"), "Grove is Ready before its webhook answers"),
    ),
    rivals=lambda _: [deployment(_NAMESPACE, "grove-operator")],
    provides=(Check.serves(c.GROVE_API),),
)
