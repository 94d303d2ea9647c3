"""Teardown order stands in Usages: one per consumer, or something loses its controller before it is gone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from builders.core import config, consumer, desired, kind, thing, usage, widget
from modelplane import contracts as c
from modelplane.core import Answer, Desired, Inputs, Plan, PlanError, Waiting, settle
from modelplane.core.paths import Manifest

KIND = kind()


def answer(plan: Plan, observed: Mapping[str, Manifest] | None = None, namespace: str = "team") -> Answer:
    return settle.settle(KIND, plan, Inputs(widget(namespace=namespace), observed or {}))


def pairs(found: Answer) -> list[tuple[str, str]]:
    specs = [x.manifest["spec"] for x in found.resources.values() if x.manifest["kind"].endswith("Usage")]
    return sorted((s["of"]["resourceRef"]["name"], s["by"]["resourceRef"]["name"]) for s in specs)


def release(name: str, to: str = "config") -> Manifest:
    return {**consumer(name, to), "apiVersion": c.HELM_API, "kind": "Release"}


def cluster_config(name: str) -> Manifest:
    return {**config(name), "kind": "ClusterProviderConfig"}


def to_cluster_config(name: str) -> Manifest:
    ref = {"providerConfigRef": {"kind": "ClusterProviderConfig", "name": "config"}}
    return {**consumer(name), "spec": ref}


def keeping(name: str, *policies: Any) -> Manifest:
    """An Object with these management policies."""
    made = consumer(name)
    return {**made, "spec": {**made["spec"], "managementPolicies": list(policies)}}


@pytest.mark.parametrize(
    ("resources", "want", "reason"),
    [
        ([desired("a"), desired("b")], [], "nothing ordered"),
        ([desired("a", outlives=("b",)), desired("b")], [("a", "b")], "a declared edge"),
        (
            [desired("a", outlives=("b", "c")), desired("b"), desired("c")],
            [("a", "b"), ("a", "c")],
            "one Usage per user, never one for all",
        ),
        (
            [desired("config", config()), *(desired(k, consumer(k)) for k in "xyz")],
            [("config", "x"), ("config", "y"), ("config", "z")],
            "every consumer of a provider config, without anyone remembering it (case C58)",
        ),
        (
            [desired("config", config(), outlives=("x",)), desired("x", consumer("x"))],
            [("config", "x")],
            "declared and derived is still one",
        ),
        (
            [
                desired("kube", config()),
                desired("helm", config(api=c.HELM_API)),
                desired("x", consumer("x")),
                desired("y", release("y")),
            ],
            [("config", "x"), ("config", "y")],
            "the config of its own provider, though both have one name",
        ),
        ([desired("x", consumer("x", "other"))], [], "a config of another composite"),
        (
            [desired("config", cluster_config("config")), desired("x", to_cluster_config("x"))],
            [],
            "a ClusterProviderConfig has consumers that this composite cannot see",
        ),
        (
            [desired("config", config()), desired("x", to_cluster_config("x"))],
            [],
            "a ClusterProviderConfig of the same name is another object",
        ),
        (
            [desired("config", config()), desired("x", thing("x", spec=consumer("x")["spec"]))],
            [],
            "only Objects and Releases are consumers",
        ),
        (
            [desired("config", config()), desired("x", keeping("x", "Observe"))],
            [],
            "what leaves its object behind goes without connecting",
        ),
        (
            [desired("config", config()), desired("x", keeping("x", "Observe", "Create", "Update"))],
            [],
            "also where it writes",
        ),
        (
            [desired("config", config()), desired("x", keeping("x", "Observe", "Delete"))],
            [("config", "x")],
            "what deletes needs its config until it has",
        ),
        ([desired("config", config()), desired("x", keeping("x", "*"))], [("config", "x")], "all of it"),
        ([desired("config", config()), desired("x", keeping("x"))], [("config", "x")], "the default"),
        ([desired("a", outlives=("b",)), desired("b", blocked="no")], [], "the user is not composed yet"),
        ([desired("a", outlives=("b",), blocked="no"), desired("b")], [], "nor is the used"),
        ([desired("a", outlives=("b",)), Waiting("b", "x")], [], "nor what waits"),
    ],
)
def test_each_pair_that_is_composed_has_exactly_one_usage(
    resources: list[Desired | Waiting], want: list[tuple[str, str]], reason: str
) -> None:
    assert pairs(answer(Plan(resources))) == want, reason


def test_consumers_mean_the_config_of_their_own_namespace() -> None:
    spaces = ("one", "two")
    resources = [desired(f"config-{s}", config("config", s)) for s in spaces]
    resources += [desired(f"x-{s}", consumer(f"x-{s}", namespace=s)) for s in spaces]
    found = answer(Plan(resources), namespace="")
    usages = {key for key in found.resources if key.startswith("usage")}
    assert usages == {"usage-config-one-by-x-one", "usage-config-two-by-x-two"}


@pytest.mark.parametrize(
    ("of", "by", "composite", "want", "reason"),
    [
        ("", "", "team", ("Usage", "team"), "a composed object lands in its composite's namespace"),
        ("team", "", "team", ("Usage", "team"), "said or not, it is the same one"),
        ("infra", "infra", "", ("Usage", "infra"), "a cluster-scoped composite names them"),
        ("", "", "", ("ClusterUsage", ""), "cluster-scoped objects"),
    ],
)
def test_a_usage_stands_where_both_its_ends_do(
    of: str, by: str, composite: str, want: tuple[str, str], reason: str
) -> None:
    plan = Plan([desired("a", thing("a", of), outlives=("b",)), desired("b", thing("b", by))])
    manifest = answer(plan, namespace=composite).resources["usage-a-by-b"].manifest
    assert (manifest["kind"], manifest["metadata"].get("namespace", "")) == want, reason


@pytest.mark.parametrize(
    ("of", "by", "reason"),
    [("infra", "team", "two namespaces"), ("", "infra", "a cluster-scoped object and a namespaced one")],
)
def test_a_pair_in_two_namespaces_is_refused(of: str, by: str, reason: str) -> None:
    plan = Plan([desired("a", thing("a", of), outlives=("b",)), desired("b", thing("b", by))])
    with pytest.raises(PlanError, match="a and b are in different namespaces"):
        answer(plan, namespace="")


def test_a_usage_names_both_ends_and_replays_the_deletion() -> None:
    plan = Plan([desired("config", config()), desired("x", consumer("the-x"))])
    manifest = answer(plan).resources["usage-config-by-x"].manifest
    assert manifest["apiVersion"] == "protection.crossplane.io/v1beta1"
    assert manifest["spec"] == {
        "of": {"apiVersion": c.KUBERNETES_API, "kind": "ProviderConfig", "resourceRef": {"name": "config"}},
        "by": {"apiVersion": c.KUBERNETES_API, "kind": "Object", "resourceRef": {"name": "the-x"}},
        "replayDeletion": True,
    }


def test_composites_that_share_a_namespace_have_usages_of_their_own() -> None:
    plan = Plan([desired("a", outlives=("b",)), desired("b")])
    names = set()
    for name in ("one", "two"):
        found = settle.settle(KIND, plan, Inputs(widget(name)))
        names.add(found.resources["usage-a-by-b"].manifest["metadata"]["name"])
    assert len(names) == 2


@pytest.mark.parametrize(
    ("observed", "want", "reason"),
    [(None, False, "not there yet"), (thing("u", kind="Usage"), True, "there: nothing more to wait for")],
)
def test_a_usage_is_ready_once_it_is_observed(observed: Manifest | None, want: bool, reason: str) -> None:
    plan = Plan([desired("a", outlives=("b",)), desired("b")])
    seen = {"usage-a-by-b": observed} if observed else {}
    assert answer(plan, seen).resources["usage-a-by-b"].ready is want, reason


A, B = thing("a", "team"), thing("b", "team")
KEPT: dict[str, Any] = {"a": A, "b": B, "usage-a-by-b": usage(A, B)}


@pytest.mark.parametrize(
    ("plan", "want", "reason"),
    [
        (Plan([desired("a", outlives=("b",)), desired("b")]), True, "both built, the edge declared"),
        (Plan([desired("a"), desired("b")]), True, "both built, the edge taken back: it is let go first"),
        (Plan([Waiting("a", "x"), desired("b")]), True, "a waits: nobody can declare its edge"),
        (Plan([Waiting("a", "x"), Waiting("b", "x")]), True, "both wait"),
        (Plan([desired("b")], keep=frozenset({"a"})), True, "a is kept"),
        (Plan([desired("a", outlives=("b",)), Waiting("b", "x")]), True, "b waits and a declares"),
        (Plan([Waiting("a", "x")]), False, "b goes: a Usage by nothing would hold a for ever"),
        (Plan([desired("b")]), True, "a goes: b stays and holds it"),
        (Plan(keep_all=True), True, "all is kept"),
    ],
)
def test_what_is_kept_keeps_its_order_of_deletion(plan: Plan, want: bool, reason: str) -> None:
    assert ("usage-a-by-b" in answer(plan, KEPT).resources) is want, reason


@pytest.mark.parametrize(
    "plan",
    [
        Plan([Waiting("config", "x"), desired("new", consumer("new"))]),
        Plan([desired("new", consumer("new"))], keep=frozenset({"config"})),
    ],
    ids=["waits", "kept"],
)
def test_a_new_consumer_of_a_kept_config_is_ordered_too(plan: Plan) -> None:
    assert pairs(answer(plan, {"config": config("config", "team")})) == [("config", "new")]


def test_keeping_all_creates_no_usage() -> None:
    observed = {"config": config("config", "team"), "x": consumer("x", "config", "team")}
    assert set(answer(Plan(keep_all=True), observed).resources) == {"config", "x"}


def test_a_plan_cannot_use_the_key_of_a_usage() -> None:
    plan = Plan([desired("a", outlives=("b",)), desired("b"), desired("usage-a-by-b")])
    with pytest.raises(PlanError, match="usage-a-by-b is the key of a Usage"):
        answer(plan)
