"""Staging from an object store: what is copied, resumed, checked and refused."""

from __future__ import annotations

import base64
import hashlib
import io
import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from builders import staging as s
from modelplane.staging import main as program
from modelplane.staging import outcome, stores
from modelplane.staging.bucket import Bucket
from modelplane.staging.outcome import Failure
from modelplane.staging.stores import Entry
from modelplane.staging.volume import Volume

URI = "s3://weights/qwen"


@dataclass
class Shelf:
    """A store in memory."""

    held: dict[str, bytes] = field(default_factory=dict)
    md5: dict[str, str] = field(default_factory=dict)
    cut: int = 0
    reads: list[tuple[str, int]] = field(default_factory=list)

    def entries(self, _: str, prefix: str) -> Iterator[Entry]:
        for key, data in self.held.items():
            if key.startswith(prefix):
                yield Entry(key, len(data), f'"{hashlib.md5(data).hexdigest()}"', self.md5.get(key, ""))

    def read(self, _: str, entry: Entry, offset: int) -> Iterator[bytes]:
        self.reads.append((entry.key, offset))
        data = self.held[entry.key][offset:]
        if self.cut:
            cut, self.cut = self.cut, 0
            yield data[:cut]
            raise ConnectionError("reset")
        yield data


def shelf(**over: Any) -> Shelf:
    held = {"qwen/config.json": b"{}", "qwen/sub/part-1": b"0123456789", "qwen/": b"", "qwenish/x": b"no"}
    return Shelf(**{"held": held, **over})


def bucket(root: Path, store: Shelf, uri: str = URI) -> Bucket:
    return Bucket(s.env(root, "Bucket", uri), Volume(root, "id1"), store)


def test_a_prefix_is_copied_with_its_folders_and_nothing_of_its_neighbours(tmp_path: Path) -> None:
    source = bucket(tmp_path, shelf())
    folder, revision = source.fetch()
    files = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}
    assert files == {"config.json", "sub/part-1", ".objects.json"}
    assert (folder / "sub" / "part-1").read_bytes() == b"0123456789"
    assert revision.startswith("sha256:")
    assert source.progress() == (12, 12)


def test_the_revision_follows_the_content_and_not_the_order_of_a_listing(tmp_path: Path) -> None:
    first = bucket(tmp_path / "a", shelf())
    turned = shelf()
    turned.held = dict(reversed(turned.held.items()))
    other = shelf()
    other.held["qwen/config.json"] = b"[]"
    revisions = []
    for name, source in (("a", first), ("b", bucket(tmp_path / "b", turned)), ("c", None)):
        (tmp_path / name).mkdir(exist_ok=True)
        revisions.append((source or bucket(tmp_path / "c", other)).fetch()[1])
    assert revisions[0] == revisions[1] != revisions[2]


def test_a_broken_download_goes_on_where_it_stopped(tmp_path: Path) -> None:
    store = shelf(held={"qwen/w": b"0123456789"}, cut=4)
    with pytest.raises(ConnectionError):
        bucket(tmp_path, store).fetch()
    source = bucket(tmp_path, store)
    folder, _ = source.fetch()
    assert store.reads == [("qwen/w", 0), ("qwen/w", 4)]
    assert (folder / "w").read_bytes() == b"0123456789"
    assert source.progress() == (10, 10)
    bucket(tmp_path, store).fetch()
    assert len(store.reads) == 2, "what is there is not read again"


def test_a_changed_object_is_not_joined_to_the_old_one(tmp_path: Path) -> None:
    store = shelf(held={"qwen/w": b"0123456789", "qwen/gone": b"x"})
    folder, _ = bucket(tmp_path, store).fetch()
    store.held = {"qwen/w": b"abcdefghij"}
    bucket(tmp_path, store).fetch()
    assert (folder / "w").read_bytes() == b"abcdefghij"
    assert not (folder / "gone").exists(), "a mix of two versions loads and answers nonsense"


def test_what_differs_from_the_listing_is_thrown_away(tmp_path: Path) -> None:
    store = shelf(held={"qwen/w": b"0123456789"}, md5={"qwen/w": "0" * 32})
    with pytest.raises(Failure) as failed:
        bucket(tmp_path, store).fetch()
    assert failed.value.reason == "Corrupt"
    assert failed.value.hopeless is False
    assert not [p for p in tmp_path.rglob("*w*") if p.is_file()]


@pytest.mark.parametrize(
    ("reason", "held", "uri"),
    [
        ("nothing there", {}, URI),
        ("only a folder's own entry", {"qwen/": b""}, URI),
        ("only a neighbour", {"qwenish/x": b"no"}, URI),
    ],
)
def test_an_empty_prefix_is_no_model(reason: str, held: dict[str, bytes], uri: str, tmp_path: Path) -> None:
    with pytest.raises(Failure) as failed:
        bucket(tmp_path, Shelf(held=held), uri).fetch()
    assert (failed.value.reason, failed.value.hopeless) == ("NotFound", True), reason


