"""A hub on loopback that answers the real client, huggingface_hub, as huggingface.co does.

Headers and codes are those that the client reads (huggingface_hub 0.32.4: utils/_http.py hf_raise_for_status,
file_download.py get_hf_file_metadata): large files are named by their SHA-256 and lie at another host.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

import pytest
from huggingface_hub import constants, file_download
from huggingface_hub.utils import disable_progress_bars
from huggingface_hub.utils._http import reset_sessions

REPO = "lab/small"
FIRST, SECOND = "a" * 40, "b" * 40
WEIGHTS = bytes(range(256)) * 64
_LARGE = 1024


def large(data: bytes) -> str:
    """The name of a large file."""
    return hashlib.sha256(data).hexdigest()


def small(data: bytes) -> str:
    """The name that git gives a file."""
    return hashlib.sha1(f"blob {len(data)}\0".encode() + data, usedforsecurity=False).hexdigest()


def files(config: bytes = b"{}") -> dict[str, bytes]:
    """A revision's files."""
    return {"config.json": config, "sub/tokenizer.json": b"[1]", "model.safetensors": WEIGHTS}


@dataclass
class Refusal:
    """An answer to the next requests of a kind, in place of the proper one.

    Attributes:
        method: of the request.
        path: it begins with.
        code: of the answer.
        kind: X-Error-Code, which the client goes by.
        passes: how many such requests are answered properly before.
        times: how many are refused.
        text: X-Error-Message.
    """

    method: str
    path: str
    code: int
    kind: str = ""
    passes: int = 0
    times: int = 99
    text: str = ""


@dataclass
class Hub:
    """A hub with one repository.

    Attributes:
        branches: commits by name.
        commits: files by commit.
        token: that it wants; empty lets everybody read.
        gated: whether anybody may look it up, and only the token read its files.
        former: a name that it had.
        refusals: of requests.
        spoiled: bodies that go out in place of a file's, once, by the file's digest.
        cut: bytes after which a body ends, once, by the file's digest.
        after: called when a look-up was answered.
        asked: method, path, Range and Authorization of each request.
    """

    branches: dict[str, str] = field(default_factory=lambda: {"main": FIRST, "v1": SECOND})
    commits: dict[str, dict[str, bytes]] = field(
        default_factory=lambda: {FIRST: files(), SECOND: files(b'{"v": 1}')}
    )
    token: str = ""
    gated: bool = False
    former: str = ""
    refusals: list[Refusal] = field(default_factory=list)
    spoiled: dict[str, bytes] = field(default_factory=dict)
    cut: dict[str, int] = field(default_factory=dict)
    after: Callable[[], None] = lambda: None
    asked: list[tuple[str, str, str, str]] = field(default_factory=list)
    port: int = 0

    @property
    def ranges(self) -> list[str]:
        """The ranges that were asked for."""
        return [x[2] for x in self.asked if x[2]]

    def refused(self, method: str, path: str) -> Refusal | None:
        """Return what refuses a request now."""
        for refusal in self.refusals:
            if refusal.method != method or not path.startswith(refusal.path):
                continue
            if refusal.passes:
                refusal.passes -= 1
            elif refusal.times:
                refusal.times -= 1
                return refusal
        return None


