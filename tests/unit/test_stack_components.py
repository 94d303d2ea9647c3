"""The component model: what must hold for every component of every stack, whoever adds one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from modelplane import contracts as c
from modelplane.core import paths
from modelplane.facts import versions
from modelplane.stacks import components as package
from modelplane.stacks import join
from modelplane.stacks.component import (
    ON_APPLY,
    ChartComponent,
    Component,
    ComponentError,
    Context,
    Crds,
    Images,
    ObjectsComponent,
    merge,
)

MIRROR = Images("registry.example.org/mirror", "login")
EVERY = {key: component for name in join.STACKS for key, component in [(x.key, x) for x in join.stack(name)]}
RELEASES = list(versions.releases())


def context(release: str = RELEASES[-1], **over: Any) -> Context:
    return Context(release=versions.release(release), **over)


def chart(key: str, **over: Any) -> ChartComponent:
    return ChartComponent(**{"key": key, "pin": "grove", "namespace": "x", "crds": Crds.NONE, **over})


@pytest.mark.parametrize(
    ("components", "says", "reason"),
    [
        ([chart("a"), chart("a")], "a stands twice", "two components of one key would share one resource"),
        ([chart("a", needs=("b",))], "a names b", "a need outside the stack would never be ready"),
        ([chart("a", after=("b",))], "a names b", "so would what it is only created after"),
        ([chart("a", outlives=("b",))], "a names b", "and an order of removal with nothing at its other end"),
        (
            [chart("a", needs=("b",)), chart("b")],
            "stands before b",
            "a need that comes later may be a circle",
        ),
        (
            [chart("a", needs=("b",)), chart("b", needs=("a",))],
            "stands before b",
            "in a circle nothing is ever created",
        ),
        (
            [chart("a", crds=Crds.UNSTATED)],
            "does not say how its CRDs",
            "new controllers would run on old CRDs for ever",
        ),
    ],
)
def test_a_broken_stack_is_refused(components: list[Component], says: str, reason: str) -> None:
    with pytest.raises(ComponentError, match=says):
        join.join(components)


def test_the_page_on_stacks_lists_every_chart_with_all_that_it_must_find_or_not_find() -> None:
    page = (Path(__file__).parents[2] / "docs/serving-stacks.md").read_text(encoding="utf-8")
    rows = {line.split("`")[1]: line for line in page.splitlines() if line.startswith("| `")}
    charts = {key: x for key, x in EVERY.items() if isinstance(x, ChartComponent)}
    assert rows.keys() == charts.keys()
    for key, chart in charts.items():
        cells = rows[key].split(" | ")
        assert f"`{chart.namespace}`" in cells[2]
        assert ("Job" in cells[3]) == (chart.crds is Crds.FOLDER), key
        assert ("(optional)" in cells[0]) == chart.optional
        assert all(rival.name in cells[5] for rival in chart.rivals(context())), key
        assert (cells[4] == "none") == (not chart.provides), key


@pytest.mark.parametrize("name", ["Volcano", "standard", ""])
def test_an_unknown_stack_is_refused(name: str) -> None:
    with pytest.raises(ComponentError, match="known are Standard, Dynamo"):
        join.stack(name)


def test_an_unknown_component_is_refused() -> None:
    with pytest.raises(ComponentError, match="component nowhere has no file"):
        join.find("nowhere")


def test_every_component_file_is_in_a_stack() -> None:
    files = {p.stem.replace("_", "-") for p in Path(package.__file__).parent.glob("[a-z]*.py")}
    assert files == set(EVERY)


def test_nothing_of_one_stack_is_on_the_other() -> None:
    standard, dynamo = ({x.key for x in join.stack(s)} for s in (c.STANDARD, c.DYNAMO))
    assert standard - dynamo == {"leader-worker-set"}
    assert not [key for key in standard if key.startswith(("kai-", "grove", "modelexpress"))]
    assert {"kai-scheduler", "kai-queue", "grove", "modelexpress-server"} <= dynamo - standard


def test_no_component_needs_an_optional_one() -> None:
    """It may come after one: where that is left out, the cluster has its like."""
    edges = [(x.key, e) for x in EVERY.values() for e in (*x.needs, *x.outlives)]
    assert [edge for edge in edges if EVERY[edge[1]].optional] == []


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("component", EVERY.values(), ids=EVERY)
def test_every_component_installs_something_and_says_when_it_works(
    component: Component, release: str
) -> None:
    if isinstance(component, ChartComponent):
        pin = context(release).release.pin(component.pin)
        assert pin.chart
        assert pin.repository
        assert component.namespace
        return
    assert isinstance(component, ObjectsComponent)
    pins = context(release).release.pins.values()
    documents = component.documents(context(release, crd_charts=[p for p in pins if p.chart]))
    assert documents
    assert len({d.name for d in documents}) == len(documents), "each document has a key of its own"
    stateful = {"Deployment", "Namespace", "CustomResourceDefinition", "Gateway", "GatewayClass", "Job"}
    stateful |= {"Config", "SchedulingShard"}
    for document in documents:
        kind = document.manifest["kind"]
        assert (document.ready != ON_APPLY) == (kind in stateful), f"{kind} has a state to judge, or has none"


@pytest.mark.parametrize("key", [x.key for x in EVERY.values() if isinstance(x, ChartComponent)])
def test_a_provided_cluster_is_asked_for_every_chart_that_something_depends_on(key: str) -> None:
    unchecked = {
        # A label set on the nodes by hand serves as well.
        "node-feature-discovery",
        # Its API is asked for with its CRDs; a gateway that never gets an address shows a dead controller.
        "ai-gateway",
        "prometheus",
    }
    assert bool(EVERY[key].provides) == (key not in unchecked)


def test_what_is_checked_is_small_enough_to_be_observed() -> None:
    """The provider copies what it observes into its own status: a CRD of a megabyte would not fit."""
    kinds = {check.kind for x in EVERY.values() for check in x.provides}
    assert kinds == {"APIService", "DeviceClass", "Config"}, "KAI's Config is what its chart sets, no more"


def tolerations(value: object) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, Mapping):
        for key, child in value.items():
            if key == "tolerations":
                yield from child
            yield from tolerations(child)
    elif isinstance(value, list):
        for child in value:
            yield from tolerations(child)


@pytest.mark.parametrize("component", EVERY.values(), ids=EVERY)
def test_every_toleration_has_a_key(component: Component) -> None:
    """A keyless one puts control pods on GPU nodes, which then never scale down."""
    here = context(pool_taints=("example.org/team",))
    if isinstance(component, ChartComponent):
        found = list(tolerations(component.merged(here, {})))
    else:
        assert isinstance(component, ObjectsComponent)
        found = [t for d in component.documents(here) for t in tolerations(d.manifest)]
    assert [t for t in found if not t.get("key")] == []


@pytest.mark.parametrize(
    ("key", "path", "reason"),
    [
        ("node-feature-discovery", ("worker",), "no worker on a tainted node: no label"),
        ("nvidia-dra-driver", ("kubeletPlugin",), "no plugin on a tainted node: no device"),
        ("prometheus", ("prometheus-node-exporter",), "no exporter on a tainted node: no node figures"),
    ],
)
def test_what_runs_on_every_gpu_node_tolerates_the_pools_taints(
    key: str, path: tuple[str, ...], reason: str
) -> None:
    component = EVERY[key]
    assert isinstance(component, ChartComponent)
    values: Any = component.merged(context(pool_taints=("example.org/team", c.GPU_TAINT)), {})
    for step in path:
        values = values[step]
    assert [t["key"] for t in values["tolerations"]] == [c.GPU_TAINT, "example.org/team"], reason


@pytest.mark.parametrize(
    ("key", "path", "value", "reason"),
    [
        ("kai-scheduler", ("defaultQueue", "createDefaultQueue"), False, "its queues have a quota of 0"),
        (
            "kai-scheduler",
            ("scheduler", "args", "default-staleness-grace-period"),
            "-1s",
            "a duration: -1 does not parse, and 60 s evict a gang that loads",
        ),
        ("grove", ("crdInstaller", "enabled"), True, "CRDs follow an upgrade"),
        ("grove", ("webhookServerSecret", "enabled"), False, "the generated certificate stays"),
        (
            "grove",
            ("config", "server", "healthProbes", "enable"),
            True,
            "ai-dynamo/grove#742: Ready before the webhook answers",
        ),
        (
            "node-feature-discovery",
            ("postDeleteCleanup",),
            False,
            "labels outlive it: DRA plugins stand on them",
        ),
        ("nvidia-dra-driver", ("resources", "computeDomains", "enabled"), False, "no multi-node NVLink"),
    ],
)
def test_values_are_those_the_charts_own_documents_ask_for(
    key: str, path: tuple[str, ...], value: Any, reason: str
) -> None:
    component = EVERY[key]
    assert isinstance(component, ChartComponent)
    assert paths.at(component.merged(context(), {}), *path) == value, reason


@pytest.mark.parametrize(
    ("image", "mirrored", "reason"),
    [
        ("docker.io/envoyproxy/envoy", "registry.example.org/mirror/envoyproxy/envoy", "the registry goes"),
        (
            "registry.k8s.io/nfd/node-feature-discovery",
            "registry.example.org/mirror/nfd/node-feature-discovery",
            "whatever the registry",
        ),
        ("nvcr.io/a/b/c", "registry.example.org/mirror/a/b/c", "and the whole path stays"),
    ],
)
def test_a_mirror_replaces_the_registry(image: str, mirrored: str, reason: str) -> None:
    assert MIRROR.image(image) == mirrored, reason
    assert Images().image(image) == image


@pytest.mark.parametrize(
    ("repository", "mirrored", "reason"),
    [
        (
            "oci://docker.io/envoyproxy",
            "oci://registry.example.org/mirror/envoyproxy",
            "charts are artifacts",
        ),
        ("https://charts.example.org/x", "https://charts.example.org/x", "a registry serves no chart folder"),
    ],
)
def test_a_mirror_serves_charts_too(repository: str, mirrored: str, reason: str) -> None:
    assert MIRROR.repository(repository) == mirrored, reason
    assert Images().repository(repository) == repository


@pytest.mark.parametrize("release", RELEASES)
def test_every_chart_comes_from_a_registry_so_a_mirror_covers_it(release: str) -> None:
    pins = [versions.release(release).pin(x.pin) for x in EVERY.values() if isinstance(x, ChartComponent)]
    assert [p.key for p in pins if not p.repository.startswith("oci://")] == []


@pytest.mark.parametrize("component", EVERY.values(), ids=EVERY)
def test_with_a_mirror_no_public_image_is_named(component: Component) -> None:
    pins = versions.newest().pins.values()
    here = context(images=MIRROR, crd_charts=[p for p in pins if p.repository.startswith("oci://")])
    if isinstance(component, ChartComponent):
        told = str(component.merged(here, {}))
        assert ("registry.example.org" in told) == (component.key != "ai-gateway-crds"), "it has no image"
        assert (c.PULL_SECRET in told) == (component.key != "ai-gateway-crds")
    else:
        assert isinstance(component, ObjectsComponent)
        told = str([d.manifest for d in component.documents(here)])
    for registry in ("docker.io/", "registry.k8s.io/", "ghcr.io/", "nvcr.io/", "quay.io/"):
        assert registry not in told


@pytest.mark.parametrize(
    ("base", "over", "merged", "reason"),
    [
        ({"a": {"b": 1}}, {"a": {"c": 2}}, {"a": {"b": 1, "c": 2}}, "maps merge key by key"),
        ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}, "a list replaces a list, as in Helm"),
        ({"a": {"b": 1}}, {"a": 2}, {"a": 2}, "a value replaces a map"),
        ({"a": 2}, {"a": {"b": 1}}, {"a": {"b": 1}}, "and a map a value"),
        ({"a": 1, "b": 2}, {"a": None}, {"b": 2}, "a null takes ours away: none is ever sent"),
        ({"a": 1}, {"b": {"c": None}}, {"a": 1, "b": {}}, "nor one below a map of its own"),
        ({"a": 1}, {}, {"a": 1}, "nothing changes nothing"),
    ],
)
def test_values_merge(
    base: dict[str, Any], over: dict[str, Any], merged: dict[str, Any], reason: str
) -> None:
    before = repr((base, over))
    assert merge(base, over) == merged, reason
    assert repr((base, over)) == before, "inputs are never changed"
