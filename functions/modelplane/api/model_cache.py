"""The specs of ModelCache and ModelCacheReplica, as far as code reads them."""

from pydantic import Field

from modelplane.api.base import Model

# The block of a spec that a source reads.
BLOCKS = {
    "HuggingFace": "huggingFace",
    "Bucket": "bucket",
    "OCI": "oci",
    "PersistentVolumeClaim": "persistentVolumeClaim",
}


class AuthSecret(Model):
    """A token for a gated repository."""

    name: str
    key: str = "HF_TOKEN"


class HuggingFace(Model):
    """A repository on the hub; no revision takes its default branch."""

    repo: str
    revision: str = ""
    auth_secret: AuthSecret | None = None
    size_gib: int = Field(alias="sizeGiB", ge=1)


class NamedSecret(Model):
    """A Secret of the cache's namespace."""

    name: str


class Bucket(Model):
    """A prefix in an object store."""

    uri: str
    auth_secret: NamedSecret | None = None
    size_gib: int = Field(default=100, alias="sizeGiB", ge=1)


class Oci(Model):
    """An image or artifact in a registry."""

    image: str
    pull_secret_ref: NamedSecret | None = None
    size_gib: int = Field(default=100, alias="sizeGiB", ge=1)


class Claim(Model):
    """A claim of the team's that holds the model already."""

    claim_name: str


class ClusterSelector(Model):
    """Clusters to stage on; no labels match all."""

    match_labels: dict[str, str] = Field(default_factory=dict)


class ModelCacheSpec(Model):
    """What a ModelCache asks for."""

    source: str
    hugging_face: HuggingFace | None = None
    bucket: Bucket | None = None
    oci: Oci | None = None
    persistent_volume_claim: Claim | None = None
    cluster_selector: ClusterSelector = ClusterSelector()


class ModelCacheReplicaSpec(Model):
    """What a ModelCacheReplica asks for."""

    cache_name: str
    cluster_name: str
    source: str
    hugging_face: HuggingFace | None = None
    bucket: Bucket | None = None
    oci: Oci | None = None
    persistent_volume_claim: Claim | None = None
