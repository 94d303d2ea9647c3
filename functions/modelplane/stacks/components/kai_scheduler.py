"""KAI, the scheduler that places a gang whole or not at all."""

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
from modelplane.stacks.rival import deployment, never


def _values(_: Context) -> Manifest:
    return {
        # Its own queues have a quota of 0, in which nothing that cannot be preempted is ever scheduled.
        "defaultQueue": {"createDefaultQueue": False},
        # KAI evicts a gang 60 s after it lost a pod, long before a slow model is loaded again. A Go duration,
        # negative for never: a bare -1 does not parse.
        "scheduler": {"args": {"default-staleness-grace-period": "-1s"}},
    }


def _mirrored(images: Images) -> Manifest:
    settings: Manifest = {}
    if images.mirror:
        settings["registry"] = images.image("ghcr.io/kai-scheduler/kai-scheduler")
    if secrets := pull_secrets(images):
        settings["imagePullSecrets"] = secrets
    return {"global": settings} if settings else {}


COMPONENT = ChartComponent(
    key="kai-scheduler",
    pin="kai-scheduler",
    # Several of its objects have fixed names, so release and namespace must both be this.
    namespace=c.KAI_SCHEDULER,
    release_name=c.KAI_SCHEDULER,
    values=_values,
    # What its upgrade hooks did (CRDs, topologies, the Config object) a rollback does not undo.
    rolls_back=False,
    mirrored=_mirrored,
    crds=Crds.ITSELF,
    fixed=(
        Fixed(("podgrouper", "queueLabelKey"), f"pods name their queue by {c.KAI_QUEUE_LABEL}"),
        Fixed(("kaiConfigDeployer", "enabled"), "nothing tells KAI's operator what to run"),
    ),
    # A user's release has the same name, so the Helm provider would take it over without a word.
    rivals=lambda _: [deployment(c.KAI_SCHEDULER, "kai-operator", ours=never)],
    provides=(Check.serves(c.KAI_API),),
)
