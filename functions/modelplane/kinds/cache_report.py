"""What a staging run tells in its ConfigMap, read as what it is: text that anybody may have put there."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from modelplane.core import paths

STAGED, FAILED = "Staged", "Failed"
# Reasons of modelplane.staging.outcome that say more than Failed.
REASONS = frozenset({"Unauthorized", "NotFound", "NoSpace", "Corrupt", "Invalid", "Unreachable"})
_IDENTITY = re.compile(r"[0-9a-f]{40}|sha256:[0-9a-f]{64}")
_UNPRINTABLE = re.compile(r"[^\x20-\x7e]+")
_MESSAGE_LIMIT = 256
_BYTES_LIMIT = 2**62
_GIB = 1024**3


@dataclass(frozen=True, slots=True)
class Report:
    """A run's last words.

    Attributes:
        state: `Running`, `Staged` or `Failed`; empty where there is no report on the artifact.
        reason: of a failure; empty where it is none we know.
        message: of a failure.
        revision: identity of what was staged.
        done: bytes that are there; None before the first report.
        total: bytes that are wanted; None until they are known.
    """

    state: str = ""
    reason: str = ""
    message: str = ""
    revision: str = ""
    done: int | None = None
    total: int | None = None

    @property
    def progress(self) -> str:
        """How far the run is, in words; empty where it has not said."""
        if self.done is None or not self.total:
            return ""
        return f"{self.done / _GIB:.1f} of {self.total / _GIB:.1f} GiB"


def read(config_map: Mapping[str, Any], artifact: str) -> Report:
    """Return the report on an artifact; an empty one where the ConfigMap holds none on it."""
    data = paths.mapping(config_map, "data")
    if paths.text(data, "id") != artifact:
        return Report()
    reason, revision = paths.text(data, "reason"), paths.text(data, "revision")
    message = _UNPRINTABLE.sub(" ", paths.text(data, "message"))[:_MESSAGE_LIMIT]
    return Report(
        state=paths.text(data, "state"),
        reason=reason if reason in REASONS else "",
        message=message,
        revision=revision if _IDENTITY.fullmatch(revision) else "",
        done=_bytes(data, "bytesDone"),
        total=_bytes(data, "bytesTotal"),
    )


def _bytes(data: Mapping[str, Any], key: str) -> int | None:
    text = paths.text(data, key)
    found = int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else None
    return found if found is not None and found < _BYTES_LIMIT else None
