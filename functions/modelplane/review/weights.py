"""How large a model's weights are, estimated from its name, and which model an engine serves."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from modelplane.core import paths

# `14B`, `480B-A35B` (all experts are loaded, whatever is active), `0.5B`. `8x7B` says nothing: its experts
# share layers, so the product is too large.
_PARAMETERS = re.compile(r"(?<![\dx.A-Za-z])(\d+(?:\.\d+)?)([BM])(?![a-z])", re.IGNORECASE)
_EXPERTS = re.compile(r"\d+x\d+(?:\.\d+)?B", re.IGNORECASE)
_QUARTER = re.compile(r"(?<![A-Za-z])(awq|gptq|int4|w4a16|4bit|nvfp4|mxfp4|fp4)(?![A-Za-z])", re.IGNORECASE)
_HALF = re.compile(r"(?<![A-Za-z])(fp8|int8|w8a8|8bit)(?![A-Za-z0-9])", re.IGNORECASE)
_MODEL = re.compile(r"(?:--model(?:-path)?[= ]+|\bvllm\s+serve\s+)[\"']?([\w.-]+/[\w.-]+)")
# Ships in MXFP4 under a name that does not say so.
_SILENT = ("gpt-oss",)
_GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class Weights:
    """An estimate: the repository it was read from, billions of parameters, bytes of each."""

    repo: str
    billions: float
    width: float

    @property
    def size(self) -> float:
        """Bytes."""
        return self.billions * 1e9 * self.width

    def __str__(self) -> str:
        return (
            f"the weights of {self.repo} take about {self.size / _GIB:.1f} GiB"
            f" ({self.billions:g}B parameters of {self.width:g} bytes, read from the name)"
        )


def of(repo: str) -> Weights | None:
    """Return the estimate, or None where the name does not tell."""
    name = repo.rpartition("/")[2]
    silent = _EXPERTS.search(name) or any(word in name.lower() for word in _SILENT)
    found = None if silent else _PARAMETERS.search(name)
    if found is None:
        return None
    billions = float(found[1]) / (1 if found[2].upper() == "B" else 1000)
    width = 0.5 if _QUARTER.search(name) else 1.0 if _HALF.search(name) else 2.0
    return Weights(repo, billions, width)


def served(container: Mapping[str, Any]) -> str:
    """Return the hub repository that an engine's command names, or an empty string."""
    words = [*paths.items(container, "command"), *paths.items(container, "args")]
    found = _MODEL.search(" ".join(word for word in words if isinstance(word, str)))
    return found[1] if found else ""
