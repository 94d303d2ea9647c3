"""The picture of a fleet: what is drawn, and that no name breaks it."""

from __future__ import annotations

from xml.etree import ElementTree

import fleets
from modelplane.review.graph import Edge, Graph, Node, graph, mermaid
from modelplane.review.picture import svg
from modelplane.sim.world import Ref

API = "modelplane.ai/v1alpha1"
HOSTILE = '"]; click n0 "javascript:alert(1)" <script>&'


def ref(kind: str, name: str) -> Ref:
    return Ref(API, kind, "ml-team", name)


def test_a_fleet_is_drawn_from_service_to_cluster() -> None:
    found = graph(fleets.played("dynamo-l4").world)
    assert [x.ref.name for x in found.clusters] == ["dynamo-l4"]
    assert {(e.start.kind, e.label, e.end.kind) for e in found.edges} == {
        ("ModelService", "calls", "ModelReplica"),
        ("ModelDeployment", "runs", "ModelReplica"),
        ("ModelReplica", "loads", "ModelCacheReplica"),
        ("ModelCache", "stages", "ModelCacheReplica"),
    }
    assert {n.kind for n in found.nodes if n.cluster == "dynamo-l4"} == {"ModelReplica", "ModelCacheReplica"}
    assert all(n.ready for n in found.nodes)


def hostile() -> Graph:
    cluster = Node(Ref(API, "InferenceCluster", "", HOSTILE), HOSTILE)
    nodes = (
        Node(ref("ModelDeployment", HOSTILE), HOSTILE),
        Node(ref("ModelReplica", "a"), "pool x", HOSTILE),
        Node(ref("ModelReplica", "lost"), "", "a cluster that is not there"),
    )
    return Graph((cluster,), nodes, (Edge(nodes[0].ref, nodes[1].ref, "runs"),))


def test_no_name_ends_its_text_in_mermaid() -> None:
    lines = mermaid(hostile()).splitlines()
    assert lines[0] == "flowchart LR"
    for line in lines:
        text = line.partition('"')[2].rpartition('"')[0]
        assert not set(text.replace("<br>", "")) & set('"<>()[]&'), line
    assert sum("subgraph" in line for line in lines) == 1
    assert lines[-1] == "  class n0,n1,n2 waiting"


def test_no_name_breaks_the_svg() -> None:
    drawn = ElementTree.fromstring(svg(hostile()))
    titles = [x.text for x in drawn.iter("{http://www.w3.org/2000/svg}title")]
    assert f"ModelDeployment ml-team/{HOSTILE}" in titles
    assert len(titles) == 3


def test_an_empty_fleet_is_an_empty_picture() -> None:
    empty = Graph((), (), ())
    assert mermaid(empty) == "flowchart LR\n"
    assert ElementTree.fromstring(svg(empty)).tag.endswith("svg")
