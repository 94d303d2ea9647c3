"""Crossplane's core on a bare API server: no pods, functions run by us, webhooks called on loopback."""

from __future__ import annotations

import base64
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from controlplane.api_server import ApiServer
from controlplane.binaries import Binaries
from controlplane.client import Client, RefusedError
from controlplane.processes import LOOPBACK, Process, StartError, free_ports, listens, wait_for

NAMESPACE = "crossplane-system"
WEBHOOKS = "crossplane-webhooks"
CA_SECRET = "crossplane-root-ca"
SERVER_SECRET = "crossplane-tls-server"
CLIENT_SECRET = "crossplane-tls-client"
INIT_SECONDS = 180
# On a new API server it fails once with `no matches for kind "Lock"`: it looked its own CRDs up before they
# were served. In a cluster the kubelet restarts the init container.
INIT_TRIES = 3


class Core:
    """The core as its chart would run it: `core init` once, then `core start`."""

    def __init__(
        self,
        binaries: Binaries,
        server: ApiServer,
        client: Client,
        options: Sequence[str] = (),
        *,
        kubeconfig: Path | None = None,
        activations: Sequence[str] = ("*",),
    ) -> None:
        """Prepare it; nothing runs yet.

        Args:
            binaries: where `crossplane` is.
            server: the API server it works on.
            client: the administrator's, for what the chart would install.
            options: further ones for `core start`; the last of two of one name counts.
            kubeconfig: who core is; the administrator where None.
            activations: the chart's provider.defaultActivations; its default serves every managed resource
                that a provider defines.
        """
        self._binaries = binaries
        self._activations = activations
        self._options = tuple(options)
        self._server = server
        self._client = client
        self._tls = server.home / "core"
        # Core does not make it: packages then fail to unpack with `read/write on closed pipe`.
        self._packages = server.home / "packages"
        self._packages.mkdir(exist_ok=True)
        self._webhook, self._metrics, self._health = free_ports(3)
        # What the chart sets as environment. KUBECONFIG replaces the pod's service account.
        self._env = {
            "KUBECONFIG": str(kubeconfig or server.kubeconfig),
            "POD_NAMESPACE": NAMESPACE,
            "POD_SERVICE_ACCOUNT": "crossplane",
            "TLS_CA_SECRET_NAME": CA_SECRET,
            "TLS_SERVER_SECRET_NAME": SERVER_SECRET,
            "TLS_CLIENT_SECRET_NAME": CLIENT_SECRET,
            "WEBHOOK_SERVICE_NAME": WEBHOOKS,
            "WEBHOOK_SERVICE_NAMESPACE": NAMESPACE,
            "WEBHOOK_SERVICE_PORT": str(self._webhook),
        }
        self.process = Process("crossplane", self._command(), server.logs, env=self._env)

    @property
    def metrics(self) -> str:
        """Where its metrics are."""
        return f"http://{LOOPBACK}:{self._metrics}/metrics"

    def init(self) -> None:
        """Install the core's own CRDs, its certificates and its webhooks."""
        self._client.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        self._client.apply(
            {
                "apiVersion": "v1",
                "kind": "ServiceAccount",
                "metadata": {"name": "crossplane", "namespace": NAMESPACE},
            }
        )
        # No cluster address is routed here, and an EndpointSlice may not name a loopback address: the API
        # server takes a service of this type by its name and the webhook's own port instead.
        self._client.apply(
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": WEBHOOKS, "namespace": NAMESPACE},
                "spec": {"type": "ExternalName", "externalName": "localhost"},
            }
        )
        log = self._server.logs / "crossplane-init.log"
        command = [str(self._binaries.crossplane), "core", "init"]
        command += ["--cr-ds-path", str(self._binaries.crossplane_crds)]
        command += ["--webhook-configurations-path", str(self._binaries.crossplane_webhooks)]
        for activation in self._activations:
            command += ["--activation", activation]
        for _ in range(INIT_TRIES):
            with log.open("ab") as out:
                done = subprocess.run(
                    command,
                    env={**os.environ, **self._env},
                    stdout=out,
                    stderr=out,
                    timeout=INIT_SECONDS,
                    check=False,
                )
            if done.returncode == 0:
                return
        raise StartError(f"crossplane core init exited with {done.returncode}:\n{log.read_text()[-2000:]}")

    def start(self) -> None:
        """Start the controllers, after `init`; again after a stop."""
        for name, folder in ((SERVER_SECRET, "server"), (CLIENT_SECRET, "client")):
            write_secret(self._client, name, self._tls / folder)
        self.process.start(lambda: listens(self._health) and listens(self._webhook))
        self._wait_for_webhooks()

    def stop(self) -> None:
        """Stop the controllers."""
        self.process.stop()

    def _wait_for_webhooks(self) -> None:
        """Return once the API server has called the core's webhook about a deletion and got an answer."""
        probe = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            # The webhook is called for objects with this label only.
            "metadata": {
                "name": "webhook-probe",
                "namespace": NAMESPACE,
                "labels": {"crossplane.io/in-use": "true"},
            },
        }
        self._client.apply(probe)
        said = [""]

        def deleted() -> bool:
            try:
                self._client.delete(probe)
            except RefusedError as error:
                said[0] = str(error)
                return False
            return True

        try:
            wait_for("the core's webhook answers the API server", deleted)
        except TimeoutError as error:
            raise StartError(f"{error}: {said[0]}\n{self.process.tail()}") from error

    def _command(self) -> list[str]:
        return [
            str(self._binaries.crossplane),
            "core",
            "start",
            "--package-runtime=External",
            f"--xpkg-cache-dir={self._packages}",
            f"--tls-server-certs-dir={self._tls / 'server'}",
            f"--tls-client-certs-dir={self._tls / 'client'}",
            f"--webhook-port={self._webhook}",
            f"--metrics-port={self._metrics}",
            f"--health-probe-port={self._health}",
            *self._options,
        ]


def write_secret(client: Client, name: str, folder: Path) -> None:
    """Write a TLS Secret of the core's as files, as a volume would hold them."""
    folder.mkdir(parents=True, exist_ok=True)
    for key, value in secret(client, name).items():
        (folder / key).write_bytes(value)
        (folder / key).chmod(0o600)


def secret(client: Client, name: str) -> dict[str, bytes]:
    """The data of a Secret in the core's namespace; empty where it is not there."""
    found = client.get("v1", "Secret", name, NAMESPACE)
    data = (found or {}).get("data") or {}
    return {key: base64.b64decode(value) for key, value in data.items()}
