"""Which composer answers for which composite kind: one line each."""

from collections.abc import Mapping

from modelplane.core import Kind
from modelplane.kinds import (
    eks_cluster,
    eks_node_pool,
    inference_class,
    inference_cluster,
)

_ALL = (
    inference_class.KIND,
    inference_cluster.KIND,
    eks_cluster.KIND,
    eks_node_pool.KIND,
)

KINDS: Mapping[tuple[str, str], Kind] = {(kind.api_version, kind.kind): kind for kind in _ALL}
