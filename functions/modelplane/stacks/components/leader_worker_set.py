"""LeaderWorkerSet: the Standard stack's gangs."""

from modelplane import contracts as c
from modelplane.core.paths import Manifest
from modelplane.stacks.component import ChartComponent, Check, Context, Crds, Images, pull_secrets
from modelplane.stacks.rival import Rival


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


_WEBHOOK = Rival(
    "admissionregistration.k8s.io/v1",
    "ValidatingWebhookConfiguration",
    "lws-validating-webhook-configuration",
)

COMPONENT = ChartComponent(
    key="leader-worker-set",
    pin="leader-worker-set",
    namespace="lws-system",
    values=_values,
    mirrored=_mirrored,
    crds=Crds.FOLDER,
    # Chart and plain manifests alike use this name (kubernetes-sigs/lws, charts/lws/templates/webhook).
    rivals=lambda _: [_WEBHOOK],
    provides=(Check.serves(c.LWS_API),),
)
