"""ModelCacheReplica: a ModelCache on one cluster, in the team's namespace there.

A volume, a Job that fills it, and while it does a copy of the token. Once the Job is complete status records
what the volume holds, and Job and token leave the plan: the Job's Object may not delete, so the Job's own
time to live collects it. A changed repository or revision is staged beside the old one, in the same volume.
"""

import copy
from collections.abc import Mapping
from typing import Any

from modelplane import contracts as c
from modelplane import names
from modelplane.api.model_cache import ModelCacheReplicaSpec
from modelplane.core import (
    Condition,
    Desired,
    Event,
    Hold,
    Inputs,
    InvalidSpecError,
    Kind,
    Manifest,
    Plan,
    Requirement,
    Waiting,
    builders,
    keep,
    paths,
    specs,
)
from modelplane.kinds import cache_staging
from modelplane.kinds.cache_scene import AUTH, AUTH_SECRET, CLUSTER, VOLUME, Scene
from modelplane.kinds.cache_staging import Artifact
from modelplane.kinds.model_cache import AUTH_SECRET_MISSING, FAILED, HYDRATING, STAGED

CLUSTER_NOT_FOUND = "ClusterNotFound"
WAITING_FOR_CLUSTER = "WaitingForCluster"
WAITING_FOR_VOLUME = "WaitingForVolume"


def requires(replica: Manifest) -> list[Requirement]:
    """Return the lookups: the cluster, and the token's Secret where one is named."""
    found = []
    if cluster := paths.text(replica, "spec", "clusterName"):
        found.append(Requirement(CLUSTER, c.API, "InferenceCluster", match_name=cluster))
    if secret := paths.text(replica, "spec", "huggingFace", "authSecret", "name"):
        namespace = paths.namespace(replica)
        found.append(Requirement(AUTH_SECRET, "v1", "Secret", match_name=secret, namespace=namespace))
    return found


def compose(inputs: Inputs) -> Plan:
    """Return the Plan of a ModelCacheReplica."""
    spec = specs.parse(ModelCacheReplicaSpec, inputs.spec, c.ARTIFACT_READY)
    if spec.source != c.HUGGING_FACE:
        return _unsupported(inputs, spec)
    source = spec.hugging_face
    if source is None:
        raise InvalidSpecError(
            c.ARTIFACT_READY, "spec.huggingFace", "is missing; add it with repo and sizeGiB"
        )
    cluster = inputs.one(CLUSTER)
    if cluster is None:
        raise Hold(
            c.ARTIFACT_READY,
            CLUSTER_NOT_FOUND,
            f"InferenceCluster {spec.cluster_name} is not found; what it holds is kept. Create it, or take"
            " the cluster out of the ModelCache's selector",
        )
    scene = Scene(inputs, spec, source, cluster, Artifact(source.repo, source.revision))
    resources = [_volume(scene)]
    if not scene.settled:
        resources += _staging(scene)
    phase, condition = _verdict(scene)
    act = condition.reason in (FAILED, AUTH_SECRET_MISSING)
    return Plan(
        resources=resources,
        status=_status(scene, phase, condition),
        conditions=[condition],
        events=[Event(condition.message, warning=True)] if act else [],
        ready=None if condition.status else False,
    )


def _unsupported(inputs: Inputs, spec: ModelCacheReplicaSpec) -> Plan:
    message = f"spec.source: {spec.source} is not staged by this release, which has {c.HUGGING_FACE}"
    status = {**keep.kept_status(inputs.composite), "phase": c.CACHE_PENDING, "message": message}
    return Plan(
        status=status,
        conditions=[Condition(c.ARTIFACT_READY, False, c.REASON_SOURCE_NOT_SUPPORTED, message)],
        keep_all=True,
        ready=False,
    )


def _volume(scene: Scene) -> Desired | Waiting:
    """Return the volume. Its class is fixed once it is made and its size only grows, as Kubernetes has it."""
    made = paths.mapping(scene.inputs.observed.get(VOLUME), "spec", "forProvider", "manifest")
    storage_class = paths.text(made, "spec", "storageClassName") or paths.text(
        scene.cluster, "status", "cache", "storageClassName"
    )
    if not storage_class:
        return Waiting(VOLUME, scene.closed)
    size = max(scene.source.size_gib, _size(made))
    manifest = scene.target.object(
        names.child(scene.inputs.name, VOLUME),
        cache_staging.claim(scene.place, storage_class, size),
        ready_when=builders.CLAIM_BOUND,
    )
    return Desired(VOLUME, manifest, blocked=scene.closed)


