"""What a ModelReplica says of itself: each engine's copies, and what keeps it from serving."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from modelplane import contracts as c
from modelplane.api.model_replica import Engine, ModelReplicaSpec
from modelplane.core import Condition, Inputs, Manifest, paths, refused
from modelplane.gangs import deployment, edge, picker, workload
from modelplane.gangs.workload import Workload
from modelplane.kinds import replica_copies
from modelplane.kinds.replica_place import Place

REASON_ACCEPTED = "Accepted"
REASON_DEPLOYING = "Deploying"
REASON_SERVING = "Serving"
REASON_STARTING = "ModelStarting"
REASON_WAITING_FOR_MODEL = "WaitingForModel"

# What takes requests before the engines, in the order of who may be at fault.
_EDGE = (
    (picker.KEY, "endpoint picker"),
    (edge.POOL_KEY, "pool"),
    (edge.ROUTE_KEY, "route"),
    (edge.HOST_ROUTE_KEY, "route by host"),
)
EDGE_KEYS = frozenset(key for key, _ in _EDGE)


@dataclass(frozen=True, slots=True)
class Seen:
    """What a pass knows.

    Attributes:
        inputs: as given.
        spec: of the replica.
        place: where it runs.
        runs: its workloads.
        gates: what each of them waits for, by key.
        former: keys of workloads that stay until those serve.
        port: where the pool sends requests.
        beside: keys of what stands around workloads and edge: claims, copies, walls, the picker's own needs.
    """

    inputs: Inputs
    spec: ModelReplicaSpec
    place: Place
    runs: Sequence[Workload]
    gates: Mapping[str, Sequence[str]]
    former: frozenset[str]
    port: int
    beside: Sequence[str]


def status(seen: Seen) -> Manifest:
    """Return the status fields; every engine has its copies, and those that serve where anybody knows."""
    engines = []
    for run in seen.runs:
        for engine in run.engines:
            entry: Manifest = {"name": engine.name, "copies": engine.copies}
            if (ready := _ready_copies(seen, run, engine)) is not None:
                entry["readyCopies"] = ready
            if message := _why_not(seen, run, engine):
                entry["message"] = message
            engines.append(entry)
    return {
        "namespace": seen.place.site.namespace,
        "engines": sorted(engines, key=lambda e: str(e["name"])),
    }


def conditions(seen: Seen) -> list[Condition]:
    """Return ModelAccepted and ModelReady."""
    pairs = [(run, engine) for run in seen.runs for engine in run.engines]
    waiting = [f"engine {e.name}: {why}" for r, e in pairs if (why := _why_not(seen, r, e))]
    accepted = all(seen.inputs.remote(r.key) for r in seen.runs)
    missing = [*waiting, *_edge_missing(seen.inputs)]
    missing = missing or _beside_missing(seen)
    message = "; ".join(missing)
    serving = not missing or former_serve(seen)
    return [
        Condition(c.MODEL_ACCEPTED, True, REASON_ACCEPTED, _on_hold(seen))
        if accepted
        else Condition(c.MODEL_ACCEPTED, False, REASON_DEPLOYING, message),
        Condition(c.MODEL_READY, True, REASON_SERVING, f"being replaced: {message}" if missing else "")
        if serving
        else Condition(
            c.MODEL_READY, False, REASON_STARTING if accepted else REASON_WAITING_FOR_MODEL, message
        ),
    ]


def former_serve(seen: Seen) -> bool:
    """Tell whether workloads of before answer for every engine whose new one does not serve yet."""
    waiting = [e for r in seen.runs if not seen.inputs.is_ready(r.key) for e in r.engines]
    serving = {workload.engine_of(key) for key in seen.former if _serves(seen, key)}
    covered = all(e.name in serving or "" in serving for e in waiting)
    return bool(waiting) and covered and not _edge_missing(seen.inputs)


def _serves(seen: Seen, key: str) -> bool:
    """Tell whether a workload of before is up, at the port where the pool sends requests now."""
    manifest = paths.mapping(seen.inputs.observed[key], "spec", "forProvider", "manifest")
    return seen.inputs.is_ready(key) and seen.port in workload.ports(manifest)


def _on_hold(seen: Seen) -> str:
    """Return why what runs stays as it is whatever the spec says now; empty where changes are applied."""
    return f"running engines stay as they are: {seen.place.unknown}" if seen.place.unknown else ""


def _ready_copies(seen: Seen, run: Workload, engine: Engine) -> int | None:
    if seen.inputs.is_ready(run.key):
        return engine.copies
    if run.key not in seen.inputs.observed:
        return 0
    found = run.backend.ready_copies(engine, seen.inputs.remote(run.key))
    if found is None:
        found = replica_copies.seen(seen.inputs, run, engine).ready
    return found if found is not None or len(run.engines) > 1 else _last_told(seen.inputs, engine)


def _last_told(inputs: Inputs, engine: Engine) -> int | None:
    for entry in paths.mappings(inputs.composite, "status", "engines"):
        if entry.get("name") == engine.name:
            return paths.integer(entry, "readyCopies")
    return None


def _why_not(seen: Seen, run: Workload, engine: Engine) -> str:
    """Return what the engine waits for; empty when every copy serves."""
    if seen.inputs.is_ready(run.key):
        return ""
    if not (why := _waits_for(seen, run, engine)):
        return ""
    former = sorted(k for k in seen.former if workload.engine_of(k) in (engine.name, ""))
    if not former:
        return why
    return f"{why} ({', '.join(former)} stays until then; both need devices)"


def _waits_for(seen: Seen, run: Workload, engine: Engine) -> str:
    if run.key not in seen.inputs.observed:
        return _not_created(seen, run)
    found = seen.inputs.observed[run.key]
    if trouble := refused.complaint(found):
        return trouble
    remote = seen.inputs.remote(run.key)
    known = {e.name: replica_copies.seen(seen.inputs, run, e) for e in run.engines}
    mine = known[engine.name]
    if mine.ready == engine.copies and any(x.message for x in known.values()):
        return ""  # the other half of a pair is short
    ready = run.backend.ready_copies(engine, remote)
    ready = mine.ready if ready is None else ready
    count = f"{ready} of {engine.copies} copies serve" if ready is not None else "not all copies serve"
    words = f"{count} on {_name(run)} in namespace {seen.place.site.namespace}"
    if said := run.backend.complaint(remote):
        words += f", which reports: {refused.cut(said)}"
    return f"{words}; {mine.message}" if mine.message else f"{words}: look at its pods"


def _not_created(seen: Seen, run: Workload) -> str:
    if seen.place.closed or seen.place.unknown:
        return seen.place.closed or seen.place.unknown
    for key in seen.gates[run.key]:
        if not seen.inputs.is_ready(key):
            return refused.complaint(seen.inputs.observed.get(key)) or f"waiting for {key}"
    return f"{_name(run)} is about to be created"


def _edge_missing(inputs: Inputs) -> list[str]:
    known, rest = [], []
    for key, what in _EDGE:
        if inputs.is_ready(key):
            continue
        if why := refused.complaint(inputs.observed.get(key)) or _reported(inputs.remote(key)):
            known.append(f"the {what} ({key}) is not ready: {why}")
        else:
            rest.append(f"{what} ({key})")
    return [*known, *([f"not ready yet: {', '.join(rest)}"] if rest else [])]


def _beside_missing(seen: Seen) -> list[str]:
    """Return what else is not ready: the replica is not either, though all that takes requests is."""
    return [
        refused.complaint(seen.inputs.observed.get(key)) or f"{key} is not ready"
        for key in seen.beside
        if not seen.inputs.is_ready(key)
    ]


def _reported(remote: Mapping[str, Any]) -> str:
    """Return what the object's own controller says is wrong; of routes and pools, for each gateway."""
    if said := deployment.complaint(remote):
        return refused.cut(said)
    for place in (paths.mapping(remote, "status"), *paths.mappings(remote, "status", "parents")):
        for found in paths.mappings(place, "conditions"):
            if found.get("status") == "False" and (said := paths.text(found, "message")):
                return refused.cut(said)
    return ""


def _name(run: Workload) -> str:
    return f"{run.backend.kind} {paths.name(run.manifest)}"
