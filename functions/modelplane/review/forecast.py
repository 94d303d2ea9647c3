"""Where replicas would land: the deployments' own composer and scheduler, over and over until nothing moves.

Between the rounds every new replica is taken to serve, so that what waits for it leaves: the answer is where
things come to rest, not the way there. Deployments are asked by namespace and name; on a control plane two
that want the last room at once are settled by age.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from modelplane import contracts as c
from modelplane import names
from modelplane.api.model_deployment import ModelDeploymentSpec
from modelplane.core import Hold, Inputs, Manifest, paths, settle, specs
from modelplane.kinds import model_deployment
from modelplane.review.fleet import CLUSTER, DEPLOYMENT, ENDPOINT, REPLICA, Fleet, shown
from modelplane.schedule.ledger import Ledger
from modelplane.schedule.seats import Outcome, Why
from modelplane.schedule.views import Cluster, Replica
from modelplane.sim import deletion
from modelplane.sim.reconcile import Reply, reconcile
from modelplane.sim.world import EPOCH, Ref, World, ref

# A rolling change moves a few replicas a round; a deployment has 64 at most.
_ROUNDS = 300
NEW, STAYS, GOES = "new", "stays", "goes"
SURPLUS = "beyond spec.replicas"


class UnsettledError(Exception):
    """Deployments kept displacing each other: where they come to rest cannot be told."""


@dataclass(frozen=True, slots=True)
class Placed:
    """One replica: where, and what becomes of it."""

    name: str
    cluster: str
    pools: tuple[str, ...]
    change: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """What comes of one deployment.

    Attributes:
        deployment: which.
        wanted: replicas it asks for.
        replicas: old and new ones, by cluster and name.
        missing: replicas without a place.
        says: the condition that tells why, where something is missing or held.
        whys: what ruled each cluster or pool out, nearest to a fit first.
    """

    deployment: Ref
    wanted: int
    replicas: tuple[Placed, ...] = ()
    missing: int = 0
    says: str = ""
    whys: Sequence[Why] = ()

    @property
    def name(self) -> str:
        """The deployment's namespace and name."""
        return shown(self.deployment)

    @property
    def moves(self) -> bool:
        """Whether anything comes or goes."""
        return any(r.change != STAYS for r in self.replicas)


@dataclass(frozen=True, slots=True)
class Room:
    """Devices of one kind on one pool: how many, and how many are free before and after."""

    cluster: str
    pool: str
    device: str
    nodes: int
    total: int
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class Forecast:
    """The answers of all deployments, and the fleet's room."""

    answers: tuple[Answer, ...]
    rooms: tuple[Room, ...]


@dataclass
class _Seen:
    """What the scheduler said of a deployment in its last round, and why replicas left in any."""

    outcome: Outcome = field(default_factory=Outcome)
    says: str = ""
    left: dict[str, str] = field(default_factory=dict)


def forecast(fleet: Fleet) -> Forecast:
    """Return what comes of every deployment; the fleet's world is where it comes to rest afterwards.

    Raises:
        UnsettledError: nothing comes to rest.
    """
    world = fleet.world
    before, rooms = _replicas(world), room(fleet)
    _adopt(world)
    seen = {ref(obj): _Seen() for obj in fleet.all(DEPLOYMENT)}
    for _ in range(_ROUNDS):
        last = dict(world.objects)
        for target in sorted(seen):
            reconcile(world, target, partial(_reply, seen[target]), _as_is)
            deletion.advance(world)
        _serve(world)
        if _specs(last) == _specs(world.objects):
            break
    else:
        raise UnsettledError(f"deployments still displace each other after {_ROUNDS} rounds")
    after = _replicas(world)
    answers = [_answer(world, target, seen[target], before, after) for target in sorted(seen)]
    return Forecast(tuple(answers), tuple(_both(rooms, room(fleet))))


def _as_is(manifest: Manifest, _: Manifest | None) -> tuple[Manifest, Sequence[str]]:
    return manifest, ()