@contextlib.contextmanager
def serving(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """Run a hub, and let the client take it for the real one."""

    class Handler(_Handler):
        served = hub

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hub.port = http.server_address[1]
    url = f"http://127.0.0.1:{hub.port}"
    monkeypatch.setattr(constants, "ENDPOINT", url)
    template = f"{url}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
    monkeypatch.setattr(file_download, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    disable_progress_bars()
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        reset_sessions()
        http.shutdown()
        http.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    served: Hub

    def do_GET(self) -> None:
        hub, path = self.served, unquote(urlsplit(self.path).path)
        login = self.headers.get("Authorization", "")
        hub.asked.append((self.command, path, self.headers.get("Range", ""), login))
        if refusal := hub.refused(self.command, path):
            return self._refuse(refusal.code, refusal.kind, refusal.text)
        if path.startswith("/api/models/"):
            return self._look_up(path.removeprefix("/api/models/"), login)
        if path.startswith("/store/"):
            digest = path.removeprefix("/store/")
            everything = [data for held in hub.commits.values() for data in held.values()]
            return self._body(next(data for data in everything if large(data) == digest), digest, {})
        return self._resolve(path[1:], login)

    do_HEAD = do_GET  # noqa: N815  (the server's name for it)

    def log_message(self, *_: object) -> None:
        return

    def _look_up(self, path: str, login: str) -> None:
        hub = self.served
        repo, _, revision = path.partition("/revision/")
        if hub.former and repo == hub.former:
            return self._send(307, b"", {"Location": self.path.replace(hub.former, REPO, 1)})
        if hub.token and not hub.gated and login != f"Bearer {hub.token}":
            text = "Invalid credentials in Authorization header" if login else "Repository not found"
            return self._refuse(401, "" if login else "RepoNotFound", text)
        if repo != REPO:
            return self._refuse(404 if login else 401, "RepoNotFound", "Repository not found")
        commit = hub.branches.get(revision or "main", revision)
        if commit not in hub.commits:
            return self._refuse(404, "RevisionNotFound", "Invalid rev id")
        siblings = [_sibling(name, data) for name, data in hub.commits[commit].items()]
        found = {"id": REPO, "_id": "1", "sha": commit, "siblings": siblings, "private": False, "tags": []}
        self._send(200, json.dumps(found).encode(), {"Content-Type": "application/json"})
        return hub.after()

    def _resolve(self, path: str, login: str) -> None:
        hub = self.served
        repo, _, rest = path.partition("/resolve/")
        revision, _, name = rest.partition("/")
        if hub.former and repo == hub.former:
            return self._send(307, b"", {"Location": self.path.replace(hub.former, REPO, 1)})
        if hub.token and login != f"Bearer {hub.token}":
            code, kind = (403 if login else 401), "GatedRepo" if hub.gated else ""
            return self._refuse(code, kind, "Access to this model is restricted")
        commit = hub.branches.get(revision, revision)
        if commit not in hub.commits:
            return self._refuse(404, "RevisionNotFound", "Invalid rev id")
        if name not in hub.commits[commit]:
            return self._refuse(404, "EntryNotFound", "Entry not found")
        data = hub.commits[commit][name]
        headers = {"X-Repo-Commit": commit}
        if len(data) < _LARGE:
            return self._body(data, small(data), {**headers, "ETag": f'"{small(data)}"'})
        linked = {"X-Linked-Etag": f'"{large(data)}"', "X-Linked-Size": str(len(data))}
        where = f"http://localhost:{hub.port}/store/{large(data)}"
        return self._send(302, b"", {**headers, **linked, "Location": where})

    def _body(self, data: bytes, digest: str, headers: Mapping[str, str]) -> None:
        hub, code = self.served, 200
        if self.command == "HEAD":
            return self._send(200, data, headers)
        data = hub.spoiled.pop(digest, data)
        if asked := self.headers.get("Range", ""):
            start = int(asked.removeprefix("bytes=").partition("-")[0])
            whole = len(data)
            if start >= whole:
                return self._send(416, b"", {"Content-Range": f"bytes */{whole}"})
            headers = {**headers, "Content-Range": f"bytes {start}-{whole - 1}/{whole}"}
            data, code = data[start:], 206
        cut = hub.cut.pop(digest, len(data))
        return self._send(code, data[:cut], headers, promised=len(data))

    def _refuse(self, code: int, kind: str, text: str) -> None:
        self._send(code, b"{}", {"X-Error-Code": kind, "X-Error-Message": text})

    def _send(self, code: int, body: bytes, headers: Mapping[str, str], promised: int | None = None) -> None:
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body) if promised is None else promised))
        self.end_headers()
        if self.command != "HEAD":
            # The client may have left: what it did not read is its own business.
            with contextlib.suppress(ConnectionError):
                self.wfile.write(body)


def _sibling(name: str, data: bytes) -> dict[str, object]:
    found: dict[str, object] = {"rfilename": name, "size": len(data), "blobId": small(data)}
    if len(data) >= _LARGE:
        found["lfs"] = {"sha256": large(data), "size": len(data), "pointerSize": 135}
    return found
