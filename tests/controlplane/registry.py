"""A package registry on loopback: just enough of the OCI distribution API for Crossplane's package manager.

https://github.com/opencontainers/distribution-spec/blob/main/spec.md (pull), and for what a package is
https://github.com/crossplane/crossplane/blob/main/contributing/specifications/xpkg.md
"""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml

from controlplane.processes import LOOPBACK

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar"


@dataclass
class Registry:
    """Serves what was pushed to it, over plain HTTP: clients allow that for loopback addresses."""

    blobs: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    tags: dict[str, dict[str, str]] = field(default_factory=dict)
    # What was asked for, so a test can tell a pull from a cache.
    asked: list[str] = field(default_factory=list)
    _server: ThreadingHTTPServer | None = None

    @property
    def host(self) -> str:
        """The registry's name in an image reference; it must have been started."""
        assert self._server is not None
        return f"{LOOPBACK}:{self._server.server_port}"

    def start(self) -> None:
        """Serve from a thread of its own until `stop`."""
        self._server = _Server((LOOPBACK, 0), _handler(self))
        threading.Thread(target=self._server.serve_forever, name="registry", daemon=True).start()

    def stop(self) -> None:
        """Close the port."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()

    def push(self, repository: str, tag: str, documents: Sequence[Mapping[str, Any]]) -> str:
        """Make a package of the documents and return its full reference."""
        layer = _layer(yaml.safe_dump_all(documents, sort_keys=False).encode())
        config = {
            "architecture": "amd64",
            "os": "linux",
            "config": {},
            "rootfs": {"type": "layers", "diff_ids": [_digest(layer)]},
        }
        manifest = {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": self._keep(CONFIG, json.dumps(config).encode()),
            # Without the annotation the package manager unpacks every layer to look for package.yaml.
            "layers": [{**self._keep(LAYER, layer), "annotations": {"io.crossplane.xpkg": "base"}}],
        }
        kept = self._keep(MANIFEST, json.dumps(manifest).encode())
        self.tags.setdefault(repository, {})[tag] = str(kept["digest"])
        return f"{self.host}/{repository}:{tag}"

    def serve(self, layout: Path, repository: str, tag: str) -> str:
        """Serve the one image of an OCI layout and return its full reference."""
        (listed,) = json.loads((layout / "index.json").read_bytes())["manifests"]
        for path in (layout / "blobs/sha256").iterdir():
            self._keep(MANIFEST if f"sha256:{path.name}" == listed["digest"] else LAYER, path.read_bytes())
        self.tags.setdefault(repository, {})[tag] = str(listed["digest"])
        return f"{self.host}/{repository}:{tag}"

    def _keep(self, media_type: str, content: bytes) -> dict[str, Any]:
        digest = _digest(content)
        self.blobs[digest] = (media_type, content)
        return {"mediaType": media_type, "digest": digest, "size": len(content)}

    def answer(self, path: str) -> tuple[str, bytes] | None:
        """Media type and body for a path below /v2/, None where there is nothing."""
        if path == "/v2/":
            return "application/json", b"{}"
        repository, _, reference = path.removeprefix("/v2/").rpartition("/")
        repository, _, what = repository.rpartition("/")
        if what == "tags" and repository in self.tags:
            listed = {"name": repository, "tags": sorted(self.tags[repository])}
            return "application/json", json.dumps(listed).encode()
        if what in {"manifests", "blobs"}:
            return self.blobs.get(self.tags.get(repository, {}).get(reference, reference))
        return None


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: core resets its idle connections, and each would print a traceback."""


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _layer(package: bytes) -> bytes:
    """A tarball holding package.yaml; the same bytes for the same package."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        entry = tarfile.TarInfo("package.yaml")
        entry.size = len(package)
        entry.mode = 0o644
        tar.addfile(entry, io.BytesIO(package))
    return out.getvalue()


def _handler(registry: Registry) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            registry.asked.append(path)
            found = registry.answer(path)
            media_type, body = found or ("application/json", b'{"errors":[{"code":"NOT_FOUND"}]}')
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", media_type)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Docker-Content-Digest", _digest(body))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        do_HEAD = do_GET  # noqa: N815  (http.server's name)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  (http.server's name)
            """Keep quiet: `asked` is the log."""

    return Handler
