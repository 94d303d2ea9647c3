"""A ModelReplica that runs: what never drops or restarts it, and how a new shape takes over from the old."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from builders import replicas as r
from builders.replicas import condition
from modelplane import contracts as c
from modelplane.core import Manifest

STACKS = ("Standard", "Dynamo")


def broken(cluster: Manifest, path: list[Any], value: Any) -> Manifest:
    found = copy.deepcopy(cluster)
    here: Any = found
    for step in path[:-1]:
        here = here[step]
    if value is None:
        del here[path[-1]]
    else:
        here[path[-1]] = value
    return found


DOUBT = [
    ("cluster", ["status"], None, "the cluster lost its status"),
    ("cluster", ["status", "providerConfigRef"], None, "not reachable for now"),
    ("cluster", ["status", "namespaces"], [], "the namespace is not listed any more"),
    ("cluster", ["spec"], {}, "nothing is known of stack or pools"),
    ("cluster", ["spec", "stack"], 7, "no stack at all"),
    ("cluster", ["spec", "stack"], None, "a re-applied manifest lost the line"),
    ("cluster", ["spec", "nodePools"], "junk", "no pools"),
    ("cluster", ["kind"], "Gone", "the cluster is not found"),
    ("cache", ["kind"], "Gone", "the cache is not found"),
    ("cache", ["status", "phase"], "Failed", "staging anew failed"),
    ("cache", ["status"], {}, "nothing is known of the cache"),
]


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize(("which", "path", "value", "reason"), DOUBT)
def test_doubt_about_a_running_replica_drops_and_restarts_nothing(
    stack: str, which: str, path: list[Any], value: Any, reason: str
) -> None:
    composite = r.replica(r.gang(), r.engine("b"), modelCacheRef={"name": "w"})
    found = {"cluster": r.cluster(stack=stack), "cache": r.cache()}
    before, seen = r.settled(composite, *found.values())
    found[which] = broken(found[which], path, value)
    after = r.answer(composite, *found.values(), observed=seen)
    assert after.resources.keys() == before.resources.keys(), reason
    assert r.workloads(after) == r.workloads(before), reason


def test_a_change_that_waits_for_the_cache_says_so_while_the_engines_serve() -> None:
    composite = r.replica(modelCacheRef={"name": "w"})
    _, seen = r.settled(composite, r.cluster(), r.cache())
    given = r.answer(composite, r.cluster(), r.cache("Hydrating"), observed=seen)
    assert condition(given, c.MODEL_READY).status is True
    found = condition(given, c.MODEL_ACCEPTED)
    assert found.status is True
    assert "ModelCache w on cluster north is Hydrating" in found.message


def test_a_revision_that_is_not_reported_any_more_restarts_no_engine() -> None:
    composite = r.replica(r.gang(), modelCacheRef={"name": "w"})
    before, seen = r.settled(composite, r.cluster(stack="Dynamo"), r.cache(revision="c0ffee"))
    after = r.answer(composite, r.cluster(stack="Dynamo"), r.cache(revision=""), observed=seen)
    assert r.workloads(after) == r.workloads(before)


def test_a_cluster_of_the_other_stack_is_not_the_one_it_runs_on() -> None:
    _, seen = r.settled(r.replica(r.gang()), r.cluster(stack="Dynamo"))
    given = r.answer(r.replica(r.gang()), r.cluster(stack="Standard"), observed=seen)
    assert given.resources.keys() == seen.keys()
    assert condition(given, c.MODEL_ACCEPTED).reason == "StackChanged"


def _template(**over: Any) -> Manifest:
    found = r.replica()
    found["spec"]["engines"][0]["members"][0]["template"] = over
    return found


TEMPLATE = "spec.engines[0].members[0].template"
UNREADABLE = [
    (_template(), f"{TEMPLATE}.spec", "v0.4 admits an empty template"),
    (_template(spec={"containers": [r.container("other")]}), f"{TEMPLATE}.spec.containers", "no engine"),
    (
        _template(spec={"containers": [r.container()], "initContainers": [r.container("pd-sidecar")]}),
        f"{TEMPLATE}.spec",
        "the name of the proxy before a decode engine",
    ),
    (
        _template(spec={"containers": [r.container()], "initContainers": [r.container()]}),
        f"{TEMPLATE}.spec",
        "the cluster refuses two containers of one name",
    ),
    (r.replica(r.engine("a"), serving={"mode": "PrefillDecode"}), "spec", "no phases to split between"),
    (r.replica(r.engine("main", r.member("Leader"))), "spec.engines[0].members", "a leader without workers"),
]


@pytest.mark.parametrize(("composite", "field", "reason"), UNREADABLE)
def test_a_spec_that_cannot_be_read_keeps_what_runs_and_names_the_field(
    composite: Manifest, field: str, reason: str
) -> None:
    _, seen = r.settled(r.replica())
    given = r.answer(composite, observed=seen)
    assert given.resources.keys() == seen.keys(), reason
    assert condition(given, c.MODEL_ACCEPTED).reason == "InvalidSpec", reason
    assert condition(given, c.MODEL_ACCEPTED).message.startswith(f"{field}: "), reason


REPLACED = [
    (r.replica(r.gang()), r.replica(r.gang(workers=2)), "Dynamo", "another gang size"),
    (r.replica(r.engine()), r.replica(r.gang()), "Standard", "a pod becomes a gang"),
    (r.replica(r.gang()), r.replica(r.engine()), "Dynamo", "a gang becomes a pod"),
    (r.split(), r.split(copies=2), "Dynamo", "a pair's copies"),
    (r.replica(r.engine("fill"), r.engine("gen")), r.split(), "Dynamo", "two engines become a pair"),
    (r.split(), r.replica(r.engine("fill"), r.engine("gen")), "Dynamo", "and back"),
]


@pytest.mark.parametrize(("before", "after", "stack", "reason"), REPLACED)
def test_a_new_shape_comes_up_beside_the_old_which_goes_once_it_serves(
    before: Manifest, after: Manifest, stack: str, reason: str
) -> None:
    cluster = r.cluster(stack=stack)
    first, seen = r.settled(before, cluster)
    old = set(r.workloads(first))
    given = r.answer(after, cluster, observed=seen)
    # Pass by pass, with the new workload never ready: the old one and its claims stay.
    for _ in range(4):
        assert old <= given.resources.keys(), reason
        assert {k for k in seen if k.startswith("resource-claim")} <= given.resources.keys(), reason
        now = {
            k: r.observe(x.manifest, age=0 if k.startswith("model-serving") and k not in old else 5)
            for k, x in given.resources.items()
        }
        given = r.answer(after, cluster, observed=now)
    new = set(r.workloads(given)) - old
    assert new, reason
    assert (condition(given, c.MODEL_READY).status, given.ready) == (True, True), "what was there serves"
    assert condition(given, c.MODEL_READY).message.startswith("being replaced: "), reason
    assert "stays until then" in condition(given, c.MODEL_READY).message, reason
    last, _ = r.settled(after, cluster, observed=now)
    assert set(r.workloads(last)) == new, reason
    wanted, _ = r.settled(after, cluster)
    assert last.resources.keys() == wanted.resources.keys(), "no old claim is left either"


def test_an_engine_that_leaves_the_spec_leaves_the_cluster() -> None:
    _, seen = r.settled(r.replica(r.engine("a"), r.engine("b")))
    last, _ = r.settled(r.replica(r.engine("a")), observed=seen)
    assert set(r.workloads(last)) == {"model-serving-a"}
    assert not [k for k in last.resources if k.startswith("resource-claim-b")]


def test_a_changed_claim_is_a_new_template_and_the_old_one_stays_while_pods_roll() -> None:
    """The API server refuses any change of a template's spec."""
    before, seen = r.settled(r.replica(r.engine("main", r.member(gpus=1))))
    after = r.replica(r.engine("main", r.member(gpus=2)))
    given = r.answer(after, observed=seen)
    (old,) = [k for k in before.resources if k.startswith("resource-claim")]
    claims = [k for k in given.resources if k.startswith("resource-claim")]
    assert old in claims
    assert len(claims) == 2
    last, _ = r.settled(after, observed=seen)
    assert [k for k in last.resources if k.startswith("resource-claim")] == [k for k in claims if k != old]
