"""Clusters and replicas as the scheduler sees them: read once, kept for as long as the objects are the same.

The shell hands out the same dict for an unchanged object, so a view is remembered by the object's identity,
together with the object: an identity is never reused while its object lives.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

from modelplane import contracts as c
from modelplane.core import paths
from modelplane.core.paths import Manifest
from modelplane.schedule import devices
from modelplane.schedule.devices import Node
from modelplane.schedule.match import Request

V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Taint:
    """A taint of a cluster."""

    key: str
    value: str
    effect: str

    def __str__(self) -> str:
        return f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"


@dataclass(frozen=True, slots=True)
class Pool:
    """A node pool: what one node carries, how many nodes count now, and how many were declared."""

    name: str
    node: Node
    nodes: int
    declared: int


class Cluster:
    """An InferenceCluster; what it lacks reads as not ready, without address, without pools."""

    def __init__(self, raw: Manifest) -> None:
        self.raw = raw
        self.name = paths.name(raw)
        self.labels = paths.labels(raw)
        self.ready = paths.is_true(raw, c.READY)
        self.gateway = paths.text(raw, "status", "gateway", "address")
        self.caches = bool(paths.text(raw, "status", "cache", "storageClassName"))
        self.taints = tuple(
            Taint(paths.text(t, "key"), paths.text(t, "value"), paths.text(t, "effect"))
            for t in paths.mappings(raw, "spec", "taints")
        )

    @cached_property
    def pools(self) -> Mapping[str, Pool]:
        """The published pools by name, in the published order."""
        found: dict[str, Pool] = {}
        for raw in paths.mappings(self.raw, "status", "gpuPools"):
            name = paths.text(raw, "name")
            if name:
                declared = max(0, paths.integer(raw, "nodes", default=0) or 0)
                nodes = paths.integer(raw, "readyNodes", default=declared)
                found.setdefault(
                    name, Pool(name, devices.node(raw.get("devices")), max(0, nodes or 0), declared)
                )
        return found

    @cached_property
    def declared_pools(self) -> frozenset[str]:
        """Names of the pools its owner asks for; empty where the spec says none."""
        return frozenset(paths.text(p, "name") for p in paths.mappings(self.raw, "spec", "nodePools"))


@dataclass(frozen=True, slots=True)
class Claim:
    """Pods of a placed replica that claim devices on one pool, each with these requests."""

    pool: str
    pods: int
    requests: tuple[Request, ...]


class Replica:
    """A ModelReplica as composed: where it is and what it claims there.

    Its own deployment knows its place from the key it is composed under; others read it from the object.
    """

    def __init__(self, raw: Manifest, cluster: str = "", index: int | None = None) -> None:
        self.raw = raw
        self.name = paths.name(raw)
        self.namespace = paths.namespace(raw)
        self.deployment = paths.text(raw, "metadata", "labels", c.DEPLOYMENT_LABEL)
        self.cluster = cluster or paths.text(raw, "spec", "clusterName")
        label = paths.text(raw, "metadata", "labels", c.REPLICA_INDEX_LABEL)
        self.index = _index(label) if index is None else index
        self.revision = paths.text(raw, "metadata", "annotations", c.REVISION_ANNOTATION)
        self.replaces = paths.text(raw, "metadata", "annotations", c.REPLACES_ANNOTATION)
        self.created = paths.text(raw, "metadata", "creationTimestamp")
        self.leaving = bool(paths.text(raw, "metadata", "deletionTimestamp"))
        self.ready = paths.is_true(raw, c.READY)
        # It says itself that it does not serve; a condition that is not there says nothing.
        self.failed = paths.condition(raw, c.READY).get("status") == "False"

    @cached_property
    def claims(self) -> tuple[Claim, ...]:
        """What its pods claim; a member without requests claims nothing."""
        return tuple(
            Claim(paths.text(member, "nodePoolName"), copies * pods_of(member), requests)
            for engine in paths.mappings(self.raw, "spec", "engines")
            for copies in (max(1, paths.integer(engine, "copies", default=1) or 1),)
            for member in paths.mappings(engine, "members")
            if (requests := placed_requests(member))
        )


def pods_of(member: Mapping[str, Any]) -> int:
    """Return the pods of a member in one copy: only a Worker has more than one."""
    if member.get("role") != c.WORKER:
        return 1
    return max(1, paths.integer(member, "worker", "nodes", default=1) or 1)


def placed_requests(member: Mapping[str, Any]) -> tuple[Request, ...]:
    """Return the device requests that a placed member carries."""
    return tuple(
        Request(
            name=paths.text(raw, "name"),
            count=max(1, paths.integer(raw, "count", default=1) or 1),
            selectors=tuple(text for s in paths.mappings(raw, "selectors") if (text := paths.text(s, "cel"))),
            device_class=paths.text(raw, "deviceClassName"),
        )
        for raw in paths.mappings(member, "deviceRequests")
    )


def _index(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0


class Views(Generic[V]):
    """Views of objects, remembered by identity; what a call no longer sees makes room."""

    def __init__(self, make: Callable[[Manifest], V]) -> None:
        self._make = make
        self._known: dict[int, tuple[Manifest, V]] = {}

    def of(self, objects: Sequence[Manifest]) -> list[V]:
        """Return the view of each object, in their order."""
        known = self._known
        found: list[V] = []
        for raw in objects:
            held = known.get(id(raw))
            if held is None or held[0] is not raw:
                held = known[id(raw)] = (raw, self._make(raw))
            found.append(held[1])
        if len(known) > 2 * len(objects) + 1024:
            self._known = {id(raw): known[id(raw)] for raw in objects}
        return found


CLUSTERS: Views[Cluster] = Views(Cluster)
REPLICAS: Views[Replica] = Views(Replica)
