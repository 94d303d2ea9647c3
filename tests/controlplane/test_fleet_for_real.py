"""Every example on the real core: from nothing to Ready, through mishaps and an upgrade of ours, to gone.

The tests build on each other and run in the order they stand in: one fleet lives through all of them, on a
control plane that package/install made, so that core has the rights that it has there and no more.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from controlplane import living, packages
from controlplane.client import Client, Document, condition
from controlplane.installed import PKG, Installed
from controlplane.processes import wait_for
from modelplane import contracts as c
from modelplane.core import paths
from modelplane.sim import remote
from modelplane.sim.world import Failure, Ref, ref

RACK = Ref(c.API, "InferenceCluster", "", "rack")
QWEN = Ref(c.API, "ModelDeployment", "ml-team", "qwen-rack")
CLASS = Ref(c.API, "InferenceClass", "", "byo-l4")
NEXT = "v0.1.1"


@pytest.fixture(scope="module")
def fleet(installed: Installed) -> Iterator[living.Fleet]:
    """Every example; nothing is applied yet."""
    installed.serve_gateway_kinds()
    found = living.Fleet(installed)
    found.providers.start()
    yield found
    found.providers.stop()


def says(fleet: living.Fleet, target: Ref) -> str:
    """All that a composite's conditions tell."""
    found = paths.mappings(fleet.composites()[target], "status", "conditions")
    return "; ".join(f"{one['type']} {one.get('message', '')}" for one in found)


def by_name(fleet: living.Fleet, target: Ref) -> Document:
    """The document as a user wrote it."""
    return copy.deepcopy(next(one for one in fleet.documents if ref(one) == target))


def test_every_example_becomes_ready_though_the_function_dies_halfway(fleet: living.Fleet) -> None:
    fleet.apply()
    asked = [d for d in fleet.documents if paths.text(d, "spec", "cluster", "source") == "EKS"]

    def halfway() -> bool:
        return len(fleet.client.list(c.INFRA_API, "EKSNetwork")) == len(asked)

    fleet.until("every cluster on EKS has its network", halfway, fleet.unready)
    before = fleet.all().keys()
    fleet.plane.function.servers[0].kill()
    fleet.providers.rest()
    assert before <= fleet.all().keys()
    fleet.plane.function.start_server(0)
    fleet.becomes_ready()


def test_then_nobody_writes_any_more(fleet: living.Fleet) -> None:
    fleet.comes_to_rest()
    assert fleet.unready() == []


def test_what_stands_is_what_the_simulator_says(fleet: living.Fleet) -> None:
    # Two clusters fit this one, of a stack each: it is served where a cluster was Ready first.
    anywhere = ("ModelDeployment qwen3-coder:", "ModelReplica qwen3-coder-", "ModelEndpoint qwen3-coder-")
    found, expected = (
        {one for one in composed if not one.startswith(anywhere)}
        for composed in (living.composed(fleet.all().values()), fleet.played.composed)
    )
    assert found - expected == set()
    assert expected - found == set()


@pytest.mark.parametrize(
    ("what", "row", "reason"),
    [
        ("inferenceclusters/rack", r"rack +Existing +192\.0\.2\.\d+ +True +True ", "where it serves"),
        ("inferenceclusters/dynamo-l4", r"dynamo-l4 +EKS +192\.0\.2\.\d+ +True +True ", "the same on EKS"),
        ("modeldeployments/qwen-rack", r"qwen-rack +1 +True +True ", "how many replicas there are"),
        ("modelcaches/qwen2-5-14b", r"qwen2-5-14b +HuggingFace +1/1 +True +True ", "on how many clusters"),
        ("modelservices/qwen2-5-14b", r"qwen2-5-14b +http\S+ +True +True ", "the URL to call"),
        ("inferencegateways/default", r"default +Traefik +192\.0\.2\.\d+ +True +True ", "its address"),
    ],
)
def test_kubectl_get_shows_what_one_looks_for(fleet: living.Fleet, what: str, row: str, reason: str) -> None:
    told = fleet.plane.shell(f"kubectl get {what} --namespace=ml-team")
    assert re.search(row, told.stdout), f"{reason}: {told.stdout}{told.stderr}"


