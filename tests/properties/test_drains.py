"""Drains and rollouts over random fleets: several deployments move at once, some for the same last node.

The fleet is played: a replica serves only once its pods find room beside those that serve and those on their
way out; what is dropped holds its devices for a while; deployments are composed one by one or in the same
moment, without sight of each other.
"""

from __future__ import annotations

import copy
import random
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from builders import scheduling as b
from modelplane import contracts as c
from modelplane.core import Answer, Manifest, paths

RULES = settings(max_examples=150, derandomize=True)
DRAIN = b.taint(effect=c.NO_EXECUTE)
QUIET = 14  # passes: more than a chain of moves over four clusters takes


@st.composite
def fleets(draw: st.DrawFn) -> list[Manifest]:
    """Two to four clusters of one pool with one to three nodes of two GPUs."""
    nodes = draw(st.lists(st.integers(1, 3), min_size=2, max_size=4))
    return [b.cluster(f"c{at}", b.pool("gpu", n, b.device(count=2))) for at, n in enumerate(nodes)]


@st.composite
def deployments(draw: st.DrawFn) -> list[Manifest]:
    """One to three deployments, of half or whole nodes."""
    return [
        b.deployment(
            b.engine("main", b.member(gpus=draw(st.integers(1, 2)))),
            name=f"d{at}",
            replicas=draw(st.integers(1, 3)),
            policy=draw(st.sampled_from(["Spread", "Pack"])),
        )
        for at in range(draw(st.integers(1, 3)))
    ]


def replicas_of(answer: Answer) -> set[str]:
    return {key for key in answer.resources if key.startswith("replica-")}


def gpus_of(replica: Manifest) -> int:
    return int(replica["spec"]["engines"][0]["members"][0]["deviceRequests"][0]["count"])


def fits(nodes: int, have: int, pods: list[int]) -> bool:
    """First fit by decreasing size, which is exact for one and two GPUs."""
    free = [have] * nodes
    for pod in sorted(pods, reverse=True):
        at = next((n for n in range(nodes) if free[n] >= pod), None)
        if at is None:
            return False
        free[at] -= pod
    return True


