"""What a staging run finds around it: a report that only listens, and a registry of our own."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from modelplane.staging.report import Report


def env(root: Path, source: str = "HuggingFace", location: str = "lab/small", **over: str) -> dict[str, str]:
    """The environment of a run."""
    base = {
        "STAGING_ROOT": str(root),
        "STAGING_SOURCE": source,
        "STAGING_LOCATION": location,
        "STAGING_REVISION": "",
        "STAGING_ID": "id1",
    }
    return {**base, **over}


@dataclass
class Heard(Report):
    """A report that keeps what it is told, and may refuse it."""

    taken: bool = True
    told: list[dict[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__("", "id1")

    def write(self, state: str, **fields: str) -> bool:
        self.told.append({"state": state, **fields})
        return self.taken

    @property
    def last(self) -> dict[str, str]:
        """What was told last."""
        return self.told[-1]


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def tar(files: Mapping[str, bytes], links: Mapping[str, str] | None = None, *, packed: bool = False) -> bytes:
    """A layer."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(data), 0o600
            archive.addfile(info, io.BytesIO(data))
        for name, target in (links or {}).items():
            info = tarfile.TarInfo(name)
            info.type, info.linkname = tarfile.SYMTYPE, target
            archive.addfile(info)
    return gzip.compress(raw.getvalue(), mtime=0) if packed else raw.getvalue()


@dataclass
class Server:
    """A registry on loopback: what it holds, what it was asked, how it answers.

    Attributes:
        held: bodies by path below /v2/<repository>/.
        login: what Authorization must read; empty asks for nothing.
        challenge: the header of a 401.
        cut: bytes of a blob after which the first answer ends.
    """

    held: dict[str, bytes] = field(default_factory=dict)
    login: str = ""
    challenge: str = ""
    cut: int = 0
    ignores_ranges: bool = False
    elsewhere: str = ""
    port: int = 0
    asked: list[tuple[str, str, str]] = field(default_factory=list)

    def layer(self, data: bytes, kind: str, **annotations: str) -> dict[str, Any]:
        """Hold a blob and return its descriptor."""
        digest = f"sha256:{sha256(data)}"
        self.held[f"blobs/{digest}"] = data
        found: dict[str, Any] = {"mediaType": kind, "digest": digest, "size": len(data)}
        return {**found, "annotations": annotations} if annotations else found

    def manifest(self, tag: str, document: Mapping[str, Any]) -> str:
        """Hold a manifest under a tag and its digest; return the digest."""
        body = json.dumps(document).encode()
        digest = f"sha256:{sha256(body)}"
        self.held[f"manifests/{tag}"] = self.held[f"manifests/{digest}"] = body
        return digest

    @property
    def url(self) -> str:
        """Of the repository."""
        return f"http://127.0.0.1:{self.port}/v2/models/small"


@contextmanager
def serving(server: Server) -> Iterator[Server]:
    """Run a registry."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            _answer(self, server)

        def log_message(self, *_: object) -> None:
            return

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.port = http.server_address[1]
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        http.shutdown()
        http.server_close()
        thread.join()


def _answer(handler: BaseHTTPRequestHandler, server: Server) -> None:
    login, ranges = handler.headers.get("Authorization", ""), handler.headers.get("Range", "")
    server.asked.append((handler.path, login, ranges))
    if handler.path.startswith("/token"):
        return _send(handler, 200, json.dumps({"token": "bearer-token"}).encode())
    if server.login and login != server.login:
        return _send(handler, 401, b"", {"WWW-Authenticate": server.challenge})
    name = handler.path.partition("/v2/models/small/")[2]
    if name.startswith("blobs/") and server.elsewhere:
        return _send(handler, 307, b"", {"Location": f"{server.elsewhere}/v2/models/small/{name}"})
    body = server.held.get(name)
    if body is None:
        return _send(handler, 404, b"")
    if ranges and not server.ignores_ranges:
        return _send(handler, 206, body[int(ranges.removeprefix("bytes=").rstrip("-")) :])
    if name.startswith("blobs/") and server.cut:
        cut, server.cut = server.cut, 0
        return _send(handler, 200, body[:cut])
    return _send(handler, 200, body)


def _send(
    handler: BaseHTTPRequestHandler, code: int, body: bytes, headers: Mapping[str, str] | None = None
) -> None:
    handler.send_response(code)
    for name, value in (headers or {}).items():
        handler.send_header(name, value)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)
