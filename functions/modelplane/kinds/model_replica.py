"""ModelReplica: one placed replica becomes workloads, claims and a serving edge on its cluster."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from modelplane import contracts as c
from modelplane import names
from modelplane.api.model_replica import ModelReplicaSpec
from modelplane.core import (
    Condition,
    Desired,
    Event,
    Inputs,
    InvalidSpecError,
    Kind,
    Manifest,
    Plan,
    Requirement,
    Waiting,
    builders,
    paths,
    specs,
)
from modelplane.core.builders import Target
from modelplane.gangs import backends, claims, edge, phases, picker, picker_config, pods, wall, workload
from modelplane.gangs.copies import Part
from modelplane.gangs.workload import Workload
from modelplane.kinds import replica_copies, replica_place, replica_pods, replica_references, replica_status
from modelplane.kinds.replica_place import Place
from modelplane.kinds.replica_references import References


@dataclass(frozen=True, slots=True)
class _Wrap:
    """Puts a remote object into an Object under the composite, behind the place's gate."""

    inputs: Inputs
    place: Place

    def __call__(
        self,
        key: str,
        remote: Manifest,
        ready_when: str = "",
        after: Sequence[str] = (),
        policies: Sequence[str] | None = None,
    ) -> Desired:
        site = self.place.site
        labels = {
            c.CLUSTER_LABEL: names.label_value(str(self.inputs.spec.get("clusterName", ""))),
            c.REPLICA_LABEL: names.label_value(site.replica),
            c.RESOURCE_LABEL: names.label_value(key),
        }
        target = Target(self.place.config, "ClusterProviderConfig", labels=labels)
        name = names.child(site.replica, key)
        manifest = target.object(name, remote, ready_when=ready_when, policies=policies)
        return Desired(key, manifest, after=tuple(after), blocked=self.place.closed)


def compose(inputs: Inputs) -> Plan:
    """Return what the replica wants."""
    spec = specs.parse(ModelReplicaSpec, inputs.spec, c.MODEL_ACCEPTED)
    replica_pods.check(spec)
    port = _pool_port(spec)
    resolved = replica_references.resolve(inputs, spec.cluster_name)
    try:
        place = replica_place.read(inputs, spec, resolved.copied)
    except replica_place.NoPlaceError as error:
        return _nowhere(inputs, resolved, str(error))
    wrap = _Wrap(inputs, place)
    runs = backends.workloads(place.site, spec, phases.proxies(spec, place.images.proxy))
    members = [(e, m) for e in spec.engines for m in e.members]
    gates = {r.key: _gates(place, r, resolved) for r in runs}
    wanted = [
        *(wrap(x.key, x.manifest) for e, m in members for x in claims.claims(place.site, e, m)),
        *replica_references.resources(resolved, {k: wrap(k, m) for k, m in resolved.manifests.items()}),
        wrap(wall.KEY, wall.policy(place.site)),
        *(_workload(wrap, r, gates[r.key]) for r in runs),
        *_edge(wrap, spec, port),
    ]
    looks = replica_copies.looks(inputs, runs, partial(_look, wrap))
    former = _former(inputs, runs)
    seen = replica_status.Seen(inputs, spec, place, runs, gates, former, port, _beside(wanted, runs))
    return Plan(
        resources=[*wanted, *looks],
        status=replica_status.status(seen),
        conditions=[*replica_status.conditions(seen), resolved.condition],
        events=_events(runs),
        keep=resolved.keep | former | _parts(inputs, runs, former),
        # Else the endpoint would go while what it points at serves.
        ready=True if replica_status.former_serve(seen) else None,
    )


def requires(composite: Manifest) -> Sequence[Requirement]:
    """Return the cluster, the cache staged there, and each Secret and ConfigMap that members refer to."""
    return [*replica_place.requirements(composite), *replica_references.requirements(composite)]


def _pool_port(spec: ModelReplicaSpec) -> int:
    try:
        return phases.pool_port(spec)
    except phases.PortConflictError as error:
        raise InvalidSpecError(c.MODEL_ACCEPTED, f"spec.engines[{error.engine}].port", str(error)) from None


def _nowhere(inputs: Inputs, resolved: References, why: str) -> Plan:
    reason = replica_place.REASON_WAITING_FOR_CLUSTER
    return Plan(
        status={"namespace": names.team_namespace(inputs.namespace)},
        conditions=[
            Condition(c.MODEL_ACCEPTED, False, reason, why),
            Condition(c.MODEL_READY, False, replica_status.REASON_WAITING_FOR_MODEL, why),
            resolved.condition,
        ],
        ready=False,
    )