def test_no_composite_makes_core_stop_watching_it(fleet: living.Fleet) -> None:
    closed = [t for t, found in fleet.composites().items() if condition(found, "Responsive") == "False"]
    assert closed == []


def test_a_class_that_is_deleted_takes_nothing_with_it(fleet: living.Fleet) -> None:
    before = fleet.all().keys()
    fleet.client.delete(by_name(fleet, CLASS))
    fleet.settles()
    fleet.until("the cluster misses it", lambda: CLASS.name in says(fleet, RACK), lambda: says(fleet, RACK))
    assert before - fleet.all().keys() == {CLASS}
    fleet.client.apply(by_name(fleet, CLASS))
    fleet.becomes_ready()


def test_a_cluster_that_is_not_ready_keeps_what_runs_on_it(fleet: living.Fleet) -> None:
    before = fleet.all().keys()

    def hits(one: Document) -> bool:
        return one["kind"] == "Release" and paths.labels(one).get(c.CLUSTER_LABEL) == RACK.name

    why = "timed out waiting for the condition"
    fleet.providers.fail(Failure(hits, remote.FAILED, why))
    fleet.until(
        "the cluster is not ready and says why",
        lambda: condition(fleet.composites()[RACK], "Ready") == "False" and why in says(fleet, RACK),
        lambda: says(fleet, RACK),
    )
    fleet.settles()
    assert before - fleet.all().keys() == set()
    assert why in says(fleet, RACK)
    fleet.providers.recover()
    fleet.becomes_ready()


@pytest.mark.parametrize(
    ("selector", "reason"),
    [
        ("device.driver == 'nobody'", "no device of the fleet"),
        ("device.driver == 'gpu.nvidia.com' && device.nothing", "it never compiles"),
    ],
)
def test_an_edit_that_fits_nowhere_stops_nothing(fleet: living.Fleet, selector: str, reason: str) -> None:
    before = fleet.all().keys()
    broken = by_name(fleet, QWEN)
    for member in broken["spec"]["template"]["spec"]["engines"][0]["members"]:
        member["nodeSelector"]["devices"][0]["selectors"] = [{"cel": selector}]
    fleet.client.apply(broken)
    fleet.settles()
    assert before - fleet.all().keys() == set(), reason
    fleet.client.apply(by_name(fleet, QWEN))
    fleet.becomes_ready()


def test_an_upgrade_with_every_example_running_recreates_and_rewrites_nothing(
    fleet: living.Fleet, installed: Installed, tmp_path: Path
) -> None:
    fleet.settles()
    before = fleet.all()
    installed.install(packages.next_release(tmp_path, NEXT[1:]), NEXT)
    wait_for("the new definition is served", lambda: has_new_field(fleet.client))
    # Composites are not Synced for a moment while core knows the new function and does not reach it yet.
    fleet.becomes_ready()
    fleet.settles()
    after = fleet.all()
    assert after.keys() == before.keys()
    assert [t for t, one in after.items() if one["metadata"]["uid"] != before[t]["metadata"]["uid"]] == []
    assert [t for t, one in after.items() if living.content(one) != living.content(before[t])] == []
    assert fleet.unready() == []


def test_only_the_new_revisions_are_active_afterwards(fleet: living.Fleet) -> None:
    for kind in ("ConfigurationRevision", "FunctionRevision"):
        active = [one for one in fleet.client.list(PKG, kind) if one["spec"]["desiredState"] == "Active"]
        (image,) = {one["spec"]["image"] for one in active}
        assert image.endswith(f":{NEXT}")


def has_new_field(client: Client) -> bool:
    """Whether the definition is the next release's."""
    name = "modeldeployments.modelplane.ai"
    crd = client.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", name)
    assert crd is not None
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return "inTheNext" in schema["properties"]["spec"]["properties"]


def test_a_fleet_that_is_deleted_at_once_goes_without_a_trace(fleet: living.Fleet) -> None:
    fleet.goes("Background")
    assert fleet.all() == {}
    assert fleet.providers.leaks == []
