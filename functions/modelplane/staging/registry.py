"""The part of the OCI distribution API that reading takes: manifests and blobs, with token or basic login."""

import base64
import hashlib
import http.client
import json
import re
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from typing import IO, Any

from modelplane.staging import outcome
from modelplane.staging.outcome import Failure

CHUNK = 1024**2
_TIMEOUT = 60.0
_MANIFEST_LIMIT = 8 * 1024**2
_ACCEPT = ", ".join(
    (
        "application/vnd.oci.image.index.v1+json",
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.docker.distribution.manifest.list.v2+json",
        "application/vnd.docker.distribution.manifest.v2+json",
    )
)
_CHALLENGE = re.compile(r'(\w+)="([^"]*)"')
_HUB = "docker.io"
# distribution/reference: repository paths, tags and digests.
_PATH = re.compile(r"[a-z0-9]+([._-]+[a-z0-9]+)*(/[a-z0-9]+([._-]+[a-z0-9]+)*)*")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
_DIGEST = re.compile(r"sha256:[a-f0-9]{64}")


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference, taken apart.

    Attributes:
        host: of the registry, as credentials are stored for it.
        path: of the repository.
        version: a tag or a digest.
    """

    host: str
    path: str
    version: str

    @classmethod
    def parse(cls, text: str) -> "Reference":
        """Return the reference; without a registry it is the Docker Hub's, without a tag `latest`."""
        rest, at, digest = text.partition("@")
        first, slash, path = rest.partition("/")
        if not slash or not ("." in first or ":" in first or first == "localhost"):
            first, path = _HUB, rest
        path, _, tag = path.partition(":")
        if first == _HUB and "/" not in path:
            path = f"library/{path}"
        version = digest if at else tag or "latest"
        sound = _DIGEST.fullmatch(version) if at else _TAG.fullmatch(version)
        host = urllib.parse.urlsplit(f"//{first}")
        if (
            not sound
            or not _PATH.fullmatch(path)
            or not host.hostname
            or host.netloc != first
            or "@" in first
        ):
            raise Failure(
                outcome.INVALID, "the reference is none: registry/path:tag or @sha256:...", hopeless=True
            )
        return cls(first, path, version)

    @property
    def url(self) -> str:
        """The repository's part of the API."""
        host = "registry-1.docker.io" if self.host == _HUB else self.host
        return f"https://{host}/v2/{self.path}"


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows to the store behind a registry without the registry's credential, which is not the store's."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage | Message,
        newurl: str,
    ) -> urllib.request.Request | None:
        found = super().redirect_request(req, fp, code, msg, headers, newurl)  # type: ignore[arg-type]
        if (
            found is not None
            and urllib.parse.urlsplit(newurl).netloc != urllib.parse.urlsplit(req.full_url).netloc
        ):
            found.remove_header("Authorization")
        return found


