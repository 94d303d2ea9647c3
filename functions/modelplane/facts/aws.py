"""What is known of AWS ahead of time: GPU instance types and zones, with their sources in the data files."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import yaml

INSTANCE_FILE = "functions/modelplane/facts/aws_instances.yaml"
_FOLDER = resources.files("modelplane.facts")


@dataclass(frozen=True, slots=True)
class InstanceType:
    """A GPU instance type.

    Attributes:
        name: as EC2 spells it.
        gpus: GPUs of one instance.
        architecture: of the CPU, `x86_64` or `arm64`.
        nvme: whether it has NVMe disks of its own.
        efa_cards: network cards that take an EFA interface; none where the type has no EFA.
        unsupported: why EKS cannot run it; empty where it can.
    """

    name: str
    gpus: int
    architecture: str = "x86_64"
    nvme: bool = False
    efa_cards: tuple[int, ...] = ()
    unsupported: str = ""


@dataclass(frozen=True, slots=True)
class Region:
    """The zones of a region by ID: those to take by default, and those EKS takes no subnets in."""

    zones: tuple[str, ...]
    refused: tuple[str, ...] = ()

    @property
    def prefix(self) -> str:
        """The part before `-az` that all its zone IDs share."""
        return self.zones[0].partition("-az")[0]


@cache
def instance_types() -> Mapping[str, InstanceType]:
    """Return every GPU instance type that is known, by name."""
    return {name: instance(name, body) for name, body in _load("aws_instances.yaml")["instanceTypes"].items()}


@cache
def regions() -> Mapping[str, Region]:
    """Return the zones of every region that is known."""
    found = _load("aws_zones.yaml")["regions"]
    return {
        name: Region(tuple(body["zones"]), tuple(body.get("refused", ()))) for name, body in found.items()
    }


@cache
def refused_zones() -> frozenset[str]:
    """Return the zone IDs, of any region, that EKS takes no cluster subnets in."""
    return frozenset(zone for region in regions().values() for zone in region.refused)


@cache
def addon_versions() -> Mapping[str, Mapping[str, str]]:
    """Return, by add-on, the version to move to with each Kubernetes minor version."""
    found: Mapping[str, Mapping[str, str]] = _load("aws_addons.yaml")
    return found


@cache
def _registries() -> Mapping[str, str]:
    found: Mapping[str, str] = _load("aws_registries.yaml")["registries"]
    return found


def eks_registry(region: str) -> str:
    """Return the registry of EKS's own images where the public partition's cannot be reached, else empty."""
    return _registries().get(region, "")


def instance(name: str, body: Mapping[str, Any]) -> InstanceType:
    """Return a type from its entry in the table; what the entry leaves out the type has not."""
    return InstanceType(
        name=name,
        gpus=int(body["gpu"]["count"]),
        architecture=body.get("cpuArchitecture", "x86_64"),
        nvme=bool(body.get("nvmeGb")),
        efa_cards=tuple(body.get("efa", {}).get("cards", ())),
        unsupported=body.get("unsupported", ""),
    )


def _load(name: str) -> Any:
    # The C loader, where PyYAML has one: the table is read before a server's first answer.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load((_FOLDER / name).read_text(encoding="utf-8"), loader)
