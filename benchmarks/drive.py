"""Calling the function as Crossplane does: what it requires is fetched until that settles."""

import resource
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crossplane.function import resource as sdk
from crossplane.function.proto.v1 import run_function_pb2 as fnv1

Manifest = dict[str, Any]
Call = Callable[[fnv1.RunFunctionRequest], fnv1.RunFunctionResponse]

_ROUNDS = 5  # Crossplane's own limit


@dataclass
class Times:
    """Samples of one thing, in milliseconds: on the wall's clock, and of this process's CPU."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    def run(self, work: Callable[[], Any]) -> Any:
        """Do the work and take its times."""
        wall, cpu = time.perf_counter(), time.process_time()
        found = work()
        self.cpu.append((time.process_time() - cpu) * 1000)
        self.wall.append((time.perf_counter() - wall) * 1000)
        return found

    @property
    def medians(self) -> tuple[float, float]:
        """Wall and CPU."""
        return statistics.median(self.wall), statistics.median(self.cpu)


def settle(call: Call, xr: Manifest, objects: Sequence[Manifest]) -> fnv1.RunFunctionRequest:
    """Return the request whose answer asks for nothing more than it carries."""
    known = [(o, sdk.dict_to_struct(o)) for o in objects]
    req = fnv1.RunFunctionRequest()
    req.observed.composite.resource.CopyFrom(sdk.dict_to_struct(xr))
    for _ in range(_ROUNDS):
        wanted = call(req).requirements.resources
        if all(name in req.required_resources for name in wanted):
            return req
        for name, selector in wanted.items():
            req.required_resources[name].SetInParent()
            for obj, encoded in known:
                if _selected(obj, selector):
                    req.required_resources[name].items.add().resource.CopyFrom(encoded)
    raise RuntimeError(f"what the function requires has not settled after {_ROUNDS} rounds")


def _selected(obj: Manifest, selector: fnv1.ResourceSelector) -> bool:
    metadata = obj["metadata"]
    if (obj["apiVersion"], obj["kind"]) != (selector.api_version, selector.kind):
        return False
    if selector.HasField("namespace") and metadata.get("namespace", "") != selector.namespace:
        return False
    if selector.WhichOneof("match") == "match_name":
        return bool(metadata["name"] == selector.match_name)
    return dict(selector.match_labels.labels).items() <= metadata.get("labels", {}).items()


def again(req: fnv1.RunFunctionRequest) -> fnv1.RunFunctionRequest:
    """Return the request as it arrives by wire: no object of the last call is in it."""
    return fnv1.RunFunctionRequest.FromString(req.SerializeToString())


def resident(pid: int | str = "self") -> float:
    """Return the MiB of memory that a process holds now."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def table(title: str, heads: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table in Markdown."""
    print(f"\n### {title}\n")
    print(f"| {' | '.join(heads)} |")
    print(f"|{'|'.join('---' for _ in heads)}|")
    for row in rows:
        print(f"| {' | '.join(f'{x:.1f}' if isinstance(x, float) else str(x) for x in row)} |", flush=True)
