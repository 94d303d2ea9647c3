"""Downloading reviewed CRDs, against a server of our own on loopback."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

import crds

ONE = b"kind: CustomResourceDefinition\nmetadata:\n  name: one\n"
TWO = b"kind: CustomResourceDefinition\nmetadata:\n  name: two\n"
OTHER = b"kind: ServiceAccount\n"
STREAM = b"---\n" + OTHER + b"\n---\n" + ONE + b"\n---\n" + TWO
FILES = {"/org/repo/v1/deploy/one.yaml": ONE, "/org/repo/v1/deploy/all.yaml": STREAM}


class _Server(ThreadingHTTPServer):
    asked: list[str]


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        content = FILES.get(self.path)
        self.send_response(200 if content is not None else 404)
        self.end_headers()
        self.wfile.write(content or b"")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  (the base class's name)
        """Say nothing."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[_Server]:
    found = _Server(("127.0.0.1", 0), _Handler)
    found.asked = []
    thread = threading.Thread(target=found.serve_forever, daemon=True)
    thread.start()
    monkeypatch.setattr(crds, "_HOST", f"http://127.0.0.1:{found.server_address[1]}")
    yield found
    found.shutdown()
    thread.join()
    found.server_close()


def listing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *files: dict[str, object]) -> Path:
    source = {"repository": "org/repo", "ref": "v1", "path": "deploy", "files": list(files)}
    (tmp_path / "crds.yaml").write_text(yaml.safe_dump({"project": source}))
    monkeypatch.setattr(crds, "LISTING", tmp_path / "crds.yaml")
    return tmp_path / "out"


def sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize(
    ("file", "content", "said", "reason"),
    [
        ({"name": "one.yaml", "sha256": sha(ONE)}, ONE, "", "as reviewed"),
        (
            {"name": "two.yaml", "from": "all.yaml", "document": 1, "sha256": sha(TWO)},
            TWO,
            "",
            "one of a stream",
        ),
        (
            {"name": "one.yaml", "sha256": sha(TWO)},
            None,
            "differs from the recorded SHA-256",
            "it has changed",
        ),
        ({"name": "gone.yaml", "sha256": sha(ONE)}, None, "HTTP Error 404", "it has left"),
        (
            {"name": "one.yaml", "ref": "v2", "sha256": sha(ONE)},
            None,
            "/org/repo/v2/deploy/one.yaml",
            "another ref",
        ),
        (
            {"name": "x.yaml", "from": "all.yaml", "document": 7, "sha256": ""},
            None,
            "x.yaml",
            "no such document",
        ),
    ],
)
def test_only_what_was_reviewed_is_written(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    server: _Server,
    file: dict[str, object],
    content: bytes | None,
    said: str,
    reason: str,
) -> None:
    out = listing(tmp_path, monkeypatch, file)
    status = crds.main(out)
    target = out / "project" / str(file["name"])
    assert (target.read_bytes() if target.exists() else None) == content, reason
    error = capsys.readouterr().err
    assert (status, said in error) == (0 if content is not None else 1, True), reason
    assert bool(error) is (content is None), reason


def test_what_is_there_and_right_is_not_fetched_again_and_what_is_wrong_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: _Server
) -> None:
    out = listing(tmp_path, monkeypatch, {"name": "one.yaml", "sha256": sha(ONE)})
    assert crds.main(out) == 0
    assert crds.main(out) == 0
    assert len(server.asked) == 1
    (out / "project" / "one.yaml").write_bytes(b"edited")
    assert crds.main(out) == 0
    assert (out / "project" / "one.yaml").read_bytes() == ONE
    assert len(server.asked) == 2


def test_one_fault_does_not_keep_the_others_from_coming(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: _Server
) -> None:
    gone = {"name": "gone.yaml", "sha256": sha(ONE)}
    out = listing(tmp_path, monkeypatch, gone, {"name": "one.yaml", "sha256": sha(ONE)})
    assert crds.main(out) == 1
    assert [f.name for f in sorted(out.rglob("*.yaml"))] == ["one.yaml"]


def test_a_server_that_is_away_is_a_fault_with_its_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = listing(tmp_path, monkeypatch, {"name": "one.yaml", "sha256": sha(ONE)})
    monkeypatch.setattr(crds, "_HOST", "http://127.0.0.1:9")
    assert crds.main(out) == 1
    assert "http://127.0.0.1:9/org/repo/v1/deploy/one.yaml" in capsys.readouterr().err


def test_every_file_of_the_real_listing_has_a_digest_and_an_address_of_its_own() -> None:
    found = list(crds.wanted())
    assert all(len(str(file["sha256"])) == 64 for _, file, _ in found)
    assert len({name for name, _, _ in found}) == len(found)
    assert all(address.startswith("https://") for _, _, address in found)