@dataclass
class Life:
    """A fleet that lives on between calls."""

    fleet: b.Fleet
    xrs: list[Manifest]
    chance: random.Random
    going: list[Manifest] = field(default_factory=list)
    # How many of a deployment served when it had to move: a drain must not leave fewer.
    ran: dict[str, int] = field(default_factory=dict)

    def drained(self) -> set[str]:
        return {paths.name(x) for x in self.fleet.clusters if x["spec"].get("taints")}

    def drain(self, name: str, *taints: Manifest) -> None:
        self.fleet.clusters = [
            {**x, "spec": {**x["spec"], "taints": list(taints)}} if paths.name(x) == name else x
            for x in self.fleet.clusters
        ]

    def composed(self) -> list[Manifest]:
        return [
            o for found in self.fleet.composed.values() for o in found.values() if o["kind"] == "ModelReplica"
        ]

    def on(self, cluster: str, *, serving: bool) -> list[int]:
        return [
            gpus_of(o)
            for o in [*self.composed(), *self.going]
            if o["spec"]["clusterName"] == cluster
            and (not serving or paths.is_true(o, c.READY) or o in self.going)
        ]

    def room(self, cluster: str, pods: list[int]) -> bool:
        (pool,) = next(x for x in self.fleet.clusters if paths.name(x) == cluster)["status"]["gpuPools"]
        return fits(pool["nodes"], pool["devices"][0]["count"], pods)

    def pods_start(self, share: float) -> None:
        """Some of what waits begins to serve, where its pods find a node."""
        for replica in self.composed():
            where = replica["spec"]["clusterName"]
            if (
                not paths.is_true(replica, c.READY)
                and self.chance.random() < share
                and self.room(where, [*self.on(where, serving=True), gpus_of(replica)])
            ):
                replica["status"] = b.state(True)

    def pods_end(self, share: float) -> None:
        self.going = [o for o in self.going if self.chance.random() >= share]
        self.fleet.others = list(self.going)

    def compose(self, *xrs: Manifest) -> list[Answer]:
        """Compose them in the same moment: each sees what was there before."""
        answers = [self.fleet.ask(xr) for xr in xrs]
        for xr, answer in zip(xrs, answers, strict=True):
            before = dict(self.fleet.observed(xr))
            self.judge(xr, before, answer)
            self.fleet.record(xr, answer, ready=None)
            for key, old in before.items():
                if old["kind"] == "ModelReplica" and key not in answer.resources:
                    ending = {**old["metadata"], "deletionTimestamp": "2026-01-02T00:00:00Z"}
                    self.going.append({**old, "metadata": ending})
        self.fleet.others = list(self.going)
        return answers

    def judge(self, xr: Manifest, before: dict[str, Manifest], answer: Answer) -> None:
        """What holds of every single call."""
        wanted, missing = xr["spec"]["replicas"], answer.status["replicas"]["unschedulable"]
        had = {key: o for key, o in before.items() if o["kind"] == "ModelReplica"}
        has = replicas_of(answer)
        stays = has & had.keys()
        serving = {key for key, o in had.items() if paths.is_true(o, c.READY)}
        # Make before break: as many serve as did before anything had to leave, but for those without a place.
        name = paths.name(xr)
        if not any(_on(key, self.drained()) for key in had):
            self.ran[name] = len(serving)
        told = f"{sorted(had)}, of them serve {sorted(serving)}, drained {self.drained()}, then {sorted(has)}"
        assert len(serving & has) >= min(self.ran[name], wanted) - missing, f"it broke before it made: {told}"
        if missing:
            self.ran[name] = min(self.ran[name], len(serving & has))
        # One replacement for each that leaves: those that need not leave are never more than wanted.
        sound = {key for key in has if not _on(key, self.drained())}
        assert len(sound) <= wanted
        assert len(has) <= wanted + len(had.keys() - sound), "a leaving replica has one replacement"
        assert len(has - had.keys()) <= max(0, wanted - len(sound & stays))
        assert missing == max(0, wanted - len(sound)), "a replica that must go is no place"
        # A serving one that stays keeps its front door.
        doors = {key.removeprefix("endpoint-") for key in before if key.startswith("endpoint-")}
        for key in stays & serving:
            assert key.removeprefix("replica-") not in doors or f"endpoint-{key[8:]}" in answer.resources
        assert answer.ready is False or not missing


def _on(key: str, clusters: set[str]) -> bool:
    return key.removeprefix("replica-").rpartition("-")[0] in clusters


def live(found: list[Manifest], xrs: list[Manifest], chance: random.Random) -> Life:
    """A life of random drains, each call judged."""
    life = Life(b.Fleet(*found), xrs, chance)
    for _ in range(4):
        life.compose(*xrs)
        life.pods_start(1)
        life.pods_end(1)
    for _ in range(12):
        if chance.random() < 0.4:
            name = paths.name(chance.choice(found))
            life.drain(name, *([] if name in life.drained() else [DRAIN]))
        if chance.random() < 0.5:
            life.compose(*xrs)
        else:
            life.compose(chance.choice(xrs))
        life.pods_start(0.4)
        life.pods_end(0.5)
    return life


@RULES
@given(fleets(), deployments(), st.integers(0, 2**16))
def test_a_drain_makes_before_it_breaks_and_makes_one_for_one(
    found: list[Manifest], xrs: list[Manifest], seed: int
) -> None:
    live(found, xrs, random.Random(seed))


