"""What the typed models of our own kinds share."""

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class Model(BaseModel):
    """A part of one of our own specs, read-only, in snake case here and camel case on the wire.

    Unknown fields are passed over: admission has refused them, and a newer CRD may hold more than we read.
    """

    # defer_build: a model is compiled when first read, so the server starts without paying for all of them.
    model_config = ConfigDict(
        frozen=True, extra="ignore", alias_generator=to_camel, populate_by_name=True, defer_build=True
    )