def test_a_single_object_and_a_whole_bucket_are_prefixes_too(tmp_path: Path) -> None:
    one = bucket(tmp_path / "1", shelf(), "s3://weights/qwen/config.json")
    (tmp_path / "1").mkdir()
    assert (one.fetch()[0] / "config.json").exists()
    (tmp_path / "2").mkdir()
    whole = bucket(tmp_path / "2", shelf(), "s3://weights").fetch()[0]
    assert (whole / "qwenish" / "x").exists()


@pytest.mark.parametrize("key", ["qwen/../../../x", "qwen//../../etc/x"])
def test_a_key_that_is_a_path_out_of_the_volume_is_refused(key: str, tmp_path: Path) -> None:
    with pytest.raises(Failure) as failed:
        bucket(tmp_path, Shelf(held={key: b"x"})).fetch()
    assert failed.value.hopeless is True


class ClientError(Exception):
    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.response = {"Error": {"Code": code}}


# As in botocore.exceptions 1.44, where each of these is a kind of its own.
BOTO = {
    name: type(name, (Exception,), {})
    for name in (
        *("NoCredentialsError", "PartialCredentialsError"),
        *("ConnectionError", "HTTPClientError", "IncompleteReadError"),
    )
}


class Client:
    """Stands in for boto3's S3 client."""

    def __init__(self, fails: Exception | None = None, breaks: Exception | None = None) -> None:
        self.fails, self.breaks, self.asked = fails, breaks, []

    def get_paginator(self, _: str) -> Client:
        return self

    def paginate(self, **_: str) -> list[dict[str, Any]]:
        if self.fails is not None:
            raise self.fails
        return [{"Contents": [{"Key": "qwen/w", "Size": 3, "ETag": '"e"'}]}, {}]

    def get_object(self, **asked: str) -> dict[str, Any]:
        self.asked.append(asked)
        return {"Body": types.SimpleNamespace(iter_chunks=lambda _: self._chunks())}

    def _chunks(self) -> Iterator[bytes]:
        if self.breaks is not None:
            raise self.breaks
        yield b"abc"


def boto(monkeypatch: pytest.MonkeyPatch, client: Client) -> None:
    modules = {
        "boto3": {"client": lambda *_, **__: client},
        "botocore": {},
        "botocore.config": {"Config": lambda **_: None},
        "botocore.exceptions": {"ClientError": ClientError, **BOTO},
    }
    _install(monkeypatch, modules)


def _install(monkeypatch: pytest.MonkeyPatch, modules: dict[str, dict[str, Any]]) -> None:
    for name, content in modules.items():
        module = types.ModuleType(name)
        module.__dict__.update(content)
        monkeypatch.setitem(sys.modules, name, module)


def test_s3_reads_the_version_that_was_listed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    client = Client()
    boto(monkeypatch, client)
    report = s.Heard()
    assert program.main(s.env(tmp_path, "Bucket", URI), report) == 0
    assert client.asked == [{"Bucket": "weights", "Key": "qwen/w", "IfMatch": '"e"'}]
    assert (tmp_path / "model" / "w").read_bytes() == b"abc"


CODES: list[tuple[Exception, str, int]] = [
    (ClientError("AccessDenied"), "Unauthorized", 2),
    (ClientError("ExpiredToken"), "Unauthorized", 2),
    (ClientError("NoSuchBucket"), "NotFound", 2),
    (ClientError("SlowDown"), "Unreachable", 1),
    (ClientError("InvalidToken"), "Unauthorized", 2),
    (BOTO["NoCredentialsError"]("key s3cret"), "Unauthorized", 2),
    (BOTO["PartialCredentialsError"]("key s3cret"), "Unauthorized", 2),
    (BOTO["ConnectionError"]("https://s3cret"), "Unreachable", 1),
]


@pytest.mark.parametrize(("error", "reason", "code"), CODES, ids=str)
def test_what_s3_refuses_is_told_without_its_text(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: Exception, reason: str, code: int
) -> None:
    boto(monkeypatch, Client(error))
    report = s.Heard()
    assert program.main(s.env(tmp_path, "Bucket", URI), report, ()) == code
    assert report.last["reason"] == reason
    assert "s3cret" not in str(report.told)


BREAKS: list[tuple[Exception, str, str]] = [
    (BOTO["IncompleteReadError"]("x"), "Unreachable", "a line that broke is gone on with"),
    (BOTO["HTTPClientError"]("x"), "Unreachable", "a store that stopped to answer"),
    (ClientError("NoSuchKey"), "Unreachable", "what was listed is gone: the next listing tells"),
    (ClientError("PreconditionFailed"), "Unreachable", "what was listed is another object now"),
]


