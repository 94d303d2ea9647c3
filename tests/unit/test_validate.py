"""What `modelplane validate` finds, beyond what the API server would."""

from __future__ import annotations

from pathlib import Path

import pytest

import fleets
from builders.manifests import (
    Manifest,
    cache,
    cluster,
    deployment,
    existing,
    front_door,
    gpu_class,
    member,
    service,
    write,
)
from modelplane.review.finding import ERROR, NOTE, WARNING, Finding
from modelplane.review.validate import validate

L4, NORTH = gpu_class(), cluster()
GROVE = "--node-rank=$(GROVE_PCLQ_POD_INDEX)"
LWS = "--node-rank=$(LWS_WORKER_INDEX)"


def found(tmp_path: Path, *manifests: Manifest) -> list[Finding]:
    return validate([write(tmp_path, *manifests)])[0]


@pytest.mark.parametrize("example", fleets.FOLDERS)
def test_examples_have_no_errors_or_warnings(example: str) -> None:
    findings, number = validate([fleets.EXAMPLES / example])
    assert number > 0
    assert [str(x) for x in findings if x.severity != NOTE] == []


WRONG = [
    ("a pool names a class that is nowhere", [NORTH], ERROR, "class-missing", "spec.nodePools[0].className"),
    (
        "no device has so much memory",
        [L4, NORTH, deployment(member(cel=member.__kwdefaults__["cel"].replace("20Gi", "80Gi")))],
        ERROR,
        "selector",
        "spec.template.spec.engines[0].members[0].nodeSelector.devices[0]",
    ),
    (
        "the selector is no CEL",
        [L4, NORTH, deployment(member(cel="device.nope("))],
        ERROR,
        "selector",
        "spec.template.spec.engines[0].members[0].nodeSelector.devices[0].selectors[0].cel",
    ),
    (
        "two L4 on a node that has one",
        [L4, NORTH, deployment(member(count=2))],
        ERROR,
        "selector",
        "spec.template.spec.engines[0].members[0].nodeSelector.devices[0].count",
    ),
    (
        "the cache is a typo",
        [L4, NORTH, deployment(cache="gwen"), cache()],
        ERROR,
        "cache-missing",
        "spec.template.spec.modelCacheRef.name",
    ),
    (
        "cache and model ask for different values of one label",
        [L4, NORTH, deployment(cache="qwen", labels={"tier": "a"}), cache(labels={"tier": "b"})],
        ERROR,
        "cache-footprint",
        "spec.template.spec.modelCacheRef.name",
    ),
    (
        "the cluster has no storage class for caches",
        [L4, existing(storage_class=""), deployment(cache="qwen"), cache()],
        ERROR,
        "cache-footprint",
        "spec.template.spec.modelCacheRef.name",
    ),
    (
        "14B at two bytes in 20 GiB",
        [L4, NORTH, cache(repo="Qwen/Qwen2.5-14B-Instruct", size=20)],
        WARNING,
        "weights-cache",
        "spec.huggingFace.sizeGiB",
    ),
    (
        "14B at two bytes on one L4, the model in the command",
        [L4, NORTH, deployment(member(command="vllm serve Qwen/Qwen2.5-14B-Instruct"))],
        WARNING,
        "weights-memory",
        "spec.template.spec.engines[0]",
    ),
    (
        "50 GB hold the engine's image packed or unpacked, not both",
        [gpu_class(disk=50), NORTH, deployment()],
        WARNING,
        "root-disk",
        "spec.provisioning.eks.diskSizeGb",
    ),
    (
        "Grove's index on a Standard cluster",
        [L4, cluster(stack="Standard"), deployment(member("Leader"), member("Worker", command=GROVE))],
        ERROR,
        "rank",
        "spec.template.spec.engines[0].members[1].template.spec.containers[0].command[2]",
    ),
    (
        "LWS's index where the deployment may land on both stacks",
        [
            L4,
            NORTH,
            cluster("south", stack="Standard"),
            deployment(member("Leader"), member("Worker", command=LWS)),
        ],
        WARNING,
        "rank",
        "spec.template.spec.engines[0].members[1].template.spec.containers[0].command[2]",
    ),
    (
        "three workers with one literal rank",
        [
            L4,
            cluster(nodes=4),
            deployment(member("Leader"), member("Worker", command="--node-rank=1", workers=3)),
        ],
        ERROR,
        "rank",
        "spec.template.spec.engines[0].members[1].template.spec.containers[0].command[2]",
    ),
    (
        "a gang of four on two nodes",
        [L4, NORTH, deployment(member("Leader"), member("Worker", workers=3))],
        ERROR,
        "no-place",
        "spec.template.spec",
    ),
    (
        "a taint that nothing tolerates",
        [L4, cluster(taints=[{"key": "lab", "effect": "NoSchedule"}]), deployment()],
        ERROR,
        "no-place",
        "spec.template.spec",
    ),
    (
        "a service of a deployment that is nowhere",
        [service(**{"modelplane.ai/deployment": "gone"})],
        WARNING,
        "no-endpoint",
        "spec.endpoints[0].selector",
    ),
    (
        "a cache for clusters that nobody has",
        [L4, NORTH, cache(labels={"a": "b"})],
        WARNING,
        "no-place",
        "spec.clusterSelector",
    ),
]


