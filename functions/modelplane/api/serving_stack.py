"""The spec of a ServingStack, as far as code reads it."""

from typing import Any

from pydantic import Field

from modelplane import contracts as c
from modelplane.api.base import Model
from modelplane.api.images import Mirror


class SecretEntry(Model):
    """A Secret that reaches the cluster, or an identity layered on it."""

    type: str
    name: str
    key: str
    namespace: str = ""


class ListenerEntry(Model):
    """A listener of the cluster's gateway."""

    name: str
    port: int
    protocol: str


class GatewaySettings(Model):
    """The cluster's gateway."""

    class_name: str = c.CLUSTER_GATEWAY_CLASS
    listeners: tuple[ListenerEntry, ...] = ()


class PullSecretRef(Model):
    """A Secret by name."""

    name: str


class ImageSettings(Model):
    """Where images and charts come from."""

    mirror: Mirror = ""
    pull_secret_ref: PullSecretRef | None = None


class ComponentSettings(Model):
    """What the platform sets for one component."""

    enabled: bool = True
    values: dict[str, Any] = Field(default_factory=dict)


class ServingStackSpec(Model):
    """What is installed on a cluster, and how it is reached."""

    cloud: str
    stack: str = c.STANDARD
    cluster_name: str = ""
    stack_release: str = ""
    provided: str = c.MANAGED
    pool_taints: tuple[str, ...] = ()
    secrets: tuple[SecretEntry, ...]
    gateway: GatewaySettings = GatewaySettings()
    images: ImageSettings = ImageSettings()
    components: dict[str, ComponentSettings] = Field(default_factory=dict)
