"""The scheduler over random fleets, against a slow one that is obviously right.

The reference knows nothing of caches, flows or run-length packing: it lists every pod and every node, tries
every layout, and walks all clusters for every replica.
"""

from __future__ import annotations

import hashlib
import itertools
import random
import re
from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from builders import scheduling as b
from modelplane import contracts as c
from modelplane.core import Manifest, paths

RULES = settings(max_examples=300, derandomize=True)
COLD = {"climate": "cold"}

Pool = tuple[str, int, int]  # name, nodes, GPUs on each


# A fleet is drawn from one seed. Drawn value by value they were mostly hypothesis' simplest ones, with no
# node or nothing ready: of 120 fleets 103 had no place for anything, and the reference was asked for little.
SEEDS = st.integers(0, 2**32)


def one_cluster(chance: random.Random, name: str) -> Manifest:
    sizes = [
        (chance.choice([0, 1, 2, 3, 4]), chance.choice([1, 2, 4, 4])) for _ in range(chance.randint(1, 2))
    ]
    pools = [b.pool(f"p{at}", nodes, b.device(count=gpus)) for at, (nodes, gpus) in enumerate(sizes)]
    return b.cluster(
        name,
        *pools,
        labels=chance.choice([COLD, COLD, {"climate": "warm"}]),
        taints=[b.taint()] if chance.random() < 0.15 else [],
        ready=chance.random() < 0.85,
        gateway=chance.choice(["192.0.2.1"] * 6 + [None]),
        caches=chance.random() < 0.8,
    )


def some_fleet(seed: int) -> list[Manifest]:
    chance = random.Random(seed)
    return [one_cluster(chance, name) for name in chance.sample("abcd", chance.choice([1, 2, 3, 4, 4]))]


def some_deployment(seed: int, name: str = "heron", namespace: str = "lab") -> Manifest:
    chance = random.Random(f"{seed} {name}")
    gang = b.gang(gpus=chance.randint(1, 2), workers=chance.randint(1, 2))
    one = b.engine(
        "main", b.member(gpus=chance.choice([1, 1, 1, 2, 2, 3, 4])), copies=chance.choice([1, 1, 2])
    )
    return b.deployment(
        gang if chance.random() < 0.35 else one,
        name=name,
        namespace=namespace,
        replicas=chance.choice([0, 1, 2, 3, 4, 4]),
        selector=chance.choice([None, None, COLD]),
        policy=chance.choice(["", "Spread", "Pack"]),
        tolerations=chance.choice([[], [{"operator": "Exists"}]]),
        cache=chance.choice(["", "", "", "cold", "anywhere"]),
    )


def fleets() -> st.SearchStrategy[list[Manifest]]:
    return SEEDS.map(some_fleet)


def deployments(name: str = "heron", namespace: str = "lab") -> st.SearchStrategy[Manifest]:
    return SEEDS.map(lambda seed: some_deployment(seed, name, namespace))


# Staged on cold clusters, and on all; each team has its own of one name.
CACHES = [
    b.cache(name, team, **labels)
    for team in ("lab", "others")
    for name, labels in (("cold", COLD), ("anywhere", {}))
]


def pods_of(replica: Manifest) -> list[tuple[str, int]]:
    """Every pod of a replica as (pool, GPUs)."""
    found = []
    for engine in replica["spec"]["engines"]:
        for member in engine["members"]:
            number = engine.get("copies", 1) * (paths.integer(member, "worker", "nodes", default=1) or 1)
            gpus = sum(r["count"] for r in member.get("deviceRequests", []))
            found += [(member["nodePoolName"], gpus)] * number
    return found


def layout_exists(nodes: int, have: int, pods: list[int]) -> bool:
    """Put every pod on every node in turn."""
    free = [have] * nodes

    def put(at: int) -> bool:
        if at == len(pods):
            return True
        for n in range(nodes):
            if free[n] >= pods[at] and (n == 0 or free[n] != free[n - 1]):
                free[n] -= pods[at]
                if put(at + 1):
                    return True
                free[n] += pods[at]
        return False

    return put(0)


def pools_of(cluster: Manifest) -> list[Pool]:
    return [(p["name"], p["nodes"], p["devices"][0]["count"]) for p in cluster["status"]["gpuPools"]]


