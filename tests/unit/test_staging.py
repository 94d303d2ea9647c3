"""A staging run, here: a hub that is not the real one, and a volume that is a folder."""

from __future__ import annotations

import errno
import json
import ssl
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from builders import staging as s
from modelplane.staging import hub as hubs
from modelplane.staging import main as program
from modelplane.staging import volume as volumes
from modelplane.staging.outcome import HOPELESS, RETRY, STAGED, Failure
from modelplane.staging.report import Report, Watch
from modelplane.staging.volume import Volume


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> s.Hub:
    found = s.Hub()
    s.install(monkeypatch, found)
    return found


def heard(**over: Any) -> s.Heard:
    return s.Heard(**over)


def run(root: Path, report: s.Heard | None = None, **over: str) -> int:
    return program.main(s.env(root, **over), report or heard())


def test_weights_are_staged_in_the_hubs_layout_marked_last_and_pointed_to(hub: s.Hub, tmp_path: Path) -> None:
    report = heard()
    assert run(tmp_path, report, STAGING_REVISION="v1", HF_TOKEN="t") == STAGED
    assert hub.calls == [{"repo_id": "a/b", "revision": "v1", "cache_dir": str(tmp_path), "token": "t"}]
    (marker,) = (tmp_path / ".modelplane").glob("*.json")
    assert json.loads(marker.read_text())["revision"] == s.COMMIT
    assert (tmp_path / "model" / "config.json").read_bytes() == b"{}", "loadable by path as well"
    total = str(sum(map(len, hub.files.values())))
    assert report.last == {
        "state": "Staged",
        "revision": s.COMMIT,
        "bytesDone": total,
        "bytesTotal": total,
    }


def test_a_second_run_finds_the_marker_downloads_nothing_and_reports_again(
    hub: s.Hub, tmp_path: Path
) -> None:
    reports = [heard(), heard()]
    assert [run(tmp_path, report) for report in reports] == [STAGED, STAGED]
    assert len(hub.calls) == 1
    assert hub.calls[0]["revision"] is None, "no revision is the default branch"
    assert hub.calls[0]["token"] is False, "no token asks anonymously"
    assert reports[0].last == reports[1].last


def test_a_run_that_nobody_heard_of_is_not_over(hub: s.Hub, tmp_path: Path) -> None:
    assert run(tmp_path, heard(taken=False)) == RETRY
    assert run(tmp_path) == STAGED
    assert len(hub.calls) == 1


def test_another_revision_is_staged_beside_and_the_link_goes_back_and_forth(
    hub: s.Hub, tmp_path: Path
) -> None:
    run(tmp_path)
    first = (tmp_path / "model").resolve()
    run(tmp_path, STAGING_ID="id2", STAGING_REVISION="v2")
    assert [call["revision"] for call in hub.calls] == [None, "v2"]
    assert first.is_dir()
    run(tmp_path)
    assert len(hub.calls) == 2, "what was staged before is pointed to again"
    assert (tmp_path / "model").resolve() == first


@pytest.mark.parametrize("text", ["", "{", "[]", '{"path": "gone"}', '{"path": 3}', '{"path": "."}'])
def test_a_marker_that_proves_nothing_is_not_believed(hub: s.Hub, tmp_path: Path, text: str) -> None:
    folder = tmp_path / ".modelplane"
    folder.mkdir()
    (folder / "id1.json").write_text(text)
    assert run(tmp_path) == STAGED
    assert len(hub.calls) == 1


def test_a_file_that_differs_from_its_digest_is_fetched_again(hub: s.Hub, tmp_path: Path) -> None:
    """The hub's cache compares sizes only."""
    hub.spoiled = 1
    report = heard()
    assert run(tmp_path, report) == RETRY
    assert report.last["reason"] == "Corrupt"
    assert not list((tmp_path / ".modelplane").glob("*.json"))
    assert run(tmp_path) == STAGED
    assert (tmp_path / "model" / "config.json").read_bytes() == b"{}"


def test_small_files_are_verified_as_git_names_them(tmp_path: Path) -> None:
    good = tmp_path / "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
    good.write_bytes(b"")
    hubs.verify(tmp_path)
    good.write_bytes(b"x")
    with pytest.raises(Failure):
        hubs.verify(tmp_path)
    assert not good.exists()