@pytest.mark.parametrize(("error", "told", "reason"), BREAKS, ids=[b[2] for b in BREAKS])
def test_what_breaks_a_download_is_tried_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: Exception, told: str, reason: str
) -> None:
    client = Client(breaks=error)
    boto(monkeypatch, client)
    report = s.Heard()
    assert program.main(s.env(tmp_path, "Bucket", URI), report, ()) == 1, reason
    assert report.last["reason"] == told, reason
    client.breaks = None
    assert program.main(s.env(tmp_path, "Bucket", URI), report, ()) == 0, reason


def test_an_object_that_is_a_folder_too_is_no_reason_to_try_for_ever(tmp_path: Path) -> None:
    """A store's keys are text: it may hold both."""
    held = {"models/a": b"1", "models/a/b": b"2"}
    with pytest.raises(OSError) as failed:  # noqa: PT011  (of what kind is judged below)
        bucket(tmp_path, Shelf(held=held), "s3://weights/models").fetch()
    told = outcome.of_os_error(failed.value)
    assert (told.reason, told.hopeless) == ("Invalid", True)


class Forbidden(Exception):  # noqa: N818  (its name there)
    pass


class Blobs:
    """Stands in for Google's client."""

    key: Any = "none"

    def __init__(self, fails: Exception | None = None) -> None:
        self.fails = fails

    @classmethod
    def from_service_account_info(cls, key: Any) -> Blobs:
        cls.key = key
        return cls()

    def list_blobs(self, _: str, prefix: str) -> list[Any]:
        if self.fails is not None:
            raise self.fails
        md5 = base64.b64encode(hashlib.md5(b"abcdef").digest()).decode()
        return [types.SimpleNamespace(name=f"{prefix}/w", size=6, generation=7, md5_hash=md5)]

    def bucket(self, _: str) -> Blobs:
        return self

    def blob(self, _: str, generation: int) -> Blobs:
        assert generation == 7
        return self

    def open(self, *_: Any, **__: Any) -> Any:
        return io.BytesIO(b"abcdef")


class GoogleError(Exception):
    code = 503


class AuthError(Exception):
    retryable = False


class TransportError(AuthError):
    pass


GOOGLE: list[tuple[Exception, str, int, str]] = [
    (Forbidden("s3cret"), "Unauthorized", 2, "a key without rights"),
    (AuthError("s3cret"), "Unauthorized", 2, "a key that was revoked is met with the first request"),
    (TransportError("s3cret"), "Unreachable", 1, "the token service does not answer"),
    (GoogleError("s3cret"), "Unreachable", 1, "the store is overloaded"),
    (KeyError("s3cret"), "NotFound", 2, "no such bucket"),
]


@pytest.mark.parametrize(("error", "told", "code", "reason"), GOOGLE, ids=[g[3] for g in GOOGLE])
def test_what_google_refuses_is_told_without_its_text(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: Exception, told: str, code: int, reason: str
) -> None:
    google(monkeypatch, lambda: Blobs(error))
    report = s.Heard()
    assert program.main(s.env(tmp_path, "Bucket", "gs://weights/qwen"), report, ()) == code, reason
    assert report.last["reason"] == told, reason
    assert "s3cret" not in str(report.told)


def google(monkeypatch: pytest.MonkeyPatch, client: Any) -> None:
    errors = {
        "GoogleAPIError": GoogleError,
        "Forbidden": Forbidden,
        "Unauthorized": type("Unauthorized", (Exception,), {}),
        "NotFound": KeyError,
    }
    modules: dict[str, dict[str, Any]] = {
        "google.cloud.storage": {"Client": client},
        "google.api_core.exceptions": errors,
        "google.auth.exceptions": {"GoogleAuthError": AuthError, "TransportError": TransportError},
    }
    _install(monkeypatch, modules)


def test_google_reads_with_a_key_or_with_the_pods_identity(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    google(monkeypatch, Blobs)
    env = s.env(tmp_path, "Bucket", "gs://weights/qwen", GOOGLE_CREDENTIALS='{"type": "service_account"}')
    assert program.main(env, s.Heard()) == 0
    assert Blobs.key == {"type": "service_account"}
    assert (tmp_path / "model" / "w").read_bytes() == b"abcdef"
    (tmp_path / "again").mkdir()
    assert program.main(s.env(tmp_path / "again", "Bucket", "gs://weights/qwen"), s.Heard()) == 0


def test_a_key_that_is_none_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    google(monkeypatch, lambda: (_ for _ in ()).throw(ValueError("s3cret")))
    report = s.Heard()
    assert program.main(s.env(tmp_path, "Bucket", "gs://weights/qwen"), report) == 2
    assert report.last["reason"] == "Unauthorized"
    assert "s3cret" not in str(report.told)


def test_another_kind_of_store_is_refused() -> None:
    with pytest.raises(Failure) as failed:
        stores.store_of("ftp", {})
    assert failed.value.reason == "Invalid"
