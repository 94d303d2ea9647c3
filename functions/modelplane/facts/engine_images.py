"""How large engine images are, as far as anybody has measured."""

from dataclasses import dataclass
from functools import cache
from importlib import resources

import yaml

# What a node holds besides: the system, its logs and our own images (AL2023 with NVIDIA drivers, estimated).
_SYSTEM_GB = 12.0
# kubelet evicts pods once less than 15 % of the image file system is free.
# kubernetes.io/docs/concepts/scheduling-eviction/node-pressure-eviction
_USABLE = 0.85


@dataclass(frozen=True, slots=True)
class Size:
    """Sizes of an image in GB, and where they were read."""

    pulled: float
    unpacked: float
    source: str

    @property
    def disk(self) -> int:
        """The smallest root disk, in GB, on which kubelet does not evict what it has just pulled."""
        return round((self.pulled + self.unpacked + _SYSTEM_GB) / _USABLE)


@cache
def _sizes() -> dict[str, Size]:
    text = resources.files("modelplane.facts").joinpath("engine_images.yaml").read_text(encoding="utf-8")
    return {
        name: Size(float(body["pulledGb"]), float(body["unpackedGb"]), body["source"])
        for name, body in yaml.safe_load(text)["images"].items()
    }


def size(image: str) -> Size | None:
    """Return the size of an image from any registry and of any tag; None where nobody measured it."""
    name = image.partition("@")[0]
    head, slash, last = name.rpartition("/")
    path = f"{head}{slash}{last.partition(':')[0]}"
    return next((found for known, found in _sizes().items() if f"/{path}".endswith(f"/{known}")), None)
