"""Secrets and ConfigMaps of members: copied for the team, or taken to stand on the cluster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from builders import replicas as r
from modelplane import contracts as c
from modelplane.core import Answer, Condition, Manifest
from modelplane.kinds.model_replica import KIND

HUB = {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hub", "key": "TOKEN"}}}
VALUE = "c2VjcmV0LXZhbHVl"


def using(env: Any = (), **pod: Any) -> Manifest:
    member = r.member(engine=r.container(env=list(env)), **pod)
    return r.replica(r.engine("main", member))


def resolved(given: Answer) -> Condition:
    (found,) = [x for x in given.conditions if x.type == c.REFERENCES_RESOLVED]
    return found


def pod_of(given: Answer) -> Manifest:
    return r.pods(r.workload(given))["standalone"]


def test_a_secret_of_the_team_is_copied_with_only_the_keys_in_use() -> None:
    """Case C44's kind: what stands on the control plane only is out of a pod's reach."""
    source = r.secret("hub", {"TOKEN": VALUE, "OTHER": "eA=="})
    given, _ = r.settled(using([HUB]), r.cluster(), source)
    remote = r.manifests(given)["secret-hub"]
    assert remote["data"] == {"TOKEN": VALUE}
    assert remote["metadata"]["namespace"] == r.team_space()
    assert r.env_of(pod_of(given))["HF_TOKEN"]["secretKeyRef"] == {
        "name": remote["metadata"]["name"],
        "key": "TOKEN",
    }
    assert (resolved(given).status, resolved(given).reason) == (True, "Resolved")


def test_two_replicas_share_no_copy() -> None:
    """The first to be deleted would take it from the other."""
    names = set()
    for name in ("heron-1", "heron-2"):
        composite = {**using([HUB]), "metadata": {"name": name, "namespace": r.TEAM}}
        given, _ = r.settled(composite, r.cluster(), r.secret("hub", {"TOKEN": VALUE}))
        names.add(r.manifests(given)["secret-hub"]["metadata"]["name"])
    assert len(names) == 2


def test_pods_wait_for_the_copies_they_refer_to() -> None:
    given = r.answer(using([HUB]), r.cluster(), r.secret("hub", {"TOKEN": VALUE}))
    assert "secret-hub" in given.held_back["model-serving-main"]


PLACES: list[tuple[Manifest, str, list[Any], str]] = [
    (using([HUB]), "secret-hub", ["TOKEN"], "an environment variable"),
    (
        using([{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "hub", "key": "TOKEN"}}}]),
        "configmap-hub",
        ["TOKEN"],
        "a ConfigMap's key",
    ),
    (using(imagePullSecrets=[{"name": "hub"}]), "pullsecret-hub", ["OTHER", "TOKEN"], "a pull Secret, whole"),
    (
        using(volumes=[{"name": "v", "secret": {"secretName": "hub"}}]),
        "secret-hub",
        ["OTHER", "TOKEN"],
        "a volume, whole",
    ),
    (
        using(volumes=[{"name": "v", "configMap": {"name": "hub"}}]),
        "configmap-hub",
        ["OTHER", "TOKEN"],
        "a ConfigMap volume",
    ),
    (
        using(volumes=[{"name": "v", "projected": {"sources": [{"secret": {"name": "hub"}}]}}]),
        "secret-hub",
        ["OTHER", "TOKEN"],
        "a projected volume",
    ),
    (
        using(
            volumes=[{"name": "v", "secret": {"secretName": "hub", "items": [{"key": "TOKEN", "path": "t"}]}}]
        ),
        "secret-hub",
        ["TOKEN"],
        "a volume with a list of keys: those alone",
    ),
    (
        using(
            volumes=[
                {
                    "name": "v",
                    "projected": {
                        "sources": [{"configMap": {"name": "hub", "items": [{"key": "TOKEN", "path": "t"}]}}]
                    },
                }
            ]
        ),
        "configmap-hub",
        ["TOKEN"],
        "the same in a projected volume",
    ),
    (
        using(initContainers=[r.container("prepare", env=[HUB])]),
        "secret-hub",
        ["TOKEN"],
        "an init container",
    ),
    (using(sidecars=[r.container("logs", env=[HUB])]), "secret-hub", ["TOKEN"], "a sidecar"),
]


def _secret_fields(schema: Any, at: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every field of a volume that names a Secret, by a pod's own schema."""
    for name, field in schema.get("properties", {}).items():
        here = (*at, name)
        if name in ("secretName", "secretRef", "nodePublishSecretRef"):
            yield (*here, "name") if "properties" in field else here
        else:
            yield from _secret_fields(field, here)


def _volume(at: tuple[str, ...], name: str = "hub") -> Manifest:
    value: Any = name
    for step in reversed(at):
        value = {step: value}
    return {"name": "v", **value}


