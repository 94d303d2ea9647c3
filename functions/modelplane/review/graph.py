"""What belongs to what in a fleet, as nodes and edges: from services over replicas to clusters."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from modelplane import contracts as c
from modelplane import names
from modelplane.core import paths
from modelplane.review.fleet import (
    CACHE,
    CACHE_REPLICA,
    CLUSTER,
    DEPLOYMENT,
    ENDPOINT,
    REPLICA,
    SERVICE,
    matches,
    shown,
)
from modelplane.sim.world import Ref, World, ref


@dataclass(frozen=True, slots=True)
class Node:
    """An object: what it is, a line to say below it, its cluster where it is on one, and whether it works."""

    ref: Ref
    note: str = ""
    cluster: str = ""
    ready: bool = False

    @property
    def kind(self) -> str:
        """The kind."""
        return self.ref.kind

    @property
    def name(self) -> str:
        """Namespace and name."""
        return shown(self.ref)


@dataclass(frozen=True, slots=True)
class Edge:
    """One depends on, makes or calls the other."""

    start: Ref
    end: Ref
    label: str


@dataclass(frozen=True, slots=True)
class Graph:
    """A fleet's picture: clusters are the frames that replicas stand in."""

    clusters: tuple[Node, ...]
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]


def graph(world: World) -> Graph:
    """Return the picture of what the world holds."""
    clusters = tuple(_node(obj, _pools(obj)) for obj in world.of_kind(*CLUSTER))
    nodes = [_node(obj, _note(obj)) for kind in _drawn(world) for obj in kind]
    known = {node.ref for node in nodes}
    edges = [e for e in _edges(world) if e.start in known and e.end in known]
    return Graph(clusters, tuple(nodes), tuple(sorted(set(edges), key=lambda e: (e.start, e.end, e.label))))


def _drawn(world: World) -> Iterator[list[Mapping[str, Any]]]:
    replicas = {ref(obj)[2:] for obj in world.of_kind(*REPLICA)}
    for kind in (SERVICE, DEPLOYMENT, CACHE, REPLICA, CACHE_REPLICA):
        yield list(world.of_kind(*kind))
    # An endpoint of a replica is drawn as the replica; what is left is somebody else's.
    yield [obj for obj in world.of_kind(*ENDPOINT) if ref(obj)[2:] not in replicas]


def _node(obj: Mapping[str, Any], note: str) -> Node:
    return Node(ref(obj), note, paths.text(obj, "spec", "clusterName"), paths.is_true(obj, c.READY))


def _pools(cluster: Mapping[str, Any]) -> str:
    pools = [
        f"{paths.text(p, 'name')}: {paths.text(p, 'className')}"
        for p in paths.mappings(cluster, "spec", "nodePools")
    ]
    stack = paths.text(cluster, "spec", "stack") or c.STANDARD
    return f"{stack}, {', '.join(pools)}" if pools else stack


def _note(obj: Mapping[str, Any]) -> str:
    kind = obj.get("kind")
    if kind == DEPLOYMENT[1]:
        number = paths.integer(obj, "spec", "replicas", default=0)
        return "1 replica" if number == 1 else f"{number} replicas"
    if kind == REPLICA[1]:
        engines = paths.mappings(obj, "spec", "engines")
        pools = {paths.text(m, "nodePoolName") for e in engines for m in paths.mappings(e, "members")}
        return f"pool {', '.join(sorted(pools - {''}))}"
    if kind in (CACHE[1], CACHE_REPLICA[1]):
        repo = paths.text(obj, "spec", "huggingFace", "repo") or paths.text(obj, "spec", "source")
        return paths.text(obj, "status", "phase") or repo
    return ""


def _edges(world: World) -> Iterator[Edge]:
    for replica in world.of_kind(*REPLICA):
        target, space = ref(replica), paths.namespace(replica)
        owner = world.owner(target)
        if owner is not None:
            yield Edge(owner[0], target, "runs")
        if cache := paths.text(replica, "spec", "modelCacheRef", "name"):
            staged = names.cache_replica(cache, paths.text(replica, "spec", "clusterName"))
            yield Edge(target, Ref(*CACHE_REPLICA, space, staged), "loads")
    for staged_ in world.of_kind(*CACHE_REPLICA):
        name = paths.text(staged_, "spec", "cacheName")
        yield Edge(Ref(*CACHE, paths.namespace(staged_), name), ref(staged_), "stages")
    for service in world.of_kind(*SERVICE):
        yield from _called(world, service)


def _called(world: World, service: Mapping[str, Any]) -> Iterator[Edge]:
    space = paths.namespace(service)
    for group in paths.mappings(service, "spec", "endpoints"):
        wanted = paths.mapping(group, "selector", "matchLabels")
        for endpoint in world.of_kind(*ENDPOINT):
            if paths.namespace(endpoint) == space and matches(paths.labels(endpoint), wanted):
                replica = Ref(*REPLICA, space, paths.name(endpoint))
                yield Edge(ref(service), replica if replica in world.objects else ref(endpoint), "calls")


def mermaid(found: Graph) -> str:
    """Return the picture as a Mermaid flowchart."""
    ids = {node.ref: f"n{at}" for at, node in enumerate(found.nodes)}
    lines = ["flowchart LR"]
    for at, cluster in enumerate(found.clusters):
        lines.append(f'  subgraph c{at}["{_text(cluster.kind, cluster.name, cluster.note)}"]')
        lines += [_box(ids, n, "    ") for n in found.nodes if n.cluster == cluster.ref.name]
        lines.append("  end")
    known = {cluster.ref.name for cluster in found.clusters}
    lines += [_box(ids, n, "  ") for n in found.nodes if n.cluster not in known]
    lines += [f"  {ids[e.start]} -->|{e.label}| {ids[e.end]}" for e in found.edges]
    waiting = [ids[n.ref] for n in found.nodes if not n.ready]
    if waiting:
        lines.append("  classDef waiting stroke-dasharray: 5 5")
        lines.append(f"  class {','.join(waiting)} waiting")
    return "\n".join(lines) + "\n"


def _box(ids: Mapping[Ref, str], node: Node, indent: str) -> str:
    return f'{indent}{ids[node.ref]}["{_text(node.kind, node.name, node.note)}"]'


def _text(*lines: str) -> str:
    """Return lines as Mermaid text: entities for all that could end it or be taken for markup."""
    safe = (
        "".join(ch if ch.isalnum() or ch in " /.,:-_" else f"#{ord(ch)};" for ch in x) for x in lines if x
    )
    return "<br>".join(safe)
