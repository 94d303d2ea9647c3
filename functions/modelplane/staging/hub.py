"""A repository of the Hugging Face hub, in the hub's own cache layout: engines load it by repository id."""

import hashlib
import importlib
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from modelplane.staging import outcome
from modelplane.staging.outcome import Failure
from modelplane.staging.volume import Volume

_CHUNK = 8 * 1024**2
_READERS = 4
_COMMIT = re.compile(r"[0-9a-f]{40}")
# What git and the hub name a file's content by: SHA-1 with a header, or SHA-256 where the file is large.
_DIGEST = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
# Where the hub's clients look for a revision that nobody named.
_DEFAULT = "main"
# A part of a name that git takes (git-check-ref-format), short enough for a file: the cache makes one of it.
# Others would be another request: of a/./b a client makes a/b.
_REF = re.compile(r"(?!\.)[^\x00-\x20\x7f~^:?*\[\\]{1,200}(?<!\.)(?<!\.lock)")


@dataclass(frozen=True, slots=True)
class File:
    """A file of a revision.

    Attributes:
        path: in the repository.
        digest: of its content, in hex; empty where the hub does not tell.
        size: in bytes.
    """

    path: str
    digest: str
    size: int


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
        return self._volume.root / _folder(self._repo) / "blobs"

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
        parts = self._revision.split("/") if self._revision else []
        if not all(_REF.fullmatch(part) and ".." not in part for part in parts):
            raise Failure(outcome.INVALID, "the revision is no branch, tag or commit", hopeless=True)
        hub = importlib.import_module("huggingface_hub")
        with _translated():
            info = hub.HfApi().model_info(
                self._repo, revision=self._revision or None, files_metadata=True, token=self._token
            )
        commit, files = str(info.sha or ""), list(_files(info.siblings or ()))
        if not _COMMIT.fullmatch(commit):
            raise Failure(outcome.UNREACHABLE, "the hub does not say which commit this is")
        if not files:
            raise Failure(outcome.NOT_FOUND, "the repository holds no files", hopeless=True)
        self._blobs = {f.digest: f.size for f in files if f.digest}
        self._drop_overlong()
        self._drop_former(commit)
        self._need()
        snapshot = self._download(hub, commit)
        verify(snapshot, files)
        self._name(commit)
        return snapshot, commit

    def _need(self) -> None:
        done, total = self.progress()
        self._volume.need(total - done)

    def _drop_overlong(self) -> None:
        """Drop unfinished files that are longer than the whole: the client would ask on, for ever."""
        for name, size in self._blobs.items():
            for path in self._folder.glob(f"{name}*.incomplete"):
                if path.stat().st_size > size:
                    path.unlink()

    def _drop_former(self, commit: str) -> None:
        """Drop the revisions staged before the one in use, and the files that no other names.

        What engines fetched here themselves has no marker and stays.
        """
        for marker, snapshot in self._volume.former():
            repo = snapshot.parent.parent
            if snapshot.parent.name != "snapshots" or snapshot.name == commit:
                continue
            shutil.rmtree(snapshot, ignore_errors=True)
            marker.unlink(missing_ok=True)
            named = {file.resolve() for file in repo.glob("snapshots/**/*") if file.is_file()}
            for blob in repo.glob("blobs/*"):
                if blob.resolve() not in named and blob.suffix != ".incomplete":
                    blob.unlink(missing_ok=True)

    def _download(self, hub: Any, commit: str) -> Path:
        """Return where the files are, as far as the client brought them; it asks for the commit once more."""
        root = str(self._volume.root)
        try:
            # By its commit: a branch that moves meanwhile would bring files that nobody listed.
            with _translated(moving=self._revision != commit):
                found = hub.snapshot_download(
                    repo_id=self._repo, revision=commit, cache_dir=root, token=self._token
                )
        except (Failure, OSError):
            raise
        except Exception:
            # hf_xet says RuntimeError to whatever befell it, a full volume included.
            self._need()
            raise
        return Path(found)

    def _name(self, commit: str) -> None:
        """Let engines that ask nobody find the commit by the revision's name, now that all of it is there."""
        if self._revision == commit:
            return
        ref = self._volume.root / _folder(self._repo) / "refs" / (self._revision or _DEFAULT)
        draft = ref.with_name(f"{ref.name}.{os.getpid()}")
        try:
            ref.parent.mkdir(parents=True, exist_ok=True)
            draft.write_text(commit, encoding="utf-8")
            draft.replace(ref)
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            # Branches `a` and `a/b` at different times: the older one's engines keep theirs.
            outcome.say("the revision's name is taken by another: engines find it by path or commit")