def test_whatever_a_volume_is_made_of_its_secret_is_followed(crds: Path) -> None:
    """CSI, Azure files, CephFS, iSCSI, RBD, ...: a driver that is told a name that is not there waits."""
    crd = yaml.safe_load((crds / "lws/leaderworkerset.x-k8s.io_leaderworkersets.yaml").read_text())
    spec = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    pod = spec["leaderWorkerTemplate"]["properties"]["workerTemplate"]["properties"]["spec"]["properties"]
    fields = [x for x in _secret_fields(pod["volumes"]["items"]) if x[0] != "flexVolume"]
    assert len(fields) == 9
    for at in fields:
        source = r.secret("hub", {"TOKEN": VALUE})
        given, _ = r.settled(using(volumes=[_volume(at)]), r.cluster(), source)
        name = r.manifests(given)["secret-hub"]["metadata"]["name"]
        (found,) = [v for v in pod_of(given)["spec"]["volumes"] if v["name"] == "v"]
        assert found == _volume(at, name), at


def test_a_key_that_a_volume_lists_and_the_secret_lacks_is_named() -> None:
    volume = {"name": "v", "secret": {"secretName": "hub", "items": [{"key": "ca.crt", "path": "c"}]}}
    given = r.answer(using(volumes=[volume]), r.cluster(), r.secret("hub", {"TOKEN": VALUE}))
    assert resolved(given).reason == "KeyMissing"
    assert "lacks key ca.crt" in resolved(given).message
    volume["secret"]["optional"] = True
    given, _ = r.settled(using(volumes=[volume]), r.cluster(), r.secret("hub", {"TOKEN": VALUE}))
    assert resolved(given).reason == "Resolved", "an optional one may lack it"


@pytest.mark.parametrize(("composite", "key", "keys", "reason"), PLACES)
def test_every_place_that_can_name_one_is_followed(
    composite: Manifest, key: str, keys: list[str], reason: str
) -> None:
    source = r.secret("hub", {"TOKEN": VALUE, "OTHER": "eA=="}, "kubernetes.io/dockerconfigjson")
    config_map = {**source, "kind": "ConfigMap"}
    given, _ = r.settled(composite, r.cluster(), source, config_map)
    remote = r.manifests(given)[key]
    assert sorted(remote["data"]) == keys, reason
    assert remote["metadata"]["name"] in str(pod_of(given)), reason
    assert "'hub'" not in str(pod_of(given)), reason
    if key.startswith("pull"):
        assert remote["type"] == "kubernetes.io/dockerconfigjson", "kubelet pulls with this type only"


def test_one_the_team_does_not_have_is_left_to_the_cluster() -> None:
    given, _ = r.settled(using([HUB]))
    assert "secret-hub" not in given.resources
    assert r.env_of(pod_of(given))["HF_TOKEN"]["secretKeyRef"]["name"] == "hub"
    found = resolved(given)
    assert (found.status, found.reason) == (True, "TakenFromCluster")
    assert "Secret hub" in found.message
    assert r.team_space() in found.message


def test_an_optional_one_that_is_missing_is_nothing_to_tell() -> None:
    optional = {"name": "A", "valueFrom": {"secretKeyRef": {"name": "hub", "key": "TOKEN", "optional": True}}}
    given, _ = r.settled(using([optional]))
    assert resolved(given).reason == "Resolved"


def test_a_missing_key_is_named_and_no_pod_is_started_on_it() -> None:
    given = r.answer(using([HUB]), r.cluster(), r.secret("hub", {"OTHER": VALUE}))
    found = resolved(given)
    assert (found.status, found.reason) == (False, "KeyMissing")
    assert "Secret hub in namespace lab lacks key TOKEN" in found.message
    assert r.workloads(given) == {}


@pytest.mark.parametrize(
    ("sources", "status", "reason"),
    [
        ([], "SourceMissing", "deleted by mistake"),
        ([r.secret("hub", {})], "KeyMissing", "emptied by mistake"),
    ],
)
def test_a_copy_outlives_its_source_while_it_is_referred_to(
    sources: list[Manifest], status: str, reason: str
) -> None:
    composite = using([HUB])
    before, seen = r.settled(composite, r.cluster(), r.secret("hub", {"TOKEN": VALUE}))
    after = r.answer(composite, r.cluster(), *sources, observed=seen)
    assert r.manifests(after)["secret-hub"] == r.manifests(before)["secret-hub"], reason
    assert r.workloads(after) == r.workloads(before), reason
    assert (resolved(after).status, resolved(after).reason) == (False, status), reason


def test_the_copy_goes_with_the_reference() -> None:
    source = r.secret("hub", {"TOKEN": VALUE})
    _, seen = r.settled(using([HUB]), r.cluster(), source)
    rolling = r.answer(using(), r.cluster(), source, observed=seen)
    assert "secret-hub" in rolling.resources, "pods of before may still start with it"
    last, _ = r.settled(using(), r.cluster(), source, observed=seen)
    assert "secret-hub" not in last.resources


def test_no_value_reaches_a_status_condition_or_event() -> None:
    for source in (r.secret("hub", {"TOKEN": VALUE}), r.secret("hub", {"OTHER": VALUE})):
        given = r.answer(using([HUB]), r.cluster(), source)
        assert VALUE not in str((given.status, given.conditions, given.events, given.held_back))


def test_requirements_follow_the_composite_alone_and_ask_in_its_namespace() -> None:
    composite = using([HUB], imagePullSecrets=[{"name": "hub"}, {"name": "pull"}])
    found = {x.name: x for x in KIND.requires(composite)}
    assert sorted(found) == ["cluster", "secret-hub", "secret-pull"]
    assert {x.namespace for n, x in found.items() if n != "cluster"} == {r.TEAM}
    assert found["cluster"].namespace is None
