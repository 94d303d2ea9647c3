"""A staging run, here: what is told of it, and a volume that is a folder."""

from __future__ import annotations

import errno
import json
import ssl
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from builders import staging as s
from modelplane.staging import main as program
from modelplane.staging.outcome import HOPELESS, RETRY, STAGED, Failure
from modelplane.staging.report import Report, Watch
from modelplane.staging.volume import Volume


@dataclass
class Source:
    """A source that fails before it stages; what it stages is a folder.

    Attributes:
        fails: what it raises, one a try.
        done: bytes that are there at each failure.
    """

    root: Path
    fails: list[Exception] = field(default_factory=list)
    done: list[int] = field(default_factory=list)
    tries: int = 0

    def progress(self) -> tuple[int, int]:
        return self.done[min(self.tries, len(self.done)) - 1] if self.done and self.tries else 0, 9

    def fetch(self) -> tuple[Path, str]:
        self.tries += 1
        if self.tries <= len(self.fails):
            raise self.fails[self.tries - 1]
        return self.root, "1" * 40


def run(
    root: Path, source: Source, monkeypatch: pytest.MonkeyPatch, *, pauses: tuple[float, ...] = ()
) -> tuple[int, s.Heard]:
    monkeypatch.setitem(program.SOURCES, "HuggingFace", lambda *_: source)  # type: ignore[misc]
    report = s.Heard()
    return program.main(s.env(root), report, pauses), report


FAILURES: list[tuple[str, Exception, int, str]] = [
    ("it says so itself", Failure("NotFound", "none", hopeless=True), HOPELESS, "NotFound"),
    ("it may pass", Failure("Unreachable", "503"), RETRY, "Unreachable"),
    ("the volume is full", OSError(errno.ENOSPC, "No space left"), HOPELESS, "NoSpace"),
    ("the quota is used up", OSError(errno.EDQUOT, "Quota"), HOPELESS, "NoSpace"),
    ("not ours to write", PermissionError(errno.EACCES, "denied"), HOPELESS, "Failed"),
    ("it does not answer", ConnectionError("https://x/?sig=s3cret reset"), RETRY, "Unreachable"),
    ("it answers slowly", TimeoutError("read"), RETRY, "Unreachable"),
    ("the client breaks", RuntimeError("https://x/?sig=s3cret"), RETRY, "Failed"),
]


@pytest.mark.parametrize(("reason", "error", "code", "told"), FAILURES, ids=[f[0] for f in FAILURES])
def test_a_failure_is_told_and_tried_again_only_where_that_can_help(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    reason: str,
    error: Exception,
    code: int,
    told: str,
) -> None:
    found, report = run(tmp_path, Source(tmp_path, [error]), monkeypatch)
    assert found == code, reason
    assert report.last["state"] == "Failed", reason
    assert report.last["reason"] == told, reason
    assert report.last["message"], reason
    assert not list((tmp_path / ".modelplane").glob("*.json")), "no marker without weights"
    out = capsys.readouterr().out
    assert out.strip(), reason
    assert "s3cret" not in out + json.dumps(report.told), reason


LINE = Failure("Unreachable", "cut")
TRIES: list[tuple[str, list[Exception], list[int], int, int]] = [
    ("a line that breaks is gone on with in the same pod", [ConnectionError(), LINE], [], STAGED, 3),
    ("not for ever", [LINE] * 4, [], RETRY, 3),
    ("as long as bytes come it goes on", [LINE] * 5, [1, 2, 3, 4, 5], STAGED, 6),
    ("bytes that are fetched again are none that came", [LINE] * 5, [5, 1, 2, 3, 4], RETRY, 3),
    ("what differs is left to the next pod", [Failure("Corrupt", "x")], [], RETRY, 1),
    ("what no try can mend is not tried", [Failure("NoSpace", "x", hopeless=True)], [], HOPELESS, 1),
]


@pytest.mark.parametrize(("reason", "fails", "done", "code", "tries"), TRIES, ids=[t[0] for t in TRIES])
def test_one_pod_is_patient_with_a_source_that_does_not_answer(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    reason: str,
    fails: list[Exception],
    done: list[int],
    code: int,
    tries: int,
) -> None:
    """A Job has few pods, and a first failure of one used up a quarter of them."""
    source = Source(tmp_path, fails, done)
    found, _ = run(tmp_path, source, monkeypatch, pauses=(0.0, 0.0))
    assert (found, source.tries) == (code, tries), reason


@pytest.mark.parametrize("text", ["", "{", "[]", '{"path": "gone"}', '{"path": 3}', '{"path": "."}'])
def test_a_marker_that_proves_nothing_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    folder = tmp_path / ".modelplane"
    folder.mkdir()
    (folder / "id1.json").write_text(text)
    source = Source(tmp_path)
    assert run(tmp_path, source, monkeypatch)[0] == STAGED
    assert source.tries == 1


ESCAPES = ["/etc/passwd", "../x", "a/../../x", "", "a\0b"]


@pytest.mark.parametrize("name", ESCAPES, ids=repr)
def test_no_file_is_placed_outside_the_artifact(tmp_path: Path, name: str) -> None:
    with pytest.raises(Failure):
        Volume(tmp_path, "id1").place(name)


@pytest.mark.parametrize(
    ("reason", "target"),
    [
        ("above the artifact", "../../.."),
        ("a neighbour whose name begins with the artifact's: a path is no text", "../id10"),
    ],
    ids=["above", "neighbour"],
)
def test_no_file_is_placed_through_a_link(tmp_path: Path, reason: str, target: str) -> None:
    volume, neighbour = Volume(tmp_path, "id1"), Volume(tmp_path, "id10")
    volume.folder.mkdir(parents=True)
    neighbour.folder.mkdir()
    (volume.folder / "out").symlink_to(target)
    with pytest.raises(Failure):
        volume.place("out/x")
    assert not list(neighbour.folder.iterdir()), reason


