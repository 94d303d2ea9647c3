"""A prefix in an object store (S3 and what speaks it, Google Cloud Storage), copied file by file."""

import hashlib
import json
import os
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

from modelplane.staging import outcome
from modelplane.staging.outcome import Failure
from modelplane.staging.stores import Entry, Store, store_of
from modelplane.staging.volume import Volume

_WORKERS = 8
_INDEX = ".objects.json"


class Bucket:
    """One prefix.

    Args:
        env: of the run.
        volume: that it goes to.
        store: that is read; None takes the one that the URI's scheme names.
    """

    def __init__(self, env: Mapping[str, str], volume: Volume, store: Store | None = None) -> None:
        uri = urlsplit(env["STAGING_LOCATION"])
        self._bucket, self._prefix = uri.netloc, uri.path.lstrip("/")
        self._volume = volume
        self._store = store or store_of(uri.scheme, env)
        self._total = self._done = 0
        self._lock = threading.Lock()
        self._index: dict[str, str] = {}

    def progress(self) -> tuple[int, int]:
        """Return the bytes that are there and those that are wanted."""
        return self._done, self._total

    def fetch(self) -> tuple[Path, str]:
        """Copy what is below the prefix; return where it is and a digest over keys, sizes and tags."""
        entries = sorted(self._listed(), key=lambda e: e.key)
        if not entries:
            raise Failure(outcome.NOT_FOUND, "nothing is below the prefix", hopeless=True)
        self._volume.folder.mkdir(parents=True, exist_ok=True)
        self._index = self._read_index()
        self._total = sum(e.size for e in entries)
        missing = [e for e in entries if not self._has(e)]
        self._done = self._total - sum(e.size for e in missing)
        self._volume.need(sum(e.size - self._partial(e) for e in missing))
        with ThreadPoolExecutor(_WORKERS) as pool:
            list(pool.map(self._copy, missing))
        self._drop_others({self._name(e) for e in entries})
        return self._volume.folder, _digest(entries)

    def _listed(self) -> Iterator[Entry]:
        prefix = self._prefix
        for entry in self._store.entries(self._bucket, prefix):
            # A prefix is text, not a folder: "models/a" also begins "models/ab".
            inside = not prefix or prefix.endswith("/") or entry.key[len(prefix) :][:1] in ("", "/")
            if inside and not entry.key.endswith("/"):
                yield entry

    def _name(self, entry: Entry) -> str:
        return entry.key[len(self._prefix) :].lstrip("/") or entry.key.rpartition("/")[2]

    def _draft(self, entry: Entry) -> Path:
        path = self._volume.place(self._name(entry))
        mark = hashlib.sha256(entry.tag.encode()).hexdigest()[:8]
        return path.with_name(f".{path.name}.{mark}.part")

    def _partial(self, entry: Entry) -> int:
        draft = self._draft(entry)
        return min(draft.stat().st_size, entry.size) if draft.is_file() else 0

    def _has(self, entry: Entry) -> bool:
        path = self._volume.place(self._name(entry))
        same = self._index.get(self._name(entry)) == entry.tag
        return same and path.is_file() and path.stat().st_size == entry.size

    def _copy(self, entry: Entry) -> None:
        draft, offset = self._draft(entry), self._partial(entry)
        self._count(offset)
        with draft.open("ab") as file:
            file.truncate(offset)
            if offset < entry.size:
                for chunk in self._store.read(self._bucket, entry, offset):
                    file.write(chunk)
                    self._count(len(chunk))
            file.flush()
            os.fsync(file.fileno())
        if draft.stat().st_size != entry.size or (entry.md5 and _md5(draft) != entry.md5):
            draft.unlink()
            raise Failure(outcome.CORRUPT, "an object differs from what the store listed")
        draft.replace(self._volume.place(self._name(entry)))
        with self._lock:
            self._index[self._name(entry)] = entry.tag
            self._write_index()

    def _count(self, size: int) -> None:
        with self._lock:
            self._done += size

    def _read_index(self) -> dict[str, str]:
        try:
            found = json.loads((self._volume.folder / _INDEX).read_text(encoding="utf-8"))
            return {str(k): str(v) for k, v in found.items()}
        except (OSError, ValueError, AttributeError):
            return {}

    def _write_index(self) -> None:
        draft = self._volume.folder / f"{_INDEX}.part"
        draft.write_text(json.dumps(self._index), encoding="utf-8")
        draft.replace(self._volume.folder / _INDEX)

    def _drop_others(self, names: set[str]) -> None:
        """Remove files of an earlier listing: a mix of two versions of a model loads and answers nonsense."""
        for path in self._volume.folder.rglob("*"):
            name = path.relative_to(self._volume.folder).as_posix()
            if path.is_file() and name not in names and name != _INDEX:
                path.unlink()


def _digest(entries: list[Entry]) -> str:
    found = hashlib.sha256()
    for entry in entries:
        found.update(f"{entry.key}\0{entry.size}\0{entry.tag}\n".encode())
    return f"sha256:{found.hexdigest()}"


def _md5(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
