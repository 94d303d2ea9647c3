"""What a control plane that cannot be asked is told as: one line, the next step, nothing secret."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from modelplane import cli

SECRET = "hunter2"
CLOSED = "http://127.0.0.1:1"


def kubeconfig(folder: Path, server: str, user: dict[str, Any] | None = None) -> Path:
    file = folder / "kubeconfig"
    parts = {
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": user or {"token": SECRET}}],
    }
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", "current-context": "here", **parts}))
    return file


def run(*args: object) -> Result:
    return CliRunner().invoke(cli.main, [str(x) for x in args])


@contextmanager
def answering(status: int, body: str) -> Iterator[str]:
    """Serve one answer to everything on loopback."""
    with serving(lambda _: (status, body)) as address:
        yield address


@contextmanager
def serving(answer: Callable[[str], tuple[int, str]]) -> Iterator[str]:
    """Serve on loopback what the function answers to a path."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = answer(self.path)
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def plugin(command: str, *args: str) -> dict[str, Any]:
    version = "client.authentication.k8s.io/v1"
    return {
        "exec": {"apiVersion": version, "command": command, "args": list(args), "interactiveMode": "Never"}
    }


ROWS: list[tuple[str, str, dict[str, Any] | None, str]] = [
    ("nobody listens", CLOSED, None, "does not answer"),
    ("no URL", "notaurl", None, "server notaurl is no URL; it begins with https://"),
    ("a password in the URL", f"http://me:{SECRET}@127.0.0.1:1", None, "127.0.0.1:1 does not answer"),
    ("a plugin that is not installed", CLOSED, plugin("no-such-plugin", SECRET), "credential plugin failed"),
    ("a plugin that fails", CLOSED, plugin("sh", "-c", "exit 3"), "credential plugin failed"),
    ("a plugin that says nonsense", CLOSED, plugin("echo", SECRET), "credential plugin failed"),
]


@pytest.mark.parametrize(("reason", "server", "user", "said"), ROWS, ids=[r[0] for r in ROWS])
def test_a_control_plane_that_cannot_be_reached_is_one_line_with_its_cause(
    tmp_path: Path, reason: str, server: str, user: dict[str, Any] | None, said: str
) -> None:
    found = run("status", "--kubeconfig", kubeconfig(tmp_path, server, user))
    assert found.exit_code == 3, reason
    assert said in found.stderr
    assert len(found.output.splitlines()) == 1, found.output
    assert SECRET not in found.output


ANSWERS: list[tuple[str, int, str, str]] = [
    ("a proxy's login page", 200, "<html>log in</html>", "with what is no list: is it the right context?"),
    ("nothing is served", 404, "{}", "serves none of Modelplane's kinds"),
    ("no credentials", 401, "{}", "answers 401 Unauthorized: check the credentials"),
    ("no rights at all", 403, "{}", "lets this user list nothing of Modelplane"),
    ("it is broken", 500, "{}", "answers 500"),
]


@pytest.mark.parametrize(("reason", "status", "body", "said"), ANSWERS, ids=[r[0] for r in ANSWERS])
def test_an_answer_of_somebody_else_is_never_taken_for_an_empty_fleet(
    tmp_path: Path, reason: str, status: int, body: str, said: str
) -> None:
    with answering(status, body) as server:
        for command in (["status"], ["graph", "--live"]):
            found = run(*command, "--kubeconfig", kubeconfig(tmp_path, server))
            assert (found.exit_code, said in found.stderr) == (3, True), (reason, found.output)


@pytest.mark.parametrize("items", [[], None], ids=["a list", "Go's null"])
def test_an_empty_control_plane_says_that_it_is_empty(tmp_path: Path, items: list[object] | None) -> None:
    with answering(200, json.dumps({"items": items})) as server:
        found = run("status", "--kubeconfig", kubeconfig(tmp_path, server))
    assert found.exit_code == 0
    assert found.stdout == "nothing of Modelplane is there yet\n"


def test_a_watch_outlives_a_control_plane_that_restarts_and_ends_at_ctrl_c(tmp_path: Path) -> None:
    now: dict[str, tuple[int, list[dict[str, Any]]]] = {"is": (200, [])}

    def answer(path: str) -> tuple[int, str]:
        status, items = now["is"]
        return status, json.dumps({"items": items if "inferenceclasses" in path else []})

    with serving(answer) as server:
        given = ["--kubeconfig", str(kubeconfig(tmp_path, server)), "--interval", "0.5"]
        with subprocess.Popen(
            [sys.executable, "-m", "modelplane", "status", "--watch", *given],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as watch:
            assert watch.stdout is not None
            assert watch.stderr is not None
            assert watch.stdout.readline() == "nothing of Modelplane is there yet\n"
            now["is"] = (500, [])
            assert "answers 500" in watch.stderr.readline()
            now["is"] = (200, [{"metadata": {"name": "small"}, "spec": {}}])
            assert watch.stdout.readline() == "---\n"
            assert watch.stdout.readline().startswith("InferenceClass small  [not ready]")
            watch.send_signal(signal.SIGINT)
            assert watch.wait(timeout=30) == 0
            assert "Traceback" not in watch.stderr.read()