def test_a_file_is_placed_through_a_link_that_stays_inside(tmp_path: Path) -> None:
    volume = Volume(tmp_path, "id1")
    (volume.folder / "real").mkdir(parents=True)
    (volume.folder / "alias").symlink_to("real")
    assert volume.place("alias/x").resolve() == (volume.folder / "real" / "x").resolve()


def test_pruning_keeps_what_engines_use_and_what_is_being_staged(tmp_path: Path) -> None:
    used, staging, old = (Volume(tmp_path, x) for x in ("used", "new", "old"))
    for volume in (used, staging, old):
        volume.folder.mkdir(parents=True)
        volume.scratch.mkdir(parents=True)
    used.finish(used.folder, {"revision": "1"})
    staging.prune()
    assert sorted(x.name for x in used.folder.parent.iterdir()) == ["new", "used"]
    assert [x.name for x in used.scratch.parent.iterdir()] == ["new"]


@pytest.mark.parametrize(
    ("whole", "left", "reason"),
    [
        (False, ["new"], "nothing was ever whole: what a wrong source left makes room for the right one"),
        (True, ["new", "old"], "one is whole, and the link that says whether it is in use is lost"),
    ],
    ids=["never-whole", "link-lost"],
)
def test_pruning_drops_nothing_on_doubt(tmp_path: Path, whole: bool, left: list[str], reason: str) -> None:
    old, new = Volume(tmp_path, "old"), Volume(tmp_path, "new")
    for volume in (old, new):
        volume.folder.mkdir(parents=True)
    if whole:
        old.finish(old.folder, {"revision": "1"})
        (tmp_path / "model").unlink()
    new.prune()
    assert sorted(x.name for x in new.folder.parent.iterdir()) == left, reason


class Api(HTTPServer):
    """An API server that takes one kind of request."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Patch)
        self.seen: list[tuple[str, str, dict[str, Any]]] = []
        self.code = 200


class _Patch(BaseHTTPRequestHandler):
    server: Api

    def do_PATCH(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.seen.append((self.path, self.headers["Authorization"], body))
        self.send_response(self.server.code)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        return


def test_a_report_patches_its_own_config_map_and_says_whether_it_was_taken(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("tok\n")
    api = Api()
    thread = threading.Thread(target=api.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        report = Report(f"http://127.0.0.1:{api.server_address[1]}/cm", "id1", tmp_path)
        assert report.write("Failed", reason="NoSpace", message="full") is True
        assert report.write("Running", bytesDone="1") is True
        api.code = 403
        assert report.write("Staged") is False
        with Watch(report, lambda: (3, 7), lambda: None, seconds=60):
            pass
    finally:
        api.shutdown()
        api.server_close()
        thread.join()
    assert {(path, login) for path, login, _ in api.seen} == {("/cm", "Bearer tok")}
    assert api.seen[0][2] == {
        "data": {"id": "id1", "state": "Failed", "reason": "NoSpace", "message": "full"}
    }
    assert api.seen[1][2]["data"]["reason"] is None, "an earlier failure is over"
    assert api.seen[3][2]["data"]["bytesTotal"] == "7"
    assert report.write("Staged") is False, "a server that is gone stops nothing"
    assert report.unwanted is False


@pytest.mark.parametrize(
    ("codes", "ends", "reason"),
    [
        ([404] * 3, True, "the ConfigMap went with its cache"),
        ([403, 401, 404], True, "rights, account and ConfigMap went one after the other"),
        ([404, 404, 200, 404], False, "it was only being made"),
        ([500] * 5, False, "the server has trouble of its own"),
    ],
    ids=lambda x: x if isinstance(x, str) else None,
)
def test_a_run_ends_itself_once_nobody_waits_for_it(
    codes: list[int], ends: bool, reason: str, tmp_path: Path
) -> None:
    """C63: what a deleted cache's Job holds is released in minutes, not when hours of download are over."""
    (tmp_path / "token").write_text("tok")
    api = Api()
    thread = threading.Thread(target=api.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    left = list(codes)
    ended = threading.Event()

    def progress() -> tuple[int, int]:
        api.code = left.pop(0) if left else 200
        return 0, 0

    try:
        report = Report(f"http://127.0.0.1:{api.server_address[1]}/cm", "id1", tmp_path)
        with Watch(report, progress, ended.set, seconds=0.01):
            deadline = time.monotonic() + 60
            while len(api.seen) <= len(codes) and not ended.is_set() and time.monotonic() < deadline:
                time.sleep(0.01)
    finally:
        api.shutdown()
        api.server_close()
        thread.join()
    assert ended.is_set() is ends, reason


def test_the_report_is_found_from_what_every_pod_has(tmp_path: Path) -> None:
    (tmp_path / "namespace").write_text("mp-lab-1\n")
    env = {
        "KUBERNETES_SERVICE_HOST": "fd00::1",
        "KUBERNETES_SERVICE_PORT": "443",
        "STAGING_REPORT": "r",
        "STAGING_ID": "id1",
    }
    report = Report.of(env, tmp_path)
    assert report._url == "https://[fd00::1]:443/api/v1/namespaces/mp-lab-1/configmaps/r"
    with pytest.raises((OSError, ssl.SSLError)):
        report._context()
