"""Edits of a running cluster's stack, each played as one sequence under models that serve."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import fleets
from modelplane import contracts as c
from modelplane.core import Manifest, paths
from modelplane.facts import versions
from modelplane.render.run import Rendering
from modelplane.sim import deletion
from modelplane.sim.play import Pass
from modelplane.sim.world import Ref, World
from modelplane.stacks import join

NEXT = "2999.01"
MANAGED = ["existing-dynamo", "single-gpu"]
# Of a move only: the Job that applies CRDs, with its rights.
_PASSING = "chart-crds"


@pytest.fixture
def releases(monkeypatch: pytest.MonkeyPatch) -> versions.Release:
    """A second release, in which every version is another; returns the first."""
    old = versions.newest()
    pins = {key: replace(pin, version=f"{pin.version}-next") for key, pin in old.pins.items()}
    newer = versions.Release(NEXT, "2999-01-01", "1.34", "1.40", pins)
    monkeypatch.setattr(versions, "releases", lambda: {old.name: old, NEXT: newer})
    return old


class Fleet:
    """An example that serves, and what is edited on it.

    Attributes:
        world: the played world.
        cluster: its InferenceCluster.
    """

    def __init__(self, folder: str, **spec: Any) -> None:
        documents = [self._edited(d, spec) for d in fleets.documents(folder)]
        self.world: World = fleets.play(documents).world
        (self.cluster,) = (r for r in self.world.objects if r.kind == "InferenceCluster")
        assert paths.is_true(self.world.objects[self.cluster], c.READY), folder

    @staticmethod
    def _edited(document: Manifest, spec: dict[str, Any]) -> Manifest:
        if document["kind"] != "InferenceCluster":
            return document
        return {**document, "spec": {**document["spec"], **spec}}

    def edit(self, passes: int = 80, components: str = "", **spec: Any) -> list[Pass]:
        """Change the cluster's spec and play; returns the passes."""
        found = self.world.objects[self.cluster]
        wanted = {**found["spec"], **spec}
        if components:
            source = wanted["cluster"]
            wanted["cluster"] = {**source, "existing": {**source["existing"], "components": components}}
        self.world.apply({**found, "spec": wanted})
        work = Rendering(self.world, recurse=True, function=fleets.real_function())
        return [done for _, (done, _) in zip(range(passes), work.passes(), strict=False)]

    def asked(self) -> dict[Ref, Any]:
        """What is asked of every leaf: what a provider or a controller acts on."""
        leaves = {"Release", "Object", "ProviderConfig", "ClusterProviderConfig", "Usage", "ModelReplica"}
        return {r: o.get("spec") for r, o in self.world.objects.items() if r.kind in leaves}

    def says(self, type_: str, kind: str = "InferenceCluster") -> str:
        """A condition's message on the only object of a kind."""
        (found,) = (o for r, o in self.world.objects.items() if r.kind == kind)
        return paths.text(paths.condition(found, type_), "message")

    def serves(self) -> bool:
        """Whether every replica is ready and all that is deleted has gone."""
        found = [o for r, o in self.world.objects.items() if r.kind == "ModelReplica"]
        return bool(found) and all(paths.is_true(x, c.READY) for x in found) and not self.world.deleting


def untouched(passes: list[Pass]) -> None:
    """Nothing left and nothing was refused in any of them."""
    assert [str(r) for done in passes for r in done.gone] == []
    assert [report.refused for done in passes for report in done.reports if report.refused] == []


@pytest.mark.parametrize("folder", MANAGED)
def test_managed_to_provided_and_back_takes_nothing_from_a_cluster_that_serves(folder: str) -> None:
    fleet = Fleet(folder)
    before = fleet.asked()
    passes = fleet.edit(components=c.PROVIDED)
    untouched(passes)
    assert fleet.asked() == before
    assert fleet.serves()
    told = fleet.says(c.BACKEND_READY)
    assert "spec.provided: Provided would remove the charts that are installed here (" in told
    assert "restore Managed (InferenceCluster: spec.cluster.existing.components)" in told
    untouched(fleet.edit(components=c.MANAGED))
    assert fleet.asked() == before
    assert fleet.serves()
    assert paths.is_true(fleet.world.objects[fleet.cluster], c.READY)


@pytest.mark.parametrize("passes", [1, 2, 3, 4, 5, 7, 9])
def test_provided_in_the_middle_of_an_install_takes_nothing_that_is_there(passes: int) -> None:
    """Before anything is installed it is a choice, afterwards it is refused: no pass lies between."""
    fleet = Fleet("existing-provided")
    fleet.edit(passes, components=c.MANAGED)
    installed = {r for r in fleet.world.objects if r.kind == "Release"}
    objects = {r for r, o in fleet.world.objects.items() if r.kind == "Object" and _made(o)}
    after = fleet.edit(components=c.PROVIDED)
    assert installed | objects <= fleet.world.objects.keys()
    assert fleet.serves()
    assert deletion.blocked(fleet.world) == []
    assert [report.refused for done in after for report in done.reports if report.refused] == []
    refused = "would remove the charts" in fleet.says(c.BACKEND_READY)
    assert refused or not installed
    ready = paths.is_true(fleet.world.objects[fleet.cluster], c.READY)
    assert ready == (not refused)
    # And forward again: what was begun is finished.
    fleet.edit(components=c.MANAGED)
    assert installed | objects <= fleet.world.objects.keys()
    assert any(r.kind == "Release" for r in fleet.world.objects)
    assert paths.is_true(fleet.world.objects[fleet.cluster], c.READY)
    assert fleet.serves()


