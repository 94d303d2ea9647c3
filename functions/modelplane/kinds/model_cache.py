"""ModelCache: a model's weights on every cluster that matches, one ModelCacheReplica each.

The cache's owner decides by the selector, so weights go only when the selector was edited. A cluster whose
labels or status changed keeps what it has: each replica records the selector it was placed under. A cluster's
owner decides by draining it (a NoExecute taint): its weights go after the team's last replica there.
"""

import copy
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from modelplane import contracts as c
from modelplane import names
from modelplane.api.model_cache import BLOCKS, ModelCacheSpec
from modelplane.core import (
    Condition,
    Desired,
    Event,
    Inputs,
    InvalidSpecError,
    Kind,
    Manifest,
    Plan,
    Requirement,
    paths,
    specs,
)
from modelplane.kinds import cache_users
from modelplane.kinds.cache_users import REPLICAS

CLUSTERS = "clusters"

MATCHED = "Matched"
NO_CLUSTERS = "NoClusters"
STAGED = "Staged"
PARTIAL = "Partial"
HYDRATING = "Hydrating"
FAILED = "Failed"
AUTH_SECRET_MISSING = "AuthSecretMissing"

_KEY = "cache-"
_PHASES = {c.CACHE_PENDING, c.CACHE_HYDRATING, c.CACHE_READY, c.CACHE_FAILED}


@dataclass(frozen=True, slots=True)
class Choice:
    """What becomes of one cluster.

    Attributes:
        cluster: its name.
        stage: whether the cache is (or stays) staged there.
        note: what is worth saying about it.
    """

    cluster: str
    stage: bool
    note: str = ""


def requires(cache: Manifest) -> list[Requirement]:
    """Return the lookups: all clusters, whatever their labels say now, and the team's replicas."""
    return [
        Requirement(CLUSTERS, c.API, "InferenceCluster"),
        Requirement(REPLICAS, c.API, "ModelReplica", namespace=paths.namespace(cache)),
    ]


def compose(inputs: Inputs) -> Plan:
    """Return the Plan of a ModelCache."""
    spec = specs.parse(ModelCacheSpec, inputs.spec, c.ARTIFACT_READY)
    block = BLOCKS.get(spec.source, "")
    if not paths.mapping(inputs.spec, block):
        raise InvalidSpecError(c.ARTIFACT_READY, f"spec.{block or 'source'}", "is missing; add it")
    choices = choose(inputs, spec)
    staged = [choice for choice in choices if choice.stage]
    entries = [_entry(inputs, choice) for choice in choices]
    ready = sum(entry["phase"] == c.CACHE_READY for entry in entries)
    artifact, events = _artifact(inputs, staged, entries)
    return Plan(
        resources=[*cache_users.guard(inputs), *(_child(inputs, spec, choice.cluster) for choice in staged)],
        status={"summary": {"ready": f"{ready}/{len(staged)}"}, "clusters": entries},
        conditions=[_matched(choices), artifact],
        events=events,
        # Said outright: the guard that comes with the first engine is no reason to be unready for a pass.
        ready=artifact.status is True,
    )


def choose(inputs: Inputs, spec: ModelCacheSpec) -> list[Choice]:
    """Return what becomes of each cluster that matches or has the cache, by name."""
    wanted = spec.cluster_selector.match_labels
    clusters = {paths.name(x): x for x in inputs.all(CLUSTERS) if paths.name(x)}
    having = {key.removeprefix(_KEY): x for key, x in inputs.observed.items() if key.startswith(_KEY)}
    found: list[Choice] = []
    for name in sorted(clusters.keys() | having.keys()):
        cluster = clusters.get(name)
        if name in having:
            choice = _stay(inputs, name, cluster, wanted, _selector(having[name]))
        else:
            choice = _place(name, clusters[name], wanted, copied=spec.source != c.CLAIM)
        if choice is not None:
            found.append(choice)
    return found


def _place(
    name: str, cluster: Mapping[str, Any], wanted: Mapping[str, str], *, copied: bool
) -> Choice | None:
    """Return the choice for a cluster without the cache; None where it is none of the cache's business."""
    leaving = paths.at(cluster, "metadata", "deletionTimestamp") is not None
    if not _matches(cluster, wanted) or _draining(cluster) or leaving:
        return None
    if copied and not paths.text(cluster, "status", "cache", "storageClassName"):
        return Choice(
            name,
            False,
            f"InferenceCluster {name} has no storage class for ReadWriteMany volumes"
            " (status.cache.storageClassName); give it one or leave it out by spec.clusterSelector",
        )
    if not paths.text(cluster, "status", "providerConfigRef", "name"):
        return Choice(name, False, f"InferenceCluster {name} cannot be reached yet; wait for ClusterReady")
    return Choice(name, True)


def _stay(
    inputs: Inputs,
    name: str,
    cluster: Mapping[str, Any] | None,
    wanted: Mapping[str, str],
    placed_under: str,
) -> Choice | None:
    """Return the choice for a cluster that has the cache; None where it is to go."""
    if cluster is None:
        return Choice(name, True, f"InferenceCluster {name} is not found; what it holds is kept")
    if _draining(cluster):
        if cache_users.serving(inputs, name):
            return Choice(name, True, f"InferenceCluster {name} drains; goes with the last replica there")
        return None
    if _matches(cluster, wanted):
        return Choice(name, True)
    # A replica that does not say what it was placed under is kept: better a copy too many.
    if placed_under and placed_under != _canonical(wanted):
        if on_it := cache_users.mounting(inputs, name):
            who = cache_users.listed(on_it)
            return Choice(name, True, f"no more selected, but mounted by {who}; goes with the last of them")
        return None
    return Choice(name, True, f"the labels of InferenceCluster {name} match no more; what it holds is kept")