def reference(xr: Manifest, fleet: list[Manifest], charged: list[Manifest]) -> list[str]:
    """The clusters that new replicas go to, one entry per replica, nothing being retained."""
    template = xr["spec"]["template"]["spec"]
    (engine,) = template["engines"]
    wanted = []
    for member in engine["members"]:
        gpus = member["nodeSelector"]["devices"][0]["count"]
        wanted += [gpus] * (engine.get("copies", 1) * member.get("worker", {}).get("nodes", 1))
    selector = template.get("clusterSelector", {}).get("matchLabels", {})
    cache = template.get("modelCacheRef", {}).get("name", "")
    held: dict[tuple[str, str], list[int]] = {}
    for replica in charged:
        for pool, gpus in pods_of(replica):
            held.setdefault((replica["spec"]["clusterName"], pool), []).append(gpus)
    ours: Counter[str] = Counter()
    chosen: list[str] = []
    pack = template.get("placement", {}).get("policy") == "Pack"
    sign = -1 if pack else 1
    whose = f"{paths.namespace(xr)}\0{paths.name(xr)}\0"
    for _ in range(xr["spec"]["replicas"]):
        fits = []
        for cluster in fleet:
            name = cluster["metadata"]["name"]
            usable = (
                paths.is_true(cluster, c.READY)
                and paths.text(cluster, "status", "gateway", "address")
                and selector.items() <= cluster["metadata"]["labels"].items()
                and (not cluster["spec"].get("taints") or template.get("tolerations"))
                and (cache != "cold" or COLD.items() <= cluster["metadata"]["labels"].items())
                and (not cache or paths.text(cluster, "status", "cache", "storageClassName"))
            )
            if usable:
                for pool, nodes, have in pools_of(cluster):
                    pods = sorted([*held.get((name, pool), []), *wanted], reverse=True)
                    if layout_exists(nodes, have, pods):
                        order = "" if pack else hashlib.sha256(f"{whose}{name}".encode()).hexdigest()
                        fits.append((sign * ours[name], order, name, pool))
                        break
        if not fits:
            return chosen
        *_, name, pool = min(fits)
        held.setdefault((name, pool), []).extend(wanted)
        ours[name] += 1
        chosen.append(name)
    return chosen


def overcommitted(fleet: list[Manifest], replicas: list[Manifest]) -> list[str]:
    found = []
    for cluster in fleet:
        name = cluster["metadata"]["name"]
        for pool, nodes, have in pools_of(cluster):
            pods = [
                gpus
                for replica in replicas
                if replica["spec"]["clusterName"] == name
                for on, gpus in pods_of(replica)
                if on == pool
            ]
            if not layout_exists(nodes, have, sorted(pods, reverse=True)):
                found.append(f"{name}/{pool}: {pods} on {nodes} x {have}")
    return found


def composed(fleet: b.Fleet) -> list[Manifest]:
    return [o for found in fleet.composed.values() for o in found.values() if o["kind"] == "ModelReplica"]


def test_the_fleets_are_worth_asking_about() -> None:
    """How many of 200 have room for some, for several on several clusters, and for not all that is wanted."""
    some = several = short = policies = 0
    for seed in range(200):
        xr = some_deployment(seed)
        places = reference(xr, some_fleet(seed), [])
        some += bool(places)
        several += len(set(places)) > 1
        short += 0 < len(places) < xr["spec"]["replicas"]
        xr["spec"]["template"]["spec"]["placement"] = {"policy": "Pack"}
        policies += sorted(places) != sorted(reference(xr, some_fleet(seed), []))
    assert min(some / 90, several / 25, short / 15, policies / 20) >= 1, (some, several, short, policies)


@RULES
@given(fleets(), deployments(), deployments("other", "others"))
def test_new_replicas_go_where_the_reference_puts_them(
    found: list[Manifest], xr: Manifest, other: Manifest
) -> None:
    fleet = b.Fleet(*found, *CACHES)
    fleet.apply(other)
    answer = fleet.ask(xr)
    wanted = reference(xr, found, composed(fleet))
    assert b.where(answer) == dict(Counter(wanted))
    missing = xr["spec"]["replicas"] - len(wanted)
    assert answer.status["replicas"]["unschedulable"] == missing
    assert (answer.ready is False) is (missing > 0)


