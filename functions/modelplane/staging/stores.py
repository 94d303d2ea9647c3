"""The object stores that a bucket may be in. Their clients come with the image; no error tells a secret."""

import base64
import importlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from modelplane.staging import outcome
from modelplane.staging.outcome import Failure

_CHUNK = 8 * 1024**2
_CONNECTIONS = 8
_FORBIDDEN = {
    *("AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken"),
    *("403", "401"),
}
_ABSENT = {"NoSuchBucket", "NoSuchKey", "404"}
_GONE = "an object that was listed is gone: the prefix is being written"


@dataclass(frozen=True, slots=True)
class Entry:
    """One object.

    Attributes:
        key: its whole key.
        size: in bytes.
        tag: changes whenever its content does.
        md5: in hex; empty where the store does not tell.
    """

    key: str
    size: int
    tag: str
    md5: str = ""


class Store(Protocol):
    """What a store can do."""

    def entries(self, bucket: str, prefix: str) -> Iterator[Entry]:
        """Yield the objects below a prefix."""
        ...

    def read(self, bucket: str, entry: Entry, offset: int) -> Iterator[bytes]:
        """Yield an object's bytes from an offset; fails where the object is not the listed one any more."""
        ...


def store_of(scheme: str, env: Mapping[str, str]) -> Store:
    """Return the store that a URI's scheme names."""
    if scheme == "s3":
        return S3()
    if scheme == "gs":
        return Google(env.get("GOOGLE_CREDENTIALS", ""))
    raise Failure(outcome.INVALID, "the URI names neither s3:// nor gs://", hopeless=True)


class S3:
    """S3, by the environment's credentials or the pod's identity; AWS_ENDPOINT_URL names another server."""

    def __init__(self) -> None:
        self._errors = importlib.import_module("botocore.exceptions")
        self._cut = (
            *(self._errors.ConnectionError, self._errors.HTTPClientError),
            self._errors.IncompleteReadError,
        )
        config = importlib.import_module("botocore.config").Config(
            retries={"mode": "standard", "max_attempts": 8}, max_pool_connections=_CONNECTIONS
        )
        self._client = importlib.import_module("boto3").client("s3", config=config)

    def entries(self, bucket: str, prefix: str) -> Iterator[Entry]:
        """Yield the objects below a prefix; a multipart tag is no digest, so none is given."""
        with self._translated():
            pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
            for page in pages:
                for found in page.get("Contents", ()):
                    yield Entry(str(found["Key"]), int(found["Size"]), str(found["ETag"]))

    def read(self, bucket: str, entry: Entry, offset: int) -> Iterator[bytes]:
        """Yield an object's bytes; the SDK itself compares checksums of whole objects that have one."""
        wanted: dict[str, Any] = {"Range": f"bytes={offset}-"} if offset else {}
        with self._translated(listed=True):
            found = self._client.get_object(Bucket=bucket, Key=entry.key, IfMatch=entry.tag, **wanted)
            yield from found["Body"].iter_chunks(_CHUNK)

    @contextmanager
    def _translated(self, *, listed: bool = False) -> Iterator[None]:
        try:
            yield
        except (self._errors.NoCredentialsError, self._errors.PartialCredentialsError):
            text = "no credential: name a Secret in bucket.authSecret, or give the pods an identity"
            raise Failure(outcome.UNAUTHORIZED, text, hopeless=True) from None
        except self._cut as error:
            text = f"the store did not answer to the end: {type(error).__name__}"
            raise Failure(outcome.UNREACHABLE, text) from None
        except self._errors.ClientError as error:
            code = str(error.response.get("Error", {}).get("Code", ""))
            if code in _FORBIDDEN:
                text = f"the store refuses the credential: {code}"
                raise Failure(outcome.UNAUTHORIZED, text, hopeless=True) from None
            if code in _ABSENT and listed:
                raise Failure(outcome.UNREACHABLE, _GONE) from None
            if code in _ABSENT:
                text = f"no such bucket or object: {code}"
                raise Failure(outcome.NOT_FOUND, text, hopeless=True) from None
            raise Failure(outcome.UNREACHABLE, f"the store answers {code}") from None


class Google:
    """Google Cloud Storage.

    Args:
        key: a service account's key as JSON; empty takes the pod's identity.
    """

    def __init__(self, key: str) -> None:
        storage = importlib.import_module("google.cloud.storage")
        self._errors = importlib.import_module("google.api_core.exceptions")
        self._logins = importlib.import_module("google.auth.exceptions")
        try:
            self._client = (
                storage.Client.from_service_account_info(json.loads(key)) if key else storage.Client()
            )
        except Exception as error:  # noqa: BLE001  (google.auth's own; its text may hold the key)
            text = f"no usable credential: {type(error).__name__}"
            raise Failure(outcome.UNAUTHORIZED, text, hopeless=True) from None

    def entries(self, bucket: str, prefix: str) -> Iterator[Entry]:
        """Yield the objects below a prefix."""
        with self._translated():
            for blob in self._client.list_blobs(bucket, prefix=prefix):
                md5 = base64.b64decode(blob.md5_hash).hex() if blob.md5_hash else ""
                yield Entry(str(blob.name), int(blob.size), str(blob.generation), md5)

    def read(self, bucket: str, entry: Entry, offset: int) -> Iterator[bytes]:
        """Yield an object's bytes, of the generation that was listed."""
        with self._translated(listed=True):
            blob = self._client.bucket(bucket).blob(entry.key, generation=int(entry.tag))
            with blob.open("rb", chunk_size=_CHUNK) as file:
                file.seek(offset)
                while chunk := file.read(_CHUNK):
                    yield chunk

    @contextmanager
    def _translated(self, *, listed: bool = False) -> Iterator[None]:
        try:
            yield
        except self._logins.GoogleAuthError as error:
            # The token is asked for with the first request: a key that is no more is met here.
            if error.retryable or isinstance(error, self._logins.TransportError):
                text = f"the token service did not answer: {type(error).__name__}"
                raise Failure(outcome.UNREACHABLE, text) from None
            text = f"no usable credential: {type(error).__name__}"
            raise Failure(outcome.UNAUTHORIZED, text, hopeless=True) from None
        except (self._errors.Forbidden, self._errors.Unauthorized):
            raise Failure(outcome.UNAUTHORIZED, "the store refuses the credential", hopeless=True) from None
        except self._errors.NotFound:
            if listed:
                raise Failure(outcome.UNREACHABLE, _GONE) from None
            raise Failure(outcome.NOT_FOUND, "no such bucket or object", hopeless=True) from None
        except self._errors.GoogleAPIError as error:
            text = f"the store answers {getattr(error, 'code', None) or type(error).__name__}"
            raise Failure(outcome.UNREACHABLE, text) from None
