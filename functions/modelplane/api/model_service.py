"""What a ModelService's composer reads of its spec."""

from pydantic import Field

from modelplane.api.base import Model


class EndpointSelector(Model):
    """Which ModelEndpoints of the service's namespace belong to a group."""

    match_labels: dict[str, str]


class EndpointGroup(Model):
    """Endpoints that share a weight and a priority."""

    selector: EndpointSelector
    weight: int = Field(default=1, ge=1, le=1_000_000)
    priority: int = Field(default=0, ge=0)


class ModelServiceSpec(Model):
    """Which endpoints take the requests."""

    endpoints: list[EndpointGroup] = Field(min_length=1)
