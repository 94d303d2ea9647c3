"""Put the two packages together, and push them.

`build` writes below the folder that `--out` names: each package as an OCI layout (`modelplane/function`,
`modelplane/configuration`) and as a file for `crossplane xpkg push`, the manifests of `package/install/` with
the registry filled in, and `packages.json`, which says what was built from what. `push` sends what was built;
`check` says beforehand whether it would.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import oci
import push
import xpkg

ROOT = Path(__file__).resolve().parent.parent
RECORD = "packages.json"
_PARTS = ("modelplane", "install")
# What decides what a package holds; a changed document or test does not.
SOURCES = ("apis", "compositions", "functions", "package", "tools", "pyproject.toml", "README.md", "LICENSE")
_HOST = r"(localhost|127\.0\.0\.1|[a-z0-9-]+(\.[a-z0-9-]+)+)(:[0-9]+)?|[a-z0-9-]+:[0-9]+"
_PATH = r"(/[a-z0-9]+([._-]+[a-z0-9]+)*)*"


def main(arguments: Sequence[str] | None = None) -> int:
    """Build or push; return the exit status."""
    said = _parser().parse_args(arguments)
    try:
        if said.command == "build":
            build(ROOT, said.out, registry(said.registry), said.runtime)
        elif said.command == "check":
            check(ROOT, registry(said.registry))
        else:
            push.push(said.out, registry(said.registry), said.tool, said.through)
    except (xpkg.PackageError, oci.OciError) as error:
        print(f"make_package: {error}", file=sys.stderr)
        return 1
    return 0


def registry(name: str) -> str:
    """The name, if packages can be named after it; else an error that says what is wrong with it."""
    if not re.fullmatch(f"({_HOST}){_PATH}", name):
        raise xpkg.PackageError(
            f"REGISTRY={name}: {_wrong(name)}; want a host and, where it has them, folders: ghcr.io/acme"
        )
    return name


def _wrong(name: str) -> str:
    host, _, path = name.partition("/")
    if not name:
        return "it names none, and Crossplane has no default"
    if "://" in name:
        return "it is an address, not a name"
    if name != name.lower():
        return "image names are lower case"
    if name.endswith("/"):
        return "it ends in a slash"
    if ":" in path or "@" in path:
        return "it has a tag, which comes from pyproject.toml"
    return f"{host} is no host" if not re.fullmatch(_HOST, host) else f"{path} is no path of an image"


def build(tree: Path, out: Path, registry: str, runtime: Path | None) -> None:
    """Write everything below `out`, which is emptied of what an earlier build left; nothing is pushed."""
    if not (out / RECORD).exists() and any((out / part).exists() for part in _PARTS):
        raise xpkg.PackageError(
            f"{out} holds {' or '.join(_PARTS)} of another origin: remove it, or name another --out"
        )
    revision = head(tree)
    changed = changes(tree) if revision else []
    release = xpkg.Release(xpkg.version(tree), registry, revision + ("-dirty" if changed else ""))
    made = xpkg.images(tree, release, runtime)
    for part in _PARTS:
        shutil.rmtree(out / part, ignore_errors=True)
    for old in out.glob("*.xpkg"):
        old.unlink()
    # Half a build is no build; and it says so, where the next one would take its folders for somebody else's.
    out.mkdir(parents=True, exist_ok=True)
    (out / RECORD).write_text("{}")
    digests, files = {}, {}
    for repository, images in made.items():
        digests[repository] = oci.write(out / repository, images, release.reference(repository))
        files[repository] = [_file(out, repository, image) for image in images]
        print(f"{release.reference(repository)}  {digests[repository]}")
    xpkg.write_install(tree, out / "install", release)
    said = {**asdict(release), "changed": changed, "runtime": runtime is not None}
    record = {**said, "digests": digests, "files": files}
    (out / RECORD).write_text(json.dumps(record, indent=2) + "\n")
    if runtime is None:
        print("no runtime in it: for a control plane that runs functions elsewhere")


def _file(out: Path, repository: str, image: oci.Image) -> str:
    # One architecture a file: the command line puts them under one tag.
    name = f"{repository.replace('/', '-')}-{image.platform['architecture']}.xpkg"
    (out / name).write_bytes(oci.archive(image))
    return name


def check(tree: Path, registry: str) -> None:
    """Raise where a push of what this tree makes would be refused, before anybody waits for a build."""
    faults = push.wrong_place(registry)
    if not push.on_loopback(registry):
        faults += push.wrong_tree(head(tree), changes(tree))
    if faults:
        raise xpkg.PackageError("; ".join(faults))


def head(tree: Path) -> str:
    """The commit that is checked out; "" in a tree that is no git checkout."""
    found = _git(tree, "rev-parse", "HEAD")
    return found.stdout.strip() if found.returncode == 0 else ""


def changes(tree: Path) -> list[str]:
    """Sources that differ from the commit, new ones among them."""
    found = _git(tree, "status", "--porcelain", "--", *SOURCES)
    return [line[3:] for line in found.stdout.splitlines()]


def _git(tree: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    git = shutil.which("git") or "git"
    try:
        return subprocess.run([git, "-C", str(tree), *arguments], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return subprocess.CompletedProcess([], 127, "", "no git")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make_package", description=(__doc__ or "").partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("build", "check", "push"):
        command = commands.add_parser(name)
        command.add_argument("--out", type=Path, default=Path("out/package"))
        command.add_argument("--registry", required=name != "build", default=xpkg.PLACEHOLDER)
        if name == "build":
            command.add_argument(
                "--runtime", type=Path, help="OCI layout of the image that serves the function"
            )
        if name == "push":
            command.add_argument("--tool", default="", choices=["", *push.TOOLS])
            command.add_argument("--through", default="", help="the registry as this machine calls it")
    return parser


if __name__ == "__main__":
    sys.exit(main())
