"""The cache's volume: where artifacts lie, what proves that one is whole, and what engines are pointed to."""

import contextlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

from modelplane.staging.outcome import CORRUPT, NO_SPACE, Failure

# What an engine may load by path, whatever the source: the newest artifact that is whole.
LINK = "model"
_OWN = ".modelplane"
_GIB = 1024**3


class Volume:
    """One mounted volume, seen by the run that stages one artifact.

    Args:
        root: where it is mounted.
        artifact: id of what is staged.
    """

    def __init__(self, root: Path, artifact: str) -> None:
        self.root = root
        self._marker = root / _OWN / f"{artifact}.json"
        self.folder = root / _OWN / "artifacts" / artifact
        # For what is fetched and not unpacked yet.
        self.scratch = root / _OWN / "scratch" / artifact

    def staged(self) -> dict[str, str]:
        """Return what the marker says where what it names is still there; else nothing."""
        try:
            found = json.loads(self._marker.read_text(encoding="utf-8"))
            whole = (self.root / str(found["path"])).is_dir() and isinstance(found["revision"], str)
            return {k: str(v) for k, v in found.items()} if whole else {}
        except (OSError, ValueError, KeyError, TypeError):
            return {}

    def finish(self, path: Path, facts: Mapping[str, str]) -> None:
        """Mark an artifact as whole, then point engines to it; each in one step, nobody reads half of it."""
        where = os.path.relpath(path, self.root)
        self._marker.parent.mkdir(exist_ok=True)
        draft = self._marker.with_suffix(f".{os.getpid()}")
        draft.write_text(json.dumps({**facts, "path": where}), encoding="utf-8")
        draft.replace(self._marker)
        self.point(where)

    def point(self, where: str) -> None:
        """Point engines to an artifact, relative to the root."""
        link = self.root / f".{LINK}.{os.getpid()}"
        with contextlib.suppress(FileNotFoundError):
            link.unlink()
        link.symlink_to(where)
        link.replace(self.root / LINK)

    def prune(self) -> None:
        """Drop what was copied here for artifacts that are neither in use nor being staged.

        Nothing where artifacts are whole and nothing says which of them is in use.
        """
        current = os.path.realpath(self.root / LINK)
        if not os.path.isdir(current) and any(self._marker.parent.glob("*.json")):
            return
        for own in (self.folder, self.scratch):
            for folder in own.parent.iterdir() if own.parent.is_dir() else ():
                if folder != own and os.path.realpath(folder) != current:
                    shutil.rmtree(folder, ignore_errors=True)

    def former(self) -> Iterator[tuple[Path, Path]]:
        """Yield marker and folder of each artifact that is neither in use nor being staged.

        None where nothing says what is in use.
        """
        current = (self.root / LINK).resolve()
        if not current.is_dir():
            return
        for marker in sorted(self._marker.parent.glob("*.json")):
            found = Volume(self.root, marker.stem).staged()
            path = (self.root / found.get("path", "")).resolve()
            if (
                found
                and marker != self._marker
                and path != current
                and path.is_relative_to(self.root.resolve())
            ):
                yield marker, path

    def need(self, missing: int) -> None:
        """Fail now rather than in hours where the volume cannot take what is missing."""
        free = shutil.disk_usage(self.root).free
        if missing > free:
            raise Failure(
                NO_SPACE,
                f"{missing / _GIB:.1f} GiB are missing and {free / _GIB:.1f} GiB are free: raise sizeGiB",
                hopeless=True,
            )

    def place(self, name: str) -> Path:
        """Return where a file of the artifact goes.

        Raises:
            Failure: for a name that leads out of the artifact, whoever wrote it.
        """
        parts = PurePosixPath(name).parts
        if not parts or name.startswith("/") or ".." in parts or "\0" in name:
            raise Failure(CORRUPT, "a file's name leads out of the artifact", hopeless=True)
        path = self.folder.joinpath(*parts)
        if not path.parent.resolve().is_relative_to(self.folder.resolve()):
            raise Failure(CORRUPT, "a link in the artifact leads out of it", hopeless=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        return path
