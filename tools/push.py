"""Send built packages to a registry with the tool that is here.

The tools keep the annotation by which core finds a package's contents: skopeo and crane push the layout as it
is, the Crossplane command line puts it back from the label in the `.xpkg` file. `docker push` would lose it.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import oci
import xpkg

RECORD = "packages.json"
_LOOPBACK = re.compile(r"(localhost|127\.0\.0\.1)(:[0-9]+)?(/|$)")
# Its repositories have two parts: https://github.com/docker/hub-feedback/issues/1404.
_DOCKER_HUB = ("docker.io", "index.docker.io", "registry-1.docker.io")
_MANY = 5

Command = list[str]
# The layout's folder, the `.xpkg` files, the reference, whether it is on loopback and whether an index.
Send = Callable[[Path, list[str], str, bool, bool], Command]


def _skopeo(folder: Path, _files: list[str], reference: str, local: bool, many: bool) -> Command:
    flags = [*(["--all"] if many else []), *(["--dest-tls-verify=false"] if local else [])]
    return ["skopeo", "copy", "--preserve-digests", *flags, f"oci:{folder}", f"docker://{reference}"]


def _crane(folder: Path, _files: list[str], reference: str, local: bool, many: bool) -> Command:
    flags = [*(["--index"] if many else []), *(["--insecure"] if local else [])]
    return ["crane", "push", *flags, str(folder), reference]


def _crossplane(_folder: Path, files: list[str], reference: str, _local: bool, _many: bool) -> Command:
    return ["crossplane", "xpkg", "push", f"--package-files={','.join(files)}", reference]


TOOLS: Mapping[str, Send] = {"skopeo": _skopeo, "crane": _crane, "crossplane": _crossplane}


def push(out: Path, registry: str, tool: str = "", through: str = "") -> None:
    """Push what `make_package build` left in `out`, the Function first: the Configuration asks for it.

    `through` is what the registry is called from here, where that is not what the control plane calls it.

    Raises:
        xpkg.PackageError: before anything is sent, where the packages were built for another registry, from a
            tree that no commit describes or without a runtime, where a tag is taken by something else, or
            where no tool is here; and when the tool fails.
    """
    record = _record(out)
    door = through or registry
    local = on_loopback(door)
    if faults := _faults(record, registry, local):
        raise xpkg.PackageError("; ".join(faults))
    tool = tool or next((name for name in TOOLS if shutil.which(name)), "")
    if not tool or not shutil.which(tool):
        raise xpkg.PackageError(f"no {tool or ', '.join(TOOLS)} is here to push with: install one")
    release = xpkg.Release(record["version"], door)
    for repository in xpkg.REPOSITORIES:
        _refuse_to_move(tool, release.reference(repository), record["digests"][repository], local)
    for repository in xpkg.REPOSITORIES:
        files = [str(out / name) for name in record["files"][repository]]
        command = TOOLS[tool](out / repository, files, release.reference(repository), local, len(files) > 1)
        if subprocess.run(command, check=False).returncode != 0:
            raise xpkg.PackageError(
                f"{tool} could not push {release.reference(repository)}: it says why above"
            )
        print(f"pushed {release.reference(repository)}")


def _record(out: Path) -> dict[str, Any]:
    path = out / RECORD
    found = json.loads(path.read_text()) if path.is_file() else {}
    if not found:
        raise xpkg.PackageError(f"{out} holds no packages: run `make package` first")
    return dict(found)


def on_loopback(registry: str) -> bool:
    """Whether it is this machine's: nobody else pulls from it, so a tag may move and a tree be dirty."""
    return bool(_LOOPBACK.match(registry))


def wrong_place(registry: str) -> list[str]:
    """What is wrong with pushing there at all."""
    if registry.partition("/")[0] == xpkg.PLACEHOLDER:
        return [f"{registry} is reserved for documentation: name a registry of yours with REGISTRY="]
    host, _, path = registry.partition("/")
    if path and host in _DOCKER_HUB:
        return [f"{host} takes no folders below {path}, and our packages lie in one: use another registry"]
    return []


def wrong_tree(revision: str, changed: Sequence[str]) -> list[str]:
    """What keeps a tree's packages from a registry that others pull from."""
    if not revision:
        return [
            "the tree is no git checkout, so no commit would say what is in the packages: push from a clone"
        ]
    if not changed:
        return []
    which = ", ".join(changed[:_MANY]) + (f" and {len(changed) - _MANY} more" if len(changed) > _MANY else "")
    return [f"no commit says what is in the packages: {which} changed since; commit, then build anew"]


def _faults(record: Mapping[str, Any], registry: str, local: bool) -> list[str]:
    faults = wrong_place(registry)
    if record["registry"] != registry:
        # The Configuration names the Function's registry, so it cannot simply be pushed to another.
        faults.append(
            f"the packages were built for {record['registry']}, not {registry}:"
            f" run `make package REGISTRY={registry}`"
        )
    if local:
        return faults
    if not record["runtime"]:
        faults.append("the Function has no runtime in it: build it without RUNTIME=none")
    return [*faults, *wrong_tree(record["revision"], record["changed"])]


def _refuse_to_move(tool: str, reference: str, digest: str, local: bool) -> None:
    """Whoever pinned a release must get what was released; an unanswered question is left to the push."""
    if local:
        return
    asked = {"skopeo": ["inspect", "--raw", f"docker://{reference}"], "crane": ["manifest", reference]}
    if tool not in asked:
        return
    found = subprocess.run([tool, *asked[tool]], capture_output=True, check=False)
    if found.returncode == 0 and oci.digest(found.stdout) != digest:
        raise xpkg.PackageError(
            f"{reference} is there already and is something else: raise the version in pyproject.toml"
        )
