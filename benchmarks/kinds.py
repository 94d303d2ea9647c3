"""What each composite kind costs over loopback gRPC above a function that does nothing."""

import statistics
import time
from collections.abc import Iterator

from crossplane.function.proto.v1 import run_function_pb2 as fnv1

from benchmarks.drive import Call, Manifest, Times, again, table
from benchmarks.server import EXAMPLES, SERVE, TRIVIAL, serving
from modelplane.core import Inputs, paths
from modelplane.kinds.registry import KINDS
from modelplane.render import adapter, collect
from modelplane.render.run import Rendering
from modelplane.shell.respond import Responder
from modelplane.sim import prerequisites
from modelplane.sim.reconcile import Reply
from modelplane.sim.world import World

_CALLS = 31
_POOLS = 8


def overhead() -> None:
    """Print each kind's largest settled call of all examples."""
    rows = []
    with serving(*SERVE) as (_, ours), serving(*TRIVIAL) as (_, trivial):
        for kind, req in sorted(_requests().items()):
            rsp = ours.RunFunction(req)
            above = statistics.median(_differences(ours.RunFunction, trivial.RunFunction, req))
            size = f"{rsp.ByteSize() / 1e3:.0f}"
            asked = f"{req.ByteSize() / 1e3:.0f}"
            rows.append((kind, len(rsp.desired.resources), asked, above, _cpu(req), size))
    heads = ["kind", "resources", "request kB", "above trivial ms (10)", "its CPU ms", "response kB (300)"]
    table("Any kind, over loopback gRPC", heads, rows)


def _differences(one: Call, other: Call, req: fnv1.RunFunctionRequest) -> Iterator[float]:
    """Yield by how many ms the one is slower, call by call: a busy machine slows both."""
    for _ in range(_CALLS):
        start = time.perf_counter()
        one(req)
        middle = time.perf_counter()
        other(req)
        yield (2 * middle - start - time.perf_counter()) * 1000


def _cpu(req: fnv1.RunFunctionRequest) -> float:
    """Return the CPU that composing takes by itself, which no other process of the machine adds to."""
    responder, times = Responder(KINDS), Times()
    for _ in range(_CALLS):
        arrived = again(req)
        times.run(lambda: responder.respond(arrived))  # noqa: B023
    return times.medians[1]


def _requests() -> dict[str, fnv1.RunFunctionRequest]:
    found: dict[str, fnv1.RunFunctionRequest] = {}
    for folder in sorted(f for f in EXAMPLES.iterdir() if f.is_dir()):
        for name, req in _played(collect.read([folder])).items():
            if name not in found or found[name].ByteSize() < req.ByteSize():
                found[name] = req
    wide = [_widened(d) for d in collect.read([EXAMPLES / "dynamo-h200"])]
    for name, req in _played(wide).items():
        if name in ("EKSCluster", "InferenceCluster"):
            found[f"{name}, {_POOLS} pools"] = req
    return found


def _played(documents: list[Manifest]) -> dict[str, fnv1.RunFunctionRequest]:
    """Play the documents to rest; give the last call of each kind."""
    world = World.of([*prerequisites.objects(), *documents])
    function = adapter.function(KINDS, remember=True)
    last: dict[str, Inputs] = {}

    def recording(inputs: Inputs) -> Reply:
        reply = function(inputs)
        if {r.name for r in reply.requirements} <= inputs.required.keys():
            last[paths.text(inputs.composite, "kind")] = inputs
        return reply

    for _ in Rendering(world, recurse=True, function=recording).passes():
        pass
    return {kind: adapter.request(inputs) for kind, inputs in last.items()}


def _widened(document: Manifest) -> Manifest:
    """Return an EKS cluster with the first of its pools eight times."""
    if document["kind"] != "InferenceCluster" or "eks" not in document["spec"]["cluster"]:
        return document
    first = document["spec"]["nodePools"][0]
    pools = [{**first, "name": f"{first['name']}-{n}"} for n in range(_POOLS)]
    return {**document, "spec": {**document["spec"], "nodePools": pools}}
