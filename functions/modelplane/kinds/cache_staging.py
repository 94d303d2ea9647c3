"""The objects of a cache on its cluster: the volume, the token's copy and the Job that fills the volume."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

from modelplane import contracts as c
from modelplane import names
from modelplane.core import Manifest
from modelplane.facts import versions
from modelplane.stacks.component import Images

PIN = "model-staging"
# The image's own user; its home and everything but the two mounts are read-only. Volume plugins that honour
# fsGroup hand the volume's root over; EFS access points and world-writable NFS exports need no help.
_USER = 1000
_SCRATCH = "/tmp"
# Minutes, not days: a finished pod holds its volume, and a deleted cache would wait for it.
_TTL_SECONDS = 180
_RETRIES = 3
_HOPELESS = 2


@dataclass(frozen=True, slots=True)
class Artifact:
    """What is staged: a repository at a revision, which may be a branch that moves."""

    repo: str
    revision: str

    @property
    def text(self) -> str:
        """How status names it."""
        return f"{self.repo}@{self.revision}" if self.revision else self.repo

    @property
    def id(self) -> str:
        """Identifies it in keys, names and marker files."""
        return names.digest(self.repo, self.revision)

    @property
    def commit(self) -> str:
        """The commit, where the revision is one; a Job cannot report what a branch resolved to."""
        pinned = len(self.revision) == 40 and all(x in "0123456789abcdef" for x in self.revision)
        return self.revision if pinned else ""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a cache is staged.

    Attributes:
        team: control-plane namespace of the cache.
        cache: its name.
    """

    team: str
    cache: str

    @property
    def namespace(self) -> str:
        """The team's namespace on the cluster."""
        return names.team_namespace(self.team)

    @property
    def claim(self) -> str:
        """Name of the volume's claim."""
        return names.cache_claim(self.team, self.cache)

    def metadata(self, name: str) -> Manifest:
        """Return the metadata of an object of this cache."""
        return {"name": name, "namespace": self.namespace, "labels": self.labels()}

    def labels(self) -> dict[str, str]:
        """Return the labels of every object of this cache."""
        return {c.CACHE_LABEL: names.label_value(self.cache)}


def claim(place: Place, storage_class: str, size_gib: int) -> Manifest:
    """Return the claim of a volume that all engines of a cluster mount."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": place.metadata(place.claim),
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "resources": {"requests": {"storage": f"{size_gib}Gi"}},
            "storageClassName": storage_class,
            "volumeMode": "Filesystem",
        },
    }


def token(place: Place, encoded: str) -> Manifest:
    """Return the copy of a token, as encoded as it was found; the key is ours."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": place.metadata(names.cache_token(place.team, place.cache)),
        "type": "Opaque",
        "data": {c.ENV_HF_TOKEN: encoded},
    }


def job(place: Place, what: Artifact, image: str, *, with_token: bool) -> Manifest:
    """Return the Job that stages an artifact and resumes where an earlier one stopped."""
    container: Manifest = {
        "name": "staging",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["python3", "-c", _script()],
        "env": _env(place, what, with_token),
        # No limit: page cache of hundreds of gigabytes counts, and a killed download starts its file again.
        "resources": {"requests": {"cpu": "1", "memory": "2Gi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            {"name": "artifact", "mountPath": c.STAGING_MOUNT},
            {"name": "scratch", "mountPath": _SCRATCH},
        ],
    }
    pod: Manifest = {
        "automountServiceAccountToken": False,
        "containers": [container],
        "restartPolicy": "Never",
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "runAsGroup": _USER,
            "fsGroup": _USER,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "volumes": [
            {"name": "artifact", "persistentVolumeClaim": {"claimName": place.claim}},
            {"name": "scratch", "emptyDir": {}},
        ],
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": place.metadata(names.staging_job(place.team, place.cache, what.id)),
        "spec": {
            "backoffLimit": _RETRIES,
            "podFailurePolicy": {"rules": _failure_rules()},
            "ttlSecondsAfterFinished": _TTL_SECONDS,
            "template": {"metadata": {"labels": place.labels()}, "spec": pod},
        },
    }


def _failure_rules() -> list[Manifest]:
    hopeless = {"containerName": "staging", "operator": "In", "values": [_HOPELESS]}
    drained = {"type": "DisruptionTarget", "status": "True"}
    return [
        {"action": "FailJob", "onExitCodes": hopeless},
        {"action": "Ignore", "onPodConditions": [drained]},
    ]


def _env(place: Place, what: Artifact, with_token: bool) -> Sequence[Manifest]:
    found: list[Manifest] = [
        {"name": c.ENV_STAGING_REPO, "value": _literal(what.repo)},
        {"name": c.ENV_STAGING_REVISION, "value": _literal(what.revision)},
        {"name": c.ENV_STAGING_ID, "value": what.id},
        {"name": c.ENV_HF_CACHE, "value": c.STAGING_MOUNT},
        {"name": "HF_HOME", "value": f"{_SCRATCH}/huggingface"},
        {"name": "HOME", "value": _SCRATCH},
        {"name": "PYTHONUNBUFFERED", "value": "1"},
    ]
    if with_token:
        secret = {"name": names.cache_token(place.team, place.cache), "key": c.ENV_HF_TOKEN}
        found.append({"name": c.ENV_HF_TOKEN, "valueFrom": {"secretKeyRef": secret}})
    return found


def _literal(text: str) -> str:
    # The kubelet expands $(NAME) in values; a doubled dollar sign is one that stays (core/v1 EnvVar.value).
    return text.replace("$", "$$")


@cache
def _script() -> str:
    source = resources.files("modelplane.kinds").joinpath("stage_weights.py").read_text(encoding="utf-8")
    return _literal(source)


def image(stack_release: str, mirror: str) -> str:
    """Return the staging image of a cluster; a release this package does not know takes the newest pin."""
    known = versions.releases()
    release = known.get(stack_release) or versions.newest()
    pin = release.pin(PIN)
    return f"{Images(mirror=mirror).image(pin.image)}:{pin.version}"
