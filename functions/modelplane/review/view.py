"""What the checks look at: the objects to judge with their places in files, and the fleet around them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from modelplane import contracts as c
from modelplane.api.model_deployment import ModelDeploymentSpec
from modelplane.core import Hold, Manifest, paths, specs
from modelplane.render.collect import Source
from modelplane.review.fleet import CACHE, CLASS, CLUSTER, DEPLOYMENT, Fleet, matches
from modelplane.schedule import devices
from modelplane.schedule.devices import Node
from modelplane.sim.world import Ref, ref


@dataclass(frozen=True, slots=True)
class Member:
    """One member of one engine of a deployment: its path, its raw form, its role and its engine's name."""

    path: str
    raw: Mapping[str, Any]
    role: str
    engine: str

    @property
    def requests(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """The device requests with their paths."""
        for at, raw in enumerate(paths.mappings(self.raw, "nodeSelector", "devices")):
            yield f"{self.path}.nodeSelector.devices[{at}]", raw

    @property
    def containers(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """The containers with their paths."""
        for at, raw in enumerate(paths.mappings(self.raw, "template", "spec", "containers")):
            yield f"{self.path}.template.spec.containers[{at}]", raw

    @property
    def engine_container(self) -> Mapping[str, Any]:
        """The container that runs the engine, or an empty mapping."""
        return next((raw for _, raw in self.containers if raw.get("name") == c.ENGINE_CONTAINER), {})


@dataclass(frozen=True)
class View:
    """The objects to judge and the fleet they are part of.

    Attributes:
        judged: what findings may be about.
        fleet: these and all that is there already.
    """

    judged: Sequence[Source]
    fleet: Fleet

    def of(self, kind: tuple[str, str]) -> Iterator[Source]:
        """Yield the judged objects of a kind."""
        return (source for source in self.judged if ref(source.body)[:2] == kind)

    @property
    def deployments(self) -> Iterator[Source]:
        """The judged deployments."""
        return self.of(DEPLOYMENT)

    @cached_property
    def nodes(self) -> Mapping[str, Node]:
        """What a node of each class carries."""
        return {paths.name(x): devices.node(paths.items(x, "spec", "devices")) for x in self.classes.values()}

    @cached_property
    def classes(self) -> Mapping[str, Manifest]:
        """All classes by name."""
        return {paths.name(x): x for x in self.fleet.all(CLASS)}

    @cached_property
    def clusters(self) -> Sequence[Manifest]:
        """All clusters."""
        return self.fleet.all(CLUSTER)

    def candidates(self, deployment: Mapping[str, Any]) -> list[Manifest]:
        """Return the clusters whose labels a deployment's selector asks for."""
        wanted = paths.mapping(deployment, "spec", "template", "spec", "clusterSelector", "matchLabels")
        return [x for x in self.clusters if matches(paths.labels(x), wanted)]

    def cache(self, deployment: Mapping[str, Any]) -> tuple[str, Manifest | None]:
        """Return the name of the deployment's cache, empty for none, and the cache where it is there."""
        name = paths.text(deployment, "spec", "template", "spec", "modelCacheRef", "name")
        return name, self.fleet.world.objects.get(Ref(*CACHE, paths.namespace(deployment), name))

    def reachable(self, deployment: Mapping[str, Any]) -> dict[str, Node]:
        """Return the nodes of classes that pools of candidate clusters have."""
        names = {
            paths.text(pool, "className")
            for cluster in self.candidates(deployment)
            for pool in paths.mappings(cluster, "spec", "nodePools")
        }
        return {name: self.nodes[name] for name in sorted(names & self.nodes.keys())}


def members(deployment: Mapping[str, Any]) -> Iterator[Member]:
    """Yield the members of all engines."""
    engines = "spec.template.spec.engines"
    for at, engine in enumerate(paths.mappings(deployment, "spec", "template", "spec", "engines")):
        for place, raw in enumerate(paths.mappings(engine, "members")):
            role = paths.text(raw, "role") or c.STANDALONE
            yield Member(f"{engines}[{at}].members[{place}]", raw, role, paths.text(engine, "name"))


def spec_of(deployment: Mapping[str, Any]) -> ModelDeploymentSpec | None:
    """Return the typed spec, or None where it is none: admission has said so."""
    try:
        return specs.parse(ModelDeploymentSpec, paths.mapping(deployment, "spec"), c.REPLICAS_SCHEDULED)
    except Hold:
        return None