@RULES
@given(fleets(), st.lists(deployments(), min_size=2, max_size=4), st.integers(0, 2**16))
def test_a_life_of_edits_never_overcommits_and_never_moves_what_fits(
    found: list[Manifest], edits: list[Manifest], seed: int
) -> None:
    """Two teams edit one deployment of one name in turn; capacity and identity hold at every step."""
    chance = random.Random(seed)
    fleet = b.Fleet(*found, *CACHES)
    for edit, namespace in zip(edits * 2, itertools.cycle(["lab", "others"]), strict=False):
        xr = {**edit, "metadata": {**edit["metadata"], "namespace": namespace, "uid": namespace}}
        before = {k for k in fleet.observed(xr) if k.startswith("replica-")}
        theirs = {k: v for k, v in fleet.composed.items() if k[0] != namespace}
        answer = fleet.apply(xr, ready=chance.random() < 0.7)
        assert {k: v for k, v in fleet.composed.items() if k[0] != namespace} == theirs
        assert overcommitted(found, composed(fleet)) == []
        after = {k for k in answer.resources if k.startswith("replica-")}
        gone = len(before - after)
        if len(before) <= xr["spec"]["replicas"] and fleet.observed(xr):
            assert gone == 0 or after - before, "what runs goes only where something takes its place"


@RULES
@given(fleets(), deployments(), st.integers(0, 2**16))
def test_the_order_of_objects_decides_nothing(found: list[Manifest], xr: Manifest, seed: int) -> None:
    chance = random.Random(seed)
    fleet = b.Fleet(*found, *CACHES, b.held("a", "p0", 1), b.held("b", "p0", 2, name="more"))
    fleet.apply(xr)
    first = fleet.ask(xr)
    chance.shuffle(fleet.clusters)
    chance.shuffle(fleet.others)
    observed = list(fleet.observed(xr).items())
    chance.shuffle(observed)
    fleet.composed[paths.namespace(xr), paths.name(xr)] = dict(observed)
    assert fleet.ask(xr) == first


@RULES
@given(fleets(), deployments(), st.data())
def test_what_is_placed_stays_through_any_doubt(
    found: list[Manifest], xr: Manifest, data: st.DataObject
) -> None:
    fleet = b.Fleet(*found, *CACHES)
    for _ in range(3):
        answer = fleet.apply(xr)
    kept = set(answer.resources)
    doubts: list[Any] = [
        lambda x: x["status"].update(b.state(False)),
        lambda x: x["status"].pop("gateway", None),
        lambda x: x["metadata"].update(labels={}),
        lambda x: x["status"].update(gpuPools=[]),
        lambda x: x["spec"].update(taints=[b.taint()]),
        lambda x: x["metadata"].update(name=f"{x['metadata']['name']}-renamed"),
        lambda x: x["status"]["gpuPools"][0].update(devices=[]),
        lambda x: x["status"]["gpuPools"][0].update(nodes=0),
    ]
    for cluster in fleet.clusters:
        fresh = {**cluster, "metadata": dict(cluster["metadata"]), "spec": dict(cluster["spec"])}
        fresh["status"] = {**cluster["status"], "gpuPools": [dict(p) for p in cluster["status"]["gpuPools"]]}
        data.draw(st.sampled_from(doubts), label="doubt")(fresh)
        fleet.clusters = [fresh if x is cluster else x for x in fleet.clusters]
    assert kept <= set(fleet.ask(xr).resources)


@RULES
@given(fleets(), deployments())
def test_it_settles_and_then_says_the_same_for_ever(found: list[Manifest], xr: Manifest) -> None:
    fleet = b.Fleet(*found, *CACHES)
    for _ in range(4):
        answer = fleet.apply(xr)
    assert fleet.apply(xr) == answer
    for why in answer.status.get("unschedulable", []):
        assert why["cluster"] in {x["metadata"]["name"] for x in found}
        assert why["reason"]
    if answer.status["replicas"]["unschedulable"]:
        ruled_out = {why["cluster"] for why in answer.status["unschedulable"]}
        assert ruled_out == {x["metadata"]["name"] for x in found}, "every cluster says why"