class Registry:
    """One repository.

    Args:
        reference: names it.
        auth: a Docker configuration with credentials; empty asks anonymously.
        url: of the repository; empty takes the reference's.
    """

    def __init__(self, reference: Reference, auth: str, url: str = "") -> None:
        self._url = url or reference.url
        self._basic = _credential(reference.host, auth)
        self._login = ""
        self._open = urllib.request.build_opener(_Redirects()).open

    def manifest(self, version: str) -> tuple[str, Mapping[str, Any]]:
        """Return the digest of a manifest and the manifest."""
        with self._get(f"{self._url}/manifests/{version}", {"Accept": _ACCEPT}) as answer:
            body = answer.read(_MANIFEST_LIMIT)
        digest = f"sha256:{hashlib.sha256(body).hexdigest()}"
        if version.startswith("sha256:") and digest != version:
            raise Failure(outcome.CORRUPT, "the manifest differs from its digest")
        try:
            found = json.loads(body)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise Failure(outcome.CORRUPT, "the manifest is no JSON object")
        return digest, found

    def blob(self, digest: str, size: int, path: Path) -> None:
        """Fetch a blob, from where an earlier run stopped, and check it against its digest."""
        if not _DIGEST.fullmatch(digest):
            raise Failure(outcome.INVALID, "a layer has no sha256 digest", hopeless=True)
        offset = path.stat().st_size if path.exists() else 0
        if offset < size:
            headers = {"Range": f"bytes={offset}-"} if offset else {}
            with self._get(f"{self._url}/blobs/{digest}", headers) as answer:
                # A registry may ignore the range and begin anew.
                mode = "ab" if offset and answer.status == 206 else "wb"
                with path.open(mode) as file:
                    while file.tell() <= size and (chunk := answer.read(CHUNK)):
                        file.write(chunk)
        with path.open("rb") as file:
            whole = f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}" == digest
        if not whole:
            short = path.stat().st_size < size
            if not short:
                path.unlink()
            raise Failure(
                outcome.UNREACHABLE if short else outcome.CORRUPT, "a layer came incomplete or wrong"
            )

    def _get(self, url: str, headers: Mapping[str, str]) -> Any:
        for last in (False, True):
            sent = {**headers, **({"Authorization": self._login} if self._login else {})}
            try:
                return self._open(urllib.request.Request(url, headers=sent), timeout=_TIMEOUT)
            except urllib.error.HTTPError as error:
                with error:
                    if error.code == 401 and not last:
                        self._login = self._answer(error.headers.get("WWW-Authenticate", ""))
                        continue
                    raise _failure(error.code) from None
            except http.client.HTTPException as error:
                text = f"the registry did not answer: {type(error).__name__}"
                raise Failure(outcome.UNREACHABLE, text) from None
        raise _failure(401)

    def _answer(self, challenge: str) -> str:
        """Return the header that answers a challenge (distribution spec, token authentication)."""
        if not challenge.lower().startswith("bearer"):
            return f"Basic {self._basic}" if self._basic else ""
        asked = dict(_CHALLENGE.findall(challenge))
        realm = asked.pop("realm", "")
        if not realm.startswith("https://") and not self._url.startswith("http://"):
            # A credential would leave in clear.
            raise Failure(outcome.UNAUTHORIZED, "the registry's token service is not https", hopeless=True)
        query = urllib.parse.urlencode({k: v for k, v in asked.items() if k in ("service", "scope")})
        headers = {"Authorization": f"Basic {self._basic}"} if self._basic else {}
        try:
            request = urllib.request.Request(f"{realm}?{query}", headers=headers)
            with self._open(request, timeout=_TIMEOUT) as answer:
                found = json.loads(answer.read(_MANIFEST_LIMIT))
            return f"Bearer {found.get('token') or found['access_token']}"
        except urllib.error.HTTPError as error:
            with error:
                raise _failure(error.code) from None
        except (ValueError, KeyError, AttributeError, TypeError):
            raise Failure(outcome.UNREACHABLE, "the registry's token service answers nonsense") from None


def _failure(code: int) -> Failure:
    if code in (401, 403):
        return Failure(outcome.UNAUTHORIZED, "the registry refuses the credential", hopeless=True)
    if code == 404:
        return Failure(outcome.NOT_FOUND, "no such image, tag or digest", hopeless=True)
    return Failure(outcome.UNREACHABLE, f"the registry answers {code}")


def _credential(host: str, auth: str) -> str:
    """Return what a Docker configuration holds for a registry, encoded; empty where it holds nothing."""
    try:
        entries: Any = json.loads(auth)["auths"] if auth else {}
        names = (host, f"https://{host}", f"https://{host}/v1/", f"https://index.{host}/v1/")
        entry: Any = next((entries[x] for x in names if x in entries), {})
        if entry.get("auth"):
            return str(entry["auth"])
        if entry.get("username"):
            return base64.b64encode(f"{entry['username']}:{entry.get('password', '')}".encode()).decode()
    except (ValueError, KeyError, TypeError, AttributeError):
        raise Failure(
            outcome.UNAUTHORIZED, "the pull Secret is no Docker configuration", hopeless=True
        ) from None
    return ""
