"""The Dynamo stack: gangs are Grove PodCliqueSets, placed by KAI; engines hand weights on by ModelExpress."""

from modelplane.stacks import common

COMPONENTS: tuple[str, ...] = (
    *common.COMPONENTS,
    "kai-scheduler",
    "kai-services",
    "kai-queue-root",
    "kai-queue",
    "grove",
    "modelexpress-namespace",
    "modelexpress-crds",
    "modelexpress-access",
    "modelexpress-network-policy",
    "modelexpress-server",
)
