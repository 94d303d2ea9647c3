"""A whole control plane: the API server, Crossplane's core, our function, XRDs and Compositions."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from controlplane.api_server import ApiServer
from controlplane.binaries import Binaries
from controlplane.client import Client, condition, documents
from controlplane.core import Core
from controlplane.function import ROOT, Function
from controlplane.processes import say, wait_for
from controlplane.registry import Registry

# By itself kubectl waits for ever for what it deletes to leave.
SHELL_SECONDS = 1200


class ControlPlane:
    """Everything on loopback below one temporary folder, which goes when nothing failed."""

    def __init__(self, binaries: Binaries, core_options: Sequence[str] = ()) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="modelplane-controlplane-"))
        self.registry = Registry()
        self.server = ApiServer(binaries, self.home)
        self.binaries = binaries
        self._core_options = tuple(core_options)
        self._core: Core | None = None
        self._function: Function | None = None
        self._client: Client | None = None
        self.failed = False

    @property
    def client(self) -> Client:
        """The administrator's client."""
        assert self._client is not None, "the API server was not started"
        return self._client

    @property
    def core(self) -> Core:
        """Crossplane's core."""
        assert self._core is not None, "the core was not started"
        return self._core

    @property
    def function(self) -> Function:
        """Our function as core sees it."""
        assert self._function is not None, "the core was not started"
        return self._function

    def __enter__(self) -> ControlPlane:
        """Start everything; whatever did start is stopped when a part does not."""
        try:
            self._start()
        except BaseException:
            self.failed = True
            self._stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop everything."""
        self.failed = self.failed or (kind is not None and not issubclass(kind, KeyboardInterrupt))
        self._stop()

    def _start(self) -> None:
        self._start_core()
        self._function = Function(self.server, self.client, self.registry)
        self._function.start()
        self.install_apis()

    def _start_core(self) -> None:
        self.registry.start()
        self.server.start()
        self._client = Client(self.server.kubeconfig)
        self._core = Core(self.binaries, self.server, self.client, self._core_options)
        self._core.init()
        self._core.start()

    def _stop(self) -> None:
        if self._function is not None:
            self._function.stop()
        if self._core is not None:
            self._core.stop()
        self.server.stop()
        self.registry.stop()
        if self.failed:
            say(f"logs of the control plane: {self.server.logs}")
        else:
            shutil.rmtree(self.home, ignore_errors=True)

    def shell(self, script: str) -> subprocess.CompletedProcess[str]:
        """Run a script as its administrator would, for at most 20 min."""
        path = f"{self.binaries.kubectl.parent}:/usr/bin:/bin"
        env = {"KUBECONFIG": str(self.server.kubeconfig), "HOME": str(self.home), "PATH": path}
        command = ["bash", "-c", script]
        return subprocess.run(
            command,
            cwd=self.home,
            env=env,
            capture_output=True,
            text=True,
            check=False,
            timeout=SHELL_SECONDS,
        )

    def install_apis(self) -> None:
        """Apply XRDs, Compositions and the activation policy; returns once core serves them all."""
        xrds = self.client.apply_files(sorted((ROOT / "apis").glob("*.yaml")))
        for xrd in xrds:
            name = xrd["metadata"]["name"]

            def offered(name: str = name) -> bool:
                found = self.client.get("apiextensions.crossplane.io/v2", "CompositeResourceDefinition", name)
                return condition(found, "Established") == "True"

            wait_for(f"{name} is Established", offered)
        self.client.apply_files(sorted((ROOT / "compositions").glob("*.yaml")))
        self.client.apply_files([ROOT / "package/activation.yaml"])
        for path in sorted((ROOT / "compositions").glob("*.yaml")):
            for composition in documents(path):
                name = composition["metadata"]["name"]
                wait_for(f"{name} has a usable revision", lambda name=name: self._usable(name))

    def install_providers(self, crds: Path) -> None:
        """Apply the CRDs of providers and of what serving clusters run; nothing answers for them."""
        files = sorted(crds.rglob("*.yaml"))
        # Core has installed its own, of its own version.
        self.client.apply_files(path for path in files if path.relative_to(crds).parts[0] != "crossplane")

    def _usable(self, composition: str) -> bool:
        labels = f"crossplane.io/composition-name={composition}"
        found = self.client.list("apiextensions.crossplane.io/v1", "CompositionRevision", labels)
        return any(condition(one, "ValidPipeline") == "True" for one in found)
