"""A control plane as package/install makes it: all through the package manager, core without admin rights.

What a cluster would add is stood in for: nodes that run the providers' Deployments, which are called
available here, and the function's, whose server is a process of ours.
"""

from __future__ import annotations

import fcntl
from pathlib import Path
from typing import IO

from kubernetes import client as kubernetes
from kubernetes import config

import xpkg
from controlplane import packages
from controlplane.api_server import CONTROLLERS, ApiServer
from controlplane.binaries import Binaries, cache
from controlplane.client import Client, Document, condition, documents
from controlplane.control_plane import ControlPlane
from controlplane.core import NAMESPACE, Core
from controlplane.function import ROOT, Function
from controlplane.processes import Process, StartError, listens, wait_for

INSTALL = ROOT / "package/install"
CHART_RIGHTS = Path(__file__).resolve().parent / "chart_rights.yaml"
PKG = "pkg.crossplane.io/v1"
RELEASE = xpkg.version(ROOT)
# It serves metrics there and has no option for another port.
RBAC_MANAGER_PORT = 8080
# User to group; what a group may do, the tests bind.
USERS = {"alice": "ml-team", "bob": "other-team", "vera": "viewers", "paul": "platform"}
TOKEN_SECONDS = 4 * 3600


def installed_documents() -> list[Document]:
    """Everything that `kubectl apply -k package/install` applies, in order."""
    (listed,) = documents(INSTALL / "kustomization.yaml")
    return [document for name in listed["resources"] for document in documents(INSTALL / name)]


class Installed(ControlPlane):
    """Crossplane as its chart installs it, then our packages as our users install them."""

    def __init__(self, binaries: Binaries, crds: Path) -> None:
        super().__init__(binaries)
        self._crds = crds
        self.server = ApiServer(
            binaries, self.home, (*CONTROLLERS, "clusterrole-aggregation-controller"), USERS
        )
        self._rbac_manager: Process | None = None
        self._lock: IO[str] | None = None
        self._clients: dict[str, Client] = {}

    def user(self, name: str) -> Client:
        """One user's client."""
        if name not in self._clients:
            self._clients[name] = Client(self.server.access(name))
        return self._clients[name]

    def account(self, name: str, namespace: str = NAMESPACE) -> Path:
        """The kubeconfig of a service account, as a pod of its would have it."""
        api = kubernetes.CoreV1Api(config.new_client_from_config(str(self.server.kubeconfig)))
        asked = {"spec": {"expirationSeconds": TOKEN_SECONDS}}
        answer = api.create_namespaced_service_account_token(name, namespace, asked)
        return self.server.access(name, answer.status.token)

    def as_account(self, name: str, namespace: str = NAMESPACE) -> Client:
        """One service account's client."""
        if name not in self._clients:
            self._clients[name] = Client(self.account(name, namespace))
        return self._clients[name]

    def _start(self) -> None:
        self.registry.start()
        packages.push_providers(self.registry, self._crds)
        packages.push_ours(self.registry, self.home, RELEASE)
        self.server.start()
        self._client = Client(self.server.kubeconfig)
        self.client.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        for document in documents(CHART_RIGHTS):
            self.client.apply(document)
        wait_for("core's role is aggregated", self._aggregated)
        self._core = Core(
            self.binaries,
            self.server,
            self.client,
            ["--package-runtime=Provider=Deployment;Function=External"],
            kubeconfig=self.account("crossplane"),
            activations=(),
        )
        self._core.init()
        self._start_rbac_manager()
        self._core.start()
        self._function = Function(self.server, self.client, self.registry)
        self._function.serve()
        self.mirror()
        self.install()

    def _stop(self) -> None:
        if self._rbac_manager is not None:
            self._rbac_manager.stop()
        if self._lock is not None:
            self._lock.close()
        super()._stop()

    def _aggregated(self) -> bool:
        role = self.client.get("rbac.authorization.k8s.io/v1", "ClusterRole", "crossplane")
        return bool((role or {}).get("rules"))

    def _start_rbac_manager(self) -> None:
        cache().mkdir(parents=True, exist_ok=True)
        self._lock = (cache() / ".rbac-manager.lock").open("w")
        # Another run of these tests would have its manager on the same port.
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        if listens(RBAC_MANAGER_PORT):
            raise StartError(f"port {RBAC_MANAGER_PORT} is taken; Crossplane's RBAC manager knows no other")
        command = [str(self.binaries.crossplane), "rbac", "start"]
        command += ["--provider-clusterrole=crossplane:allowed-provider-permissions"]
        environment = {"KUBECONFIG": str(self.account("rbac-manager"))}
        self._rbac_manager = Process("rbac-manager", command, self.server.logs, env=environment)
        self._rbac_manager.start(lambda: listens(RBAC_MANAGER_PORT))

    def mirror(self) -> None:
        """Let core fetch from loopback what the packages say is elsewhere."""
        for host in packages.HOSTS:
            self.client.apply(
                {
                    "apiVersion": "pkg.crossplane.io/v1beta1",
                    "kind": "ImageConfig",
                    "metadata": {"name": host},
                    "spec": {
                        "matchImages": [{"type": "Prefix", "prefix": f"{host}/"}],
                        "rewriteImage": {"prefix": f"{self.registry.host}/"},
                    },
                }
            )

    def install(self) -> None:
        """Apply package/install; returns once every package is healthy and every kind is served."""
        for document in installed_documents():
            self.client.apply(document)
        self.function.adopt()
        wait_for("every package is healthy", self.healthy, seconds=120, seen=self.unhealthy)

    def healthy(self) -> bool:
        """Whether all packages are installed and healthy, every dependency there."""
        wanted = {entry["package"].rpartition("/")[2] for entry in packages.providers()}
        there = {one["spec"]["package"].rpartition("/")[2].partition(":")[0] for one in self._of("Provider")}
        return wanted <= there and not self.unhealthy()

    def unhealthy(self) -> list[str]:
        """What each package says that is not healthy."""
        self._run_deployments()
        found = [one for kind in ("Configuration", "Function", "Provider") for one in self._of(kind)]
        return [
            f"{one['kind']} {one['metadata']['name']}: {said['message']}"
            if (said := _wrong(one))
            else f"{one['kind']} {one['metadata']['name']} says nothing yet"
            for one in found
            if condition(one, "Healthy") != "True" or condition(one, "Installed") != "True"
        ]

    def _of(self, kind: str) -> list[Document]:
        return self.client.list(PKG, kind)

    def _run_deployments(self) -> None:
        """Call each Deployment available, as it is once a node runs its pods."""
        for found in self.client.list("apps/v1", "Deployment", namespace=NAMESPACE):
            if condition(found, "Available") == "True":
                continue
            available = {"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"}
            self.client.patch(found, {"status": {"conditions": [available]}}, subresource="status")


def _wrong(package: Document) -> Document | None:
    conditions = (package.get("status") or {}).get("conditions") or ()
    return next((one for one in conditions if one["status"] != "True" and one.get("message")), None)
