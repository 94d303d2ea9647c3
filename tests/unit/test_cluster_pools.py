"""Pools of an InferenceCluster that leave its spec: their nodes stay as long as replicas stand there."""

from __future__ import annotations

from builders import platform as p
from modelplane import contracts as c
from modelplane.core import Answer
from modelplane.kinds.cluster_teams import GUARD
from modelplane.kinds.registry import KINDS

KIND = KINDS[c.API, "InferenceCluster"]
CLOUD = "eks-cluster"
BOTH = [p.pool("old"), p.pool("new")]


def ask(
    pools: list[p.Manifest], *objects: p.Manifest, observed: dict[str, p.Manifest] | None = None
) -> Answer:
    return p.compose(KIND, p.cluster(pools=pools), p.inference_class(), *objects, observed=observed)


def replica(pool: str) -> p.Manifest:
    made = p.on_cluster()
    made["spec"]["engines"] = [{"members": [{"nodePoolName": pool}]}]
    return made


def standing(pools: list[p.Manifest], *objects: p.Manifest) -> dict[str, p.Manifest]:
    """A cluster that serves, with the guard that stands while anything is on it."""
    observed: dict[str, p.Manifest] = {}
    for _ in range(3):
        answer = ask(pools, *objects, observed=observed)
        observed = p.observed_of(answer)
        observed[CLOUD] = p.reported(answer.resources[CLOUD].manifest, **p.eks_status())
    return observed


def asked(answer: Answer) -> list[str]:
    return [pool["name"] for pool in answer.resources[CLOUD].manifest["spec"]["nodePools"]]


def test_a_pool_out_of_the_spec_keeps_its_nodes_until_its_replicas_have_left() -> None:
    """Its replicas serve until their replacements do, and went with the nodes before that."""
    seen = standing(BOTH, replica("old"))
    before = seen[CLOUD]["spec"]["nodePools"]
    answer = ask([p.pool("new")], replica("old"), observed=seen)
    assert asked(answer) == ["new", "old"]
    assert answer.resources[CLOUD].manifest["spec"]["nodePools"][1] == before[0]
    (old,) = [x for x in answer.status["pools"] if x["name"] == "old"]
    assert "stays until its replicas have left" in old["message"]
    # Nothing is placed there any more, and its owner is not told of a fault.
    assert [x["name"] for x in answer.status["gpuPools"]] == ["new"]
    assert p.condition(answer, c.CLUSTER_READY)[0] is True
    assert asked(ask([p.pool("new")], replica("new"), observed=seen)) == ["new"]


def test_one_look_that_finds_no_replica_takes_no_pool() -> None:
    seen = standing(BOTH, replica("old"))
    assert GUARD in seen
    assert asked(ask([p.pool("new")], observed=seen)) == ["new", "old"]
    del seen[GUARD]
    assert asked(ask([p.pool("new")], observed=seen)) == ["new"]


def test_there_are_never_more_pools_than_the_cloud_admits() -> None:
    many = [p.pool(f"p{n}") for n in range(8)]
    seen = standing([p.pool("old"), *many[:7]], replica("old"))
    assert asked(ask(many, replica("old"), observed=seen)) == [x["name"] for x in many]