def _size(claim: Mapping[str, Any]) -> int:
    """Return the size in GiB of a claim of ours; 0 where it does not say."""
    text = paths.text(claim, "spec", "resources", "requests", "storage")
    number = text.removesuffix("Gi")
    return int(number) if text.endswith("Gi") and number.isdecimal() else 0


def _staging(scene: Scene) -> list[Desired | Waiting]:
    """Return the Job, and the token's copy where one is asked for; what runs outlasts a missing token."""
    if scene.lacks:
        return [Waiting(AUTH, scene.lacks), Waiting(scene.key, scene.lacks)]
    name, closed = scene.inputs.name, scene.closed
    found: list[Desired | Waiting] = []
    if scene.token:
        copied = scene.target.object(names.child(name, AUTH), cache_staging.token(scene.place, scene.token))
        found.append(Desired(AUTH, copied, blocked=closed))
    image = cache_staging.image(
        paths.text(scene.cluster, "status", "stackRelease"),
        paths.text(scene.cluster, "spec", "images", "mirror"),
    )
    job = cache_staging.job(scene.place, scene.what, image, with_token=bool(scene.token))
    job["spec"] = _running(scene) or job["spec"]
    wrapped = scene.target.object(
        names.child(name, scene.key),
        job,
        ready_when=builders.JOB_COMPLETE,
        policies=builders.WITHOUT_DELETE,
    )
    return [*found, Desired(scene.key, wrapped, after=(AUTH,) if scene.token else (), blocked=closed)]


def _running(scene: Scene) -> Manifest:
    """Return the spec of the Job that was made, or an empty one where there is none or it has failed.

    A Job's pod template is fixed: the image of a later stack release waits for the next Job.
    """
    made = paths.mapping(scene.inputs.observed.get(scene.key), "spec", "forProvider", "manifest", "spec")
    containers = paths.items(made, "template", "spec", "containers")
    if not containers or scene.job_says("Failed") is not None:
        return {}
    return copy.deepcopy(dict(made))


def _verdict(scene: Scene) -> tuple[str, Condition]:
    """Return the phase and the condition."""
    if scene.staged:
        return c.CACHE_READY, Condition(c.ARTIFACT_READY, True, STAGED)
    phase, reason, message = _unready(scene)
    return phase, Condition(c.ARTIFACT_READY, False, reason, message)


def _unready(scene: Scene) -> tuple[str, str, str]:
    """Return phase, reason and message of weights that are not there."""
    place, cluster = scene.place, scene.spec.cluster_name
    job = f"Job {place.namespace}/{names.staging_job(place.team, place.cache, scene.what.id)} on {cluster}"
    if (why := scene.job_says("Failed")) is not None:
        said = f"{job} failed: {why or 'it gave no reason'}; its pods' log says more. It is tried again"
        return c.CACHE_FAILED, FAILED, said
    before = paths.text(scene.inputs.composite, "status", "phase")
    filling = scene.bound or (not scene.lost and before in (c.CACHE_HYDRATING, c.CACHE_READY))
    phase = c.CACHE_HYDRATING if filling else c.CACHE_PENDING
    if scene.lacks:
        return phase, AUTH_SECRET_MISSING, f"{scene.lacks}; create it"
    if filling:
        return phase, HYDRATING, f"{job} copies {scene.what.text}"
    if scene.closed and VOLUME not in scene.inputs.observed:
        return phase, WAITING_FOR_CLUSTER, scene.closed
    claim = f"PersistentVolumeClaim {place.namespace}/{place.claim} on {cluster}"
    return phase, WAITING_FOR_VOLUME, f"{claim} is not bound yet"


def _status(scene: Scene, phase: str, condition: Condition) -> Manifest:
    """Return the status; what the volume held before a change stays on record until the new is there."""
    place = scene.place
    found: Manifest = {"phase": phase, "claimName": place.claim, "namespace": place.namespace}
    if scene.staged:
        found["artifact"] = scene.what.text
        found["resolvedRevision"] = scene.what.commit
    elif not scene.lost:
        for part in ("artifact", "resolvedRevision"):
            found[part] = paths.text(scene.inputs.composite, "status", part)
    if not condition.status:
        found["message"] = condition.message
    return {key: value for key, value in found.items() if value}


KIND = Kind(
    c.API,
    "ModelCacheReplica",
    compose,
    (c.ARTIFACT_READY,),
    requires,
    # The cluster's namespaces and the Secret change without an event here on cores up to 2.3.
    ttl=60,
)
