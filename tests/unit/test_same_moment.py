"""Many deployments composed at the same moment, without sight of each other."""

from __future__ import annotations

from collections import Counter

import pytest

from builders import scheduling as b
from modelplane.core import Manifest, paths

CLUSTERS, NODES = 25, 4


def a_fleet() -> b.Fleet:
    return b.Fleet(
        *(b.cluster(f"c{at:02d}", b.pool("gpu", NODES, b.device(count=1))) for at in range(CLUSTERS))
    )


def many(number: int, policy: str) -> list[Manifest]:
    engine = b.engine("main", b.member(gpus=1))
    return [b.deployment(engine, name=f"d{at:03d}", policy=policy) for at in range(number)]


def together(fleet: b.Fleet, xrs: list[Manifest]) -> int:
    """Compose all before any of it is seen; return how many replicas are new."""
    answers = [fleet.ask(xr) for xr in xrs]
    new = 0
    for xr, answer in zip(xrs, answers, strict=True):
        new += len(answer.resources.keys() - fleet.observed(xr).keys())
        fleet.record(xr, answer, ready=False)
    return new


def held(fleet: b.Fleet) -> Counter[str]:
    return Counter(o["spec"]["clusterName"] for found in fleet.composed.values() for o in found.values())


ROUNDS = [
    ("Spread", 50, 1, 10, "half the fleet: each takes its own order, so few collide"),
    ("Spread", 90, 3, 40, "nearly all of it"),
    ("Pack", 50, 3, 60, "all fill the first cluster by name; who loses goes by an order of its own"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("policy", "number", "rounds", "moves", "reason"), ROUNDS, ids=[row[-1] for row in ROUNDS]
)
def test_deployments_of_one_moment_settle_in_few_rounds(
    policy: str, number: int, rounds: int, moves: int, reason: str
) -> None:
    fleet, xrs = a_fleet(), many(number, policy)
    assert together(fleet, xrs) == number
    moved = [together(fleet, xrs) for _ in range(rounds)]
    assert together(fleet, xrs) == 0, f"{reason}: {moved}"
    assert sum(moved) <= moves, f"{reason}: {moved}"
    assert max(held(fleet).values()) <= NODES
    assert sum(held(fleet).values()) == number


def test_the_order_of_a_deployment_stays_the_same_over_releases() -> None:
    """An order that changes would move nothing, but send what grows elsewhere than a plan said."""
    fleet = b.Fleet(*(b.cluster(f"c{at}", b.pool("gpu", 1, b.device(count=1))) for at in range(6)))
    taken: dict[str, list[str]] = {}
    for namespace, name in (("lab", "heron"), ("lab", "egret"), ("shore", "heron")):
        places: list[str] = []
        for replicas in range(1, 7):
            xr = b.deployment(
                b.engine("main", b.member(gpus=1)), name=name, namespace=namespace, replicas=replicas
            )
            places += sorted(set(b.where(fleet.ask(xr))) - set(places))
        taken[f"{namespace}/{name}"] = places
    assert taken == {
        "lab/heron": ["c4", "c2", "c3", "c1", "c5", "c0"],
        "lab/egret": ["c4", "c0", "c1", "c5", "c3", "c2"],
        "shore/heron": ["c5", "c1", "c4", "c3", "c2", "c0"],
    }


@pytest.mark.parametrize("policy", ["Spread", "Pack"])
def test_what_grew_last_goes_first(policy: str) -> None:
    fleet = b.Fleet(*(b.cluster(f"c{at}", b.pool("gpu", 1, b.device(count=1))) for at in range(6)))
    sizes = [1, 2, 4, 6]
    seen = [
        b.placed(fleet.apply(b.deployment(b.engine("main", b.member(gpus=1)), replicas=n, policy=policy)))
        for n in [*sizes, *reversed(sizes)]
    ]
    assert seen[: len(sizes)] == seen[: len(sizes) - 1 : -1]


def test_one_that_lost_a_race_is_told_whom_it_gave_way_to_only_while_it_waits() -> None:
    fleet = b.Fleet(b.cluster("north", b.pool("gpu", 1, b.device(count=1))))
    first, second = many(2, "Spread")
    together(fleet, [first, second])
    answer = fleet.apply(second)
    assert not b.placed(answer)
    assert paths.name(first) in b.condition(answer)[2]
    fleet.clusters.append(b.cluster("south", b.pool("gpu", 1, b.device(count=1))))
    assert b.placed(fleet.apply(second)) == ["south/0"]