def _matches(cluster: Mapping[str, Any], wanted: Mapping[str, str]) -> bool:
    labels = paths.labels(cluster)
    return all(labels.get(key) == value for key, value in wanted.items())


def _draining(cluster: Mapping[str, Any]) -> bool:
    return any(t.get("effect") == c.NO_EXECUTE for t in paths.mappings(cluster, "spec", "taints"))


def _canonical(labels: Mapping[str, str]) -> str:
    return json.dumps(dict(labels), sort_keys=True, separators=(",", ":"))


def _selector(child: Mapping[str, Any]) -> str:
    return paths.text(child, "metadata", "annotations", c.CACHE_SELECTOR_ANNOTATION)


def _child(inputs: Inputs, spec: ModelCacheSpec, cluster: str) -> Desired:
    block = BLOCKS[spec.source]
    wanted: Manifest = {
        "cacheName": inputs.name,
        "clusterName": cluster,
        "source": spec.source,
        block: copy.deepcopy(dict(paths.mapping(inputs.spec, block))),
    }
    blocks = {c.HUGGING_FACE: spec.hugging_face, c.BUCKET: spec.bucket, c.OCI: spec.oci}
    if source := blocks.get(spec.source):
        wanted["storage"] = {"sizeGiB": source.size_gib}
    manifest: Manifest = {
        "apiVersion": c.API,
        "kind": "ModelCacheReplica",
        "metadata": {
            "name": names.cache_replica(inputs.name, cluster),
            "namespace": inputs.namespace,
            "labels": {
                c.CLUSTER_LABEL: names.label_value(cluster),
                c.CACHE_LABEL: names.label_value(inputs.name),
            },
            "annotations": {c.CACHE_SELECTOR_ANNOTATION: _canonical(spec.cluster_selector.match_labels)},
        },
        "spec": wanted,
    }
    return Desired(f"{_KEY}{cluster}", manifest)


def _entry(inputs: Inputs, choice: Choice) -> Manifest:
    """Return the status of one cluster; a phase the child does not tell is the one told last."""
    told = paths.mapping(inputs.observed.get(f"{_KEY}{choice.cluster}"), "status")
    before = next(
        (
            x
            for x in paths.mappings(inputs.composite, "status", "clusters")
            if x.get("name") == choice.cluster
        ),
        {},
    )
    phases = [paths.text(told, "phase"), paths.text(before, "phase")] if choice.stage else []
    phase = next((x for x in phases if x in _PHASES), c.CACHE_PENDING)
    entry: Manifest = {"name": choice.cluster, "phase": phase}
    if message := "; ".join(x for x in (choice.note, paths.text(told, "message")) if x):
        entry["message"] = message
    return entry


def _matched(choices: Sequence[Choice]) -> Condition:
    staged = [choice for choice in choices if choice.stage]
    left_out = "; ".join(choice.note for choice in choices if not choice.stage)
    if not staged:
        message = left_out or "no InferenceCluster matches spec.clusterSelector"
        return Condition(c.CLUSTERS_MATCHED, False, NO_CLUSTERS, message)
    some = f"{len(staged)} cluster{'s' if len(staged) > 1 else ''}"
    return Condition(c.CLUSTERS_MATCHED, True, MATCHED, f"{some}; {left_out}" if left_out else some)


def _artifact(
    inputs: Inputs, staged: Sequence[Choice], entries: Sequence[Manifest]
) -> tuple[Condition, list[Event]]:
    """Return the condition of the weights, and a warning where someone has to act."""
    names_ = [choice.cluster for choice in staged]
    phases = {e["name"]: e["phase"] for e in entries if e["name"] in names_}
    waiting = [name for name in names_ if phases[name] != c.CACHE_READY]
    if not names_:
        return Condition(c.ARTIFACT_READY, False, NO_CLUSTERS, "staged nowhere"), []
    if not waiting:
        return Condition(c.ARTIFACT_READY, True, STAGED), []
    for found in (_child_condition(inputs, name) for name in waiting):
        if found.get("reason") == AUTH_SECRET_MISSING:
            return _warn(AUTH_SECRET_MISSING, paths.text(found, "message"))
    if failed := [name for name in waiting if phases[name] == c.CACHE_FAILED]:
        said = {e["name"]: str(e.get("message", "")) for e in entries}
        return _warn(FAILED, "; ".join(f"{name}: {said[name] or 'look at its Job'}" for name in failed))
    reason = PARTIAL if len(waiting) < len(names_) else HYDRATING
    message = f"{len(names_) - len(waiting)} of {len(names_)}; not on {', '.join(waiting)} yet"
    return Condition(c.ARTIFACT_READY, False, reason, message), []


def _child_condition(inputs: Inputs, cluster: str) -> Mapping[str, Any]:
    return paths.condition(inputs.observed.get(f"{_KEY}{cluster}"), c.ARTIFACT_READY)


def _warn(reason: str, message: str) -> tuple[Condition, list[Event]]:
    return Condition(c.ARTIFACT_READY, False, reason, message), [Event(message, warning=True)]


KIND = Kind(
    c.API,
    "ModelCache",
    compose,
    (c.CLUSTERS_MATCHED, c.ARTIFACT_READY),
    requires,
    # Clusters come, change and drain without an event here on cores up to 2.3.
    ttl=60,
)
