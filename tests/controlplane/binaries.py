"""The programs a control plane is made of: found on this machine, else built from their pinned Go modules."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from controlplane.processes import say

TOOLS = Path(__file__).resolve().parent / "tools"
# Newer toolchains have built API servers whose OpenAPI v2 document is broken, which fails `kubectl explain`.
GO = "go1.26"
KUBERNETES_MINORS = range(34, 37)


class UnavailableError(Exception):
    """A part of the control plane cannot be had; the message names the part and why."""


@dataclass(frozen=True)
class Module:
    """One Go module below tools/ and the programs built from it, name to main package."""

    folder: str
    version: str
    programs: Mapping[str, str]
    # Without its own version a program calls itself v0.0.0, and Crossplane then refuses every package that
    # asks for a core version.
    stamps: tuple[str, ...]
    # Folders of the released module that a program reads when it runs.
    files: Mapping[str, str]


KUBERNETES = Module(
    folder="kubernetes",
    version="v1.36.3",
    programs={
        "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
        "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
    },
    stamps=(
        "k8s.io/component-base/version.gitVersion=v1.36.3",
        "k8s.io/component-base/version.gitMajor=1",
        "k8s.io/component-base/version.gitMinor=36",
    ),
    files={},
)
# Its own build: kubectl is on most machines, the other two on few.
KUBECTL = replace(KUBERNETES, programs={"kubectl": "k8s.io/kubernetes/cmd/kubectl"})
ETCD = Module(
    folder="etcd",
    version="v3.6.16",
    programs={"etcd": "go.etcd.io/etcd/server/v3"},
    stamps=(),
    files={},
)
CROSSPLANE = Module(
    folder="crossplane",
    version="v2.3.4",
    programs={"crossplane": "github.com/crossplane/crossplane/v2/cmd/crossplane"},
    stamps=("github.com/crossplane/crossplane-runtime/v2/pkg/version.version=v2.3.4",),
    files={
        "crds": "github.com/crossplane/crossplane/v2:cluster/crds",
        "webhookconfigurations": "github.com/crossplane/crossplane/v2:cluster/webhookconfigurations",
    },
)


@dataclass(frozen=True)
class Binaries:
    """Where each program is, and the folders that Crossplane's core installs from."""

    etcd: Path
    kube_apiserver: Path
    kube_controller_manager: Path
    kubectl: Path
    crossplane: Path
    crossplane_crds: Path
    crossplane_webhooks: Path


def find_or_build() -> Binaries:
    """Every program; raises `UnavailableError` naming the first that can be neither found nor built."""
    api_server, controllers = (_installed(name) for name in KUBERNETES.programs)
    if api_server is None or controllers is None:
        # Both from one release: a controller manager must not be newer than its API server.
        api_server, controllers = (build(KUBERNETES) / name for name in KUBERNETES.programs)
    core = build(CROSSPLANE)
    return Binaries(
        etcd=_installed("etcd") or build(ETCD) / "etcd",
        kube_apiserver=_checked(api_server),
        kube_controller_manager=_checked(controllers),
        kubectl=_installed("kubectl") or build(KUBECTL) / "kubectl",
        # Never from PATH: the Crossplane CLI has the same name and cannot run a core.
        crossplane=core / "crossplane",
        crossplane_crds=core / "crds",
        crossplane_webhooks=core / "webhookconfigurations",
    )


def _installed(program: str) -> Path | None:
    """The program in the folder that KUBEBUILDER_ASSETS names, else on PATH; None where it is in neither."""
    assets = os.environ.get("KUBEBUILDER_ASSETS", "")
    found = shutil.which(program, path=assets) if assets else None
    found = found or shutil.which(program)
    return Path(found) if found else None


def _checked(program: Path) -> Path:
    """The program, if it is of a Kubernetes release that we judge with."""
    said = _run([str(program), "--version"], program.name)
    minor = re.search(r"v1\.(\d+)\.", said)
    if minor is None or int(minor.group(1)) not in KUBERNETES_MINORS:
        wanted = f"1.{KUBERNETES_MINORS.start} to 1.{KUBERNETES_MINORS.stop - 1}"
        raise UnavailableError(f"{program.name}: {program} is {said.strip()}, wanted {wanted}")
    return program


def build(module: Module) -> Path:
    """The folder holding the module's programs, built unless the cache has them."""
    go = shutil.which("go")
    parts = ", ".join(module.programs)
    if go is None:
        raise UnavailableError(
            f"{parts}: not on KUBEBUILDER_ASSETS or PATH, and no go to build {module.version}"
        )
    source = TOOLS / module.folder
    toolchain = _run([go, "env", "GOVERSION"], parts, cwd=source).strip()
    if not toolchain.startswith(GO):
        raise UnavailableError(f"{parts}: built with {GO} only, found {toolchain}")
    digest = hashlib.sha256(
        "\n".join(
            [
                toolchain,
                *module.programs,
                *module.stamps,
                (source / "go.mod").read_text(),
                (source / "go.sum").read_text(),
            ]
        ).encode()
    ).hexdigest()
    target = cache() / f"{module.folder}-{module.version}-{digest[:12]}"
    target.parent.mkdir(parents=True, exist_ok=True)
    with (target.parent / f".{module.folder}.lock").open("w") as lock:
        # Two runs on a fresh machine would otherwise both spend ten minutes on the same build.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.is_dir():
            _build_into(target, module, go, source)
    return target


def _build_into(target: Path, module: Module, go: str, source: Path) -> None:
    """Build beside the target and move it there whole, so a broken build leaves no half-filled cache."""
    stamps = " ".join(["-s", "-w", *(f"-X {stamp}" for stamp in module.stamps)])
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".building-") as name:
        scratch = Path(name) / "out"
        scratch.mkdir()
        for program, package in module.programs.items():
            say(f"building {program} {module.version}, once: it takes minutes")
            command = [go, "build", "-mod=readonly", "-trimpath", "-ldflags", stamps]
            _run([*command, "-o", str(scratch / program), package], program, cwd=source)
        for folder, origin in module.files.items():
            path, _, inside = origin.partition(":")
            released = _run([go, "list", "-m", "-f", "{{.Dir}}", path], folder, cwd=source).strip()
            shutil.copytree(Path(released) / inside, scratch / folder, copy_function=shutil.copyfile)
            # The module cache is read-only, folders too, and could not be removed from here again.
            for copied in (scratch / folder, *(scratch / folder).rglob("*")):
                copied.chmod(0o755 if copied.is_dir() else 0o644)
        scratch.rename(target)


def cache() -> Path:
    """Where built programs are kept, outside the tree, so a clean clone finds them again."""
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(home) / "modelplane" / "controlplane"


def _run(command: list[str], part: str, cwd: Path | None = None) -> str:
    """The command's output; a failure names the part it was for and ends with what the command said."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip()[-2000:]
        raise UnavailableError(f"{part}: {' '.join(command[:3])} failed: {said}")
    return done.stdout
