"""A repository of the Hugging Face hub, in the hub's own cache layout: engines load it by repository id."""

import hashlib
import importlib
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from modelplane.staging import outcome
from modelplane.staging.outcome import Failure
from modelplane.staging.volume import Volume

_CHUNK = 8 * 1024**2
_READERS = 4
_SHA256 = 64


class Hub:
    """One repository at one revision.

    Args:
        env: of the run.
        volume: that it goes to.
    """

    def __init__(self, env: Mapping[str, str], volume: Volume) -> None:
        self._repo, self._revision = env["STAGING_LOCATION"], env.get("STAGING_REVISION", "")
        self._token = env.get("HF_TOKEN") or False
        self._volume = volume
        # Sizes of what the revision holds, by the name that the hub's cache gives it.
        self._blobs: dict[str, int] = {}

    @property
    def _folder(self) -> Path:
        return self._volume.root / f"models--{self._repo.replace('/', '--')}" / "blobs"

    def progress(self) -> tuple[int, int]:
        """Return the bytes that are there and those that are wanted."""
        return sum(self._there(name, size) for name, size in self._blobs.items()), sum(self._blobs.values())

    def _there(self, name: str, size: int) -> int:
        try:
            if (self._folder / name).is_file():
                return size
            # Unfinished files may be written in ranges: what counts is what lies on the disk.
            parts = [f.stat() for f in self._folder.glob(f"{name}*.incomplete")]
            return max((min(size, x.st_size, x.st_blocks * 512) for x in parts), default=0)
        except OSError:
            return 0

    def fetch(self) -> tuple[Path, str]:
        """Stage the repository; return where it is and the commit it is at."""
        if self._revision.startswith("/") or ".." in self._revision.split("/"):
            # The hub's cache makes a file of the revision's name below refs/.
            raise Failure(outcome.INVALID, "the revision is no branch, tag or commit", hopeless=True)
        hub = importlib.import_module("huggingface_hub")
        revision = self._revision or None
        with _translated():
            info = hub.HfApi().model_info(
                self._repo, revision=revision, files_metadata=True, token=self._token
            )
            self._blobs = dict(_blobs(info.siblings or ()))
            done, total = self.progress()
            self._volume.need(total - done)
            snapshot = Path(
                hub.snapshot_download(
                    repo_id=self._repo,
                    revision=revision,
                    cache_dir=str(self._volume.root),
                    token=self._token,
                )
            )
        verify(snapshot)
        return snapshot, snapshot.name


def _blobs(siblings: Any) -> Iterator[tuple[str, int]]:
    for file in siblings:
        large = getattr(file, "lfs", None)
        name = getattr(large, "sha256", None) or getattr(file, "blob_id", None)
        if name:
            yield str(name), int(getattr(large, "size", None) or getattr(file, "size", None) or 0)


def verify(snapshot: Path) -> None:
    """Compare every file with the digest that names it, and drop those that differ.

    The hub's cache checks sizes only. Large files are named by their SHA-256, others as git names them.
    """
    blobs = sorted({f.resolve() for f in snapshot.rglob("*") if f.is_file()})
    with ThreadPoolExecutor(_READERS) as pool:
        broken = [blob for blob, whole in zip(blobs, pool.map(_is_whole, blobs), strict=True) if not whole]
    for blob in broken:
        blob.unlink(missing_ok=True)
    if broken:
        raise Failure(outcome.CORRUPT, f"{len(broken)} files differ from what the hub says they hold")


def _is_whole(blob: Path) -> bool:
    name = blob.name
    if set(name) - set("0123456789abcdef") or len(name) not in (40, _SHA256):
        return True
    found: Any = hashlib.sha256()
    if len(name) != _SHA256:
        # git's own way to name a file: SHA-1, with a header.
        found = hashlib.sha1(f"blob {blob.stat().st_size}\0".encode(), usedforsecurity=False)
    with blob.open("rb") as file:
        while chunk := file.read(_CHUNK):
            found.update(chunk)
    return bool(found.hexdigest() == name)


@contextmanager
def _translated() -> Iterator[None]:
    """Turn the hub's errors into outcomes: its messages carry URLs, so only their kind is told."""
    errors = importlib.import_module("huggingface_hub.errors")
    try:
        yield
    except errors.GatedRepoError:
        text = "the repository is gated: accept its terms with the token's account"
        raise Failure(outcome.UNAUTHORIZED, text, hopeless=True) from None
    except errors.RepositoryNotFoundError:
        text = "no such repository, or the token may not read it"
        raise Failure(outcome.NOT_FOUND, text, hopeless=True) from None
    except errors.RevisionNotFoundError:
        raise Failure(outcome.NOT_FOUND, "no such branch, tag or commit", hopeless=True) from None
    except errors.HFValidationError:
        text = "the repository id is none: it reads organisation/name"
        raise Failure(outcome.INVALID, text, hopeless=True) from None
    except errors.HfHubHTTPError as error:
        code = getattr(getattr(error, "response", None), "status_code", 0)
        if code in (401, 403):
            raise Failure(outcome.UNAUTHORIZED, "the hub refuses the token", hopeless=True) from None
        raise Failure(outcome.UNREACHABLE, f"the hub answers {code or 'nothing'}") from None
