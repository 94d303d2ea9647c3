"""The objects of a cache on its cluster: the volume, a credential's copy, and what fills the volume."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

from modelplane import contracts as c
from modelplane import names
from modelplane.core import Manifest
from modelplane.facts import versions
from modelplane.kinds.cache_sources import REGISTRY_KEY, Artifact
from modelplane.stacks.component import Images

PIN = "model-staging"
# The image's own user; its home and everything but the two mounts are read-only. Volume plugins that honour
# fsGroup hand the volume's root over; EFS access points and world-writable NFS exports need no help.
_USER = 1000
_SCRATCH = "/tmp"
_PROGRAM = "/opt/modelplane"
_MODULE = "modelplane.staging"
# Minutes, not days: a finished pod holds its volume, and a deleted cache would wait for it.
_TTL_SECONDS = 180
_RETRIES = 3
_HOPELESS = 2


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

    def job(self, what: Artifact) -> str:
        """Name of the Job that stages an artifact, and of what it needs."""
        return names.staging_job(self.team, self.cache, what.id)

    def metadata(self, name: str, what: Artifact | None = None) -> Manifest:
        """Return the metadata of an object of this cache, or of what stages one of its artifacts."""
        labels = self.labels()
        if what is not None:
            labels[c.ARTIFACT_LABEL] = what.id
        return {"name": name, "namespace": self.namespace, "labels": labels}

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


def credential(place: Place, encoded: Mapping[str, str]) -> Manifest:
    """Return the copy of a credential, as encoded as it was found."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": place.metadata(names.cache_token(place.team, place.cache)),
        "type": "Opaque",
        "data": dict(encoded),
    }


def support(place: Place, what: Artifact) -> dict[str, Manifest]:
    """Return what the Job needs beside its volume: its program, its report and the right to write that."""
    name = place.job(what)
    group, api = "rbac.authorization.k8s.io", c.RBAC_API
    rule = {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": [name], "verbs": ["patch"]}
    return {
        "program": {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": place.metadata(names.staging_program(place.team, place.cache, what.id), what),
            "data": dict(program()),
        },
        # Without data: what the Job writes there is its own, and an apply of ours must not take it back.
        "report": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": place.metadata(name, what)},
        "account": {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": place.metadata(name, what)},
        "role": {
            "apiVersion": api,
            "kind": "Role",
            "metadata": place.metadata(name, what),
            "rules": [rule],
        },
        "binding": {
            "apiVersion": api,
            "kind": "RoleBinding",
            "metadata": place.metadata(name, what),
            "roleRef": {"apiGroup": group, "kind": "Role", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": place.namespace}],
        },
    }


@cache
def program() -> Mapping[str, str]:
    """Return the files of the staging program by name, as the Job finds them."""
    folder = resources.files(_MODULE)
    return {
        f.name: f.read_text(encoding="utf-8")
        for f in sorted(folder.iterdir(), key=lambda f: f.name)
        if f.name.endswith(".py")
    }


def job(
    place: Place,
    what: Artifact,
    image: str,
    *,
    with_credential: bool,
    pull_secrets: Sequence[Manifest] = (),
) -> Manifest:
    """Return the Job that stages an artifact and resumes where an earlier one stopped."""
    container: Manifest = {
        "name": "staging",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["python3", "-m", f"{_MODULE}.main"],
        "env": _env(place, what, with_credential),
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
            {"name": "program", "mountPath": f"{_PROGRAM}/{_MODULE.replace('.', '/')}", "readOnly": True},
            {"name": "scratch", "mountPath": _SCRATCH},
        ],
    }
    if with_credential and what.source == c.BUCKET:
        secret = names.cache_token(place.team, place.cache)
        container["envFrom"] = [{"secretRef": {"name": secret}}]
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": place.metadata(place.job(what), what),
        "spec": {
            "backoffLimit": _RETRIES,
            "podFailurePolicy": {"rules": _failure_rules()},
            "ttlSecondsAfterFinished": _TTL_SECONDS,
            "template": {
                "metadata": {"labels": place.labels()},
                "spec": _pod(place, what, container, pull_secrets),
            },
        },
    }


def _pod(place: Place, what: Artifact, container: Manifest, pull_secrets: Sequence[Manifest]) -> Manifest:
    sources = names.staging_program(place.team, place.cache, what.id)
    pod: Manifest = {
        "automountServiceAccountToken": True,
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
        "serviceAccountName": place.job(what),
        "volumes": [
            {"name": "artifact", "persistentVolumeClaim": {"claimName": place.claim}},
            {"name": "program", "configMap": {"name": sources}},
            {"name": "scratch", "emptyDir": {}},
        ],
    }
    return {**pod, "imagePullSecrets": list(pull_secrets)} if pull_secrets else pod


def _failure_rules() -> list[Manifest]:
    hopeless = {"containerName": "staging", "operator": "In", "values": [_HOPELESS]}
    drained = {"type": "DisruptionTarget", "status": "True"}
    return [
        {"action": "FailJob", "onExitCodes": hopeless},
        {"action": "Ignore", "onPodConditions": [drained]},
    ]


def _env(place: Place, what: Artifact, with_credential: bool) -> Sequence[Manifest]:
    found: list[Manifest] = [
        {"name": c.ENV_STAGING_ROOT, "value": c.STAGING_MOUNT},
        {"name": c.ENV_STAGING_SOURCE, "value": what.source},
        {"name": c.ENV_STAGING_LOCATION, "value": _literal(what.location)},
        {"name": c.ENV_STAGING_REVISION, "value": _literal(what.revision)},
        {"name": c.ENV_STAGING_ID, "value": what.id},
        {"name": c.ENV_STAGING_REPORT, "value": place.job(what)},
        {"name": c.ENV_HF_CACHE, "value": c.STAGING_MOUNT},
        {"name": "HF_HOME", "value": f"{_SCRATCH}/huggingface"},
        # Else its client keeps gigabytes of chunks on the node's disk (huggingface_hub's environment).
        {"name": "HF_XET_CHUNK_CACHE_SIZE_BYTES", "value": "0"},
        {"name": "HOME", "value": _SCRATCH},
        {"name": "PYTHONPATH", "value": _PROGRAM},
        {"name": "PYTHONUNBUFFERED", "value": "1"},
    ]
    keys = {
        c.HUGGING_FACE: (c.ENV_HF_TOKEN, c.ENV_HF_TOKEN),
        c.OCI: (c.ENV_STAGING_REGISTRY_AUTH, REGISTRY_KEY),
    }
    if with_credential and what.source in keys:
        name, key = keys[what.source]
        secret = {"name": names.cache_token(place.team, place.cache), "key": key}
        found.append({"name": name, "valueFrom": {"secretKeyRef": secret}})
    return found


def _literal(text: str) -> str:
    # The kubelet expands $(NAME) in values; a doubled dollar sign is one that stays (core/v1 EnvVar.value).
    return text.replace("$", "$$")


def image(stack_release: str, mirror: str) -> str:
    """Return the staging image of a cluster; a release this package does not know takes the newest pin."""
    known = versions.releases()
    release = known.get(stack_release) or versions.newest()
    pin = release.pin(PIN)
    return f"{Images(mirror=mirror).image(pin.image)}:{pin.version}"
