"""The Standard stack: gangs are LeaderWorkerSets, placed by the cluster's own scheduler."""

from modelplane.stacks import common

COMPONENTS: tuple[str, ...] = (*common.COMPONENTS, "leader-worker-set")
