"""ModelCacheReplica: a ModelCache on one cluster, in the team's namespace there.

A volume, a Job that fills it, and while it does what the Job needs: its program, its report, the right to
write that, and a copy of the credential. Once the report says so status records what the volume holds, and
the rest leaves the plan: the Job's Object may not delete, so the Job's own time to live collects it. What a
changed source names is staged beside the old, in the same volume.
"""

import copy
from collections.abc import Mapping, Sequence
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
    images,
    paths,
    specs,
)
from modelplane.kinds import cache_claims, cache_report, cache_sources, cache_staging
from modelplane.kinds.cache_claims import WAITING_FOR_CLUSTER
from modelplane.kinds.cache_scene import AUTH, AUTH_SECRET, CLUSTER, VOLUME, Ground, Scene
from modelplane.kinds.model_cache import AUTH_SECRET_MISSING, FAILED, HYDRATING, STAGED

CLUSTER_NOT_FOUND = "ClusterNotFound"
NO_STORAGE_CLASS = "NoStorageClass"
WAITING_FOR_VOLUME = "WaitingForVolume"
# Not ready while it stages, so that the provider reads it every half minute and not every ten.
_REPORTED = 'has(object.data) && has(object.data.state) && object.data.state == "Staged"'


def requires(replica: Manifest) -> list[Requirement]:
    """Return the lookups: the cluster, and the credential's Secret where one is named."""
    found = []
    spec = paths.mapping(replica, "spec")
    if cluster := paths.text(spec, "clusterName"):
        found.append(Requirement(CLUSTER, c.API, "InferenceCluster", match_name=cluster))
    namespace = paths.namespace(replica)
    # Without a namespace the name would be looked for where it is nobody's.
    if namespace and (secret := cache_sources.secret_name(spec)):
        found.append(Requirement(AUTH_SECRET, "v1", "Secret", match_name=secret, namespace=namespace))
    return found


def compose(inputs: Inputs) -> Plan:
    """Return the Plan of a ModelCacheReplica."""
    spec = specs.parse(ModelCacheReplicaSpec, inputs.spec, c.ARTIFACT_READY)
    claim = spec.persistent_volume_claim if spec.source == c.CLAIM else None
    source = None if claim else cache_sources.read(spec)
    cluster = inputs.one(CLUSTER)
    if cluster is None:
        raise Hold(
            c.ARTIFACT_READY,
            CLUSTER_NOT_FOUND,
            f"InferenceCluster {spec.cluster_name} is not found; what it holds is kept. Create it, or take"
            " the cluster out of the ModelCache's selector",
        )
    if claim:
        return cache_claims.compose(Ground(inputs, spec, cluster), claim.claim_name)
    if source is None:
        raise InvalidSpecError(c.ARTIFACT_READY, "spec.source", "is missing; add it")
    return _copied(Scene(inputs, spec, cluster, source))


