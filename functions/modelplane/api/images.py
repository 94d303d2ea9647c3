"""Where what we install comes from: the mirror of a spec, checked as the XRDs check it.

Admission refuses a bad one; a platform's own Composition hands one over that no XRD of ours has seen.
"""

import re
from typing import Annotated, Any

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

# Of distribution/reference, as in schemas/shared/platform-images.yaml, which says why.
_PORT = ":([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])"
_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SHAPE = re.compile(f"{_LABEL}([.]{_LABEL})*({_PORT})?(/[a-z0-9]+(([.]|_|__|-+)[a-z0-9]+)*)*")
_HOST = re.compile("[^/]*[.:]|localhost(/|$)")
_LONGEST = 190


def _mirror(mirror: str) -> str:
    if not mirror:
        return mirror
    if not _SHAPE.fullmatch(mirror) or len(mirror) > _LONGEST:
        raise PydanticCustomError(
            "mirror",
            "the mirror is the lower-case host of a registry with an optional port and path, such as"
            " registry.example.org/mirror: leave out scheme, trailing slash, tag and digest",
        )
    if not _HOST.match(mirror):
        raise PydanticCustomError(
            "mirror",
            "the mirror's host has neither a dot nor a port, so images would come from Docker Hub: write the"
            " registry's full name, such as registry.example.org, or its port",
        )
    return mirror


def _images(images: dict[str, Any]) -> dict[str, Any]:
    mirror = images.get("mirror") or ""
    _mirror(mirror if isinstance(mirror, str) else str(mirror))
    return images


# Registry host with an optional path; empty for the public sources.
Mirror = Annotated[str, AfterValidator(_mirror)]
# The block as written, to be handed on.
ImagesBlock = Annotated[dict[str, Any], AfterValidator(_images)]
