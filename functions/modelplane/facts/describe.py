"""From `aws ec2 describe-instance-types` to entries of aws_instances.yaml: what AWS says, and no guess."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_GIGABIT = re.compile(r"(?:Up to )?([0-9]+(?:[.][0-9]+)?) Gigabit")
_ARM = "arm64"


class DescriptionError(ValueError):
    """What was read is not the output of describe-instance-types; the message says why."""


@dataclass
class Converted:
    """Entries by instance type, and what AWS did not say."""

    entries: dict[str, Any] = field(default_factory=dict)
    open: list[str] = field(default_factory=list)


def convert(described: object) -> Converted:
    """Return the entries of every NVIDIA type described; others are passed over.

    Raises:
        DescriptionError: for anything without a list InstanceTypes.
    """
    listed = described.get("InstanceTypes") if isinstance(described, Mapping) else None
    if not isinstance(listed, list):
        raise DescriptionError(
            "has no list InstanceTypes: write the output of `aws ec2 describe-instance-types` as JSON"
        )
    found = Converted()
    for body in sorted(
        (x for x in listed if isinstance(x, Mapping)), key=lambda x: str(x.get("InstanceType"))
    ):
        name, gpus = body.get("InstanceType"), _part(body, "GpuInfo").get("Gpus")
        if isinstance(name, str) and isinstance(gpus, list) and gpus and _is_nvidia(gpus[0]):
            found.entries[name] = _entry(name, body, gpus[0], found.open)
    return found


def _part(body: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = body.get(name)
    return found if isinstance(found, Mapping) else {}


def _is_nvidia(gpu: object) -> bool:
    return (
        isinstance(gpu, Mapping) and gpu.get("Manufacturer") == "NVIDIA" and isinstance(gpu.get("Count"), int)
    )


def _entry(name: str, body: Mapping[str, Any], gpu: Mapping[str, Any], unsaid: list[str]) -> dict[str, Any]:
    net = _part(body, "NetworkInfo")
    cards = net.get("NetworkCards")
    count = len(cards) if isinstance(cards, list) else 0
    told = {
        "gpu": _told(
            {
                "count": gpu["Count"],
                "model": gpu.get("Name"),
                "memoryMib": _part(gpu, "MemoryInfo").get("SizeInMiB"),
            }
        ),
        "cpuArchitecture": _ARM
        if _ARM in _part(body, "ProcessorInfo").get("SupportedArchitectures", ())
        else None,
        "vcpus": _part(body, "VCpuInfo").get("DefaultVCpus"),
        "memoryGib": int(_part(body, "MemoryInfo").get("SizeInMiB", 0)) // 1024,
        "nvmeGb": _part(body, "InstanceStorageInfo").get("TotalSizeInGB"),
        "networkGbps": _bandwidth(net.get("NetworkPerformance")),
        "networkCards": count,
    }
    entry = _told(told)
    interfaces = _part(net, "EfaInfo").get("MaximumEfaInterfaces") if net.get("EfaSupported") is True else 0
    if interfaces:
        if interfaces == count:
            entry["efa"] = {"cards": list(range(count))}
        else:
            # Fewer than cards: on p6-b300 it is the first that has none, on p6e-gb200 every even one.
            unsaid.append(
                f"{name}: {interfaces} EFA interfaces on {count} network cards, and AWS does not say which:"
                " add efa.cards by hand from the EC2 User Guide, efa-acc-inst-types"
            )
    return entry


def _bandwidth(text: object) -> float | int | None:
    found = _GIGABIT.fullmatch(text) if isinstance(text, str) else None
    if not found:
        return None
    number = float(found.group(1))
    return int(number) if number.is_integer() else number


def _told(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value}
