"""Where a cache's weights come from: what identifies them, and which credential reading them takes."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from modelplane import contracts as c
from modelplane import names
from modelplane.api.model_cache import BLOCKS, Bucket, HuggingFace, ModelCacheReplicaSpec, Oci
from modelplane.core import InvalidSpecError, paths

_COMMIT = re.compile(r"[0-9a-f]{40}")
_DIGEST = re.compile(r".*@(sha256:[0-9a-f]{64})")
_STORES = ("s3", "gs")
# A store's Secret becomes environment: only what its clients read, so that no key turns into another setting.
_STORE_KEY = re.compile(r"(AWS|GOOGLE)_[A-Z0-9_]+")
# The Secret where each source names one, in the spec.
_SECRETS = {
    c.HUGGING_FACE: ("huggingFace", "authSecret"),
    c.BUCKET: ("bucket", "authSecret"),
    c.OCI: ("oci", "pullSecretRef"),
}
DOCKER_CONFIG = ".dockerconfigjson"
REGISTRY_KEY = "config.json"


@dataclass(frozen=True, slots=True)
class Artifact:
    """What is staged: a location, at a revision where the source has such; either may move.

    Attributes:
        source: as in the spec.
        location: repository, URI or image.
        revision: of a repository.
    """

    source: str
    location: str
    revision: str = ""

    @property
    def text(self) -> str:
        """How status names it."""
        return f"{self.location}@{self.revision}" if self.revision else self.location

    @property
    def id(self) -> str:
        """Identifies it in keys, names and marker files."""
        if self.source == c.HUGGING_FACE:
            return names.digest(self.location, self.revision)
        return names.digest(self.source, self.location)

    @property
    def pinned(self) -> str:
        """The content's identity, where the spec itself pins it: a commit or a digest; else empty."""
        if self.source == c.OCI:
            found = _DIGEST.fullmatch(self.location)
            return found[1] if found else ""
        return self.revision if _COMMIT.fullmatch(self.revision) else ""


@dataclass(frozen=True, slots=True)
class Source:
    """A source that is copied.

    Attributes:
        artifact: what is copied.
        size_gib: of the volume.
        secret: name of the Secret with its credential; empty where none is named.
        key: in that Secret, for a source that names one.
    """

    artifact: Artifact
    size_gib: int
    secret: str = ""
    key: str = ""

    def credential(self, secret: Mapping[str, Any] | None) -> dict[str, str]:
        """Return what of the Secret goes to the cluster, encoded as it is, by the key it gets there."""
        data = {k: v for k, v in paths.mapping(secret, "data").items() if isinstance(v, str) and v}
        kind = self.artifact.source
        if kind == c.HUGGING_FACE:
            return {c.ENV_HF_TOKEN: data[self.key]} if self.key in data else {}
        if kind == c.OCI:
            return {REGISTRY_KEY: data[DOCKER_CONFIG]} if DOCKER_CONFIG in data else {}
        return {k: v for k, v in data.items() if _STORE_KEY.fullmatch(k)}

    @property
    def wants(self) -> str:
        """What the Secret must have, in words."""
        kind = self.artifact.source
        if kind == c.BUCKET:
            return "key that starts with AWS_ or GOOGLE_"
        return f"key {self.key if kind == c.HUGGING_FACE else DOCKER_CONFIG}"


def secret_name(spec: object) -> str:
    """Return the name of the Secret that a spec's source names; empty where it names none."""
    where = _SECRETS.get(paths.text(spec, "source"), ())
    return paths.text(spec, *where, "name") if where else ""


def read(spec: ModelCacheReplicaSpec) -> Source:
    """Return the source that is copied.

    Raises:
        InvalidSpecError: for a source without its block, or a location nobody can read.
    """
    if spec.source == c.HUGGING_FACE and spec.hugging_face is not None:
        return _hub(spec.hugging_face)
    if spec.source == c.BUCKET and spec.bucket is not None:
        return _bucket(spec.bucket)
    if spec.source == c.OCI and spec.oci is not None:
        return _oci(spec.oci)
    block = BLOCKS.get(spec.source, "")
    raise InvalidSpecError(c.ARTIFACT_READY, f"spec.{block or 'source'}", "is missing; add it")


def _hub(block: HuggingFace) -> Source:
    auth = block.auth_secret
    artifact = Artifact(c.HUGGING_FACE, block.repo, block.revision)
    return Source(artifact, block.size_gib, auth.name if auth else "", auth.key if auth else "")


def _bucket(block: Bucket) -> Source:
    field = "spec.bucket.uri"
    try:
        uri = urlsplit(block.uri)
    except ValueError:
        raise InvalidSpecError(c.ARTIFACT_READY, field, "is no URI; write s3://bucket/prefix") from None
    if uri.scheme not in _STORES or not uri.netloc:
        raise InvalidSpecError(c.ARTIFACT_READY, field, "takes s3://bucket/prefix or gs://bucket/prefix")
    if "@" in uri.netloc or uri.query or uri.fragment:
        message = "holds more than bucket and prefix; a credential goes into bucket.authSecret"
        raise InvalidSpecError(c.ARTIFACT_READY, field, message)
    auth = block.auth_secret
    return Source(Artifact(c.BUCKET, block.uri), block.size_gib, auth.name if auth else "")


def _oci(block: Oci) -> Source:
    image = block.image.removeprefix("oci://")
    if "://" in image or "@" in image.partition("/")[0]:
        raise InvalidSpecError(c.ARTIFACT_READY, "spec.oci.image", "takes registry/path:tag or @sha256:...")
    ref = block.pull_secret_ref
    return Source(Artifact(c.OCI, image), block.size_gib, ref.name if ref else "")
