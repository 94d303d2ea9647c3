"""Caches from buckets, registries and claims of a team's own: what reaches the cluster, and what must not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import judges
from builders import platform as p
from modelplane import contracts as c
from modelplane import names
from modelplane.api import definitions
from modelplane.core import Answer
from modelplane.kinds import model_cache_replica
from modelplane.kinds.cache_sources import Artifact

KIND = model_cache_replica.KIND
URI, IMAGE = "s3://weights/qwen", "registry.example.org/models/qwen:v1"
DIGEST = f"sha256:{'a' * 64}"


def replica(source: str, status: p.Manifest | None = None, **block: Any) -> p.Manifest:
    """A cache replica of another source than the hub."""
    found = p.cache_replica()
    del found["spec"]["huggingFace"]
    key = {"Bucket": "bucket", "OCI": "oci", "PersistentVolumeClaim": "persistentVolumeClaim"}[source]
    found["spec"].update({"source": source, key: block})
    if source == "PersistentVolumeClaim":
        del found["spec"]["storage"]
    found = definitions.load().default(found)
    return {**found, "status": status} if status else found


def bucket(**over: Any) -> p.Manifest:
    return replica("Bucket", **{"uri": URI, **over})


def oci(**over: Any) -> p.Manifest:
    return replica("OCI", **{"image": IMAGE, **over})


def claim(name: str = "own", **over: Any) -> p.Manifest:
    return replica("PersistentVolumeClaim", claimName=name, **over)


def compose(composite: p.Manifest, *objects: p.Manifest, **over: Any) -> Answer:
    return p.compose(KIND, composite, *(objects or (p.ready_cluster(),)), **over)


def staging(composite: p.Manifest, *objects: p.Manifest) -> dict[str, p.Manifest]:
    """All that is composed once everything stands."""
    observed: dict[str, p.Manifest] = {}
    for _ in range(3):
        observed = p.observed_of(compose(composite, *objects, observed=observed))
    return observed


def container(observed: dict[str, p.Manifest]) -> p.Manifest:
    (key,) = (k for k in observed if k.startswith("staging-"))
    found: p.Manifest = p.remote(observed[key])["spec"]["template"]["spec"]["containers"][0]
    return found


def test_a_bucket_is_read_with_the_stores_own_settings_and_nothing_else_of_the_secret() -> None:
    data = {
        "AWS_ACCESS_KEY_ID": "YQ==",
        "AWS_SECRET_ACCESS_KEY": "Yg==",
        "GOOGLE_CREDENTIALS": "e30=",
        "LD_PRELOAD": "eA==",
        "PYTHONPATH": "eA==",
        "STAGING_ROOT": "eA==",
        "AWS_EMPTY": "",
        "aws_lower": "eA==",
    }
    composite = bucket(authSecret={"name": "hub"})
    observed = staging(composite, p.ready_cluster(), p.secret(**data))
    copied = p.remote(observed["auth"])
    assert set(copied["data"]) == {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "GOOGLE_CREDENTIALS"}
    found = container(observed)
    assert found["envFrom"] == [{"secretRef": {"name": copied["metadata"]["name"]}}]
    env = {x["name"]: x.get("value") for x in found["env"]}
    assert (env[c.ENV_STAGING_SOURCE], env[c.ENV_STAGING_LOCATION]) == ("Bucket", URI)


def test_a_registry_gets_the_pull_secret_as_data_of_one_variable() -> None:
    composite = oci(pullSecretRef={"name": "hub"})
    secret = p.secret(**{".dockerconfigjson": "e30=", "other": "eA=="})
    observed = staging(composite, p.ready_cluster(), secret)
    assert p.remote(observed["auth"])["data"] == {"config.json": "e30="}
    env = {x["name"]: x for x in container(observed)["env"]}
    ref = env[c.ENV_STAGING_REGISTRY_AUTH]["valueFrom"]["secretKeyRef"]
    assert ref == {"name": p.remote(observed["auth"])["metadata"]["name"], "key": "config.json"}
    assert env[c.ENV_STAGING_LOCATION]["value"] == IMAGE
    assert "envFrom" not in container(observed)


@pytest.mark.parametrize("composite", [bucket(), oci()], ids=["bucket", "oci"])
def test_without_a_secret_the_pods_own_identity_is_used(composite: p.Manifest) -> None:
    observed = staging(composite)
    assert "auth" not in observed
    assert not {c.ENV_HF_TOKEN, c.ENV_STAGING_REGISTRY_AUTH} & {x["name"] for x in container(observed)["env"]}


LACKING: list[tuple[str, p.Manifest, str]] = [
    ("a bucket's Secret without settings", bucket(authSecret={"name": "hub"}), "AWS_ or GOOGLE_"),
    ("a pull Secret that is none", oci(pullSecretRef={"name": "hub"}), ".dockerconfigjson"),
]


@pytest.mark.parametrize(("reason", "composite", "says"), LACKING, ids=[x[0] for x in LACKING])
def test_a_secret_that_lacks_what_is_needed_is_named(reason: str, composite: p.Manifest, says: str) -> None:
    answer = compose(composite, p.ready_cluster(), p.secret(other="eA=="))
    assert set(answer.resources) == {"volume"}, reason
    status, found, message = p.condition(answer, c.ARTIFACT_READY)
    assert (status, found) == (False, "AuthSecretMissing"), reason
    assert f"Secret lab/hub has no key {says}" in message or says in message, reason


REFUSED: list[tuple[str, p.Manifest, str]] = [
    ("a store nobody reads", bucket(uri="ftp://weights/x"), "spec.bucket.uri"),
    ("a credential in the URI", bucket(uri="s3://key:s3cret@weights/x"), "spec.bucket.uri"),
    ("a query", bucket(uri="s3://weights/x?versionId=1"), "spec.bucket.uri"),
    ("no bucket", bucket(uri="s3:///x"), "spec.bucket.uri"),
    ("an URI that cannot be read", bucket(uri="s3://[x/y"), "spec.bucket.uri"),
    ("an image with a scheme", oci(image="https://registry.example.org/x"), "spec.oci.image"),
    ("an image with a password", oci(image="u:s3cret@registry.example.org/x"), "spec.oci.image"),
]


@pytest.mark.parametrize(("reason", "composite", "field"), REFUSED, ids=[x[0] for x in REFUSED])
def test_a_location_nobody_can_read_is_refused_by_its_field_and_what_runs_stays(
    reason: str, composite: p.Manifest, field: str
) -> None:
    answer = compose(composite)
    assert dict(answer.resources) == {}, reason
    status, found, message = p.condition(answer, c.ARTIFACT_READY)
    assert (status, found) == (False, "InvalidSpec"), reason
    assert message.startswith(field), reason
    assert "s3cret" not in message, reason
    running = staging(bucket())
    assert set(compose(composite, observed=running).resources) == set(running), reason


def test_a_pinned_digest_is_known_before_anything_is_staged() -> None:
    for image, wanted in ((f"registry.example.org/q@{DIGEST}", DIGEST), (IMAGE, "")):
        assert Artifact(c.OCI, image).pinned == wanted
    assert Artifact(c.OCI, URI).id != Artifact(c.BUCKET, URI).id


def test_a_changed_source_is_staged_beside_what_the_volume_holds() -> None:
    status = {"artifact": "example-org/mid-14b", "resolvedRevision": "f" * 40, "phase": "Ready"}
    composite = {**bucket(), "status": status}
    volume = staging(bucket())["volume"]
    volume["status"]["atProvider"]["manifest"]["status"] = {"phase": "Bound"}
    answer = compose(composite, observed={"volume": volume})
    assert answer.resources["volume"].manifest["spec"] == volume["spec"], "one volume, and no other"
    assert answer.status["artifact"] == "example-org/mid-14b"
    assert answer.status["phase"] == "Hydrating"


def shown(observed: p.Manifest, phase: str = "", name: str = "own") -> p.Manifest:
    """A claim as the provider shows it."""
    observed["status"]["atProvider"]["manifest"] = {
        "metadata": {"name": name},
        "status": {"phase": phase} if phase else {},
    }
    return observed


def test_a_claim_of_the_teams_own_is_looked_at_and_nothing_is_made() -> None:
    answer = compose(claim())
    assert set(answer.resources) == {"claim"}
    found = answer.resources["claim"].manifest
    assert found["spec"]["managementPolicies"] == ["Observe"]
    assert p.remote(found)["metadata"] == {"name": "own", "namespace": names.team_namespace("lab")}
    assert "spec" not in p.remote(found)
    status, reason, message = p.condition(answer, c.ARTIFACT_READY)
    assert (status, reason) == (False, "WaitingForClaim")
    assert f"{names.team_namespace('lab')}/own on north" in message
    seen = {"claim": shown(p.reported(found), "Bound")}
    ready = compose(claim(), observed=seen)
    assert ready.status == {
        "phase": "Ready",
        "claimName": "own",
        "namespace": names.team_namespace("lab"),
        "artifact": "PersistentVolumeClaim/own",
    }
    assert p.condition(ready, c.ARTIFACT_READY)[:2] == (True, "ClaimBound")


LATCH: list[tuple[str, str, str, str]] = [
    ("not shown in this pass", "", "own", "Ready"),
    ("lost its disk", "Lost", "own", "Pending"),
    ("another claim is shown", "Bound", "other", "Ready"),
]


@pytest.mark.parametrize(("reason", "phase", "name", "wanted"), LATCH, ids=[x[0] for x in LATCH])
def test_a_claim_that_was_bound_stays_so_until_it_is_shown_otherwise(
    reason: str, phase: str, name: str, wanted: str
) -> None:
    composite = claim(status={"artifact": "PersistentVolumeClaim/own", "phase": "Ready"})
    seen = {"claim": shown(p.reported(compose(claim()).resources["claim"].manifest), phase, name)}
    assert compose(composite, observed=seen).status["phase"] == wanted, reason


def test_what_was_staged_stays_until_the_claim_is_bound_and_goes_after() -> None:
    running = staging(bucket())
    waiting = compose(claim(), observed=running)
    assert set(waiting.resources) == {*running, "claim"}
    found = p.reported(waiting.resources["claim"].manifest)
    done = compose(claim(), observed={**running, "claim": shown(found, "Bound")})
    assert set(done.resources) == {"claim"}


def test_a_claim_needs_no_storage_class_but_its_namespace() -> None:
    assert set(compose(claim(), p.ready_cluster(status={"cache": None})).resources) == {"claim"}
    closed = compose(claim(), p.ready_cluster(teams=[]))
    assert dict(closed.resources) == {}
    assert p.condition(closed, c.ARTIFACT_READY)[:2] == (False, "WaitingForCluster")


@pytest.mark.parametrize("composite", [bucket(), oci(), claim()], ids=["bucket", "oci", "claim"])
def test_everything_composed_is_admitted(composite: p.Manifest, crds: Path) -> None:
    observed = staging(composite)
    answer = compose(composite, observed=observed)
    assert set(answer.resources) == set(observed)
    for found in answer.resources.values():
        # What is only observed is no object to apply: a claim without a spec.
        remote = () if found.manifest["spec"].get("managementPolicies") == ["Observe"] else (1,)
        for manifest in list(judges.with_remote(found.manifest))[: 1 + len(remote)]:
            assert judges.problems(manifest, crds) == []
    told = {**composite, "status": dict(answer.status)}
    assert [str(x) for x in definitions.load().judge(told)] == []


@pytest.mark.parametrize("source", ["HuggingFace", "Bucket", "OCI", "PersistentVolumeClaim", "Torrent", ""])
def test_a_source_without_its_block_is_refused_and_what_runs_stays(source: str) -> None:
    composite = p.cache_replica()
    composite["spec"] = {"cacheName": "w", "clusterName": "north", "source": source}
    running = staging(bucket())
    answer = compose(composite, observed=running)
    assert set(answer.resources) == set(running)
    assert p.condition(answer, c.ARTIFACT_READY)[:2] == (False, "InvalidSpec")
