"""`make load`: many ModelDeployments over many clusters on the real core, in figures.

Clusters are taken as ready and no provider answers, so what is measured is scheduling and composing: core,
the API server and the function on one machine. CLUSTERS and DEPLOYMENTS change the size, CORE core's
arguments.

Core applies every object of a composite at every look at it, once a minute, and whenever something it
composed changes. Most of these requests change nothing; what did is told by its resourceVersion.
"""

from __future__ import annotations

import copy
import os
import re
import ssl
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import yaml

from controlplane import living, placed
from controlplane.binaries import UnavailableError, find_or_build
from controlplane.client import Client, Document, documents
from controlplane.control_plane import ControlPlane
from controlplane.function import ROOT
from controlplane.processes import Process, StartError, say, wait_for
from modelplane import contracts as c

CLUSTERS = int(os.environ.get("CLUSTERS", "100"))
DEPLOYMENTS = int(os.environ.get("DEPLOYMENTS", "200"))
CORE = os.environ.get("CORE", "").split()
TEAMS = 10
NODES = 4  # of one GPU, on each cluster
PATIENCE_SECONDS = 900
STEADY_SECONDS = 120
WRITES = ("APPLY", "DELETE", "PATCH", "POST", "PUT")
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Reading:
    """What counters said at one moment.

    Attributes:
        at: when, by the monotonic clock.
        writes: requests that write, whether they changed anything or not.
        reconciles: of each controller.
        seconds: that these took, waiting included.
        cpu: seconds of each process.
        left: ModelReplicas deleted so far, each one that moved.
    """

    at: float
    writes: float
    reconciles: dict[str, float]
    seconds: dict[str, float]
    cpu: dict[str, float]
    left: float


def main() -> int:
    """Run it; exit status 1 where a part of the control plane cannot be had."""
    crds = os.environ.get("CRDS_DIR")
    if not crds:
        say("CRDS_DIR names no folder of third-party CRDs: `make crds` fetches them")
        return 1
    try:
        with ControlPlane(find_or_build(), CORE) as running:
            running.install_providers(Path(crds))
            measure(running)
    except (UnavailableError, StartError, TimeoutError) as error:
        say(f"no figures: {error}")
        return 1
    return 0


def measure(running: ControlPlane) -> None:
    """Apply clusters, then deployments, and say what each step took."""
    client = running.client
    for number in range(TEAMS):
        client.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": team(number)}})
    for number in range(CLUSTERS):
        placed.apply_ready(client, cluster(number))
    say(f"{CLUSTERS} clusters, {DEPLOYMENTS} deployments of one replica in {TEAMS} namespaces")
    before = read(running)
    for number in range(DEPLOYMENTS):
        client.apply(deployment(number))
    say(f"applied after {time.monotonic() - before.at:.0f} s")
    until(client, "scheduled", lambda: len(client.list(c.API, "ModelReplica")), before)
    until(client, "composed", lambda: synced(client), before)
    tell(running, before, read(running), "until everything was composed")
    spread(client)
    quiet, seen = read(running), {living.ref(one): one for one in living.standing(client)}
    time.sleep(STEADY_SECONDS)
    tell(running, quiet, read(running), f"in {STEADY_SECONDS} s after that")
    found = changes(seen, {living.ref(one): one for one in living.standing(client)})
    say(f"these wrote to {found.total()} of {len(seen)} objects")
    for what, number in sorted(found.items()):
        say(f"  {number} {what}")
    spread(client)


def changes(seen: dict[living.Ref, Document], now: dict[living.Ref, Document]) -> Counter[str]:
    """How many objects of a kind were made, deleted or changed, and in which parts."""
    found = Counter(f"{now[ref]['kind']}, made" for ref in now.keys() - seen.keys())
    found.update(f"{seen[ref]['kind']}, deleted" for ref in seen.keys() - now.keys())
    for ref in seen.keys() & now.keys():
        was, one = seen[ref], now[ref]
        if was["metadata"]["resourceVersion"] != one["metadata"]["resourceVersion"]:
            found[f"{one['kind']}, {' and '.join(parts(was, one)) or 'owners of fields'}"] += 1
    return found


def parts(was: Document, now: Document) -> list[str]:
    """The parts of an object that a write changed, two levels deep."""
    return [
        f"{top}.{part}"
        for top in ("metadata", "spec", "status")
        for part in sorted({*was.get(top, {}), *now.get(top, {})} - {"resourceVersion", "managedFields"})
        if was.get(top, {}).get(part) != now.get(top, {}).get(part)
    ]


def spread(client: Client) -> None:
    """Say where the replicas are, and on how many clusters more than they have room for."""
    used = Counter(one["spec"]["clusterName"] for one in client.list(c.API, "ModelReplica"))
    crowded = sum(1 for number in used.values() if number > NODES)
    most = max(used.values())
    say(f"{used.total()} replicas on {len(used)} clusters, {most} at most; {crowded} hold more than {NODES}")


