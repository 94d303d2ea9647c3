"""ModelDeployment: a ModelReplica per placed replica, and a ModelEndpoint for each that serves.

Which of them exist is the scheduler's answer (`schedule.placement`); this module reads what it needs, and
writes what it says. A replica that is composed stays composed, under its key and name, unless the scheduler
leaves it out: that happens for its owner's reasons only.
"""

import ipaddress
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from modelplane import contracts as c
from modelplane import names
from modelplane.api import model_deployment as api
from modelplane.core import Desired, Event, Hold, Inputs, Kind, Manifest, Plan, Requirement, paths, specs
from modelplane.core.keep import kept
from modelplane.kinds import model_deployment_status as status
from modelplane.schedule import cel, placement
from modelplane.schedule.ask import Ask, Engine, Member, Rolling, Toleration
from modelplane.schedule.match import Request
from modelplane.schedule.seats import Outcome, Seat, State
from modelplane.schedule.views import CLUSTERS, REPLICAS, Cluster, Replica

CLUSTERS_REQUIRED = "clusters"
REPLICAS_REQUIRED = "all-replicas"
CACHE_REQUIRED = "cache"
_REPLICA_KEY = "replica-"


def requires(xr: Manifest) -> Sequence[Requirement]:
    """Return what placement looks at: the whole fleet, so that no label edit hides a cluster in use."""
    found = [
        Requirement(CLUSTERS_REQUIRED, c.API, "InferenceCluster"),
        Requirement(REPLICAS_REQUIRED, c.API, "ModelReplica"),
    ]
    if cache := paths.text(xr, "spec", "template", "spec", "modelCacheRef", "name"):
        found.append(
            Requirement(CACHE_REQUIRED, c.API, "ModelCache", match_name=cache, namespace=paths.namespace(xr))
        )
    return found


def compose(inputs: Inputs) -> Plan:
    """Return the replicas and endpoints of a deployment; with a selector that does not compile, what runs."""
    spec = specs.parse(api.ModelDeploymentSpec, inputs.spec, c.REPLICAS_SCHEDULED)
    ask, outcome = scheduled(inputs, spec)
    fleet = {cluster.name: cluster for cluster in CLUSTERS.of(inputs.all(CLUSTERS_REQUIRED))}
    resources: list[Desired] = []
    keep: set[str] = set()
    for seat in outcome.seats:
        key = f"{_REPLICA_KEY}{seat.cluster}-{seat.index}"
        if seat.state in (State.NEW, State.KEPT):
            resources.append(Desired(key, _replica(inputs, spec, seat)))
        elif key in inputs.observed:
            keep.add(key)
        elif seat.replica is not None:
            resources.append(Desired(key, kept(seat.replica.raw)))
        _endpoint(inputs, spec, seat, fleet.get(seat.cluster), resources, keep)
    return Plan(
        resources=resources,
        keep=frozenset(keep),
        status=status.fields(ask, outcome),
        conditions=status.conditions(ask, outcome),
        events=_events(ask, outcome),
        ready=False if outcome.missing else None,
    )


def scheduled(inputs: Inputs, spec: api.ModelDeploymentSpec) -> tuple[Ask, Outcome]:
    """Return what the deployment asks for and the scheduler's answer; Hold: a selector does not compile."""
    _compiled(spec)
    ask = _ask(inputs, spec)
    outcome = placement.place(
        ask,
        _own(inputs),
        CLUSTERS.of(inputs.all(CLUSTERS_REQUIRED)),
        REPLICAS.of(inputs.all(REPLICAS_REQUIRED)),
        lambda cluster, index: names.replica(inputs.name, cluster, index),
    )
    return ask, outcome


def _compiled(spec: api.ModelDeploymentSpec) -> None:
    """Hold where a selector does not compile: a bad edit changes nothing that runs."""
    for engine in spec.template.spec.engines:
        for member in engine.members:
            for request in member.node_selector.devices if member.node_selector else ():
                for at, selector in enumerate(request.selectors):
                    if selector.cel and (error := cel.selector(selector.cel).error):
                        raise Hold(
                            c.REPLICAS_SCHEDULED,
                            status.INVALID_NODE_SELECTOR,
                            f"engine {engine.name}, {member.role}, device request {request.name}, "
                            f"selectors[{at}].cel: {error}; correct the selector",
                        )


