"""What AWS resources say of themselves, where their Ready condition does not tell the truth."""

from collections.abc import Mapping, Sequence
from typing import Any

from modelplane.core import paths

ACTIVE = "ACTIVE"
# A provider's error may quote a whole request; its beginning says what is wrong.
_LIMIT = 512


def state(observed: object) -> str:
    """Return EKS's word for a cluster's or node group's state; empty where it has not said any."""
    return paths.text(observed, "status", "atProvider", "status")


def failure(observed: object) -> str:
    """Return what AWS or the provider says against a resource; empty where neither does.

    Ready is True as soon as the resource exists, also where its creation failed. How a call that ran on
    ended, and an update the provider refuses, stand in other conditions (upjet, LastAsyncOperation).
    """
    for type_ in ("LastAsyncOperation", "Synced"):
        found = paths.condition(observed, type_)
        if found.get("status") == "False":
            return (paths.text(found, "message") or paths.text(found, "reason"))[:_LIMIT]
    return ""


def first_failure(observed: Mapping[str, Mapping[str, Any]], keys: Sequence[str]) -> str:
    """Return the first failure among the keys, with the key before it; empty where there is none."""
    return next((f"{key}: {said}" for key in keys if (said := failure(observed.get(key)))), "")
