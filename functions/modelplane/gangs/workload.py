"""What a backend makes of engines, and what the rest of the replica has to know of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from modelplane import contracts as c
from modelplane import names
from modelplane.api.model_replica import Engine
from modelplane.core import paths
from modelplane.core.paths import Manifest
from modelplane.gangs import claims
from modelplane.gangs.copies import Part
from modelplane.gangs.site import Site

KEY_PREFIX = "model-serving"
# Engine names hold no dot, so what follows one is never part of a name.
_MARK = "."


@dataclass(frozen=True, slots=True)
class Workload:
    """One object on the cluster that runs one or more engines.

    Attributes:
        key: composition resource name.
        manifest: the remote object.
        backend: what made it.
        engines: the engines it runs.
    """

    key: str
    manifest: Manifest
    backend: "Backend"
    engines: tuple[Engine, ...]


class Backend(Protocol):
    """A controller on the serving cluster that engines can be handed to.

    Attributes:
        kind: of the object.
        ready_when: CEL over the remote object that is true once every copy serves.
        pod_fields: regular expression of the field paths whose change makes new pods, from the path's start.
    """

    kind: str
    ready_when: str
    pod_fields: str

    def workload(self, site: Site, engines: tuple[Engine, ...], proxies: Mapping[str, Manifest]) -> Workload:
        """Return the object that runs the engines; `proxies` holds the one before an engine, by its name."""
        ...

    def ready_copies(self, engine: Engine, remote: Mapping[str, Any]) -> int | None:
        """Return how many copies serve, as the remote object says; None where it does not tell."""
        ...

    def complaint(self, remote: Mapping[str, Any]) -> str:
        """Return what the remote object says is wrong with all of it; empty where it says nothing."""
        ...

    def parts(self, run: Workload, engine: Engine, /) -> list[Part]:
        """Return what to look at for each copy of the engine; none where copies have no names."""
        ...


def key(engine: str, mark: str = "") -> str:
    """Return the composition resource name of a workload; of one that runs all engines where none is named.

    The mark tells apart objects that cannot become each other by an update: another kind, or another shape.
    """
    base = f"{KEY_PREFIX}-{engine}" if engine else KEY_PREFIX
    return f"{base}{_MARK}{mark}" if mark else base


def engine_of(workload_key: str) -> str | None:
    """Return the engine a workload's key is for; empty for all of them, None for a key of something else."""
    base = workload_key.partition(_MARK)[0]
    if base == KEY_PREFIX:
        return ""
    return base.removeprefix(f"{KEY_PREFIX}-") if base.startswith(f"{KEY_PREFIX}-") else None


def ports(manifest: object) -> set[int]:
    """Return the ports that a workload's containers declare; none in what is no workload."""
    if isinstance(manifest, Mapping):
        own = paths.integer(manifest, "containerPort")
        found = set() if own is None else {own}
        return found.union(*(ports(v) for v in manifest.values()))
    if isinstance(manifest, list):
        return set().union(*(ports(v) for v in manifest))
    return set()


def object_metadata(site: Site, name: str) -> Manifest:
    """Return the metadata of a workload object: the deployment's labels under ours."""
    labels = {**site.labels, **site.scheduling, c.REPLICA_LABEL: names.label_value(site.replica)}
    return {"name": name, "namespace": site.namespace, "labels": labels}


def claim_keys(site: Site, engines: tuple[Engine, ...]) -> tuple[str, ...]:
    """Return the keys of the claim templates that pods of the engines refer to."""
    return tuple(x.key for e in engines for m in e.members for x in claims.claims(site, e, m))