def _ask(inputs: Inputs, spec: api.ModelDeploymentSpec) -> Ask:
    wanted = spec.template.spec
    cache = wanted.model_cache_ref.name if wanted.model_cache_ref else ""
    found = inputs.one(CACHE_REQUIRED) if cache else None
    staged = paths.mapping(found, "spec", "clusterSelector", "matchLabels")
    return Ask(
        namespace=inputs.namespace,
        name=inputs.name,
        replicas=spec.replicas,
        engines=tuple(_engine(engine) for engine in wanted.engines),
        labels=wanted.cluster_selector.match_labels,
        cache=cache,
        cache_labels=None if cache and found is None else dict(staged),
        tolerations=tuple(
            Toleration(t.key, t.operator == "Exists", t.value, t.effect) for t in wanted.tolerations
        ),
        pack=wanted.placement.policy == "Pack",
        revision=_revision(inputs),
        rolling=Rolling(spec.strategy.max_surge, spec.strategy.max_unavailable)
        if spec.strategy.type == "Rolling"
        else None,
    )


def _engine(engine: api.Engine) -> Engine:
    return Engine(
        engine.name,
        engine.copies,
        tuple(
            Member(
                member.role,
                member.worker.nodes if member.role == c.WORKER else 1,
                tuple(
                    Request(r.name, r.count, tuple(s.cel for s in r.selectors if s.cel))
                    for r in (member.node_selector.devices if member.node_selector else ())
                ),
            )
            for member in engine.members
        ),
    )


def _own(inputs: Inputs) -> list[Replica]:
    """Return the replicas this deployment composed.

    What is observed is ours by its key, whatever became of its labels. A ModelReplica that is only found
    among all of them counts where namespace, label and name are this deployment's and nobody else controls
    it; one that is being deleted is on its way out by an earlier decision.
    """
    found: dict[tuple[str, int], Replica] = {}
    for key, raw in inputs.observed.items():
        if place := _place(key):
            found[place] = Replica(raw, *place)
    uid = paths.text(inputs.composite, "metadata", "uid")
    for replica in REPLICAS.of(inputs.all(REPLICAS_REQUIRED)):
        if (
            replica.deployment == names.label_value(inputs.name)
            and replica.namespace == inputs.namespace
            and not replica.leaving
            and replica.name == names.replica(inputs.name, replica.cluster, replica.index)
            and _controller(replica.raw) in ("", uid)
        ):
            found.setdefault((replica.cluster, replica.index), replica)
    return list(found.values())


def _place(key: str) -> tuple[str, int] | None:
    if not key.startswith(_REPLICA_KEY):
        return None
    cluster, _, index = key.removeprefix(_REPLICA_KEY).rpartition("-")
    return (cluster, int(index)) if cluster and index.isascii() and index.isdigit() else None


def _controller(raw: Manifest) -> str:
    owners = paths.mappings(raw, "metadata", "ownerReferences")
    return next((paths.text(o, "uid") for o in owners if o.get("controller") is True), "")


def _replica(inputs: Inputs, spec: api.ModelDeploymentSpec, seat: Seat) -> Manifest:
    template = paths.mapping(inputs.spec, "template", "spec")
    body: Manifest = {"clusterName": seat.cluster}
    if spec.template.metadata.labels:
        body["labels"] = dict(spec.template.metadata.labels)
    for key in ("modelCacheRef", "serving"):
        if template.get(key) is not None:
            body[key] = _plain(template[key])
    body["engines"] = [_placed_engine(raw, seat) for raw in paths.mappings(template, "engines")]
    metadata = _metadata(inputs, spec, seat)
    replaces = {c.REPLACES_ANNOTATION: seat.replaces} if seat.replaces else {}
    metadata["annotations"] = {c.REVISION_ANNOTATION: _revision(inputs), **replaces}
    return {"apiVersion": c.API, "kind": "ModelReplica", "metadata": metadata, "spec": body}