@pytest.mark.parametrize(
    ("reason", "manifests", "severity", "check", "field"), WRONG, ids=[r[0] for r in WRONG]
)
def test_what_cannot_work_is_found_at_its_field(
    tmp_path: Path, reason: str, manifests: list[Manifest], severity: str, check: str, field: str
) -> None:
    findings = [x for x in found(tmp_path, *manifests) if x.check == check]
    assert [(x.severity, x.field) for x in findings] == [(severity, field)], reason
    (finding,) = findings
    assert finding.file.endswith("all.yaml")
    assert finding.line > 0
    assert finding.reason
    assert finding.step


RIGHT = [
    (
        "the model fits, the cache is staged there",
        [front_door(), L4, NORTH, deployment(cache="qwen"), cache(), service()],
    ),
    (
        "a literal rank where there is one worker",
        [L4, NORTH, deployment(member("Leader"), member("Worker", command="--node-rank=1"))],
    ),
    (
        "one stack's variable where no other stack can be meant",
        [L4, NORTH, deployment(member("Leader"), member("Worker", command=GROVE))],
    ),
    (
        "an image nobody measured",
        [gpu_class(disk=30), NORTH, deployment(member(image="example.org/engine:1"))],
    ),
    (
        "a name that does not tell its size",
        [L4, NORTH, deployment(member(command="vllm serve a/Mixtral-8x7B"))],
    ),
    (
        "four bits a parameter",
        [L4, NORTH, deployment(member(command="vllm serve Qwen/Qwen2.5-32B-Instruct-AWQ"))],
    ),
    ("parked: it has a place when it comes back", [L4, NORTH, deployment(replicas=0)]),
]


@pytest.mark.parametrize(("reason", "manifests"), RIGHT, ids=[r[0] for r in RIGHT])
def test_what_can_work_passes(tmp_path: Path, reason: str, manifests: list[Manifest]) -> None:
    assert [str(x) for x in found(tmp_path, *manifests)] == [], reason


def test_what_is_there_already_is_read_and_not_judged(tmp_path: Path) -> None:
    platform = write(tmp_path / "platform", gpu_class(disk=50), NORTH, cluster("broken", class_name="gone"))
    model = write(tmp_path / "model", deployment())
    findings, number = validate([model], [platform])
    assert number == 1
    assert {x.check for x in findings} == {"root-disk"}
    assert all("model" in x.file for x in findings)


def test_what_is_not_looked_at_is_said(tmp_path: Path) -> None:
    assert {x.severity for x in found(tmp_path, deployment())} == {NOTE}


@pytest.mark.parametrize(
    ("doors", "said", "reason"),
    [
        ([], True, "no door at all"),
        ([front_door("other")], True, "services look for the one of that name"),
        ([front_door()], False, "it is there"),
    ],
)
def test_a_service_without_a_front_door_is_told_that_it_has_no_url(
    tmp_path: Path, doors: list[Manifest], said: bool, reason: str
) -> None:
    notes = [x.reason for x in found(tmp_path, L4, NORTH, deployment(), service(), *doors)]
    assert any("no service has a URL" in x for x in notes) == said, (reason, notes)


def test_admission_ends_it_with_file_and_line(tmp_path: Path) -> None:
    bad = deployment()
    bad["spec"]["replicas"] = 65
    (finding,) = found(tmp_path, bad, NORTH)
    assert (finding.severity, finding.check) == (ERROR, "admission")
    assert finding.line == 7
    assert (finding.object, finding.field) == ("ModelDeployment ml-team/qwen", "spec.replicas")
