"""Teams apart, replicas apart: who selects whose pods, and who may open a connection to whom."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import platform as p
from builders import replicas as r
from modelplane import contracts as c
from modelplane import names
from modelplane.core import Manifest, paths
from modelplane.kinds import inference_cluster

STACKS = ("Standard", "Dynamo")
WORKLOADS = ("Deployment", "LeaderWorkerSet", "PodCliqueSet")


@dataclass(frozen=True)
class Pod:
    """A pod as selectors see it: its namespace, its labels, and whether it is an engine's."""

    namespace: str
    labels: tuple[tuple[str, str], ...]
    engine: bool

    @property
    def its(self) -> dict[str, str]:
        return dict(self.labels)


def matches(selector: Manifest, labels: dict[str, str]) -> bool:
    """A label selector as Kubernetes reads it."""
    for wanted in selector.get("matchExpressions", []):
        assert wanted["operator"] == "Exists"
        if wanted["key"] not in labels:
            return False
    return selector.get("matchLabels", {}).items() <= labels.items()


def pods_of(objects: dict[str, Manifest]) -> list[Pod]:
    """The pods that a replica's objects make, one per template."""
    found = []
    for manifest in objects.values():
        if manifest["kind"] not in WORKLOADS:
            continue
        space = manifest["metadata"]["namespace"]
        for pod in r.pods(manifest).values():
            labels = pod["metadata"]["labels"]
            found.append(Pod(space, tuple(sorted(labels.items())), c.ENGINE_LABEL in labels))
    return found


def selectors_of(objects: dict[str, Manifest]) -> Iterator[tuple[str, Manifest]]:
    """Every selector in a replica's objects, affinity terms and policies among them."""

    def inside(node: Any, where: str) -> Iterator[tuple[str, Manifest]]:
        if isinstance(node, dict):
            for key, value in node.items():
                if key in ("selector", "labelSelector") and isinstance(value, dict):
                    plain = not value.keys() & {"matchLabels", "matchExpressions"}
                    yield f"{where}.{key}", {"matchLabels": value} if plain else value
                elif key == "podSelector":
                    yield f"{where}.{key}", value
                else:
                    yield from inside(value, f"{where}.{key}")
        elif isinstance(node, list):
            for value in node:
                yield from inside(value, where)

    for manifest in objects.values():
        yield from inside(manifest.get("spec", {}), manifest["kind"])


def objects_of(composite: Manifest, stack: str, **of_cluster: Any) -> dict[str, Manifest]:
    given_, _ = r.settled(composite, r.cluster(stack=stack, **of_cluster), r.cache())
    return r.manifests(given_)


NAME = st.from_regex(r"[a-z0-9]([a-z0-9.-]{0,20}[a-z0-9])?", fullmatch=True)
ENGINE = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?", fullmatch=True)
# What users may put on pods: anything outside modelplane.ai/, so also what others select by.
LABELS = st.dictionaries(
    st.sampled_from(["app", "app.kubernetes.io/name", "llm-d.ai/role", "kai.scheduler/queue", "role"]),
    st.sampled_from(["decode", "modelplane", "epp", "heron"]),
    max_size=3,
)
SHAPE = st.sampled_from(["one", "gang", "pair", "gangs"])


@st.composite
def replicas(draw: st.DrawFn) -> tuple[str, str, Manifest]:
    """A team, a deployment's name there, and one of its replicas."""
    team, deployment = draw(st.sampled_from(["lab", "lab-2", "other"])), draw(NAME)
    shape, engine, labels = draw(SHAPE), draw(ENGINE), draw(LABELS)
    member = {"metadata": {"labels": labels}} if labels else {}
    engines = {
        "one": lambda: [r.engine(engine, r.member(**member))],
        "gang": lambda: [r.gang(engine, leader=dict(member), worker=dict(member), copies=2)],
        "pair": r.pair,
        "gangs": lambda: r.pair(gangs=True),
    }[shape]()
    serving = {"serving": {"mode": "PrefillDecode"}} if shape in ("pair", "gangs") else {}
    index = draw(st.integers(0, 2))
    composite = r.replica(*engines, name=names.replica(deployment, "north", index), team=team, **serving)
    return team, f"{deployment}/{index}", composite


@pytest.mark.parametrize("stack", STACKS)
@settings(max_examples=40)
@given(first=replicas(), second=replicas())
def test_no_two_replicas_ever_select_each_others_pods(
    stack: str, first: tuple[str, str, Manifest], second: tuple[str, str, Manifest]
) -> None:
    """Whatever their names, engines and own labels; in another namespace nothing is selected at all."""
    if first[:2] == second[:2]:
        return
    teams = ("lab", "lab-2", "other")
    mine, theirs = (objects_of(x[2], stack, teams=teams, fabric="EFA") for x in (first, second))
    identities = [
        {(m["kind"], m["metadata"]["namespace"], m["metadata"]["name"]) for m in x.values()}
        for x in (mine, theirs)
    ]
    assert identities[0] & identities[1] == set(), "one object, two owners"
    for objects, others in ((mine, theirs), (theirs, mine)):
        space = names.team_namespace(paths.namespace((first if objects is mine else second)[2]))
        assert {m["metadata"]["namespace"] for m in objects.values()} == {space}
        for where, selector in selectors_of(objects):
            caught = [x for x in pods_of(others) if x.namespace == space and matches(selector, x.its)]
            assert caught == [], f"{where} selects a pod of another replica"


