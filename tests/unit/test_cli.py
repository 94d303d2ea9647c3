"""The commands as a user calls them: exit statuses, formats, and errors that are one line."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
import yaml
from click.testing import CliRunner, Result

from builders.manifests import Manifest, cluster, deployment, gpu_class, member, write
from modelplane import cli

ESCAPE = "\x1b["


def run(*args: object, **env: str) -> Result:
    return CliRunner().invoke(cli.main, [str(a) for a in args], env=env)


@pytest.fixture
def fits(tmp_path: Path) -> Path:
    return write(tmp_path / "fits", gpu_class(), cluster(), deployment())


@pytest.fixture
def full(tmp_path: Path) -> Path:
    return write(tmp_path / "full", gpu_class(), cluster(nodes=1), deployment(replicas=2))


def test_every_command_has_help_and_is_listed() -> None:
    listed = run("--help").output
    for name in cli.main.list_commands(click.Context(cli.main)):  # type: ignore[attr-defined]
        assert f"  {name} " in listed
        found = run(name, "--help")
        assert found.exit_code == 0
        assert "--help" in found.output


ROWS: list[tuple[str, list[str], int]] = [
    ("nothing is wrong", ["validate", "{fits}"], 0),
    ("it has a place", ["plan", "{fits}"], 0),
    ("one has none", ["plan", "{full}"], 1),
    ("nothing differs", ["diff", "{fits}", "{fits}"], 0),
    ("something differs", ["diff", "{fits}", "{full}"], 1),
    ("a picture", ["graph", "{fits}"], 0),
    ("no such file", ["validate", "nowhere.yaml"], 1),
    ("no such file to plan", ["plan", "nowhere.yaml"], 3),
    ("no such file to compare", ["diff", "nowhere.yaml", "{fits}"], 3),
    ("no such file to draw", ["graph", "nowhere.yaml"], 3),
    ("nothing to draw", ["graph", "{classes}"], 3),
    ("nothing named", ["validate"], 2),
    ("an empty variable", ["plan", ""], 2),
    ("neither files nor live", ["graph"], 2),
    ("a release nobody knows", ["diff", "1999.01", "2026.12"], 3),
    ("no deployment to place", ["plan", "{platform}"], 3),
    ("no kubeconfig there", ["status", "--kubeconfig", "nowhere"], 3),
    ("no kubeconfig to plan with", ["plan", "--live", "--kubeconfig", "nowhere", "{fits}"], 3),
    ("a shell nobody knows", ["completion", "csh"], 2),
]


@pytest.mark.parametrize(("reason", "args", "code"), ROWS, ids=[r[0] for r in ROWS])
def test_the_exit_status_says_what_came_of_it(
    tmp_path: Path, fits: Path, full: Path, reason: str, args: list[str], code: int
) -> None:
    platform = write(tmp_path / "platform", gpu_class(), cluster())
    classes = write(tmp_path / "classes", gpu_class())
    found = run(*(a.format(fits=fits, full=full, platform=platform, classes=classes) for a in args))
    assert found.exit_code == code, (reason, found.output)
    assert "Traceback" not in found.output
    assert found.output.strip(), reason


@pytest.mark.parametrize("command", ["validate", "plan"])
@pytest.mark.parametrize("output", ["json", "yaml"])
def test_what_programs_read_is_one_document(fits: Path, command: str, output: str) -> None:
    text = run(command, fits, "-o", output).stdout
    found = json.loads(text) if output == "json" else yaml.safe_load(text)
    assert set(found) == ({"findings", "summary"} if command == "validate" else {"deployments", "capacity"})


def test_a_plan_names_places_and_reasons(full: Path) -> None:
    found = json.loads(run("plan", full, "-o", "json").stdout)
    (answer,) = found["deployments"]
    assert answer["missing"] == 1
    assert [(r["cluster"], r["change"]) for r in answer["replicas"]] == [("north", "new")]
    assert answer["whyNot"][0]["pool"] == "gpu"
    assert found["capacity"][0]["freeAfter"] == 0


def test_somebody_elses_replica_without_a_place_is_no_news_of_these_files(tmp_path: Path) -> None:
    fleet = [gpu_class(), cluster(nodes=1), deployment(member(count=32), name="theirs")]
    there = write(tmp_path / "there", *fleet)
    given = write(tmp_path / "given", deployment(name="ours"))
    found = run("plan", given, "--required", there, "-o", "json")
    assert found.exit_code == 0, "ours has a place"
    assert [a["name"] for a in json.loads(found.stdout)["deployments"]] == ["ours"]
    everything = json.loads(run("plan", given, "--required", there, "--all", "-o", "json").stdout)
    assert [a["missing"] for a in everything["deployments"] if a["name"] == "theirs"] == [1]


def test_a_diff_is_readable_by_programs(fits: Path, full: Path) -> None:
    found = json.loads(run("diff", fits, full, "-o", "json").stdout)
    assert {"cluster", "change", "object"} <= set(found["changes"][0])


def test_warnings_fail_only_where_asked(tmp_path: Path) -> None:
    small = write(tmp_path, gpu_class(disk=50), cluster(), deployment())
    assert run("validate", small).exit_code == 0
    assert run("validate", small, "--strict").exit_code == 1


def test_a_finding_is_told_with_place_reason_and_step(tmp_path: Path) -> None:
    lines = run("validate", write(tmp_path, cluster(class_name="gone"))).stdout.splitlines()
    assert re.fullmatch(
        r".*all\.yaml:\d+: error: InferenceCluster north: spec\.nodePools\[0\]\.className", lines[0]
    )
    assert lines[1] == "  InferenceClass gone does not exist (there are: none)"
    assert lines[2].startswith("  -> create it")
    assert lines[-1] == "1 object judged: 1 error, 0 warnings"


@pytest.mark.parametrize("command", ["validate", "plan"])
def test_piped_output_has_no_colour_and_no_cut_lines(tmp_path: Path, command: str) -> None:
    long = write(tmp_path, gpu_class(), cluster("c" * 40), deployment(name="d" * 40))
    text = run(command, long, COLUMNS="20", NO_COLOR="1").output
    assert ESCAPE not in text
    assert "…" not in text


def test_a_package_that_only_commands_need_is_named_where_it_is_not_installed(
    fits: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "rich.table", None)
    found = run("plan", fits)
    assert found.exit_code == 70
    assert found.stderr == "modelplane: needs the Python package rich.table: pip install 'modelplane[cli]'\n"
    assert run("validate", fits).exit_code == 0, "which needs no table"


def on_a_terminal(*args: object, **env: str) -> str:
    """What a command prints where somebody looks at it."""
    ours, theirs = pty.openpty()
    given = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR")}
    with subprocess.Popen(
        [sys.executable, "-m", "modelplane", *map(str, args)],
        stdout=theirs,
        stderr=theirs,
        env={**given, "TERM": "xterm-256color", **env},
    ):
        os.close(theirs)
        seen = b""
        # A terminal that nobody writes to any more is an error to its reader.
        with contextlib.suppress(OSError):
            while part := os.read(ours, 65536):
                seen += part
    os.close(ours)
    return seen.decode()


@pytest.mark.parametrize(
    ("env", "coloured", "reason"),
    [
        ({}, True, "somebody looks"),
        ({"NO_COLOR": "1"}, False, "who wants none, no-color.org"),
        ({"TERM": "dumb"}, False, "a terminal without colours"),
    ],
)
@pytest.mark.parametrize("command", ["validate", "plan"])
def test_colour_is_for_a_terminal_that_wants_it(
    tmp_path: Path, command: str, env: dict[str, str], coloured: bool, reason: str
) -> None:
    # Nothing of the two has a place, and the class is missing: something red either way.
    text = on_a_terminal(command, write(tmp_path, cluster(class_name="gone"), deployment()), **env)
    assert (re.search(r"\x1b\[[0-9;]*3[123]m", text) is not None) == coloured, (reason, text)


def test_a_fault_of_ours_is_one_line_without_values(fits: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise KeyError("hunter2")

    monkeypatch.setattr("modelplane.review.forecast.forecast", broken)
    found = run("plan", fits)
    assert found.exit_code == 70
    assert "hunter2" not in found.output
    assert found.output.strip().startswith("modelplane: a fault of its own: KeyError at test_cli.py:")
    assert len(found.output.strip().splitlines()) == 1
    assert isinstance(run("plan", fits, MODELPLANE_DEBUG="1").exception, KeyError)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_a_script_of_the_shell(shell: str) -> None:
    assert "_MODELPLANE_COMPLETE" in run("completion", shell).stdout


def test_a_secret_in_a_broken_manifest_is_not_repeated(tmp_path: Path) -> None:
    bad: Manifest = deployment()
    container = bad["spec"]["template"]["spec"]["engines"][0]["members"][0]["template"]["spec"]["containers"][
        0
    ]
    container["env"] = [{"name": "HF_TOKEN", "value": {"token": "hunter2"}}]
    found = run("validate", write(tmp_path, bad))
    assert found.exit_code == 1
    assert "hunter2" not in found.output
