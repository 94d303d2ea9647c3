"""One contract on both stacks: what every pod of a gang sees after kubelet has expanded its environment.

Each controller's own variables are played as it writes them, in its order, before the template's: LWS
(pkg/utils/pod AddLWSVariables, v0.10.0) and Grove (operator, from v0.1.0-alpha.12; the group's pod index from
alpha.14-rc1).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pytest

from builders import replicas as r
from modelplane.core import Manifest

# What stands between `$(` and the next `)` is the name, whatever it is; `$$` is one dollar; any other stays.
_OPERATOR = re.compile(r"\$(?:(\$)|\(([^)]*)\))")


def expand(text: str, known: Mapping[str, str]) -> str:
    """Expand as kubelet does (Kubernetes, third_party/forked/golang/expansion): an unknown name stays."""
    return _OPERATOR.sub(lambda found: "$" if found[1] else known.get(found[2], found[0]), text)


@pytest.mark.parametrize(
    ("text", "want", "reason"),
    [
        ("$(A)-$(B)", "1-$(B)", "an unknown name stays"),
        ("$$(A)", "$(A)", "escaped"),
        ("$$$(A)", "$1", "an escape, then a reference"),
        ("$((A + 1))", "$((A + 1))", "arithmetic is an unknown name to kubelet"),
        ("$$((A + 1))", "$((A + 1))", "and v0.4's guides escape it"),
        ("$A ${A} $", "$A ${A} $", "the shell's own"),
        ("$(A", "$(A", "never closed"),
    ],
)
def test_the_played_expansion_is_kubelets(text: str, want: str, reason: str) -> None:
    assert expand(text, {"A": "1"}) == want, reason


@dataclass(frozen=True)
class Pod:
    """A running pod: its address, whether it leads, its engine's variables and words, and all containers'."""

    address: str
    leads: bool
    copy: int
    env: Mapping[str, str]
    words: tuple[str, ...]
    containers: Mapping[str, tuple[str, ...]]


def _pod(template: Manifest, injected: Mapping[str, str], address: str, leads: bool, copy: int) -> Pod:
    """Both controllers write their variables into init containers and sidecars too."""
    spec = template["spec"]
    started = {
        x["name"]: _started(x, injected) for x in (*spec.get("initContainers", ()), *spec["containers"])
    }
    known, words = started[r.engine_container(template)["name"]]
    return Pod(address, leads, copy, known, words, {name: found for name, (_, found) in started.items()})


def _started(container: Manifest, injected: Mapping[str, str]) -> tuple[dict[str, str], tuple[str, ...]]:
    known = dict(injected)
    for entry in container.get("env", []):
        if entry["name"] in injected:
            continue
        if "value" in entry:
            known[entry["name"]] = expand(entry["value"], known)
    words = (*container.get("command", []), *container.get("args", []))
    return known, tuple(expand(word, known) for word in words)


def lws_pods(manifest: Manifest) -> Iterator[Pod]:
    name, space = manifest["metadata"]["name"], manifest["metadata"]["namespace"]
    size = manifest["spec"]["leaderWorkerTemplate"]["size"]
    templates = r.pods(manifest)
    for group in range(manifest["spec"]["replicas"]):
        leader = f"{name}-{group}.{name}.{space}"
        for index in range(size):
            injected = {
                "LWS_LEADER_ADDRESS": leader,
                "LWS_GROUP_SIZE": str(size),
                "LWS_WORKER_INDEX": str(index),
            }
            address = leader if index == 0 else f"{name}-{group}-{index}.{name}.{space}"
            yield _pod(templates["leader" if index == 0 else "worker"], injected, address, index == 0, group)


def grove_pods(manifest: Manifest) -> Iterator[Pod]:
    pcs, space = manifest["metadata"]["name"], manifest["metadata"]["namespace"]
    template = manifest["spec"]["template"]
    cliques = {q["name"]: q for q in template["cliques"]}
    copy = 0
    for i in range(manifest["spec"]["replicas"]):
        for group in template["podCliqueScalingGroups"]:
            total = sum(cliques[q]["spec"]["replicas"] for q in group["cliqueNames"])
            for j in range(group["replicas"]):
                index = 0
                for clique in group["cliqueNames"]:
                    for k in range(cliques[clique]["spec"]["replicas"]):
                        service = f"{pcs}-{i}.{space}.svc.cluster.local"
                        pclq = f"{pcs}-{i}-{group['name']}-{j}-{clique}"
                        injected = {
                            "GROVE_PCS_NAME": pcs,
                            "GROVE_PCS_INDEX": str(i),
                            "GROVE_PCLQ_NAME": pclq,
                            "GROVE_HEADLESS_SERVICE": service,
                            "GROVE_PCLQ_POD_INDEX": str(k),
                            "GROVE_PCSG_POD_INDEX": str(index),
                            "GROVE_PCSG_NAME": f"{pcs}-{i}-{group['name']}",
                            "GROVE_PCSG_TEMPLATE_NUM_PODS": str(total),
                            "GROVE_PCSG_INDEX": str(j),
                        }
                        pod = r.pods(manifest)[clique]
                        yield _pod(pod, injected, f"{pclq}-{k}.{service}", index == 0, copy)
                        index += 1
                copy += 1


PLAY = {"Standard": lws_pods, "Dynamo": grove_pods}
COMMAND = [
    "/bin/sh",
    "-c",
    "serve --rank=$(MODELPLANE_RANK) --nnodes=$(MODELPLANE_GANG_SIZE) --head=$(MODELPLANE_LEADER_ADDRESS)",
]


def _play(stack: str, composite: Manifest) -> list[Pod]:
    given, _ = r.settled(composite, r.cluster(stack=stack), r.cache())
    return [pod for manifest in r.workloads(given).values() for pod in PLAY[stack](manifest)]


@pytest.mark.parametrize("stack", PLAY)
@pytest.mark.parametrize(
    ("workers", "copies", "reason"),
    [
        (1, 1, "two nodes: the worker's rank is a literal on Grove"),
        (1, 3, "copies never share a leader"),
        (3, 1, "case C30: a worker template fans out to several ranks"),
        (3, 3, "four nodes, three copies"),
        (63, 2, "the largest gang"),
    ],
)
def test_every_pod_of_a_copy_knows_its_own_rank_and_one_leader(
    stack: str, workers: int, copies: int, reason: str
) -> None:
    engine = r.container(command=COMMAND)
    gang = r.gang(workers=workers, copies=copies, leader={"engine": engine}, worker={"engine": engine})
    pods = _play(stack, r.replica(gang))
    assert len(pods) == copies * (workers + 1), reason
    for copy in range(copies):
        members = [p for p in pods if p.copy == copy]
        (leader,) = [p for p in members if p.leads]
        assert {p.env["MODELPLANE_LEADER_ADDRESS"] for p in members} == {leader.address}, reason
        assert sorted(int(p.env["MODELPLANE_RANK"]) for p in members) == list(range(workers + 1)), reason
        assert leader.env["MODELPLANE_RANK"] == "0", reason
        assert {p.env["MODELPLANE_GANG_SIZE"] for p in members} == {str(workers + 1)}, reason
        assert not any("$(" in word for p in members for word in p.words), reason


@pytest.mark.parametrize("stack", PLAY)
def test_what_runs_beside_an_engine_knows_its_rank_too(stack: str) -> None:
    beside = {
        "engine": r.container(command=COMMAND),
        "sidecars": [r.container("watcher", command=COMMAND)],
        "initContainers": [r.container("fetcher", command=COMMAND)],
    }
    pods = _play(stack, r.replica(r.gang(workers=3, copies=2, leader=beside, worker=beside)))
    assert len(pods) == 8
    for pod in pods:
        assert {pod.containers[name] for name in ("watcher", "fetcher")} == {pod.words}


@pytest.mark.parametrize(("workers", "copies"), [(1, 1), (3, 2)])
def test_the_same_command_means_the_same_on_both_stacks(workers: int, copies: int) -> None:
    engine = r.container(command=COMMAND)
    gang = r.gang(workers=workers, copies=copies, leader={"engine": engine}, worker={"engine": engine})

    def seen(stack: str) -> list[tuple[int, bool, str, str]]:
        pods = _play(stack, r.replica(gang))
        return sorted(
            (p.copy, p.leads, p.words[-1].replace(leader(p, pods), "LEADER"), p.env["MODELPLANE_RANK"])
            for p in pods
        )

    def leader(pod: Pod, pods: list[Pod]) -> str:
        return next(p.address for p in pods if p.copy == pod.copy and p.leads)

    assert seen("Standard") == seen("Dynamo")


@pytest.mark.parametrize(
    ("stack", "leader", "worker", "reason"),
    [
        (
            "Standard",
            "serve --rank $(LWS_WORKER_INDEX) --of $(LWS_GROUP_SIZE) --head $(LWS_LEADER_ADDRESS)",
            "serve --rank $(LWS_WORKER_INDEX) --of $(LWS_GROUP_SIZE) --head $(LWS_LEADER_ADDRESS)",
            "LWS's own names in a v0.4 command",
        ),
        (
            "Dynamo",
            "serve --rank 0 --head $(MODELPLANE_LEADER_ADDRESS)",
            "serve --rank $((GROVE_PCLQ_POD_INDEX + 1)) --head $(MODELPLANE_LEADER_ADDRESS)",
            "v0.4's rank by arithmetic in the worker's own shell",
        ),
        (
            "Dynamo",
            "serve --rank 0 --head $(MODELPLANE_LEADER_ADDRESS)",
            "serve --rank $$((GROVE_PCLQ_POD_INDEX + 1)) --head $(MODELPLANE_LEADER_ADDRESS)",
            "escaped as v0.4's guide escapes it",
        ),
        (
            "Dynamo",
            "serve --rank 0 --head $(GROVE_PCSG_NAME)-$(GROVE_PCSG_INDEX)-leader-0.$(GROVE_HEADLESS_SERVICE)",
            "serve --rank $$((GROVE_PCLQ_POD_INDEX + 1)) "
            "--head $(GROVE_PCSG_NAME)-$(GROVE_PCSG_INDEX)-leader-0.$(GROVE_HEADLESS_SERVICE)",
            "the address spelled out by Grove's own names",
        ),
    ],
)
def test_commands_written_for_v0_4_still_work(stack: str, leader: str, worker: str, reason: str) -> None:
    def args(text: str) -> Manifest:
        return {"engine": r.container(command=["/bin/sh", "-c", text])}

    pods = _play(stack, r.replica(r.gang(workers=3, leader=args(leader), worker=args(worker))))
    head = next(p.address for p in pods if p.leads)
    ranks = []
    for pod in pods:
        text = re.sub(r"\$\(\((\w+) \+ 1\)\)", lambda m, env=pod.env: str(int(env[m[1]]) + 1), pod.words[-1])
        assert text.endswith(f"--head {head}"), reason
        ranks.append(text.split("--rank ")[1].split()[0])
    assert sorted(ranks) == ["0", "1", "2", "3"], reason


@pytest.mark.parametrize("stack", PLAY)
def test_a_single_pod_gets_none_of_the_contract(stack: str) -> None:
    """Case C30: there is no gang to tell of."""
    given = r.answer(r.replica(), r.cluster(stack=stack), observed=_templates(stack))
    env = r.env_of(r.pods(r.workload(given))["standalone"])
    assert [n for n in env if n.startswith("MODELPLANE_")] == []


def _templates(stack: str) -> dict[str, Manifest]:
    return r.settled(r.replica(), r.cluster(stack=stack))[1]


@pytest.mark.parametrize("gangs", [False, True])
def test_a_pair_on_dynamo_gives_each_engine_its_own_leader(gangs: bool) -> None:
    composite = r.split(gangs=gangs, copies=2) if not gangs else r.split(gangs=True, workers=2, copies=2)
    pods = _play("Dynamo", composite)
    assert len(pods) == (12 if gangs else 4)
    if not gangs:
        assert all("MODELPLANE_LEADER_ADDRESS" not in p.env for p in pods)
        return
    for copy in range(4):
        members = [p for p in pods if p.copy == copy]
        (leader,) = [p for p in members if p.leads]
        assert {p.env["MODELPLANE_LEADER_ADDRESS"] for p in members} == {leader.address}
        assert sorted(p.env["MODELPLANE_RANK"] for p in members) == ["0", "1", "2"]