@cache
def team_policy(team: str) -> Manifest:
    """The namespace's own policy, as InferenceCluster composes it."""
    composite = p.cluster(source=c.EXISTING)
    observed: dict[str, Manifest] = {}
    for _ in range(3):
        found = p.compose(
            inference_cluster.KIND,
            composite,
            p.inference_class(),
            p.on_cluster(namespace=team),
            observed=observed,
        )
        observed = p.observed_of(found)
    return p.remote(observed[f"network-policy-{team}"])


def admitted(target: Pod, source: Pod, policies: list[Manifest], spaces: dict[str, dict[str, str]]) -> bool:
    """Whether NetworkPolicies let a pod open a connection: all of the target's namespace add up."""
    chosen = [
        x
        for x in policies
        if x["metadata"]["namespace"] == target.namespace and matches(x["spec"]["podSelector"], target.its)
    ]
    assert chosen, "a pod no policy selects is open to all"
    return any(
        _peer(peer, target, source, spaces)
        for x in chosen
        for i in x["spec"]["ingress"]
        for peer in i["from"]
    )


def _peer(peer: Manifest, target: Pod, source: Pod, spaces: dict[str, dict[str, str]]) -> bool:
    if "namespaceSelector" in peer:
        in_space = matches(peer["namespaceSelector"], spaces[source.namespace])
    else:
        in_space = source.namespace == target.namespace
    return in_space and matches(peer.get("podSelector", {}), source.its)


SPACES = {
    **{s: {"kubernetes.io/metadata.name": s} for s in ("envoy-gateway-system", "monitoring", "kube-system")},
    **{
        names.team_namespace(t): {
            "kubernetes.io/metadata.name": names.team_namespace(t),
            c.NAMESPACE_LABEL: t,
        }
        for t in ("lab", "zoo")
    },
}


@cache
def scene(stack: str) -> tuple[dict[str, list[Pod]], list[Manifest]]:
    """Replicas of two teams by a word for each, their pods, and all policies around them."""
    ref = {"modelCacheRef": {"name": "w"}}
    found = {
        "gang": r.replica(r.gang(workers=2), name="gang-1", **ref),
        "pair": r.split(name="pair-1"),
        "same cache": r.replica(name="same-1", **ref),
        "other cache": r.replica(name="cache-1", modelCacheRef={"name": "v"}),
        "other team": r.replica(r.gang(), name="gang-1", team="zoo", **ref),
    }
    objects = {k: objects_of(x, stack, teams=("lab", "zoo")) for k, x in found.items()}
    policies = [m for x in objects.values() for m in x.values() if m["kind"] == "NetworkPolicy"]
    pods = {k: pods_of(x) for k, x in objects.items()}
    for space in ("envoy-gateway-system", "monitoring", "kube-system"):
        pods[space] = [Pod(space, (), False)]
    pods["own pod"] = [Pod(names.team_namespace("lab"), (("app", "redis"),), False)]
    return pods, [*policies, team_policy("lab"), team_policy("zoo")]


REACH: list[tuple[str, str, bool | str, str]] = [
    ("gang", "gang", True, "leader, workers and picker reach each other"),
    ("pair", "pair", True, "prefill and decode hand over, the picker reads metrics"),
    ("envoy-gateway-system", "gang", True, "requests"),
    ("monitoring", "pair", True, "metrics"),
    ("kube-system", "gang", False, "nothing else"),
    ("pair", "gang", False, "another replica of the team: Ray and torch ask nobody who calls"),
    ("other cache", "same cache", False, "other weights"),
    ("own pod", "gang", False, "whatever the team runs there itself"),
    ("other team", "gang", False, "the same names in another team"),
    ("gang", "other team", False, "and back"),
    ("same cache", "gang", "Dynamo", "ModelExpress: engines of one cache hand weights to each other"),
]


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize(("source", "target", "open_", "reason"), REACH)
def test_a_pod_is_reached_by_gateway_monitoring_and_its_own_replica_only(
    source: str, target: str, open_: bool | str, reason: str, stack: str
) -> None:
    pods, policies = scene(stack)
    for there in pods[target]:
        for here in pods[source]:
            # Engines hand weights on, pickers do not.
            expected = open_ if isinstance(open_, bool) else open_ == stack and here.engine
            assert admitted(there, here, policies, SPACES) is expected, reason


def test_a_replicas_wall_stands_before_its_pods() -> None:
    first = r.answer(r.replica(r.gang()))
    assert "network-policy" in first.resources
    (why,) = [w for k, w in first.held_back.items() if k.startswith("model-serving")]
    assert "network-policy" in why
