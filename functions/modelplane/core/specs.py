"""Reading our own specs into typed models, with errors that name the field."""

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import ValidationError

from modelplane.api.base import Model
from modelplane.core.plan import InvalidSpecError

M = TypeVar("M", bound=Model)


def parse(model: type[M], spec: Mapping[str, Any], condition: str, root: str = "spec") -> M:
    """Return the spec as a model.

    Raises:
        InvalidSpecError: on `condition`, naming the first bad field; what runs keeps running.
    """
    try:
        return model.model_validate(spec)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        path = root + "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in first["loc"])
        raise InvalidSpecError(condition, path, first["msg"]) from None