def _reply(seen: _Seen, inputs: Inputs) -> Reply:
    kind = model_deployment.KIND
    wanted = kind.requires(inputs.composite)
    if any(r.name not in inputs.required for r in wanted):
        return Reply(wanted)
    try:
        spec = specs.parse(ModelDeploymentSpec, inputs.spec, c.REPLICAS_SCHEDULED)
        _, seen.outcome = model_deployment.scheduled(inputs, spec)
        seen.says = ""
    except Hold as hold:
        seen.says = f"{hold.reason}: {hold.message}"
    seen.left.update({s.replica.name: s.why or SURPLUS for s in seen.outcome.gone if s.replica})
    return Reply(wanted, settle.compose(kind, inputs))


def _adopt(world: World) -> None:
    """Record which deployment composed which replica and endpoint, as their marks say."""
    known = {(r.namespace, names.label_value(r.name)): r for r in world.objects if r[:2] == DEPLOYMENT}
    for target, obj in sorted(world.objects.items()):
        if target[:2] not in (REPLICA, ENDPOINT):
            continue
        key = paths.text(obj, "metadata", "annotations", c.RESOURCE_NAME_ANNOTATION)
        owner = known.get((target.namespace, str(paths.labels(obj).get(c.DEPLOYMENT_LABEL, ""))))
        if key and owner is not None:
            world.adopt(owner, key, target)


def _serve(world: World) -> None:
    """Let every replica serve."""
    for target, obj in list(world.objects.items()):
        if target[:2] == REPLICA and not paths.is_true(obj, c.READY) and target not in world.deleting:
            ready = {"type": c.READY, "status": "True", "reason": "Foreseen", "lastTransitionTime": EPOCH}
            world.report(target, {"conditions": [ready]})


def _replicas(world: World) -> dict[Ref, Replica]:
    return {ref(obj): Replica(obj) for obj in world.of_kind(*REPLICA)}


def _specs(objects: Mapping[Ref, Manifest]) -> dict[Ref, object]:
    """Return what tells one round from the next: who is there, with which spec, and who serves."""
    found: dict[Ref, object] = {}
    for target, obj in objects.items():
        if target[:2] in (REPLICA, ENDPOINT):
            found[target] = obj.get("spec"), paths.is_true(obj, c.READY)
    return found


def _answer(
    world: World, target: Ref, seen: _Seen, before: Mapping[Ref, Replica], after: Mapping[Ref, Replica]
) -> Answer:
    mine = target.namespace, names.label_value(target.name)
    placed: list[Placed] = []
    for of, replica in sorted({**before, **after}.items()):
        if (replica.namespace, replica.deployment) != mine:
            continue
        change = GOES if of not in after else STAYS if of in before else NEW
        why = seen.left.get(replica.name, SURPLUS) if change == GOES else ""
        pools = tuple(sorted({claim.pool for claim in replica.claims}))
        placed.append(Placed(replica.name, replica.cluster, pools, change, why))
    placed.sort(key=lambda p: (p.cluster, p.name))
    wanted = paths.integer(world.objects[target], "spec", "replicas", default=0) or 0
    missing = seen.outcome.missing
    said = paths.condition(world.objects[target], c.REPLICAS_SCHEDULED)
    says = seen.says or (f"{said.get('reason')}: {said.get('message')}" if missing else "")
    return Answer(target, wanted, tuple(placed), missing, says, seen.outcome.whys if missing else ())


def room(fleet: Fleet) -> list[Room]:
    """Return the devices of every published pool; a pool that holds more than it has is full."""
    clusters = {x.name: x for x in map(Cluster, fleet.all(CLUSTER))}
    ledger = Ledger(clusters, [Replica(obj) for obj in fleet.all(REPLICA)])
    found: list[Room] = []
    for cluster in clusters.values():
        for pool in cluster.pools.values():
            used = [0] * len(pool.node.devices)
            for amounts, number in ledger.pods(cluster.name, pool.name).items():
                used = [have + n * number for have, n in zip(used, amounts, strict=True)]
            for device, taken in zip(pool.node.devices, used, strict=True):
                total = pool.nodes * device.count
                free = max(0, total - taken)
                if device.claimed:
                    found.append(Room(cluster.name, pool.name, device.name, pool.nodes, total, free, free))
    return found


def _both(before: Sequence[Room], after: Sequence[Room]) -> list[Room]:
    return [
        Room(b.cluster, b.pool, b.device, b.nodes, b.total, b.before, a.after)
        for b, a in zip(before, after, strict=True)
    ]
