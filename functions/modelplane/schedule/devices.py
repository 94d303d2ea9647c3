"""What a pool's nodes carry, read from a cluster's status into values that can be compared and remembered."""

import marshal
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from operator import itemgetter
from typing import Any

from modelplane.core import paths
from modelplane.schedule import quantity, semver
from modelplane.schedule.quantity import Quantity
from modelplane.schedule.semver import Semver

SYNTHETIC = "Synthetic"
Attribute = str | bool | int | Semver


@dataclass(frozen=True, slots=True)
class Shape:
    """What a selector sees of a device: its driver, and attributes and capacity by name in sorted order.

    An attribute carries its field (`int`, `bool`, ...) beside the value: 1 and True are one key to Python.
    """

    driver: str
    attributes: tuple[tuple[str, str, Attribute], ...] = ()
    capacity: tuple[tuple[str, Quantity], ...] = ()


@dataclass(frozen=True, slots=True)
class Device:
    """One kind of device on a node, and how many of it there are."""

    name: str
    count: int
    shape: Shape
    device_class: str = ""
    claimed: bool = True


@dataclass(frozen=True, eq=False)
class Node:
    """The devices of one node, in the order the class lists them.

    Compared by identity: `node` gives pools of one class the same object, so that a fleet's pools are looked
    up without hashing their devices again.
    """

    devices: tuple[Device, ...] = ()

    @cached_property
    def counts(self) -> tuple[int, ...]:
        """Devices there are to claim, one number per kind; none of a synthetic kind."""
        return tuple(d.count if d.claimed else 0 for d in self.devices)

    def describe(self, amounts: tuple[int, ...]) -> str:
        """Return amounts of each kind as text, such as `8 gpu + 1 nic`."""
        parts = (f"{n} {d.name}" for n, d in zip(amounts, self.devices, strict=True) if n)
        return " + ".join(parts) or "no device"


def node(devices: object) -> Node:
    """Return the node that a `gpuPools[].devices` list describes; what is unreadable in it is left out."""
    if not isinstance(devices, list):
        return Node()
    try:
        return _node(marshal.dumps(devices, 2))
    except ValueError:  # a value no JSON document holds
        return Node()


@lru_cache(maxsize=8192)
def _node(packed: bytes) -> Node:
    # Pools of one class carry equal lists: one parse serves them all.
    return Node(tuple(_device(d) for d in marshal.loads(packed) if isinstance(d, Mapping)))


def _device(raw: Mapping[str, Any]) -> Device:
    claimed = paths.text(raw, "claim") != SYNTHETIC
    return Device(
        name=paths.text(raw, "name") or "device",
        count=max(0, paths.integer(raw, "count", default=0) or 0),
        shape=Shape(
            driver=paths.text(raw, "driver"),
            attributes=tuple(
                (name, kind, value)
                for name, raw_value in _by_name(raw, "attributes")
                for kind, value in _attribute(raw_value)
            ),
            capacity=tuple(
                (name, amount)
                for name, raw_value in _by_name(raw, "capacity")
                if (amount := _amount(raw_value)) is not None
            ),
        ),
        device_class=paths.text(raw, "deviceClassName") if claimed else "",
        claimed=claimed,
    )


def _by_name(raw: Mapping[str, Any], key: str) -> list[tuple[str, Any]]:
    return sorted(
        ((k, v) for k, v in paths.mapping(raw, key).items() if isinstance(k, str)), key=itemgetter(0)
    )


def _attribute(raw: object) -> list[tuple[str, Attribute]]:
    """Return the one value an attribute holds, with its field; none where no driver could report it."""
    value = paths.mapping(raw)
    if isinstance(version := value.get("version"), str):
        try:
            return [("version", semver.parse(version))]
        except ValueError:
            return []
    if isinstance(text := value.get("string"), str):
        return [("string", text)]
    if isinstance(truth := value.get("bool"), bool):
        return [("bool", truth)]
    number = paths.integer(value, "int")
    return [] if number is None else [("int", number)]


def _amount(raw: object) -> Quantity | None:
    value = paths.at(raw, "value")
    try:
        return quantity.parse(value) if isinstance(value, str) else None
    except ValueError:
        return None
