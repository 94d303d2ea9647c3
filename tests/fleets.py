"""The examples, played once per process: what every composer was asked and what it answered."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from modelplane.core import Inputs, Manifest
from modelplane.kinds.registry import KINDS
from modelplane.render import adapter, collect
from modelplane.render.run import Rendering
from modelplane.render.tree import Line
from modelplane.sim import prerequisites
from modelplane.sim.play import Pass
from modelplane.sim.reconcile import Function, Reply
from modelplane.sim.world import Ref, World, ref

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"
# Each renders by itself; platform-reuse holds Compositions, which a control plane runs.
FOLDERS = sorted(f.parent.name for f in EXAMPLES.glob("*/kustomization.yaml"))
# Those with a cluster, served models or not.
FLEETS = [f for f in FOLDERS if (EXAMPLES / f / "cluster.yaml").is_file()]


@cache
def real_function() -> Function:
    """The function behind its protobuf shell, one for all tests, cache included."""
    return adapter.function(KINDS)


@dataclass(frozen=True)
class Call:
    """One settled call: the composite, its snapshot, the pass, and what came back."""

    target: Ref
    inputs: Inputs
    reply: Reply
    number: int


@dataclass
class Played:
    """A whole simulated life of some documents, from nothing to no further change."""

    world: World
    passes: list[tuple[Pass, list[Line]]] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)

    @property
    def final(self) -> Pass:
        """The last pass, in which nothing changed."""
        return self.passes[-1][0]

    def last_calls(self) -> list[Call]:
        """One call per composite: its last, with everything settled."""
        return list({call.target: call for call in self.calls}.values())


def documents(*folders: str) -> list[Manifest]:
    """The documents of example folders, defaulted."""
    return collect.read([EXAMPLES / folder for folder in folders])


def has(folder: str, kind: str) -> bool:
    """Whether an example has a document of a kind."""
    return any(document["kind"] == kind for document in documents(folder))


def play(found: Sequence[Manifest], world: World | None = None) -> Played:
    """Play documents to rest, recording every settled call."""
    world = world or World.of(prerequisites.objects())
    for document in found:
        world.apply(document)
    played = Played(world)
    function = adapter.function(KINDS, remember=True)

    def recording(inputs: Inputs) -> Reply:
        reply = function(inputs)
        if reply.answer is not None and {r.name for r in reply.requirements} <= inputs.required.keys():
            snapshot = Inputs(
                *(copy.deepcopy(x) for x in (inputs.composite, inputs.observed, inputs.required))
            )
            played.calls.append(Call(ref(inputs.composite), snapshot, reply, world.passes))
        return reply

    work = Rendering(world, recurse=True, function=recording)
    played.passes.extend(work.passes())
    return played


@cache
def played(folder: str) -> Played:
    """Play one example folder; shared, so never write to it."""
    return play(documents(folder))
