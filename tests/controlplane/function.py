"""A function as an external runtime: served over mTLS by a process of ours, its endpoint written by us."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from controlplane.api_server import ApiServer, openssl
from controlplane.client import Client, Document, condition, documents
from controlplane.core import CA_SECRET, NAMESPACE, secret
from controlplane.dns import NameServer
from controlplane.processes import Process, free_ports, listens, wait_for
from controlplane.registry import Registry

ROOT = Path(__file__).resolve().parents[2]
# Core names what it installs for a dependency after the repository, slashes turned into dashes.
REPOSITORY = "modelplane/function"
NAME = "modelplane-function"
SERVE = (sys.executable, "-m", "modelplane", "serve")
ADDRESSES = ("127.0.0.1", "127.0.0.2")


class Function:
    """The package, installed from the loopback registry, and the servers that answer for it."""

    def __init__(
        self,
        server: ApiServer,
        client: Client,
        registry: Registry,
        name: str = NAME,
        command: Sequence[str] = SERVE,
    ) -> None:
        """Prepare it: ours, or another by its name and what serves it."""
        self.name = name
        self._serve = tuple(command)
        self._host = f"{name}.{NAMESPACE}"
        self._secret = f"{name}-tls-server"
        self._server = server
        self._client = client
        self._registry = registry
        self._certs = server.home / name
        (self.port,) = free_ports(1)
        self._names = NameServer(self._host, ADDRESSES)
        self.servers = tuple(
            Process(f"{name}-{place}", self._command(address), server.logs)
            for place, address in enumerate(ADDRESSES, 1)
        )

    @property
    def endpoint(self) -> str:
        """The gRPC target: a name with all addresses, so that core balances over them as over pods."""
        return f"dns://{self._names.address}/{self._host}:{self.port}"

    def start(self) -> None:
        """Serve on the first address and make core know the function."""
        self.serve()
        self.install()

    def serve(self) -> None:
        """Serve on the first address; core does not know of it yet."""
        self._write_certificates()
        self._names.start()
        self.start_server(0)

    def start_server(self, place: int) -> None:
        """Start one server; each has an address of its own behind the one endpoint."""
        self.servers[place].start(lambda: listens(self.port, ADDRESSES[place]))

    def stop(self) -> None:
        """Stop every server, and what names them."""
        for server in self.servers:
            server.stop()
        self._names.stop()

    def install(self, package: Sequence[Document] = (), repository: str = REPOSITORY) -> Document:
        """Install the package, ours unless told, and write its endpoint; returns once it is healthy."""
        package = package or documents(ROOT / "package/function/crossplane.yaml")
        reference = self._registry.push(repository, "v0.1.0", package)
        self._client.apply(
            {
                "apiVersion": "pkg.crossplane.io/v1",
                "kind": "Function",
                "metadata": {"name": self.name},
                "spec": {"package": reference, "packagePullPolicy": "IfNotPresent"},
            }
        )
        return self.adopt()

    def adopt(self, package: str = "") -> Document:
        """Stand in for the runtime of the active revision, of that package where one is named; returns it."""

        def active() -> bool:
            found = self.revision()
            return found is not None and package in ("", found["spec"]["image"])

        wait_for(f"the function has an active revision {package}", active)
        revision = self.revision()
        assert revision is not None
        self._client.apply(self._runtime_status(revision["metadata"]["name"]), subresource="status")
        wait_for("the function is healthy", self._healthy, seen=lambda: (self.revision() or {}).get("status"))
        return revision

    def _runtime_status(self, revision: str) -> Document:
        """What core leaves to an external runtime; without any one of these the function stays unhealthy."""
        return {
            "apiVersion": "pkg.crossplane.io/v1",
            "kind": "FunctionRevision",
            "metadata": {"name": revision},
            "status": {
                "endpoint": self.endpoint,
                "tlsServerSecretName": self._secret,
                "conditions": [
                    {
                        "type": "RuntimeHealthy",
                        "status": "True",
                        "reason": "HealthyPackageRuntime",
                        "lastTransitionTime": "2026-01-01T00:00:00Z",
                    }
                ],
            },
        }

    def revision(self) -> Document | None:
        """The active revision, None before core has made one."""
        labels = f"pkg.crossplane.io/package={self.name}"
        for found in self._client.list("pkg.crossplane.io/v1", "FunctionRevision", labels):
            if found["spec"]["desiredState"] == "Active":
                return found
        return None

    def _healthy(self) -> bool:
        found = self._client.get("pkg.crossplane.io/v1", "Function", self.name)
        return condition(found, "Installed") == "True" and condition(found, "Healthy") == "True"

    def _command(self, address: str) -> list[str]:
        serve = [*self._serve, "--address", f"{address}:{self.port}"]
        return [*serve, "--tls-server-certs-dir", str(self._certs)]

    def _write_certificates(self) -> None:
        """A server certificate signed by core's own authority, as core makes for functions it runs itself."""
        self._certs.mkdir(exist_ok=True)
        authority = secret(self._client, CA_SECRET)
        (self._certs / "ca.crt").write_bytes(authority["tls.crt"])
        signer = self._certs / "ca.key"
        signer.write_bytes(authority["tls.key"])
        signer.chmod(0o600)
        key, request, names = (str(self._certs / name) for name in ("tls.key", "tls.csr", "names"))
        Path(names).write_text(f"subjectAltName=DNS:{self._host}\nextendedKeyUsage=serverAuth\n")
        openssl(
            [
                "req",
                "-new",
                "-newkey",
                "rsa:2048",
                "-nodes",
                "-keyout",
                key,
                "-out",
                request,
                "-subj",
                f"/CN={self.name}",
            ]
        )
        sign = ["x509", "-req", "-in", request, "-CA", str(self._certs / "ca.crt"), "-CAkey", str(signer)]
        openssl(
            [*sign, "-CAcreateserial", "-days", "2", "-extfile", names, "-out", str(self._certs / "tls.crt")]
        )
        signer.unlink()
        files = ("ca.crt", "tls.crt", "tls.key")
        self._client.apply(
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": self._secret, "namespace": NAMESPACE},
                "stringData": {name: (self._certs / name).read_text() for name in files},
            }
        )