def _gates(place: Place, run: Workload, resolved: References) -> tuple[str, ...]:
    """Return what must stand before the workload: pods only wait without a claim, a Secret or their peers."""
    copies = sorted({*resolved.manifests, *resolved.needs, *resolved.keep})
    return (*workload.claim_keys(place.site, run.engines), *copies, wall.KEY)


def _workload(wrap: _Wrap, run: Workload, gates: tuple[str, ...]) -> Desired | Waiting:
    if wrap.place.unknown:
        return Waiting(run.key, wrap.place.unknown)
    return wrap(run.key, run.manifest, run.backend.ready_when, gates)


def _look(wrap: _Wrap, part: Part) -> Desired:
    return wrap(part.key, part.manifest, part.ready_when, policies=builders.OBSERVE_ONLY)


def _edge(wrap: _Wrap, spec: ModelReplicaSpec, port: int) -> list[Desired]:
    site = wrap.place.site
    config = picker_config.text(spec)
    support = picker.support(site, config)
    deployment = picker.deployment(site, config, wrap.place.images.picker)
    return [
        *(wrap(key, remote) for key, remote in support.items()),
        wrap(picker.KEY, deployment, picker.READY_WHEN, after=tuple(support)),
        wrap(edge.POOL_KEY, edge.pool(site, port), edge.POOL_READY_WHEN),
        wrap(edge.ROUTE_KEY, edge.route(site), edge.ROUTE_READY_WHEN, after=(edge.POOL_KEY,)),
        wrap(edge.HOST_ROUTE_KEY, edge.host_route(site), edge.ROUTE_READY_WHEN, after=(edge.POOL_KEY,)),
    ]


def _beside(wanted: Sequence[Desired | Waiting], runs: Sequence[Workload]) -> list[str]:
    """Return the keys of what is neither a workload nor told of by name; what waits says why elsewhere."""
    told = {r.key for r in runs} | replica_status.EDGE_KEYS
    return [d.key for d in wanted if isinstance(d, Desired) and d.key not in told]


def _former(inputs: Inputs, runs: Sequence[Workload]) -> frozenset[str]:
    """Return workloads of another kind or shape that stay until what replaces them serves.

    One whose engine left the spec goes at once.
    """
    wanted = {r.key for r in runs}
    unready = {e.name for r in runs if not inputs.is_ready(r.key) for e in r.engines}
    return frozenset(
        key
        for key in inputs.observed
        if key not in wanted
        and (engine := workload.engine_of(key)) is not None
        and (engine in unready or (not engine and bool(unready)))
    )


def _parts(inputs: Inputs, runs: Sequence[Workload], former: frozenset[str]) -> frozenset[str]:
    """Return claim templates and copies that pods of before may still refer to: all, while any rolls."""
    if not former and not any(_rolls(inputs, r) for r in runs):
        return frozenset()
    prefixes = (claims.KEY_PREFIX, *replica_references.KEY_PREFIXES)
    return frozenset(key for key in inputs.observed if key.startswith(prefixes))


def _rolls(inputs: Inputs, run: Workload) -> bool:
    """Tell whether pods of another spec may run: Ready speaks of the last one until this is applied."""
    applied = paths.mapping(inputs.observed.get(run.key), "spec", "forProvider", "manifest")
    return applied != run.manifest or not inputs.is_ready(run.key)


def _events(runs: Sequence[Workload]) -> list[Event]:
    """Warn of environment variables that stay Modelplane's own."""
    return [
        Event(
            f"engine {engine.name} sets {', '.join(refused)}: Modelplane's own value stands, remove it",
            warning=True,
        )
        for run in runs
        for engine in run.engines
        if engine.is_gang and (refused := pods.refused_env(engine))
    ]


KIND = Kind(
    c.API,
    "ModelReplica",
    compose,
    (c.MODEL_ACCEPTED, c.MODEL_READY, c.REFERENCES_RESOLVED),
    requires,
    # The cluster's namespaces and the cache's phase are looked up, not watched, before Crossplane 2.4.
    ttl=60,
    health=c.MODEL_READY,
    watched=frozenset({c.MODEL_ACCEPTED, c.MODEL_READY}),
)
