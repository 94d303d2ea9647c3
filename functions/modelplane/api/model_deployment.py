"""The spec of a ModelDeployment, as far as code reads it; pod templates are passed on as written."""

from typing import Literal

from pydantic import Field

from modelplane.api.base import Model


class Selector(Model):
    """One condition on a device; an empty one holds for every device."""

    cel: str = ""


class DeviceRequest(Model):
    """Devices that each pod of a member wants on its node."""

    name: str
    count: int = Field(default=1, ge=1)
    selectors: tuple[Selector, ...] = ()


class NodeSelector(Model):
    """What a node must offer each pod of a member."""

    devices: tuple[DeviceRequest, ...] = ()


class Worker(Model):
    """The size of a gang beside its leader."""

    nodes: int = Field(default=1, ge=1)


class Member(Model):
    """Pods of one role; without a node selector they claim nothing and go along."""

    role: Literal["Standalone", "Leader", "Worker"] = "Standalone"
    worker: Worker = Worker()
    node_selector: NodeSelector | None = None


class Engine(Model):
    """One serving unit of a replica, in identical copies."""

    name: str
    copies: int = Field(default=1, ge=1)
    members: tuple[Member, ...]


class LabelSelector(Model):
    """Labels that must all be there; none match everything."""

    match_labels: dict[str, str] = Field(default_factory=dict)


class CacheRef(Model):
    """The ModelCache with the weights."""

    name: str


class Placement(Model):
    """How replicas are spread over the clusters that fit."""

    policy: Literal["Spread", "Pack"] = "Spread"


class Toleration(Model):
    """A toleration of InferenceCluster taints; absent fields widen it, as in Kubernetes."""

    key: str = ""
    operator: Literal["Exists", "Equal"] = "Equal"
    value: str = ""
    effect: str = ""


class Metadata(Model):
    """Labels for what the deployment becomes."""

    labels: dict[str, str] = Field(default_factory=dict)


class TemplateSpec(Model):
    """The engines, and where they may go."""

    cluster_selector: LabelSelector = LabelSelector()
    model_cache_ref: CacheRef | None = None
    placement: Placement = Placement()
    tolerations: tuple[Toleration, ...] = ()
    engines: tuple[Engine, ...]


class Template(Model):
    """What each replica is."""

    metadata: Metadata = Metadata()
    spec: TemplateSpec


class Strategy(Model):
    """How a change of the template reaches replicas that run."""

    type: Literal["InPlace", "Rolling"] = "InPlace"
    max_surge: int = Field(default=1, ge=0)
    max_unavailable: int = Field(default=0, ge=0)


class ModelDeploymentSpec(Model):
    """A model to serve, so many times over the fleet."""

    replicas: int = Field(ge=0)
    strategy: Strategy = Strategy()
    template: Template