def _revision(inputs: Inputs) -> str:
    """Return what identifies the template, however its keys are ordered and its numbers are written."""
    template = _plain(paths.mapping(inputs.spec, "template"))
    return names.digest(json.dumps(template, sort_keys=True, separators=(",", ":")))


def _placed_engine(raw: Mapping[str, Any], seat: Seat) -> Manifest:
    bench = seat.benches[paths.text(raw, "name")]
    members: list[Manifest] = []
    for member, classes in zip(paths.mappings(raw, "members"), bench.classes, strict=True):
        placed: Manifest = _plain({k: v for k, v in member.items() if k != "nodeSelector"})
        placed["nodePoolName"] = bench.pool
        if requests := list(_requests(member, classes)):
            placed["deviceRequests"] = requests
        members.append(placed)
    engine: Manifest = _plain({k: v for k, v in raw.items() if k != "members"})
    return {**engine, "members": members}


def _requests(member: Mapping[str, Any], classes: Mapping[str, str]) -> Iterator[Manifest]:
    """Yield the claims of a member in its own order; one that synthetic devices answer claims nothing."""
    for raw in paths.mappings(member, "nodeSelector", "devices"):
        name = paths.text(raw, "name")
        if name in classes:
            request: Manifest = {
                "name": name,
                "deviceClassName": classes[name],
                "count": paths.integer(raw, "count", default=1),
            }
            if selectors := paths.items(raw, "selectors"):
                request["selectors"] = _plain(selectors)
            yield request


def _endpoint(
    inputs: Inputs,
    spec: api.ModelDeploymentSpec,
    seat: Seat,
    cluster: Cluster | None,
    resources: list[Desired],
    keep: set[str],
) -> None:
    """Add the seat's endpoint: it comes with readiness and an address, and goes when the replica is unready.

    An address or a Ready condition that is merely not in view takes no endpoint away.
    """
    key = f"endpoint-{seat.cluster}-{seat.index}"
    if seat.ready and cluster is not None and cluster.gateway:
        path = f"/{inputs.namespace}/{_name(inputs, seat)}/"
        manifest = {
            "apiVersion": c.API,
            "kind": "ModelEndpoint",
            "metadata": _metadata(inputs, spec, seat),
            "spec": {"url": f"http://{_host(cluster.gateway)}{path}v1", "rewritePath": path},
        }
        resources.append(Desired(key, manifest))
    elif key in inputs.observed and seat.replica is not None and not seat.replica.failed:
        keep.add(key)


def _metadata(inputs: Inputs, spec: api.ModelDeploymentSpec, seat: Seat) -> Manifest:
    labels = {
        **spec.template.metadata.labels,
        c.DEPLOYMENT_LABEL: names.label_value(inputs.name),
        c.CLUSTER_LABEL: names.label_value(seat.cluster),
        c.REPLICA_INDEX_LABEL: str(seat.index),
    }
    return {"name": _name(inputs, seat), "namespace": inputs.namespace, "labels": labels}


def _name(inputs: Inputs, seat: Seat) -> str:
    observed = seat.replica.name if seat.replica else ""
    return observed or names.replica(inputs.name, seat.cluster, seat.index)


def _host(address: str) -> str:
    try:
        return f"[{address}]" if ipaddress.ip_address(address).version == 6 else address
    except ValueError:
        return address


def _plain(value: Any) -> Any:
    """Return a copy without nulls, which would claim the fields they stand in, and with 3.0 as 3."""
    if isinstance(value, Mapping):
        return {k: _plain(v) for k, v in value.items() if v is not None}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _events(ask: Ask, outcome: Outcome) -> list[Event]:
    placed = sorted({s.cluster for s in outcome.seats if s.state is State.NEW})
    found = [Event(f"placed new replicas on {', '.join(placed)}")] if placed else []
    if ask.cache_labels is None:
        found.append(Event(status.cache_missing(ask), warning=True))
    return found


KIND = Kind(
    c.API,
    "ModelDeployment",
    compose,
    (c.REPLICAS_SCHEDULED, c.REPLICAS_READY, c.CACHE_RESOLVED),
    requires,
    ttl=60,  # cores up to 2.3 do not watch what is required: a new cluster is seen within this time
    health=c.REPLICAS_READY,
    watched=frozenset({c.REPLICAS_READY}),
)
