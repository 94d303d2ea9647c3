"""What packages are made of: the least tree, and the image that serves the function."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import yaml

import oci


def runtime(folder: Path, *architectures: str, **settings: Any) -> Path:
    """A layout of the image that serves the function, one layer with one file."""
    settings = {"User": "2000:2000", "Entrypoint": ["/usr/bin/python3"], **settings}
    layer = oci.layer({"usr/bin/python3": b"\x7fELF"}, {})
    made = [
        oci.Image({"os": "linux", "architecture": it, "config": settings}, (layer,))
        for it in architectures or ("amd64",)
    ]
    oci.write(folder, made, "runtime")
    return folder


def tree(folder: Path, version: str = "0.1.0") -> Path:
    """Sources of both packages, each as small as it can be; the Configuration asks for the Function."""
    for name in ("apis/a.yaml", "compositions/a.yaml", "package/activation.yaml"):
        put(folder, name, {"kind": "Thing", "metadata": {"name": "a"}})
    named = {"name": "a", "annotations": {"meta.crossplane.io/license": "Apache-2.0"}}
    asked = {"dependsOn": [{"package": "registry.example.org/modelplane/function"}]}
    put(folder, "package/crossplane.yaml", {"kind": "Configuration", "metadata": named, "spec": asked})
    put(folder, "package/function/crossplane.yaml", {"kind": "Function", "metadata": named})
    (folder / "pyproject.toml").write_text(f'[project]\nversion = "{version}"\n')
    return folder


def put(folder: Path, name: str, document: dict[str, Any]) -> None:
    """Write one document, and the folders that lead to it."""
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(yaml.safe_dump(document))


def commit(folder: Path) -> str:
    """Commit all of the tree, a repository of its own from the first time on, and return the commit."""
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    for arguments in (["init", "--quiet"], ["add", "."], [*identity, "commit", "--quiet", "--message=a"]):
        subprocess.run(["git", "-C", str(folder), *arguments], check=True, capture_output=True)
    told = subprocess.run(
        ["git", "-C", str(folder), "rev-parse", "HEAD"], check=True, capture_output=True, text=True
    )
    return told.stdout.strip()