NEEDS = re.compile(
    r"needs (?P<pods>\d+) (?:(?P<nodes>nodes?)|x (?P<gpus>\d+) gpu), (?:room for )?(?P<free>\d+)(?: free)?"
    r"(?=$|,| and )"
)


def more_of(nodes: int, have: int, pods: list[int], pod: int) -> int:
    """How many more such pods the nodes hold, by trying."""
    number = 0
    while layout_exists(nodes, have, sorted([*pods, *[pod] * (number + 1)], reverse=True)):
        number += 1
    return number


def untrue(row: Any, xr: Manifest, cluster: Manifest, charged: list[Manifest]) -> str:
    """What is wrong with a row of status.unschedulable, worked out again from the objects alone."""
    template, says = xr["spec"]["template"]["spec"], row["reason"]
    selector = template.get("clusterSelector", {}).get("matchLabels", {})
    labels_fit = selector.items() <= cluster["metadata"]["labels"].items()
    taints = [] if template.get("tolerations") else cluster["spec"].get("taints", [])
    ready = paths.is_true(cluster, c.READY)
    gateway = paths.text(cluster, "status", "gateway", "address")
    cache = template.get("modelCacheRef", {}).get("name", "")
    staged = cache != "cold" or COLD.items() <= cluster["metadata"]["labels"].items()
    stored = not cache or paths.text(cluster, "status", "cache", "storageClassName")
    if "pool" not in row:
        expected = (
            ("the cluster selector asks for climate=cold", not labels_fit),
            ("ModelCache cold is staged only where climate=cold", not staged),
            ("taint maintenance=yes:NoSchedule is not tolerated", bool(taints)),
            ("the cluster is not Ready", not ready),
            ("the cluster has no gateway address yet", not gateway),
            (f"no storage class for ModelCache {cache}", not stored),
        )
        first = next((text for text, holds in expected if holds), "nothing")
        return "" if says == first else f"{says}, but first of all {first}"
    if not labels_fit or taints or not ready or not gateway or not staged or not stored:
        return f"{says}, but the cluster itself is barred"
    (_, nodes, have) = next(p for p in pools_of(cluster) if p[0] == row["pool"])
    held = [
        (paths.namespace(r) + "/" + paths.name(r), gpus)
        for r in charged
        if r["spec"]["clusterName"] == row["cluster"]
        for pool, gpus in pods_of(r)
        if pool == row["pool"] and gpus
    ]
    (engine,) = template["engines"]
    sizes = [m["nodeSelector"]["devices"][0]["count"] for m in engine["members"]]
    if says.startswith("engine main, "):
        tells = f"a node has {have} gpu; devices that the selectors are true of: gpu {have} of {have}"
        return "" if max(sizes) > have and tells in says else f"{says}, but {sizes} of {have}"
    found = list(NEEDS.finditer(says))
    for need in found:
        size = have if need["nodes"] else int(need["gpus"])
        room = more_of(nodes, have, [gpus for _, gpus in held], size)
        if int(need["free"]) != room:
            return f"{says}, but there is room for {room} of {size}"
    named = says.partition(", held by ")[2].split(" and ")[0]
    if bool(named) != bool(held) or not set(filter(None, named.split(", "))) <= {who for who, _ in held}:
        return f"{says}, but {held}"
    return "" if found else f"{says}: no reason that is known"


@RULES
@given(fleets(), deployments(), deployments("other", "others"))
def test_every_reason_can_be_worked_out_again(found: list[Manifest], xr: Manifest, other: Manifest) -> None:
    fleet = b.Fleet(*found, *CACHES)
    fleet.apply(other)
    answer = fleet.apply(xr)
    rows = answer.status.get("unschedulable", [])
    by_name = {x["metadata"]["name"]: x for x in found}
    assert [u for u in (untrue(row, xr, by_name[row["cluster"]], composed(fleet)) for row in rows) if u] == []
    missing = answer.status["replicas"]["unschedulable"]
    # Every cluster is accounted for, and every pool of one that is not barred.
    explained = {
        (row["cluster"], row.get("pool", p[0])) for row in rows for p in pools_of(by_name[row["cluster"]])
    }
    pools = {(x["metadata"]["name"], p[0]) for x in found for p in pools_of(x)}
    assert explained == (pools if missing else set())
