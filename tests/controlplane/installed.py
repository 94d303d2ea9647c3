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
from controlplane import living, packages
from controlplane.api_server import CONTROLLERS, ApiServer
from controlplane.binaries import Binaries, cache
from controlplane.client import Client, Document, condition, documents
from controlplane.control_plane import ControlPlane
from controlplane.core import NAMESPACE, Core
from controlplane.function import ROOT, Function
from controlplane.processes import Process, StartError, listens, wait_for
from modelplane import contracts as c

CHART_RIGHTS = Path(__file__).resolve().parent / "chart_rights.yaml"
PKG = "pkg.crossplane.io/v1"
RELEASE = xpkg.version(ROOT)
# It serves metrics there and has no option for another port.
RBAC_MANAGER_PORT = 8080
# User to group; what a group may do, the tests bind.
USERS = {"alice": "ml-team", "bob": "other-team", "vera": "viewers", "paul": "platform"}
# Folders of the CRDs of others.
GATEWAY_KINDS = ("gateway-api", "traefik", "envoy-gateway", "metallb", "cert-manager")
# What users make, in the order in which it goes: what others stand on after them.
FLEET = (
    "ModelService",
    "ModelEndpoint",
    "ModelDeployment",
    "ModelCache",
    "InferenceGateway",
    "InferenceCluster",
    "InferenceClass",
)
CORES_GROUPS = ("pkg.crossplane.io", "apiextensions.crossplane.io", "ops.crossplane.io")
TOKEN_SECONDS = 4 * 3600


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
        self._gateway_kinds = False

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
            [*living.BREAKER, "--package-runtime=Provider=Deployment;Function=External"],
            kubeconfig=self.account("crossplane"),
            activations=(),
        )
        self._core.init()
        self._start_rbac_manager()
        self._core.start()
        self._function = Function(self.server, self.client, self.registry)
        self._function.serve()
        self.mirror()
        self.install(ROOT, RELEASE)

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

    def serve_gateway_kinds(self) -> None:
        """Install the kinds of front doors, as their operators would: no controller answers for them."""
        if not self._gateway_kinds:
            for folder in GATEWAY_KINDS:
                self.client.apply_files(sorted((self._crds / folder).rglob("*.yaml")))
            self._gateway_kinds = True

    def everything(self) -> list[Document]:
        """Every object of every kind that anything of ours may become."""
        kinds = [("v1", kind) for kind in ("ConfigMap", "Secret", "Service")]
        kinds += [("discovery.k8s.io/v1", "EndpointSlice")]
        for crd in self.client.list("apiextensions.k8s.io/v1", "CustomResourceDefinition"):
            group, names = crd["spec"]["group"], crd["spec"]["names"]
            served = next(version["name"] for version in crd["spec"]["versions"] if version["storage"])
            if group not in CORES_GROUPS:
                kinds.append((f"{group}/{served}", names["kind"]))
        return [found for kind in kinds for found in self.client.list(*kind)]

    def install(self, tree: Path, tag: str) -> None:
        """Publish a tree as a release and install it, or upgrade to it, as docs/install.md says.

        Returns once every package is healthy and every kind is served.
        """
        packages.push_ours(self.registry, tree, self.home, tag)
        apply, wait = documented("Install")
        self.follow(apply)
        self.function.adopt(f"{self.registry.host}/{xpkg.FUNCTION}:{tag}")
        # The page's own waits stand still here: we are who runs the providers' Deployments.
        wait_for("every package is healthy", self.healthy, seen=self.unhealthy)
        self.follow(wait)

    def follow(self, block: str) -> None:
        """Run a block of docs/install.md; raises `RuntimeError` with what it said where a command fails."""
        told = self.shell(f"set -ex\n{block}")
        if told.returncode != 0:
            raise RuntimeError(f"{told.stdout}{told.stderr}")

    def remove_fleet(self) -> None:
        """Delete what users have made, kind by kind, each once the one before has left."""
        for kind in FLEET:
            for found in self.client.list(c.API, kind):
                if not found["metadata"].get("ownerReferences"):
                    self.client.delete(found)

            def left(kind: str = kind) -> list[str]:
                return [one["metadata"]["name"] for one in self.client.list(c.API, kind)]

            wait_for(f"no {kind} is left", lambda: not left(), seen=left)

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


def documented(heading: str) -> list[str]:
    """The blocks of commands that docs/install.md tells an administrator to run under a heading, in order."""
    _, _, below = (ROOT / "docs/install.md").read_text().partition(f"\n## {heading}\n")
    return [block.partition("```")[0] for block in below.partition("\n## ")[0].split("```bash\n")[1:]]


def _wrong(package: Document) -> Document | None:
    conditions = (package.get("status") or {}).get("conditions") or ()
    return next((one for one in conditions if one["status"] != "True" and one.get("message")), None)