def team(number: int) -> str:
    """A team's namespace."""
    return f"team-{number % TEAMS}"


def cluster(number: int) -> Document:
    """One of many clusters, with nodes of one L4 each."""
    found = copy.deepcopy(placed.simulated("InferenceCluster"))
    found["metadata"] = {"name": f"load-{number:03}", "labels": found["metadata"]["labels"]}
    found["status"]["namespaces"] = sorted(team(one) for one in range(TEAMS))
    found["status"]["gpuPools"][0]["nodes"] = NODES
    found["spec"]["nodePools"][0]["nodeCount"] = NODES
    return found


def deployment(number: int) -> Document:
    """The model of the example, by a name of its own."""
    (found,) = documents(ROOT / "examples/single-gpu/model.yaml")
    return {**found, "metadata": {"name": f"model-{number:03}", "namespace": team(number)}}


def synced(client: Client) -> int:
    """How many replicas have composed all they can before a provider answers."""
    return sum(
        any(one["type"] == "Synced" and one["status"] == "True" for one in found["status"]["conditions"])
        for found in client.list(c.API, "ModelReplica")
        if "conditions" in found.get("status", {}) and found["spec"]["crossplane"].get("resourceRefs")
    )


def until(client: Client, what: str, count: Callable[[], int], begun: Reading) -> None:
    """Wait until all are so far, and say how long half and all took."""
    half: list[float] = []

    def enough() -> bool:
        found = count()
        if not half and found * 2 >= DEPLOYMENTS:
            half.append(time.monotonic() - begun.at)
        return found >= DEPLOYMENTS

    wait_for(f"all are {what}", enough, PATIENCE_SECONDS, seen=count)
    say(f"{what}: half after {half[0]:.0f} s, all after {time.monotonic() - begun.at:.0f} s")


def read(running: ControlPlane) -> Reading:
    """All counters as they are now."""
    token = yaml.safe_load(running.server.kubeconfig.read_text())["users"][0]["user"]["token"]
    api = fetch(f"{running.server.url}/metrics", token, running.home / "certs/apiserver.crt")
    core = fetch(running.core.metrics)
    requests = re.findall(r"^apiserver_request_total\{(.*)\} (\S+)$", api, re.M)

    def count(*having: str) -> float:
        return sum(float(value) for labels, value in requests if all(re.search(h, labels) for h in having))

    return Reading(
        time.monotonic(),
        count(rf'verb="({"|".join(WRITES)})"'),
        by_controller(core, "controller_runtime_reconcile_time_seconds_count"),
        by_controller(core, "controller_runtime_reconcile_time_seconds_sum"),
        {process.name: cpu(process) for process in processes(running)},
        count('verb="DELETE"', 'resource="modelreplicas"'),
    )


def by_controller(text: str, name: str) -> dict[str, float]:
    """A metric of core's controllers for our kinds."""
    found = re.findall(rf'^{name}\{{controller="([^"]*)".*\}} (\S+)$', text, re.M)
    return {controller: float(value) for controller, value in found if "modelplane.ai" in controller}


def fetch(url: str, token: str = "", authority: Path | None = None) -> str:
    """The text behind a URL on loopback."""
    context = ssl.create_default_context(cafile=str(authority)) if authority else None
    ask = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"} if token else {})
    with urllib.request.urlopen(ask, context=context, timeout=30) as answer:
        return str(answer.read().decode())


def processes(running: ControlPlane) -> list[Process]:
    """What takes part, each a process of its own."""
    return [running.function.servers[0], running.core.process, running.server.api]


def cpu(process: Process) -> float:
    """CPU seconds of a process so far (proc(5), fields 14 and 15 of stat)."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def memory(process: Process, field: str) -> int:
    """Resident memory in MB, now (VmRSS) or at most (VmHWM)."""
    (kilobytes,) = re.findall(
        rf"^{field}:\s+(\d+) kB$", Path(f"/proc/{process.pid}/status").read_text(), re.M
    )
    return int(kilobytes) // 1000


def tell(running: ControlPlane, begun: Reading, now: Reading, when: str) -> None:
    """Say what happened between two readings."""
    say(f"{when}: {now.writes - begun.writes:.0f} API writes, {now.left - begun.left:.0f} replicas deleted")
    for controller, count in sorted(now.reconciles.items()):
        calls = count - begun.reconciles.get(controller, 0)
        seconds = now.seconds[controller] - begun.seconds.get(controller, 0)
        if calls:
            say(f"  {controller}: {calls:.0f} reconciles of {seconds / calls * 1000:.0f} ms on average")
    for process in processes(running):
        used = now.cpu[process.name] - begun.cpu[process.name]
        resident = f"{memory(process, 'VmRSS')} MB, {memory(process, 'VmHWM')} MB at most"
        say(f"  {process.name}: {used:.0f} s of CPU, {resident}")


if __name__ == "__main__":
    sys.exit(main())