def _made(obj: Manifest) -> bool:
    return obj["spec"].get("managementPolicies") != ["Observe"]


def test_a_provided_cluster_that_is_handed_over_serves_in_every_pass() -> None:
    fleet = Fleet("existing-provided")
    own = {r for r, o in fleet.world.objects.items() if r.kind == "Object" and _made(o)}
    passes = fleet.edit(components=c.MANAGED)
    gone = {r for done in passes for r in done.gone}
    assert not gone & own, "the gateway and its objects stay"
    assert {r.kind for r in gone} <= {"Object", "Usage"}
    assert [report.refused for done in passes for report in done.reports if report.refused] == []
    assert fleet.serves()
    assert fleet.says(c.REQUIREMENTS_MET) == ""


@pytest.mark.parametrize("folder", MANAGED)
@pytest.mark.parametrize("part", [2, 5])
def test_a_release_forward_and_back_and_forward_serves_in_every_pass(
    folder: str, part: int, releases: versions.Release
) -> None:
    fleet = Fleet(folder, stackRelease=releases.name)
    before = {r: spec for r, spec in fleet.asked().items() if r.kind != "Usage"}
    told: list[Pass] = []
    told += fleet.edit(part, stackRelease=NEXT)
    told += fleet.edit(stackRelease=releases.name)
    assert {r: spec for r, spec in fleet.asked().items() if r.kind != "Usage"} == before
    told += fleet.edit(stackRelease=NEXT)
    assert paths.text(fleet.world.objects[fleet.cluster], "status", "stackRelease") == NEXT
    gone = {r for done in told for r in done.gone if r.kind != "Usage" and _PASSING not in r.name}
    assert {str(r) for r in gone} == set()
    replicas = [o for done in told for r, o in done.objects.items() if r.kind == "ModelReplica"]
    assert replicas
    assert all(paths.is_true(x, c.READY) for x in replicas)
    assert all(paths.is_true(done.objects[fleet.cluster], c.READY) for done in told)
    no_way_back(fleet, releases.name)


def test_a_provided_cluster_has_moved_at_once_and_there_is_no_way_back(releases: versions.Release) -> None:
    """Nothing of it is installed, so the release tells only what is looked for and what models run beside."""
    fleet = Fleet("existing-provided", stackRelease=releases.name)
    untouched(fleet.edit(stackRelease=NEXT))
    assert paths.text(fleet.world.objects[fleet.cluster], "status", "stackRelease") == NEXT
    assert fleet.serves()
    no_way_back(fleet, releases.name)


# Served by the API server itself (kubernetes.io/docs/reference/kubernetes-api).
BUILT_IN = {
    "v1",
    "apps/v1",
    "batch/v1",
    "policy/v1",
    "networking.k8s.io/v1",
    "rbac.authorization.k8s.io/v1",
    "storage.k8s.io/v1",
    "apiextensions.k8s.io/v1",
    "resource.k8s.io/v1",
}
# By a component that serves one more group beside the one that it is looked for by.
BESIDE = {c.KAI_CONFIG_API: "kai-scheduler"}


@pytest.mark.parametrize("folder", ["dynamo-l4", "standard-h200", "single-gpu", "existing-dynamo"])
def test_every_kind_on_a_cluster_is_served_by_something_that_its_stack_installs(folder: str) -> None:
    """Case C52: a chart picked for its CRDs shipped none, and what needed them never came up."""
    world = fleets.played(folder).world
    (cluster,) = (o for r, o in world.objects.items() if r.kind == "InferenceCluster")
    components = join.stack(cluster["spec"].get("stack", c.STANDARD))
    served = {
        _api(check.name): x.key for x in components for check in x.provides if check.kind == "APIService"
    }
    installed = {x["name"] for x in paths.mappings(cluster, "status", "components")}
    for target, obj in world.objects.items():
        if target.kind == "Object" and (manifest := paths.mapping(obj, "spec", "forProvider", "manifest")):
            api = manifest["apiVersion"]
            if api not in BUILT_IN:
                assert {**served, **BESIDE}.get(api) in installed, f"{manifest['kind']} of {target}"


def _api(service: str) -> str:
    """The API of an APIService's name: `v1.example.org` is `example.org/v1`."""
    version, _, group = service.partition(".")
    return f"{group}/{version}"


def no_way_back(fleet: Fleet, old: str) -> None:
    """Asking a moved cluster for the old release changes nothing, and it is said what to ask for instead."""
    last = fleet.asked()
    untouched(fleet.edit(stackRelease=old))
    assert fleet.asked() == last
    message = fleet.says(c.BACKEND_READY)
    assert f"spec.stackRelease: {old} is older than {NEXT}, which is installed" in message
    assert f"ask for {NEXT} or a newer one" in message
    assert fleet.serves()
    untouched(fleet.edit(stackRelease=NEXT))
    assert paths.is_true(fleet.world.objects[fleet.cluster], c.READY)