@RULES
@given(fleets(), deployments(), st.integers(0, 2**16))
def test_drains_end_with_nothing_left_behind_and_nobody_on_one_node_for_good(
    found: list[Manifest], xrs: list[Manifest], seed: int
) -> None:
    life = live(found, xrs, random.Random(seed))
    for _ in range(QUIET):
        life.compose(*xrs)
        life.pods_start(1)
        life.pods_end(1)
    answers = life.compose(*xrs)
    assert [replicas_of(a) for a in answers] == [replicas_of(life.fleet.ask(xr)) for xr in xrs], "it settles"
    assert not any(_on(key, life.drained()) for a in answers for key in replicas_of(a))
    for cluster in found:
        name = paths.name(cluster)
        assert life.room(name, life.on(name, serving=False)), "what is placed can run"
    for xr, answer in zip(xrs, answers, strict=True):
        gpus = xr["spec"]["template"]["spec"]["engines"][0]["members"][0]["nodeSelector"]["devices"][0][
            "count"
        ]
        if answer.status["replicas"]["unschedulable"]:
            for name in {paths.name(x) for x in found} - life.drained():
                assert not life.room(name, [*life.on(name, serving=False), gpus]), "it waits beside room"


class Rollout(Life):
    """A life in which templates change instead of taints."""

    def edit(self, at: int) -> None:
        xr = copy.deepcopy(self.xrs[at])
        xr["spec"]["template"]["metadata"] = {"labels": {"edit": str(self.chance.randrange(10**6))}}
        self.xrs[at] = xr

    def judge(self, xr: Manifest, before: dict[str, Manifest], answer: Answer) -> None:
        wanted, pace = xr["spec"]["replicas"], xr["spec"]["strategy"]
        had = {key: o for key, o in before.items() if o["kind"] == "ModelReplica"}
        has = replicas_of(answer)
        serving = {key for key, o in had.items() if paths.is_true(o, c.READY)}
        told = f"{sorted(had)}, of them serve {sorted(serving)}, then {sorted(has)}, by {pace}"
        assert len(serving & has) >= min(len(serving), wanted - pace["maxUnavailable"]), told
        assert len(has) <= wanted + pace["maxSurge"], told

    def outdated(self, xr: Manifest) -> list[str]:
        """Replicas that do not run the present template."""
        labels = xr["spec"]["template"].get("metadata", {}).get("labels")
        return [
            key
            for key, o in self.fleet.observed(xr).items()
            if o["kind"] == "ModelReplica" and o["spec"].get("labels") != labels
        ]


@st.composite
def rolling(draw: st.DrawFn) -> list[Manifest]:
    """One or two deployments that roll, each at its own pace."""
    found = []
    for at in range(draw(st.integers(1, 2))):
        surge = draw(st.integers(0, 2))
        pace = {
            "type": "Rolling",
            "maxSurge": surge,
            "maxUnavailable": draw(st.integers(0 if surge else 1, 2)),
        }
        engine = b.engine("main", b.member(gpus=draw(st.integers(1, 2))))
        found.append(b.deployment(engine, name=f"d{at}", replicas=draw(st.integers(1, 3)), strategy=pace))
    return found


@RULES
@given(fleets(), rolling(), st.integers(0, 2**16))
def test_rollouts_stay_within_their_bounds_and_end_or_say_what_they_wait_for(
    found: list[Manifest], xrs: list[Manifest], seed: int
) -> None:
    chance = random.Random(seed)
    life = Rollout(b.Fleet(*found), list(xrs), chance)
    for turn in range(4 + 12 + QUIET):
        if 4 <= turn < 16 and chance.random() < 0.3:
            life.edit(chance.randrange(len(xrs)))
        life.compose(*life.xrs)
        busy = 4 <= turn < 16
        life.pods_start(0.4 if busy else 1)
        life.pods_end(0.5 if busy else 1)
    for xr, answer in zip(life.xrs, life.compose(*life.xrs), strict=True):
        if life.outdated(xr):
            said = b.condition(answer)[2]
            assert "no room to surge" in said or answer.status["replicas"]["unschedulable"], said
