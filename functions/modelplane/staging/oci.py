"""An image or artifact in an OCI registry, unpacked layer by layer; every byte is checked by its digest."""

import os
import shutil
import tarfile
import zlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal

from modelplane.staging import outcome
from modelplane.staging.outcome import Failure
from modelplane.staging.registry import CHUNK, Reference, Registry
from modelplane.staging.volume import Volume

_WORKERS = 4
_PLATFORM = {"os": "linux", "architecture": "amd64"}
# A whole file as a layer: ORAS names it by its title, ModelPack by its path.
_NAMES = ("org.opencontainers.image.title", "org.cncf.model.filepath")
_WHITEOUT, _OPAQUE = ".wh.", ".wh..wh..opq"


class Image:
    """One image or artifact.

    Args:
        env: of the run.
        volume: that it goes to.
        registry: that is asked; None takes the one that the reference names.
    """

    def __init__(self, env: Mapping[str, str], volume: Volume, registry: Registry | None = None) -> None:
        self._reference = Reference.parse(env["STAGING_LOCATION"])
        self._registry = registry or Registry(self._reference, env.get("STAGING_REGISTRY_AUTH", ""))
        self._volume = volume
        self._sizes: dict[str, int] = {}
        self._finished = False

    def progress(self) -> tuple[int, int]:
        """Return the bytes that are there and those that are wanted, as the registry holds them."""
        if self._finished:
            return sum(self._sizes.values()), sum(self._sizes.values())
        done = 0
        for digest, size in self._sizes.items():
            if self._unpacked(digest).exists():
                done += size
            elif (blob := self._blob(digest)).exists():
                done += min(blob.stat().st_size, size)
        return done, sum(self._sizes.values())

    def fetch(self) -> tuple[Path, str]:
        """Unpack the layers in their order; return where they are and the digest of what the name meant."""
        digest, manifest = self._manifest()
        layers = [x for x in manifest.get("layers", ()) if isinstance(x, dict)]
        if not layers:
            raise Failure(outcome.NOT_FOUND, "the artifact has no layers", hopeless=True)
        self._sizes = {str(x["digest"]): int(x["size"]) for x in layers}
        self._volume.folder.mkdir(parents=True, exist_ok=True)
        self._volume.scratch.mkdir(parents=True, exist_ok=True)
        done, total = self.progress()
        self._volume.need(total - done)
        missing = [x for x in layers if not self._unpacked(str(x["digest"])).exists()]
        with ThreadPoolExecutor(_WORKERS) as pool:
            fetched = [(layer, pool.submit(self._fetch, layer)) for layer in missing]
            for layer, future in fetched:
                future.result()
                self._unpack(layer)
        _open_to_all(self._volume.folder)
        self._finished = True
        shutil.rmtree(self._volume.scratch, ignore_errors=True)
        return self._volume.folder, digest

    def _manifest(self) -> tuple[str, Mapping[str, Any]]:
        digest, found = self._registry.manifest(self._reference.version)
        if not isinstance(found.get("manifests"), list):
            return digest, found
        entries = [x for x in found["manifests"] if isinstance(x, dict)]
        fitting = [
            x
            for x in entries
            if all(x.get("platform", _PLATFORM).get(key) == value for key, value in _PLATFORM.items())
        ]
        if not fitting:
            raise Failure(outcome.NOT_FOUND, "no manifest of the index is for linux/amd64", hopeless=True)
        return digest, self._registry.manifest(str(fitting[0]["digest"]))[1]

    def _blob(self, digest: str) -> Path:
        return self._volume.scratch / digest.partition(":")[2]

    def _unpacked(self, digest: str) -> Path:
        return self._volume.scratch / f"{digest.partition(':')[2]}.unpacked"

    def _fetch(self, layer: Mapping[str, Any]) -> None:
        self._registry.blob(str(layer["digest"]), int(layer["size"]), self._blob(str(layer["digest"])))

    def _unpack(self, layer: Mapping[str, Any]) -> None:
        digest, kind = str(layer["digest"]), str(layer.get("mediaType", ""))
        blob = self._blob(digest)
        annotations = layer.get("annotations") or {}
        name = next((str(annotations[x]) for x in _NAMES if annotations.get(x)), "")
        if kind.endswith("zstd"):
            raise Failure(outcome.INVALID, "a layer is packed with zstd: pack it with gzip", hopeless=True)
        if "tar" in kind:
            self._untar(blob, packed=kind.endswith("gzip"))
            blob.unlink()
        elif name:
            blob.replace(self._volume.place(name))
        else:
            raise Failure(outcome.INVALID, "a layer is neither a tar nor a named file", hopeless=True)
        # Last, so that an unpacking that was cut short is done again, over what it left.
        self._unpacked(digest).touch()

    def _untar(self, blob: Path, *, packed: bool) -> None:
        mode: Literal["r|gz", "r|"] = "r|gz" if packed else "r|"
        try:
            with tarfile.open(blob, mode, bufsize=CHUNK) as archive:
                for member in archive:
                    self._member(archive, member)
        except (tarfile.ReadError, zlib.error, EOFError):
            raise Failure(outcome.CORRUPT, "a layer is no tar archive", hopeless=True) from None

    def _member(self, archive: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        folder, _, name = member.name.rpartition("/")
        if name == _OPAQUE:
            for found in self._volume.place(f"{folder}/x" if folder else "x").parent.iterdir():
                _remove(found)
        elif name.startswith(_WHITEOUT):
            gone = name.removeprefix(_WHITEOUT)
            _remove(self._volume.place(f"{folder}/{gone}" if folder else gone))
        else:
            try:
                archive.extract(member, self._volume.folder, filter="data")
            except tarfile.FilterError:
                # Devices, and links that lead elsewhere: a root file system has them, a model does not.
                return


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _open_to_all(folder: Path) -> None:
    """Let engines read what was packed for one user only: they run as another."""
    for path, folders, files in os.walk(folder):
        for name in folders:
            (Path(path) / name).chmod(0o755)
        for name in files:
            found = Path(path) / name
            if not found.is_symlink():
                found.chmod(0o755 if found.stat().st_mode & 0o100 else 0o644)
