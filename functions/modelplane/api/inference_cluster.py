"""The spec of an InferenceCluster, as far as code reads it."""

from typing import Any, Literal

from pydantic import Field

from modelplane.api.base import Model
from modelplane.api.images import ImagesBlock


class SecretRef(Model):
    """The Secret of a kubeconfig."""

    name: str
    key: str = "kubeconfig"


class IdentityRef(Model):
    """The Secret of a cloud identity that is layered on a kubeconfig."""

    name: str
    key: str = "private_key"
    type: str = "GoogleApplicationCredentials"


class CacheStorage(Model):
    """Storage for model caches; no class means that none is staged."""

    storage_class_name: str = ""


class Existing(Model):
    """A cluster that somebody else runs."""

    secret_ref: SecretRef
    identity_secret_ref: IdentityRef | None = None
    cache: CacheStorage = CacheStorage()
    components: Literal["Managed", "Provided"] = "Managed"


class Eks(Model):
    """A cluster on EKS; what is handed down whole stays as written."""

    region: str
    kubernetes_version: str = "1.36"
    credentials: dict[str, Any] | None = None
    network: dict[str, Any] | None = None
    access: dict[str, Any] | None = None
    encryption: dict[str, Any] | None = None
    logging: dict[str, Any] | None = None
    support_type: str | None = None
    deletion_protection: bool | None = None
    tags: dict[str, str] | None = None


class ClusterSource(Model):
    """Where the cluster comes from; the block of that name is read."""

    source: str
    existing: Existing | None = None
    eks: Eks | None = None


class Fabric(Model):
    """The network between a pool's nodes."""

    type: str = "None"


class NodePool(Model):
    """One pool of equal GPU nodes; without bounds it stays at `node_count`."""

    name: str
    class_name: str
    node_count: int = Field(default=1, ge=0)
    min_node_count: int | None = Field(default=None, ge=0)
    max_node_count: int | None = Field(default=None, ge=0)
    zones: tuple[str, ...] = ()
    fabric: Fabric = Fabric()
    capacity_block: dict[str, Any] | None = None
    reservation: dict[str, Any] | None = None
    purchase: str | None = None
    local_storage: str | None = None
    taints: list[dict[str, Any]] | None = None
    labels: dict[str, str] | None = None

    @property
    def nodes(self) -> int:
        """The nodes it can have, as v0.4 publishes them."""
        return self.max_node_count or self.node_count


class InferenceClusterSpec(Model):
    """What an InferenceCluster asks for."""

    cluster: ClusterSource
    stack: str = "Standard"
    stack_release: str = ""
    images: ImagesBlock | None = None
    components: dict[str, Any] | None = None
    node_pools: tuple[NodePool, ...] = ()
