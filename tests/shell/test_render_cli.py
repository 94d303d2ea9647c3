"""`modelplane render` as a user meets it: exit status, where things are said, and no traceback ever."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from fleets import EXAMPLES
from modelplane import contracts as c
from modelplane.cli import main
from modelplane.core import Inputs, paths
from modelplane.kinds.registry import KINDS
from modelplane.render import adapter
from modelplane.render import run as run_module
from modelplane.render.run import Rendering
from modelplane.sim.reconcile import Reply

GATEWAY = (EXAMPLES / "gateway" / "gateway.yaml").read_text()
CLUSTER = EXAMPLES / "dynamo-h200" / "cluster.yaml"
EXISTING = EXAMPLES / "single-gpu"
OBSERVED = f"""\
apiVersion: helm.m.crossplane.io/v1beta1
kind: Release
metadata:
  name: mine
  namespace: modelplane-system
  labels:
    {c.COMPOSITE_LABEL}: default
  annotations:
    {c.RESOURCE_NAME_ANNOTATION}: traefik
spec: {{}}
"""


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("gateway.yaml").write_text(GATEWAY)


def run(*args: str | Path) -> Result:
    result = CliRunner().invoke(main, ["render", *map(str, args)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def process(*args: str | Path, **over: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "modelplane", "render", *map(str, args)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **over,  # type: ignore[call-overload]
    )


@pytest.mark.parametrize(
    ("args", "status", "said", "reason"),
    [
        ([], 2, "Missing argument", "nothing named"),
        ([""], 2, "a path must not be empty", "an unset variable"),
        (["--bogus", "gateway.yaml"], 2, "No such option", "an unknown option"),
        (["gateway.yaml", "-o", "xml"], 2, "'xml' is not one of", "an unknown format"),
        (["none.yaml"], 1, "none.yaml: no such file or folder", "no file"),
        (["gateway.yaml", "--required", "none.yaml"], 1, "none.yaml: no such file", "nothing to read beside"),
        (["gateway.yaml", "--observed", "none.yaml"], 1, "none.yaml: no such file", "nothing observed"),
        (
            ["secret.yaml"],
            1,
            "nothing here that Modelplane composes: it composes InferenceC",
            "only others' kinds",
        ),
        (
            ["gateway.yaml", "--out", "gateway.yaml"],
            1,
            "cannot write gateway.yaml: file exists",
            "out is a file",
        ),
        (
            ["gateway.yaml", "--out", "gateway.yaml/x"],
            1,
            "cannot write gateway.yaml/x: not a dir",
            "out is below one",
        ),
    ],
)
def test_a_fault_ends_with_its_status_and_one_reason(
    args: Sequence[str], status: int, said: str, reason: str
) -> None:
    Path("secret.yaml").write_text("apiVersion: v1\nkind: Secret\nmetadata: {name: x}\n")
    result = run(*args)
    assert (result.exit_code, said in result.stderr) == (status, True), (reason, result.stderr)
    assert result.stdout == "", reason


@pytest.mark.parametrize(
    ("edit", "said", "reason"),
    [
        (("", ""), "", "as Crossplane marks it"),
        ((f"{c.RESOURCE_NAME_ANNOTATION}: traefik", "x: y"), "is required: the key", "no key"),
        (
            (f"{c.COMPOSITE_LABEL}: default", f"{c.COMPOSITE_LABEL}: other"),
            '"other" is none of them',
            "not rendered",
        ),
        ((f"{c.COMPOSITE_LABEL}: default", "a: b"), "", "one composite is rendered: it is meant"),
    ],
)
def test_observed_objects_are_told_by_their_marks(edit: tuple[str, str], said: str, reason: str) -> None:
    Path("observed.yaml").write_text(OBSERVED.replace(*edit) if edit[0] else OBSERVED)
    result = run("gateway.yaml", "--observed", "observed.yaml")
    if said:
        assert result.exit_code == 1, reason
        assert "observed.yaml:" in result.stderr, reason
        assert said in result.stderr, reason
    else:
        assert "traefik: Release" in result.stdout, reason
        assert result.exit_code == 0, reason


@pytest.mark.parametrize(
    ("args", "said", "reason"),
    [
        ([CLUSTER, "--recurse"], ["InferenceClass eks-h200-8x does not exist"], "a class is missing"),
        (
            [EXAMPLES / "qwen3-coder", "--recurse"],
            ["NoClusters", "there is no InferenceCluster"],
            "no cluster",
        ),
        ([CLUSTER, "--required", EXAMPLES / "classes"], ["eks-cluster"], "required is read, not rendered"),
        ([EXISTING, "--recurse"], ["ModelDeployment ml-team/qwen-small  [ready]"], "a cluster that exists"),
    ],
)
def test_the_tree_says_what_comes_next(args: Sequence[str | Path], said: Sequence[str], reason: str) -> None:
    result = run(*args)
    assert [x for x in said if x not in result.stdout] == [], (reason, result.stdout, result.stderr)
    assert result.exit_code == 0, reason


def test_a_source_that_is_not_supported_says_so_and_composes_nothing() -> None:
    spec = {
        "cluster": {"source": "GKE", "gke": {"region": "r"}},
        "nodePools": [{"name": "gpu", "className": "eks-h200-8x", "nodeCount": 1}],
    }
    cluster = {**yaml.safe_load(CLUSTER.read_text()), "spec": spec}
    Path("cluster.yaml").write_text(yaml.safe_dump(cluster))
    result = run("cluster.yaml", "--required", EXAMPLES / "classes", "-o", "json")
    assert (result.exit_code, json.loads(result.stdout)) == (0, []), result.stderr
    assert "SourceNotSupported" in run("cluster.yaml", "--required", EXAMPLES / "classes").stdout


LOADERS = {"json": json.loads, "yaml": lambda text: list(yaml.safe_load_all(text))}


@pytest.mark.parametrize("output", LOADERS)
def test_output_is_parseable_complete_and_the_same_every_time(output: str) -> None:
    found = []
    for seed in ("1", "2"):
        with process(
            "gateway.yaml", "--recurse", "-o", output, env={**os.environ, "PYTHONHASHSEED": seed}
        ) as done:
            found.append(done.communicate())
        assert done.returncode == 0
    assert found[0] == found[1]
    objects = LOADERS[output](found[0][0])
    assert {o["kind"] for o in objects} >= {"Release", "Gateway"}
    assert not [o for o in objects if "status" in o or "uid" in o["metadata"]]


def test_out_holds_each_pass_the_tree_and_the_end_and_no_older_run() -> None:
    out = Path("out/deep")
    out.mkdir(parents=True)
    (out / "pass-99.yaml").write_text("old")
    (out / "mine.txt").write_text("not ours")
    result = run("gateway.yaml", "--recurse", "--out", out)
    names = {f.name for f in out.iterdir()}
    assert result.exit_code == 0
    assert "pass-99.yaml" not in names
    assert names >= {"pass-01.yaml", "tree.txt", "final.yaml", "mine.txt"}
    assert (out / "tree.txt").read_text() == result.stdout
    final = list(yaml.safe_load_all((out / "final.yaml").read_text()))
    assert final == json.loads(run("gateway.yaml", "--recurse", "-o", "json").stdout)


def test_a_brief_render_tells_the_story_and_shows_the_whole_in_numbers() -> None:
    whole = run(EXISTING, "--recurse").stdout.splitlines()
    brief = run(EXISTING, "--recurse", "--brief", "--out", "out").stdout.splitlines()
    story, _, end = "\n".join(brief).partition("at rest after pass ")
    rest = iter(whole)
    assert all(line in rest for line in story.splitlines()), "lines of the whole, in its order"
    assert not [line for line in story.splitlines() if line[0] in "├│└ "], "first lines only"
    assert "InferenceCluster lab  [ready]" in story
    assert re.search(r"^└─ replica-lab-0: ModelReplica .*  \[ready\] \(\d+ below\)$", end, re.MULTILINE)
    assert not [line for line in end.splitlines() if line.startswith(("│", "   "))], "nothing deeper"
    assert Path("out/tree.txt").read_text().splitlines() == whole, "which the folder has"


def test_colour_is_left_out_where_nobody_sees_it() -> None:
    assert "\x1b" not in run("gateway.yaml").stdout


def test_a_reader_that_has_had_enough_is_no_fault() -> None:
    with process(EXISTING, "--recurse") as done:
        assert done.stdout is not None
        assert done.stderr is not None
        done.stdout.readline()
        done.stdout.close()
        assert "Traceback" not in done.stderr.read()


def test_a_full_disk_is_said() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "modelplane", "render", "gateway.yaml"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (
        1,
        "render: cannot write standard output: no space left on device\n",
    )


def test_an_interrupt_that_compiled_code_makes_another_error_of_is_no_fault(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def swallowed(*_: object, **__: object) -> None:
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        raise RuntimeError("ABORTED")

    monkeypatch.setattr(run_module, "rendering", swallowed)
    before = signal.getsignal(signal.SIGINT)
    result = CliRunner().invoke(main, ["render", "gateway.yaml"])
    assert (result.exit_code, result.stderr.strip()) == (1, "Aborted!")
    assert signal.getsignal(signal.SIGINT) is before


def test_an_interrupt_ends_quietly() -> None:
    with process(EXISTING, "--recurse") as done:
        assert done.stdout is not None
        assert done.stderr is not None
        done.stdout.readline()
        time.sleep(0.05)
        done.send_signal(signal.SIGINT)
        done.stdout.read()
        error = done.stderr.read()
    assert "Traceback" not in error
    assert done.returncode in (0, 1), "it may have been done by then"


def test_a_manifest_that_never_settles_is_told_with_what_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    def flapping(inputs: Inputs) -> Reply:
        reply = adapter.function(KINDS)(inputs)
        if reply.answer is None:
            return reply
        ready = not paths.is_true(inputs.composite, "Ready")
        return Reply(reply.requirements, replace(reply.answer, ready=ready, resources={}))

    real = run_module.rendering

    def rendering(*args: Any, **over: Any) -> Rendering:
        found = real(*args, **over)
        found.function = flapping
        return found

    monkeypatch.setattr(run_module, "rendering", rendering)
    result = run("gateway.yaml", "--recurse")
    assert result.exit_code == 1
    assert "render: still changing after" in result.stderr
    assert "statuses only" in result.stderr
