"""Clusters on Amazon EKS: the request an InferenceCluster makes of an EKSCluster."""

from modelplane import contracts as c
from modelplane.clouds.cloud import Cloud, Provision
from modelplane.clouds.eks import request

EKS = Cloud(
    source=c.EKS,
    block="eks",
    notes=request.notes,
    # Writes the kubeconfig, and goes before the cluster, its access and its network.
    lifeline=(c.EKS_API, "ClusterAuth"),
    provision=Provision(
        kind=c.EKS_CLUSTER,
        key="eks-cluster",
        provider=c.EKS,
        spec=request.spec,
        pool=request.pool,
        recipe=request.recipe,
        recorded=request.recorded,
    ),
)
