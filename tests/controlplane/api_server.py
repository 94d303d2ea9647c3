"""etcd, an API server and a controller manager on loopback, without kubelets or a scheduler."""

from __future__ import annotations

import secrets
import ssl
import subprocess
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import yaml

from controlplane.binaries import Binaries, UnavailableError
from controlplane.processes import LOOPBACK, Process, free_ports, listens

# The garbage collector gives deletion its meaning and the namespace controller ends namespaces; what would
# run pods, or need a cloud, stays off.
CONTROLLERS = ("garbage-collector-controller", "namespace-controller")


class ApiServer:
    """A bare Kubernetes API below one folder: `data/`, `certs/`, `logs/` and `kubeconfig`."""

    def __init__(
        self,
        binaries: Binaries,
        home: Path,
        controllers: Sequence[str] = CONTROLLERS,
        users: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Prepare it; `users` are names, each with the one group it is in, beside the administrator."""
        self.home = home
        self._controllers = controllers
        self._users = {name: (secrets.token_hex(16), group) for name, group in users.items()}
        self.logs = home / "logs"
        self.logs.mkdir(parents=True, exist_ok=True)
        self.kubeconfig = home / "kubeconfig"
        self._certs = home / "certs"
        self._certs.mkdir(exist_ok=True)
        self._token = secrets.token_hex(16)
        self._client_port, self._peer_port, self.port, self._manager_port = free_ports(4)
        self.etcd = Process("etcd", self._etcd(binaries), self.logs)
        self.api = Process("kube-apiserver", self._api(binaries), self.logs)
        self.manager = Process("kube-controller-manager", self._manager(binaries), self.logs)

    @property
    def url(self) -> str:
        """Where the API is served."""
        return f"https://{LOOPBACK}:{self.port}"

    def start(self) -> None:
        """Start all three, each when the one before it answers."""
        _service_account_key(self._certs / "service-accounts.key")
        known = [f"{self._token},admin,admin,system:masters"]
        known += [f"{token},{name},{name},{group}" for name, (token, group) in self._users.items()]
        (self._certs / "tokens.csv").write_text("\n".join(known) + "\n")
        self.etcd.start(lambda: listens(self._client_port))
        self.start_api()
        self._write_access(self.kubeconfig, self._token)
        self.manager.start(lambda: listens(self._manager_port))

    def start_api(self) -> None:
        """Start the API server alone: first, or again after a stop with everything else still running."""
        # Its certificate signs itself; it exists only once the server has started.
        self.api.start(lambda: listens(self.port) and self._ready())

    def stop(self) -> None:
        """Stop in the order that lets each write its last."""
        for process in (self.manager, self.api, self.etcd):
            process.stop()

    def _ready(self) -> bool:
        context = ssl.create_default_context(cafile=str(self._certs / "apiserver.crt"))
        ask = urllib.request.Request(f"{self.url}/readyz", headers={"Authorization": f"Bearer {self._token}"})
        try:
            with urllib.request.urlopen(ask, context=context, timeout=5) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    def access(self, name: str, token: str = "") -> Path:
        """A kubeconfig for a user that was given, or for whoever has the token."""
        path = self.home / f"kubeconfig-{name}"
        self._write_access(path, token or self._users[name][0])
        return path

    def _write_access(self, path: Path, token: str) -> None:
        path.write_text(yaml.safe_dump(self._access(token)))
        path.chmod(0o600)

    def _access(self, token: str) -> dict[str, object]:
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "controlplane",
            "contexts": [{"name": "controlplane", "context": {"cluster": "controlplane", "user": "admin"}}],
            "users": [{"name": "admin", "user": {"token": token}}],
            "clusters": [
                {
                    "name": "controlplane",
                    "cluster": {
                        "server": self.url,
                        "certificate-authority": str(self._certs / "apiserver.crt"),
                    },
                }
            ],
        }

    def _etcd(self, binaries: Binaries) -> list[str]:
        client, peer = (f"http://{LOOPBACK}:{port}" for port in (self._client_port, self._peer_port))
        return [
            str(binaries.etcd),
            f"--data-dir={self.home / 'data'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            # Nothing outlives the run, and a CI disk makes every write wait otherwise.
            "--unsafe-no-fsync",
            "--log-level=warn",
        ]

    def _api(self, binaries: Binaries) -> list[str]:
        key = self._certs / "service-accounts.key"
        return [
            str(binaries.kube_apiserver),
            f"--etcd-servers=http://{LOOPBACK}:{self._client_port}",
            f"--bind-address={LOOPBACK}",
            f"--advertise-address={LOOPBACK}",
            f"--secure-port={self.port}",
            # A loopback address may not stand in the endpoints of the service `kubernetes`.
            "--endpoint-reconciler-type=none",
            f"--cert-dir={self._certs}",
            f"--token-auth-file={self._certs / 'tokens.csv'}",
            "--authorization-mode=RBAC",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
            # It waits for each namespace's default account, which nothing makes here and no pod uses.
            "--disable-admission-plugins=ServiceAccount",
        ]

    def _manager(self, binaries: Binaries) -> list[str]:
        return [
            str(binaries.kube_controller_manager),
            f"--kubeconfig={self.kubeconfig}",
            f"--bind-address={LOOPBACK}",
            f"--secure-port={self._manager_port}",
            f"--controllers={','.join(self._controllers)}",
            "--leader-elect=false",
        ]


def _service_account_key(path: Path) -> None:
    """Make the key that signs service account tokens, unless it is there already."""
    if path.exists():
        return
    openssl(["genrsa", "-out", str(path), "2048"])


def openssl(arguments: list[str], stdin: bytes | None = None) -> bytes:
    """Run openssl; a failure names it and says what it said."""
    try:
        done = subprocess.run(["openssl", *arguments], input=stdin, capture_output=True, check=False)
    except FileNotFoundError as error:
        raise UnavailableError("openssl: not on PATH; it makes the certificates") from error
    if done.returncode != 0:
        raise UnavailableError(f"openssl {arguments[0]}: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout
