"""How the scheduler's time grows, and that its memory does not."""

import gc
from dataclasses import dataclass, replace

from crossplane.function.proto.v1 import run_function_pb2 as fnv1

from benchmarks import drive, fleet
from modelplane.kinds.registry import KINDS
from modelplane.shell.respond import Responder
from modelplane.shell.server import relax_gc


@dataclass(frozen=True)
class Case:
    """One size of the question."""

    clusters: int = 1000
    pools: int = 4
    replicas: int = 10
    expressions: int = 2
    shapes: int = 1
    placed: int = 0
    nodes: int = 8

    def request(self) -> fnv1.RunFunctionRequest:
        """Return the settled request."""
        objects = [fleet.cluster(n, self.pools, self.shapes, self.nodes) for n in range(self.clusters)]
        objects += [fleet.replica(n, self.pools) for n in range(self.placed)]
        xr = fleet.deployment(self.replicas, self.expressions)
        return drive.settle(Responder(KINDS).respond, xr, objects)


BASE = Case()
GROWTH = {
    "clusters": [replace(BASE, clusters=n) for n in (100, 1000, 2000, 5000)],
    "pools": [replace(BASE, pools=n) for n in (1, 4, 8, 16)],
    "replicas": [replace(BASE, replicas=n) for n in (1, 10, 32, 64)],
    "expressions": [replace(BASE, expressions=n) for n in (1, 2, 8, 16)],
    "shapes": [replace(BASE, shapes=n) for n in (1, 40, 400, 4000)],
    "placed": [replace(BASE, placed=n) for n in (0, 100, 1000)],
    # On one node each, no gang fits anywhere: every cluster is explained.
    "nodes": [replace(BASE, nodes=n) for n in (8, 1)],
}
_FIRST, _WARM = 3, 7


def growth() -> None:
    """Print first and warm calls for each size, beside the base size measured in the same breath."""
    relax_gc()
    base = BASE.request()
    for name, cases in GROWTH.items():
        rows = []
        for case in cases:
            req = case.request()
            first, warm, unit = drive.Times(), drive.Times(), drive.Times()
            for _ in range(_FIRST):
                forget()
                responder = Responder(KINDS)
                arrived = drive.again(req)
                rsp = first.run(lambda: responder.respond(arrived))  # noqa: B023
            for _ in range(_WARM):
                arrived = drive.again(req)
                warm.run(lambda: responder.respond(arrived))  # noqa: B023
            # After the case, not between its calls: there is one fleet in a control plane, and views of
            # another one would push out those of the first.
            other = Responder(KINDS)
            other.respond(drive.again(base))
            for _ in range(_WARM):
                arrived = drive.again(base)
                unit.run(lambda: other.respond(arrived))  # noqa: B023
            rows.append(
                (
                    getattr(case, name),
                    *first.medians,
                    *warm.medians,
                    warm.medians[1] / unit.medians[1],
                    f"{req.ByteSize() / 1e6:.1f}",
                    f"{rsp.ByteSize() / 1e3:.0f}",
                )
            )
        drive.table(
            f"ModelDeployment over {BASE.clusters:,} clusters x {BASE.pools} pools, by {name}",
            [name, "first ms", "CPU", "warm ms", "CPU", "CPU of base", "request MB", "response kB"],
            rows,
        )


def forget() -> None:
    """Make the next call a first one: drop what modules remember between calls."""
    from modelplane.schedule import cel, devices, match  # noqa: PLC0415

    for kept in (cel.selector, cel._bindings, devices._node, match.match):
        kept.cache_clear()
    gc.collect()


def memory(calls: int = 1000) -> None:
    """Print what the process holds while one cluster of the fleet changes before every call."""
    relax_gc()
    req, responder = BASE.request(), Responder(KINDS)
    rows = []
    for at in range(calls + 1):
        changed = req.required_resources["clusters"].items[at % BASE.clusters].resource
        condition = changed.fields["status"].struct_value.fields["conditions"].list_value.values[0]
        condition.struct_value.fields["lastTransitionTime"].string_value = f"2026-01-02T00:00:00.{at:06d}Z"
        responder.respond(drive.again(req))
        if at % (calls // 5) == 0:
            rows.append((at, drive.resident()))
    drive.table("Memory over calls, one cluster changing before each", ["calls", "resident MiB"], rows)