def _folder(repo: str) -> str:
    return f"models--{repo.replace('/', '--')}"


def _files(siblings: Iterable[Any]) -> Iterator[File]:
    for file in siblings:
        large = getattr(file, "lfs", None)
        digest = str(getattr(large, "sha256", None) or getattr(file, "blob_id", None) or "")
        size = int(getattr(large, "size", None) or getattr(file, "size", None) or 0)
        path = str(file.rfilename)
        if path.startswith("/") or ".." in path.split("/"):
            raise Failure(outcome.CORRUPT, "a file's name leads out of the repository", hopeless=True)
        yield File(path, digest if _DIGEST.fullmatch(digest) else "", size)


def verify(snapshot: Path, files: Iterable[File]) -> None:
    """Compare every file of the revision with its digest, and drop those that differ.

    The hub's cache checks sizes only, and its client takes a folder that an earlier run left half full for
    the whole where its own look-up of the revision fails (huggingface_hub 0.32, _snapshot_download.py).
    """
    wanted = list(files)
    if absent := [f.path for f in wanted if not (snapshot / f.path).is_file()]:
        raise Failure(outcome.UNREACHABLE, f"{len(absent)} of {len(wanted)} files did not come")
    blobs = sorted({((snapshot / f.path).resolve(), f.digest) for f in wanted if f.digest})
    with ThreadPoolExecutor(_READERS) as pool:
        broken = [blob[0] for blob, whole in zip(blobs, pool.map(_is_whole, blobs), strict=True) if not whole]
    for path in broken:
        path.unlink(missing_ok=True)
    if broken:
        raise Failure(outcome.CORRUPT, f"{len(broken)} files differ from what the hub says they hold")


def _is_whole(blob: tuple[Path, str]) -> bool:
    path, digest = blob
    found: Any = hashlib.sha256()
    if len(digest) != found.digest_size * 2:
        found = hashlib.sha1(f"blob {path.stat().st_size}\0".encode(), usedforsecurity=False)
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            found.update(chunk)
    return bool(found.hexdigest() == digest)


@contextmanager
def _translated(*, moving: bool = False) -> Iterator[None]:
    """Turn the hub's errors into outcomes: its messages carry URLs, so only their kind is told.

    Args:
        moving: whether the commit was found by a name, which another run may find elsewhere.
    """
    errors = importlib.import_module("huggingface_hub.errors")
    try:
        yield
    except (errors.HFValidationError, errors.HfHubHTTPError) as error:
        # "Not on the disk either" is what a download says; why it looked there is the cause.
        cause = error.__cause__ if isinstance(error, errors.LocalEntryNotFoundError) else None
        raise _failure(errors, cause or error, moving) from None


def _failure(errors: Any, error: BaseException, moving: bool) -> Failure:
    if isinstance(error, errors.HFValidationError):
        return Failure(
            outcome.INVALID, "the repository id is none: it reads organisation/name", hopeless=True
        )
    if isinstance(error, errors.GatedRepoError):
        text = "the repository is gated: accept its terms with the token's account"
        return Failure(outcome.UNAUTHORIZED, text, hopeless=True)
    if isinstance(error, errors.DisabledRepoError):
        return Failure(outcome.NOT_FOUND, "the hub has disabled the repository", hopeless=True)
    if isinstance(error, errors.RepositoryNotFoundError):
        text = "no such repository, or the token may not read it"
        return Failure(outcome.NOT_FOUND, text, hopeless=True)
    if isinstance(error, errors.RevisionNotFoundError):
        if moving:
            return Failure(outcome.UNREACHABLE, "the revision moved while it was read")
        return Failure(outcome.NOT_FOUND, "no such branch, tag or commit", hopeless=True)
    code = getattr(getattr(error, "response", None), "status_code", 0)
    if code == 400:
        text = "the hub finds the repository or the revision malformed"
        return Failure(outcome.INVALID, text, hopeless=True)
    if code in (401, 403):
        return Failure(outcome.UNAUTHORIZED, "the hub refuses the token", hopeless=True)
    return Failure(outcome.UNREACHABLE, f"the hub answers {code or 'nothing'}")
