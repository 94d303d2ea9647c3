"""ModelCacheReplica: the volume, the Job that fills it, and what it says while it does."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

import judges
from builders import platform as p
from modelplane import contracts as c
from modelplane import names
from modelplane.api import definitions
from modelplane.core import Answer, paths
from modelplane.kinds import cache_staging, model_cache_replica
from modelplane.kinds.cache_sources import Artifact

KIND = model_cache_replica.KIND
GIB = 1024**3


def hub(revision: str = "") -> Artifact:
    return Artifact(c.HUGGING_FACE, "example-org/mid-14b", revision)


def support(what: Artifact) -> set[str]:
    return {f"{part}-{what.id}" for part in ("program", "report", "account", "role", "binding")}


JOB, REPORT = f"staging-{hub().id}", f"report-{hub().id}"
SUPPORT = support(hub())
TOKEN = {"authSecret": {"name": "hub", "key": "tok"}}
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def compose(composite: p.Manifest, *objects: p.Manifest, **over: Any) -> Answer:
    return p.compose(KIND, composite, *(objects or (p.ready_cluster(),)), **over)


def volume(seen: p.Manifest, phase: str = "Bound") -> p.Manifest:
    found = p.reported(seen, ready=phase == "Bound")
    if phase:
        found["status"]["atProvider"]["manifest"]["status"] = {"phase": phase}
    else:
        found["status"].pop("atProvider")
    return found


def job(seen: p.Manifest, ended: str = "", message: str = "") -> p.Manifest:
    found = p.reported(seen, ready=ended == "Complete")
    if ended:
        told = {"type": ended, "status": "True", "reason": "PodFailurePolicy", "message": message}
        found["status"]["atProvider"]["manifest"]["status"] = {"conditions": [told]}
    return found


def report(seen: p.Manifest, what: Artifact | None = None, **data: str) -> p.Manifest:
    found = p.reported(seen, ready=data.get("state") == "Staged")
    found["status"]["atProvider"]["manifest"]["data"] = {"id": (what or hub()).id, **data}
    return found


def staged(seen: p.Manifest, what: Artifact | None = None, revision: str = COMMIT) -> p.Manifest:
    size = str(40 * GIB)
    return report(seen, what, state="Staged", revision=revision, bytesDone=size, bytesTotal=size)


def hydrating(composite: p.Manifest | None = None, *objects: p.Manifest) -> dict[str, p.Manifest]:
    """Volume bound, token copied, Job running."""
    composite = composite or p.cache_replica()
    observed: dict[str, p.Manifest] = {}
    for _ in range(3):
        answer = compose(composite, *objects, observed=observed)
        observed = {}
        for key, found in answer.resources.items():
            act = volume if key == "volume" else job if key.startswith("staging") else p.reported
            observed[key] = act(found.manifest)
    return observed


def test_a_prepared_cluster_gets_the_volume_and_the_job_in_the_teams_namespace() -> None:
    answer = compose(p.cache_replica())
    assert set(answer.resources) == {"volume", *SUPPORT}
    for found in answer.resources.values():
        assert found.manifest["metadata"]["namespace"] == "lab", "copied Secrets stay with their team"
        assert found.manifest["spec"]["providerConfigRef"] == {
            "kind": "ClusterProviderConfig",
            "name": names.cluster_config("north"),
        }
        assert p.remote(found.manifest)["metadata"]["namespace"] == names.team_namespace("lab")
    claim = p.remote(answer.resources["volume"].manifest)
    assert claim["metadata"]["name"] == names.cache_claim("lab", "osprey-weights")
    assert claim["spec"] == {
        "accessModes": ["ReadWriteMany"],
        "resources": {"requests": {"storage": "40Gi"}},
        "storageClassName": "shared-rwx",
        "volumeMode": "Filesystem",
    }
    assert answer.status["claimName"] == claim["metadata"]["name"]
    assert answer.status["namespace"] == names.team_namespace("lab")
    assert answer.status["phase"] == "Pending"
    # Not after the volume: a class that binds at the first consumer would never bind.
    assert set(answer.held_back) == {JOB}
    assert "volume" not in answer.held_back[JOB]
    assert set(hydrating()) == {"volume", *SUPPORT, JOB}


GATES: list[tuple[str, p.Manifest, str]] = [
    ("no namespace yet", p.ready_cluster(teams=["zoo"]), "namespace of lab"),
    ("not reached yet", p.ready_cluster(status={"providerConfigRef": None}), "cannot be reached"),
    ("no class for shared volumes", p.ready_cluster(status={"cache": None}), "no storage class"),
    ("junk for a list", p.ready_cluster(status={"namespaces": "lab"}), "namespace of lab"),
]


@pytest.mark.parametrize(("reason", "cluster", "says"), GATES, ids=[g[0] for g in GATES])
def test_nothing_is_created_before_the_cluster_is_prepared(
    reason: str, cluster: p.Manifest, says: str
) -> None:
    answer = compose(p.cache_replica(), cluster)
    assert dict(answer.resources) == {}, reason
    assert set(answer.held_back) == {"volume", JOB, *SUPPORT}, reason
    status, found, message = p.condition(answer, c.ARTIFACT_READY)
    wanted = "NoStorageClass" if "class" in reason else "WaitingForCluster"
    assert (status, found) == (False, wanted), reason
    assert says in message, reason
    assert answer.status["phase"] == "Pending", reason
    assert answer.status["message"] == message, reason


@pytest.mark.parametrize(("reason", "cluster", "says"), GATES, ids=[g[0] for g in GATES])
def test_what_runs_stays_as_it_is_when_the_cluster_forgets(
    reason: str, cluster: p.Manifest, says: str
) -> None:
    observed = hydrating()
    before = compose(p.cache_replica(), observed=observed)
    answer = compose(p.cache_replica(), cluster, observed=observed)
    assert {k: x.manifest for k, x in answer.resources.items()} == {
        k: x.manifest for k, x in before.resources.items()
    }, reason
    assert says, reason


def test_a_cluster_that_is_gone_holds_everything() -> None:
    observed = hydrating()
    answer = p.compose(KIND, p.cache_replica(), observed=observed)
    assert set(answer.resources) == set(observed)
    assert p.condition(answer, c.ARTIFACT_READY)[:2] == (False, "ClusterNotFound")
    assert answer.ttl == 15, "core does not watch clusters"


@pytest.mark.parametrize("part", ["apiVersion", "kind", "metadata", "spec"])
@pytest.mark.parametrize("junk", [None, 7, [], {"a": None}], ids=repr)
def test_a_junk_object_is_still_desired_while_the_cluster_is_there_and_when_it_is_gone(
    part: str, junk: Any
) -> None:
    observed = hydrating()
    for key in observed:
        broken = {**observed, key: {**observed[key], part: junk}}
        for objects in ([p.ready_cluster()], []):
            answer = p.compose(KIND, p.cache_replica(), *objects, observed=broken)
            assert set(answer.resources) == set(observed), (key, bool(objects))


def test_a_cache_hydrates_then_settles_and_only_the_volume_stays() -> None:
    """C63: the Job goes once it is not needed, by its own time to live, and readiness is remembered.

    C44: so does the token's copy.
    """
    composite, objects = p.cache_replica(**TOKEN), (p.ready_cluster(), p.secret(tok="czNjcg=="))
    observed = hydrating(composite, *objects)
    assert set(observed) == {"volume", "auth", JOB, *SUPPORT}
    running = compose(composite, *objects, observed=observed)
    assert running.status["phase"] == "Hydrating"
    assert p.condition(running, c.ARTIFACT_READY)[:2] == (False, "Hydrating")
    assert running.ttl == 60, "a download of hours, and core watches the Job"
    observed[JOB] = job(observed[JOB], "Complete")
    unread = compose(composite, *objects, observed=observed)
    assert unread.status["phase"] == "Hydrating", "only the report says what the branch was resolved to"
    observed[REPORT] = staged(observed[REPORT])
    done = compose(composite, *objects, observed=observed)
    assert set(done.resources) == set(observed), "kept until it is on record"
    assert done.status["phase"] == "Ready"
    assert done.status["artifact"] == "example-org/mid-14b"
    assert done.status["resolvedRevision"] == COMMIT
    assert done.status["bytesDone"] == done.status["bytesTotal"] == 40 * GIB
    assert p.condition(done, c.ARTIFACT_READY)[:2] == (True, "Staged")
    recorded = {**composite, "status": dict(done.status)}
    after = compose(recorded, *objects, observed=observed)
    assert set(after.resources) == {"volume"}
    assert after.resources["volume"].ready is True
    assert after.ready is None
    assert after.status == done.status
    spec = observed[JOB]["spec"]
    assert "Delete" not in spec["managementPolicies"]
    assert p.remote(observed[JOB])["spec"]["ttlSecondsAfterFinished"] <= 600
    assert "managementPolicies" not in observed["auth"]["spec"], "the copy goes with its Object"


PROGRESS: list[tuple[str, dict[str, str], str, dict[str, int]]] = [
    ("nothing said yet", {}, "copies example-org/mid-14b", {}),
    (
        "on its way",
        {"state": "Running", "bytesDone": str(10 * GIB), "bytesTotal": str(40 * GIB)},
        "10.0 of 40.0 GiB",
        {"bytesDone": 10 * GIB, "bytesTotal": 40 * GIB},
    ),
    ("the total is not known", {"state": "Running", "bytesDone": "0"}, "copies", {"bytesDone": 0}),
    (
        "a try failed, another runs",
        {"state": "Failed", "reason": "Unreachable", "message": "the hub did not answer"},
        "the last try failed: the hub did not answer",
        {},
    ),
    ("junk for numbers", {"bytesDone": "-1", "bytesTotal": "9" * 40}, "copies", {}),
    ("another run's words", {"id": "other", "bytesDone": "7"}, "copies", {}),
    ("a revision that is none", {"state": "Running", "revision": "$(id)"}, "copies", {}),
]


@pytest.mark.parametrize(("reason", "data", "says", "figures"), PROGRESS, ids=[x[0] for x in PROGRESS])
def test_what_the_run_reports_is_told(
    reason: str, data: dict[str, str], says: str, figures: dict[str, int]
) -> None:
    observed = hydrating()
    observed[REPORT] = report(observed[REPORT], **data)
    answer = compose(p.cache_replica(), observed=observed)
    status, found, message = p.condition(answer, c.ARTIFACT_READY)
    assert (status, found) == (False, "Hydrating"), reason
    assert says in message, reason
    assert {k: v for k, v in answer.status.items() if k.startswith("bytes")} == figures, reason
    assert "resolvedRevision" not in answer.status, reason


ENDED: list[tuple[str, dict[str, str], str, str]] = [
    (
        "no space",
        {"state": "Failed", "reason": "NoSpace", "message": "raise sizeGiB"},
        "NoSpace",
        "raise sizeGiB",
    ),
    (
        "the token is refused",
        {"state": "Failed", "reason": "Unauthorized", "message": "the hub refuses the token"},
        "Unauthorized",
        "refuses the token",
    ),
    ("a reason nobody knows", {"state": "Failed", "reason": "Pwned", "message": "x"}, "Failed", "x"),
    ("no report at all", {}, "Failed", "PodFailurePolicy: exit code 2"),
    ("text with control characters", {"state": "Failed", "message": "a\x1b[31m\nb"}, "Failed", "a [31m b"),
    ("a very long text", {"state": "Failed", "message": "x" * 10_000}, "Failed", "x" * 256),
]


@pytest.mark.parametrize(("reason", "data", "wanted", "says"), ENDED, ids=[x[0] for x in ENDED])
def test_a_failed_job_says_why_in_its_own_words(
    reason: str, data: dict[str, str], wanted: str, says: str
) -> None:
    observed = hydrating()
    observed[JOB] = job(observed[JOB], "Failed", "exit code 2")
    observed[REPORT] = report(observed[REPORT], **data)
    answer = compose(p.cache_replica(), observed=observed)
    status, found, message = p.condition(answer, c.ARTIFACT_READY)
    assert (status, found) == (False, wanted), reason
    assert says in message, reason
    assert len(message) < 600, reason
    assert answer.status["phase"] == "Failed", reason
    assert [e.warning for e in answer.events] == [True], reason
    assert set(answer.resources) == set(observed), reason


def test_the_token_is_one_key_copied_as_it_is_and_the_job_waits_for_it() -> None:
    objects = (p.ready_cluster(), p.secret(tok="czNjcg==", other="eA=="))
    first = compose(p.cache_replica(**TOKEN), *objects)
    assert set(first.resources) == {"volume", "auth", *SUPPORT}
    assert JOB not in first.resources, "it waits for what it refers to"
    copied = p.remote(first.resources["auth"].manifest)
    assert copied["data"] == {"HF_TOKEN": "czNjcg=="}
    container = _container(hydrating(p.cache_replica(**TOKEN), *objects)[JOB])
    token = next(x for x in container["env"] if x["name"] == "HF_TOKEN")
    assert token["valueFrom"]["secretKeyRef"]["name"] == copied["metadata"]["name"]
    said = " ".join(
        [*(x.message for x in first.conditions), *(x.message for x in first.events), str(first.status)]
    )
    assert "czNjcg==" not in said


MISSING: list[tuple[str, list[p.Manifest]]] = [
    ("no Secret", []),
    ("no such key", [p.secret(other="eA==")]),
    ("an empty value", [p.secret(tok="")]),
    ("data is junk", [{**p.secret(), "data": "junk"}]),
]


@pytest.mark.parametrize(("reason", "secrets"), MISSING, ids=[m[0] for m in MISSING])
def test_a_missing_token_stages_nothing_and_names_secret_and_key(
    reason: str, secrets: list[p.Manifest]
) -> None:
    answer = compose(p.cache_replica(**TOKEN), p.ready_cluster(), *secrets)
    assert set(answer.resources) == {"volume"}, reason
    status, found, message = p.condition(answer, c.ARTIFACT_READY)
    assert (status, found) == (False, "AuthSecretMissing"), reason
    assert "Secret lab/hub has no key tok" in message, reason
    assert answer.ttl == 15, "core does not watch the Secret"
    assert [e.warning for e in answer.events] == [True], reason
    running = hydrating(p.cache_replica(**TOKEN), p.ready_cluster(), p.secret(tok="eA=="))
    kept = compose(p.cache_replica(**TOKEN), p.ready_cluster(), *secrets, observed=running)
    assert set(kept.resources) == {"volume", "auth", JOB, *SUPPORT}, reason


def test_a_token_that_goes_after_staging_is_no_matter() -> None:
    composite = p.cache_replica(status={"artifact": "example-org/mid-14b", "phase": "Ready"}, **TOKEN)
    observed = {"volume": hydrating()["volume"]}
    answer = compose(composite, p.ready_cluster(), observed=observed)
    assert set(answer.resources) == {"volume"}
    assert p.condition(answer, c.ARTIFACT_READY)[:2] == (True, "Staged")


def test_a_changed_revision_is_staged_beside_the_old_which_stays_on_record() -> None:
    status = {"artifact": f"example-org/mid-14b@{COMMIT}", "resolvedRevision": COMMIT, "phase": "Ready"}
    composite = p.cache_replica(status=status, revision="v2")
    observed = {"volume": hydrating()["volume"]}
    answer = compose(composite, observed=observed)
    what = hub("v2")
    assert set(answer.resources) == {"volume", *support(what)}
    assert answer.status["phase"] == "Hydrating"
    assert answer.status["artifact"] == status["artifact"]
    assert answer.status["resolvedRevision"] == COMMIT
    key = f"report-{what.id}"
    observed[key] = staged(answer.resources[key].manifest, what, "f" * 40)
    done = compose(composite, observed=observed)
    assert done.status["artifact"] == "example-org/mid-14b@v2"
    assert done.status["resolvedRevision"] == "f" * 40, "what the tag meant when it was staged"


LATCH: list[tuple[str, str, str]] = [
    ("the volume is bound", "Bound", "Ready"),
    ("the provider does not show it in this pass", "", "Ready"),
    ("another volume, not bound: the weights are gone", "Pending", "Pending"),
    ("the volume lost its disk", "Lost", "Pending"),
]


@pytest.mark.parametrize(("reason", "phase", "wanted"), LATCH, ids=[x[0] for x in LATCH])
def test_readiness_is_remembered_as_long_as_the_volume_is_there(reason: str, phase: str, wanted: str) -> None:
    composite = p.cache_replica(status={"artifact": "example-org/mid-14b", "phase": "Ready"})
    observed = {"volume": volume(hydrating()["volume"], phase)}
    answer = compose(composite, observed=observed)
    assert answer.status["phase"] == wanted, reason
    assert (REPORT in answer.resources) is (wanted != "Ready"), reason


def test_a_failed_job_says_why_and_is_followed_by_the_current_image() -> None:
    observed = hydrating()
    old = copy.deepcopy(observed[JOB])
    _container(old)["image"] = "docker.io/kserve/storage-initializer:v0.1.0"
    observed[JOB] = job(old)
    running = compose(p.cache_replica(), observed=observed)
    assert _container(running.resources[JOB].manifest)["image"].endswith("v0.1.0"), "its template is fixed"
    observed[JOB] = job(old, "Failed", "exit code 2")
    failed = compose(p.cache_replica(), observed=observed)
    assert failed.status["phase"] == "Failed"
    assert "exit code 2" in p.condition(failed, c.ARTIFACT_READY)[2]
    assert not _container(failed.resources[JOB].manifest)["image"].endswith("v0.1.0")


def test_a_volume_grows_never_shrinks_and_never_changes_its_class() -> None:
    observed = hydrating()
    cluster = p.ready_cluster(status={"cache": {"storageClassName": "other"}})
    for size, wanted in ((80, "80Gi"), (10, "40Gi")):
        claim = p.remote(
            compose(p.cache_replica(sizeGiB=size), cluster, observed=observed).resources["volume"].manifest
        )
        assert claim["spec"]["resources"]["requests"]["storage"] == wanted
        assert claim["spec"]["storageClassName"] == "shared-rwx"


def test_user_text_reaches_the_job_as_data_only() -> None:
    """Invariant 7, and behaviour 13.2: repo and revision once went into a shell unquoted."""
    evil = "x'; $(HF_TOKEN) `id` ${HOME} $$ \n#"
    found = hydrating(p.cache_replica(repo=evil, revision=evil))
    (key,) = (k for k in found if k.startswith("staging"))
    container = _container(found[key])
    assert container["command"] == _container(hydrating()[JOB])["command"]
    env = {x["name"]: x.get("value") for x in container["env"]}
    for name in (c.ENV_STAGING_LOCATION, c.ENV_STAGING_REVISION):
        assert _expanded(env[name], env) == evil
    assert container["command"] == ["python3", "-m", "modelplane.staging.main"]


def test_the_job_runs_as_nobody_in_particular_and_holds_nothing_it_does_not_need() -> None:
    pod = p.remote(hydrating()[JOB])["spec"]["template"]["spec"]
    container = pod["containers"][0]
    found = hydrating()
    role = p.remote(found[f"role-{hub().id}"])
    assert role["rules"] == [
        {
            "apiGroups": [""],
            "resources": ["configmaps"],
            "resourceNames": [p.remote(found[REPORT])["metadata"]["name"]],
            "verbs": ["patch"],
        }
    ]
    assert p.remote(found[f"binding-{hub().id}"])["subjects"][0]["name"] == pod["serviceAccountName"]
    assert "data" not in p.remote(found[REPORT]), "what the run writes there is not ours to take back"
    assert p.remote(found[f"program-{hub().id}"])["metadata"]["name"] != role["metadata"]["name"], (
        "nobody may change what runs"
    )
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }
    assert "HF_TOKEN" not in {x["name"] for x in container["env"]}, "no token was asked for"


def test_the_staging_image_follows_release_and_mirror_of_the_cluster() -> None:
    plain = cache_staging.image("", "")
    assert cache_staging.image("2026.12", "") == plain
    assert cache_staging.image("of-the-future", "") == plain
    cluster = p.ready_cluster(images={"mirror": "r.example.org/m", "pullSecretRef": {"name": "x"}})
    pod = p.remote(hydrating(p.cache_replica(), cluster)[JOB])["spec"]["template"]["spec"]
    mirrored = pod["containers"][0]["image"]
    assert pod["imagePullSecrets"] == [{"name": c.PULL_SECRET}]
    assert mirrored == f"r.example.org/m/{plain.partition('/')[2]}"


def test_everything_composed_and_reported_is_admitted(crds: Path) -> None:
    objects = (p.ready_cluster(), p.secret(tok="czNjcg=="))
    composite = p.cache_replica(revision="v1", **TOKEN)
    observed = hydrating(composite, *objects)
    answer = compose(composite, *objects, observed=observed)
    assert set(answer.resources) == set(observed)
    for found in answer.resources.values():
        for manifest in judges.with_remote(found.manifest):
            assert judges.problems(manifest, crds) == []
    shown = {**composite, "status": dict(answer.status)}
    assert [str(x) for x in definitions.load().judge(shown)] == []


JUNK: list[Any] = [None, 7, [], {"clusterName": 3}, {"huggingFace": 3}, {"huggingFace": {"authSecret": "x"}}]


@pytest.mark.parametrize("spec", JUNK, ids=repr)
def test_requirements_never_raise_on_a_broken_spec(spec: Any) -> None:
    assert KIND.requires({"metadata": {"name": "w", "namespace": "lab"}, "spec": spec}) == []


def _container(obj: p.Manifest) -> p.Manifest:
    found: p.Manifest = paths.at(p.remote(obj), "spec", "template", "spec", "containers", 0)
    return found


def _expanded(value: str | None, env: dict[str, str | None]) -> str:
    """The kubelet's expansion: $(NAME) of a known name is replaced, $$ is one dollar sign."""
    text, out = value or "", ""
    while text:
        if text.startswith("$$"):
            out, text = f"{out}$", text[2:]
        elif text.startswith("$(") and ")" in text and text[2 : text.index(")")] in env:
            name, text = text[2 : text.index(")")], text[text.index(")") + 1 :]
            out += env[name] or ""
        else:
            out, text = out + text[0], text[1:]
    return out