def _copied(scene: Scene) -> Plan:
    resources = [_volume(scene)]
    if not scene.settled:
        resources += _staging(scene)
    phase, condition = _verdict(scene)
    act = phase == c.CACHE_FAILED or condition.reason == AUTH_SECRET_MISSING
    return Plan(
        resources=resources,
        status=_status(scene, phase, condition),
        conditions=[condition],
        events=[Event(condition.message, warning=True)] if act else [],
        ready=None if condition.status else False,
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
    """Return the Job and what it needs; what runs outlasts a credential that is missing."""
    supported = cache_staging.support(scene.place, scene.what)
    keys = {name: scene.part(name) for name in supported}
    if scene.lacks:
        return [Waiting(key, scene.lacks) for key in (AUTH, *keys.values(), scene.key)]
    name, closed = scene.inputs.name, scene.closed
    found: list[Desired | Waiting] = []
    if scene.credential:
        copied = cache_staging.credential(scene.place, scene.credential)
        found.append(Desired(AUTH, scene.target.object(names.child(name, AUTH), copied), blocked=closed))
    for part, manifest in supported.items():
        ready = _REPORTED if part == "report" else ""
        wrapped = scene.target.object(names.child(name, keys[part]), manifest, ready_when=ready)
        found.append(Desired(keys[part], wrapped, blocked=closed))
    # The report is no gate: it is ready last of all.
    gates = [key for part, key in keys.items() if part != "report"]
    found.append(_job(scene, (*gates, *([AUTH] if scene.credential else []))))
    return found


def _job(scene: Scene, gates: Sequence[str]) -> Desired:
    image = cache_staging.image(
        paths.text(scene.cluster, "status", "stackRelease"),
        paths.text(scene.cluster, "spec", "images", "mirror"),
    )
    job = cache_staging.job(
        scene.place,
        scene.what,
        image,
        with_credential=bool(scene.credential),
        pull_secrets=images.pull_secrets(scene.cluster),
    )
    job["spec"] = _running(scene) or job["spec"]
    wrapped = scene.target.object(
        names.child(scene.inputs.name, scene.key),
        job,
        ready_when=builders.JOB_COMPLETE,
        policies=builders.WITHOUT_DELETE,
    )
    # It cannot report to a ConfigMap that is not there.
    report = scene.part("report")
    blocked = scene.closed or ("" if report in scene.inputs.observed else f"waiting for {report}")
    return Desired(scene.key, wrapped, after=tuple(gates), blocked=blocked)


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
    job = f"Job {place.namespace}/{place.job(scene.what)} on {cluster}"
    if (why := scene.job_says("Failed")) is not None:
        reason, said = _failure(scene, why)
        return c.CACHE_FAILED, reason, f"{job} failed: {said}. It is tried again"
    before = paths.text(scene.inputs.composite, "status", "phase")
    filling = scene.bound or (not scene.lost and before in (c.CACHE_HYDRATING, c.CACHE_READY))
    phase = c.CACHE_HYDRATING if filling else c.CACHE_PENDING
    if scene.lacks:
        return phase, AUTH_SECRET_MISSING, f"{scene.lacks}; create it"
    if filling:
        return phase, HYDRATING, _progress(scene, job)
    if scene.closed and VOLUME not in scene.inputs.observed:
        reason = WAITING_FOR_CLUSTER if scene.unprepared else NO_STORAGE_CLASS
        return phase, reason, scene.closed
    claim = f"PersistentVolumeClaim {place.namespace}/{place.claim} on {cluster}"
    return phase, WAITING_FOR_VOLUME, f"{claim} is not bound yet"


def _failure(scene: Scene, why: str) -> tuple[str, str]:
    """Return the reason and the words of a Job that failed: its own where it left any."""
    report = scene.report
    if report.state != cache_report.FAILED or not report.message:
        return FAILED, f"{why or 'it gave no reason'}; its pods' log says more"
    return report.reason or FAILED, report.message


def _progress(scene: Scene, job: str) -> str:
    report = scene.report
    parts = [f"{job} copies {scene.what.text}"]
    if report.progress:
        parts.append(report.progress)
    if report.state == cache_report.FAILED and report.message:
        parts.append(f"the last try failed: {report.message}")
    return "; ".join(parts)


def _status(scene: Scene, phase: str, condition: Condition) -> Manifest:
    """Return the status; what the volume held before a change stays on record until the new is there."""
    place, report = scene.place, scene.report
    before = paths.mapping(scene.inputs.composite, "status")
    found: Manifest = {"phase": phase, "claimName": place.claim, "namespace": place.namespace}
    if scene.staged:
        known = paths.text(before, "resolvedRevision") if scene.settled else ""
        found["artifact"] = scene.what.text
        found["resolvedRevision"] = scene.what.pinned or report.revision or known
    elif not scene.lost:
        for part in ("artifact", "resolvedRevision"):
            found[part] = paths.text(before, part)
    # Figures of an earlier artifact say nothing about this one.
    remembered = scene.settled or scene.part("report") in scene.inputs.observed
    for part, value in (("bytesDone", report.done), ("bytesTotal", report.total)):
        found[part] = paths.integer(before, part) if value is None and remembered else value
    if not condition.status:
        found["message"] = condition.message
    return {key: value for key, value in found.items() if value or value == 0}


KIND = Kind(
    c.API,
    "ModelCacheReplica",
    compose,
    (c.ARTIFACT_READY,),
    requires,
    # The cluster's namespaces and the Secret change without an event here on cores up to 2.3.
    ttl=60,
    watched=frozenset({c.ARTIFACT_READY}),
)