FAILURES: list[tuple[str, Callable[[], Exception], int, str]] = [
    ("no such repository", lambda: s.Hub.RepositoryNotFoundError("404"), HOPELESS, "NotFound"),
    ("terms not accepted", lambda: s.Hub.GatedRepoError("403"), HOPELESS, "Unauthorized"),
    ("the token is refused", lambda: s.Hub.HfHubHTTPError("x", 401), HOPELESS, "Unauthorized"),
    ("no such revision", lambda: s.Hub.RevisionNotFoundError("404"), HOPELESS, "NotFound"),
    ("no repository id at all", lambda: s.Hub.HFValidationError("bad"), HOPELESS, "Invalid"),
    ("the hub is overloaded", lambda: s.Hub.HfHubHTTPError("x", 503), RETRY, "Unreachable"),
    ("the volume is full", lambda: OSError(errno.ENOSPC, "No space left"), HOPELESS, "NoSpace"),
    ("the quota is used up", lambda: OSError(errno.EDQUOT, "Quota"), HOPELESS, "NoSpace"),
    ("not ours to write", lambda: PermissionError(errno.EACCES, "denied"), HOPELESS, "Failed"),
    ("the hub does not answer", lambda: ConnectionError("reset"), RETRY, "Unreachable"),
    ("the hub answers slowly", lambda: TimeoutError("read"), RETRY, "Unreachable"),
    ("the client breaks", lambda: RuntimeError("https://x/?sig=s3cret"), RETRY, "Failed"),
]


@pytest.mark.parametrize(("reason", "fails", "code", "told"), FAILURES, ids=[f[0] for f in FAILURES])
def test_a_failure_is_told_and_tried_again_only_where_that_can_help(
    hub: s.Hub,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    reason: str,
    fails: Callable[[], Exception],
    code: int,
    told: str,
) -> None:
    hub.fails = fails
    report = heard()
    assert run(tmp_path, report, HF_TOKEN="s3cret") == code, reason
    assert report.last["state"] == "Failed", reason
    assert report.last["reason"] == told, reason
    assert report.last["message"], reason
    assert not list((tmp_path / ".modelplane").glob("*.json")), "no marker without weights"
    out = capsys.readouterr().out
    assert out.strip(), reason
    assert "s3cret" not in out + json.dumps(report.told), reason


@pytest.mark.parametrize("revision", ["../../x", "/etc", "a/../../b"])
def test_a_revision_that_is_a_path_writes_nothing(hub: s.Hub, tmp_path: Path, revision: str) -> None:
    assert run(tmp_path, STAGING_REVISION=revision) == HOPELESS
    assert hub.calls == []


def test_a_volume_that_is_too_small_says_so_before_the_download(
    hub: s.Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = type("Usage", (), {"free": 10})
    monkeypatch.setattr(volumes.shutil, "disk_usage", lambda _: usage)
    report = heard()
    assert run(tmp_path, report) == HOPELESS
    assert report.last["reason"] == "NoSpace"
    assert "raise sizeGiB" in report.last["message"]
    assert hub.calls == []


ESCAPES = ["/etc/passwd", "../x", "a/../../x", "", "a\0b"]


@pytest.mark.parametrize("name", ESCAPES, ids=repr)
def test_no_file_is_placed_outside_the_artifact(tmp_path: Path, name: str) -> None:
    with pytest.raises(Failure):
        Volume(tmp_path, "id1").place(name)


def test_no_file_is_placed_through_a_link(tmp_path: Path) -> None:
    volume = Volume(tmp_path, "id1")
    volume.folder.mkdir(parents=True)
    (volume.folder / "out").symlink_to(tmp_path)
    with pytest.raises(Failure):
        volume.place("out/x")


def test_pruning_keeps_what_engines_use_and_what_is_being_staged(tmp_path: Path) -> None:
    used, staging, old = (Volume(tmp_path, x) for x in ("used", "new", "old"))
    for volume in (used, staging, old):
        volume.folder.mkdir(parents=True)
        volume.scratch.mkdir(parents=True)
    used.finish(used.folder, {"revision": "1"})
    staging.prune()
    assert sorted(x.name for x in used.folder.parent.iterdir()) == ["new", "used"]
    assert [x.name for x in used.scratch.parent.iterdir()] == ["new"]


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
            deadline = time.monotonic() + 10
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
