"""A replaced set: what Grove can never change makes a new one, and the old one serves until that is up."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from builders import replicas as r
from builders.replicas import condition
from modelplane import contracts as c
from modelplane.core import Answer, Manifest
from modelplane.gangs import pod_clique_set

CLIQUE, GROUP = ("cliques", 0), ("podCliqueScalingGroups", 0)
FIXED: list[tuple[tuple[Any, ...], Any, bool, str]] = [
    (("cliqueStartupType",), "CliqueStartupTypeInOrder", True, "refused"),
    (("resourceClaimTemplates",), [{"name": "x"}], True, "refused"),
    (("resourceSharing",), [{"name": "x"}], True, "refused"),
    (("topologyConstraint",), {"pack": {"required": "zone"}}, True, "refused"),
    ((*CLIQUE, "name"), "other", True, "refused"),
    ((*CLIQUE, "resourceSharing"), [{"name": "x"}], True, "refused"),
    ((*CLIQUE, "topologyConstraint"), {"pack": {"required": "zone"}}, True, "refused"),
    ((*CLIQUE, "annotations"), {"grove.io/mnnvl-group": "a"}, True, "refused, and a user may set it"),
    ((*CLIQUE, "spec", "roleName"), "other", True, "refused"),
    ((*CLIQUE, "spec", "minAvailable"), 9, True, "refused"),
    ((*CLIQUE, "spec", "replicas"), 9, True, "read at creation only"),
    ((*CLIQUE, "spec", "startsAfter"), ["worker"], True, "refused"),
    ((*CLIQUE, "spec", "podSpec", "schedulerName"), "other", True, "refused"),
    ((*GROUP, "name"), "other", True, "refused"),
    ((*GROUP, "cliqueNames"), ["leader"], True, "refused"),
    ((*GROUP, "minAvailable"), 9, True, "refused"),
    ((*GROUP, "replicas"), 9, True, "read at creation only"),
    ((*GROUP, "resourceSharing"), [{"name": "x"}], True, "refused"),
    ((*GROUP, "topologyConstraint"), {"pack": {"required": "zone"}}, True, "refused"),
    (("terminationDelay",), "1h0m0s", False, "changes in place"),
    ((*CLIQUE, "annotations"), {"example.org/note": "n"}, False, "rolls in place"),
    ((*CLIQUE, "labels"), {"a": "b"}, False, "rolls in place"),
    ((*CLIQUE, "spec", "podSpec", "nodeSelector"), {"a": "b"}, False, "rolls in place"),
]


@pytest.mark.parametrize(("path", "value", "new", "reason"), FIXED)
def test_a_set_is_a_new_one_exactly_where_grove_fixes_a_field(
    path: tuple[Any, ...], value: Any, new: bool, reason: str
) -> None:
    template = r.one(r.replica(r.gang()), "Dynamo")["spec"]["template"]
    changed = copy.deepcopy(template)
    here: Any = changed
    for step in path[:-1]:
        here = here[step]
    here[path[-1]] = value
    assert (pod_clique_set.fixed(changed) != pod_clique_set.fixed(template)) is new, reason


def test_a_users_own_nvlink_group_makes_a_new_set() -> None:
    def keys(group: str) -> set[str]:
        pod = {"metadata": {"annotations": {"grove.io/mnnvl-group": group}}}
        return set(r.run(r.replica(r.gang(leader=dict(pod), worker=dict(pod))), "Dynamo"))

    assert keys("a").isdisjoint(keys("b"))


BEFORE, AFTER = r.replica(r.gang()), r.replica(r.gang(workers=2))


def meanwhile(
    before: Manifest, after: Manifest, stack: str = "Dynamo", *, unready: tuple[str, ...] = ()
) -> Answer:
    """The answer while what is new has no pod ready, and some of what was there is not ready either."""
    cluster = r.cluster(stack=stack)
    first, seen = r.settled(before, cluster)
    old = set(r.workloads(first))
    for _ in range(4):
        given = r.answer(after, cluster, observed=seen)
        fresh = {k for k in r.workloads(given) if k not in old}
        seen = {k: r.observe(x.manifest, age=0 if k in fresh else 5) for k, x in given.resources.items()}
        for key in seen:
            if key.startswith(unready or "-"):
                seen[key]["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
    return r.answer(after, cluster, observed=seen)


SERVED: list[tuple[Manifest, Manifest, str, tuple[str, ...], bool, str]] = [
    (BEFORE, AFTER, "Dynamo", (), True, "the old set answers, so the endpoint stays"),
    (BEFORE, AFTER, "Dynamo", ("model-serving",), False, "the old set is down as well"),
    (BEFORE, AFTER, "Dynamo", ("epp",), False, "no picker: nobody answers"),
    (BEFORE, AFTER, "Dynamo", ("model-route",), False, "no route either"),
    (
        BEFORE,
        r.replica(r.gang(workers=2, port=9000)),
        "Dynamo",
        (),
        False,
        "requests go to another port now than the old pods listen on",
    ),
    (
        r.replica(r.engine("a"), r.engine("b")),
        r.replica(r.gang("a"), r.gang("b")),
        "Standard",
        (),
        True,
        "both",
    ),
    (
        r.replica(r.engine("a"), r.engine("b")),
        r.replica(r.gang("a"), r.gang("b")),
        "Standard",
        ("model-serving-a",),
        False,
        "one engine of two is down: nobody has its share of requests",
    ),
    (
        r.replica(r.engine("a")),
        r.replica(r.gang("a"), r.engine("b")),
        "Standard",
        (),
        False,
        "b was never there",
    ),
    (r.split(), r.split(copies=2), "Dynamo", (), True, "a pair stands in as a whole"),
    (
        r.replica(r.engine("fill"), r.engine("gen")),
        r.split(),
        "Dynamo",
        (),
        True,
        "two engines become phases of one set",
    ),
]


@pytest.mark.parametrize(("before", "after", "stack", "unready", "serves", "reason"), SERVED)
def test_a_replica_serves_while_its_old_pods_do(
    before: Manifest, after: Manifest, stack: str, unready: tuple[str, ...], serves: bool, reason: str
) -> None:
    given = meanwhile(before, after, stack, unready=unready)
    found = condition(given, c.MODEL_READY)
    assert found.status is serves, reason
    assert (given.ready is True) is serves, reason
    assert found.message.startswith("being replaced: ") is serves, reason
    assert "model-serving" in found.message or "picker" in found.message or "route" in found.message, reason


def test_a_first_start_is_never_taken_for_a_replacement() -> None:
    given = meanwhile(AFTER, AFTER, unready=("model-serving",))
    assert condition(given, c.MODEL_READY).status is False
    assert given.ready is None
