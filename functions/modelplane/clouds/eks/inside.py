"""What a cluster on EKS gets inside beside its serving stack: storage classes, autoscaler, EFA driver.

All of it dies with the cluster and owns nothing outside, so the providers may not delete it: on teardown the
kubeconfig may be gone before they would come round to it, and they would hang on a dead API.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from modelplane import contracts as c
from modelplane.clouds.eks import iam, storage
from modelplane.clouds.eks.addons import AFTER_NODES
from modelplane.clouds.eks.control_plane import kubeconfig_secret
from modelplane.clouds.eks.site import CLUSTER, CLUSTER_AUTH, Site
from modelplane.core import images
from modelplane.core.builders import WITHOUT_DELETE, Chart, SecretKey, Target, provider_config
from modelplane.core.paths import Manifest
from modelplane.core.plan import Desired, Ready, Waiting
from modelplane.facts import aws as facts
from modelplane.facts.versions import Pin, Release

HELM_CONFIG, KUBERNETES_CONFIG = "provider-config-helm", "provider-config-kubernetes"
STORAGE_CLASS, AUTOSCALER, EFA_DRIVER, SLICES = (
    "storage-class-rwx-efs",
    "release-cluster-autoscaler",
    "release-efa-dra-driver",
    "slices",
)
COMPONENTS = ("cluster-autoscaler", "aws-dranet")
_IMAGES = {
    "cluster-autoscaler": "registry.k8s.io/autoscaling/cluster-autoscaler",
    "aws-dranet": "602401143452.dkr.ecr.us-west-2.amazonaws.com/eks/aws-dranet",
}
DEFAULT_CLASS = "storage-class-ebs"
_NAMESPACE = "kube-system"
_ACCOUNT = "cluster-autoscaler"


def config_name(site: Site) -> str:
    """Return the name of the provider configs that reach the cluster."""
    return site.aws.name("kubeconfig")


def resources(site: Site, release: Release, system_pool: str, *, efa: bool) -> Iterator[Desired | Waiting]:
    """Yield what is inside; the EFA driver where a pool has EFA."""
    kubeconfig = SecretKey(site.inputs.namespace, kubeconfig_secret(site), c.KUBECONFIG_KEY)
    for key, api in ((HELM_CONFIG, c.HELM_API), (KUBERNETES_CONFIG, c.KUBERNETES_API)):
        manifest = provider_config(api, "ProviderConfig", config_name(site), kubeconfig, None, None)
        yield Desired(key, manifest, Ready.exists(), after=(CLUSTER_AUTH,))
    yield _storage_class(site)
    yield _default_class(site)
    yield _autoscaler_identity(site)
    yield _autoscaler(site, release.pin("cluster-autoscaler"), system_pool)
    yield slices(site)
    if efa or EFA_DRIVER in site.inputs.observed:
        yield _efa_driver(site, release.pin("aws-dranet"), system_pool)


def _target(site: Site) -> Target:
    return Target(config=config_name(site), labels={c.CLUSTER_LABEL: site.aws.label})


def _storage_class(site: Site) -> Desired | Waiting:
    file_system = site.seen(storage.FILE_SYSTEM, "id")
    if not file_system:
        return Waiting(STORAGE_CLASS, "the ID of the file system")
    manifest: Manifest = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": c.EFS_STORAGE_CLASS},
        "provisioner": "efs.csi.aws.com",
        "parameters": {"directoryPerms": "700", "fileSystemId": file_system, "provisioningMode": "efs-ap"},
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "Immediate",
    }
    made = _target(site).object(site.aws.name(STORAGE_CLASS), manifest, policies=WITHOUT_DELETE)
    return Desired(STORAGE_CLASS, made, after=(KUBERNETES_CONFIG, AFTER_NODES[2].key))


def _default_class(site: Site) -> Desired:
    """Return the default class, for volumes of one node.

    EKS ships none since 1.30 (EKS User Guide, kubernetes-versions), and the driver's own can have no
    parameters: without encryption by default in the account its volumes are in plain text.
    """
    manifest: Manifest = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {
            "name": c.EBS_STORAGE_CLASS,
            "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
        },
        "provisioner": "ebs.csi.aws.com",
        "parameters": {"encrypted": "true", "type": "gp3"},
        "allowVolumeExpansion": True,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    made = _target(site).object(site.aws.name(DEFAULT_CLASS), manifest, policies=WITHOUT_DELETE)
    return Desired(DEFAULT_CLASS, made, after=(KUBERNETES_CONFIG, AFTER_NODES[1].key))


def _autoscaler_identity(site: Site) -> Desired:
    parameters = {
        "clusterName": site.aws.cluster,
        "namespace": _NAMESPACE,
        "roleArnRef": {"name": site.aws.name(iam.AUTOSCALER_ROLE)},
        "serviceAccount": _ACCOUNT,
    }
    key = "pod-identity-autoscaler"
    # It goes with the cluster at AWS.
    resource = site.aws.resource(
        c.EKS_API, "PodIdentityAssociation", key, parameters, policies=WITHOUT_DELETE
    )
    return Desired(key, resource, after=(CLUSTER, iam.AUTOSCALER_ROLE))


def _autoscaler(site: Site, pin: Pin, system_pool: str) -> Desired:
    values: Manifest = {
        "autoDiscovery": {"clusterName": site.aws.cluster},
        "awsRegion": site.spec.region,
        "cloudProvider": "aws",
        "extraArgs": {
            # A pool of several zones is one group per zone; nothing else would keep them level.
            "balance-similar-node-groups": True,
            "skip-nodes-with-system-pods": False,
        },
        "fullnameOverride": _ACCOUNT,
        "nodeSelector": {c.POOL_LABEL: c.SYSTEM_POOL},
        "rbac": {"serviceAccount": {"name": _ACCOUNT}},
    }
    return _release(site, AUTOSCALER, pin, values, ("pod-identity-autoscaler", system_pool))


def _efa_driver(site: Site, pin: Pin, system_pool: str) -> Desired:
    # The chart tolerates only CriticalAddonsOnly, so it would never run on a GPU node.
    keys = {c.GPU_TAINT, *(taint.key for pool in site.spec.node_pools for taint in pool.taints)}
    tolerations = [{"key": key, "operator": "Exists"} for key in ("CriticalAddonsOnly", *sorted(keys))]
    return _release(site, EFA_DRIVER, pin, {"tolerations": tolerations}, (system_pool,))


def _release(site: Site, key: str, pin: Pin, values: Manifest, after: tuple[str, ...]) -> Desired:
    # Both charts come from repositories of their own, which no registry mirrors; their images can be.
    if mirror := str(site.spec.images.get("mirror") or ""):
        values["image"] = {"repository": images.mirrored(mirror, _IMAGES[pin.key])}
    elif pin.key == "aws-dranet" and (registry := facts.eks_registry(site.spec.region)):
        # The chart names one registry of the public partition, which nodes of another cannot log in to.
        values["image"] = {"repository": f"{registry}/{_IMAGES[pin.key].partition('/')[2]}"}
    over = site.spec.components.get(pin.key, {}).get("values")
    chart = Chart(pin.chart, pin.repository, pin.version, _NAMESPACE)
    made = _target(site).release(
        site.aws.name(key),
        chart,
        _merged(values, over if isinstance(over, Mapping) else {}),
        policies=WITHOUT_DELETE,
    )
    return Desired(key, made, after=(HELM_CONFIG, *after))


def _merged(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> Manifest:
    merged = dict(ours)
    for key, value in theirs.items():
        here = merged.get(key)
        merged[key] = (
            _merged(here, value) if isinstance(here, Mapping) and isinstance(value, Mapping) else value
        )
    return merged


def collection(
    name: str, config: str, api: str, kind: str, selector: Mapping[str, str], labels: Mapping[str, str]
) -> Manifest:
    """Return a collection: an observe-only Object, with these labels, of each object that is selected."""
    return {
        "apiVersion": c.KUBERNETES_API,
        "kind": "ObservedObjectCollection",
        "metadata": {"name": name, "labels": dict(labels)},
        "spec": {
            "objectTemplate": {"metadata": {"labels": dict(labels)}},
            "observeObjects": {
                "apiVersion": api,
                "kind": kind,
                "selector": {"matchLabels": dict(selector)} if selector else {},
            },
            "providerConfigRef": {"kind": "ProviderConfig", "name": config},
        },
    }


def slices(site: Site) -> Desired:
    """Return the look at what DRA drivers publish, of all nodes: a slice bears no label of its pool."""
    labels = {c.CLUSTER_LABEL: site.aws.label, c.ROLE_LABEL: c.ROLE_SLICE}
    made = collection(site.aws.name(SLICES), config_name(site), c.DRA_API, "ResourceSlice", {}, labels)
    return Desired(SLICES, made, after=(KUBERNETES_CONFIG,))
