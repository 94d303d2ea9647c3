"""LeaderWorkerSet: the Standard stack's gangs."""

from modelplane import contracts as c
from modelplane.core.paths import Manifest
from modelplane.stacks.component import ChartComponent, Check, Context, Images, pull_secrets


def _values(_: Context) -> Manifest:
    # The chart asks for a whole core, which a small system pool may not have left.
    return {"resources": {"requests": {"cpu": "100m", "memory": "256Mi"}}}


def _mirrored(images: Images) -> Manifest:
    values: Manifest = {}
    if images.mirror:
        values["image"] = {"manager": {"repository": images.image("registry.k8s.io/lws/lws")}}
    if secrets := pull_secrets(images):
        values["imagePullSecrets"] = secrets
    return values


COMPONENT = ChartComponent(
    key="leader-worker-set",
    pin="leader-worker-set",
    namespace="lws-system",
    values=_values,
    mirrored=_mirrored,
    provides=(Check.serves(c.LWS_API),),
)
