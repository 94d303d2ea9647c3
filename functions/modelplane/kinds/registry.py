"""Which composer answers for which composite kind: one line each."""

from collections.abc import Mapping

from modelplane.core import Kind
from modelplane.kinds import (
    eks_cluster,
    eks_network,
    eks_node_pool,
    inference_class,
    inference_cluster,
    inference_gateway,
    model_cache,
    model_cache_replica,
    model_deployment,
    model_endpoint,
    model_replica,
    model_service,
    serving_stack,
)

_ALL = (
    model_replica.KIND,
    inference_class.KIND,
    inference_cluster.KIND,
    eks_cluster.KIND,
    eks_network.KIND,
    eks_node_pool.KIND,
    model_cache.KIND,
    model_cache_replica.KIND,
    model_deployment.KIND,
    model_service.KIND,
    model_endpoint.KIND,
    inference_gateway.KIND,
    serving_stack.KIND,
)

KINDS: Mapping[tuple[str, str], Kind] = {(kind.api_version, kind.kind): kind for kind in _ALL}
