"""ServingStack: moving from one release to another, and only when asked."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import judges
from builders import stacks
from modelplane import contracts as c
from modelplane.core import Answer
from modelplane.facts import versions
from modelplane.stacks import join
from modelplane.stacks.component import ChartComponent, Crds
from modelplane.stacks.render import before

OLD = versions.newest()
NEXT = "2999.01"


@pytest.fixture
def releases(monkeypatch: pytest.MonkeyPatch) -> versions.Release:
    """A second release in which everything has another version."""
    pins = {key: replace(pin, version=f"{pin.version}-next") for key, pin in OLD.pins.items()}
    newer = versions.Release(NEXT, "2999-01-01", "1.34", "1.40", pins)
    monkeypatch.setattr(versions, "releases", lambda: {OLD.name: OLD, NEXT: newer})
    return newer


def running(stack: str, **spec: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """A settled stack of the old release, and what is observed of it."""
    composite = stacks.stack(stack=stack, stackRelease=OLD.name, **spec)
    settled, observed = stacks.settled(composite)
    del composite["spec"]["stackRelease"]
    composite["status"] = dict(settled.status)
    return composite, observed


def asked(composite: Mapping[str, Any], release: str | None) -> dict[str, Any]:
    """The stack with another release in its spec."""
    changed = copy.deepcopy(dict(composite))
    changed["spec"].pop("stackRelease", None)
    if release:
        changed["spec"]["stackRelease"] = release
    return changed


def waves(composite: dict[str, Any], observed: dict[str, Any]) -> tuple[list[set[str]], list[Answer]]:
    """The charts upgraded in each pass, until nothing changes."""
    found: list[set[str]] = []
    answers: list[Answer] = []
    for _ in range(30):
        answer = stacks.compose(composite, observed)
        answers.append(answer)
        now = {
            k
            for k, m in stacks.of_kind(answer, "Release").items()
            if version(m) != version(observed.get(k, m))
        }
        found.append(now)
        seen = {k: stacks.reported(r.manifest) for k, r in answer.resources.items()}
        if seen == observed and answer.status == composite["status"]:
            return found, answers
        observed, composite["status"] = seen, dict(answer.status)
    raise AssertionError("the move never ends")


def version(manifest: Mapping[str, Any]) -> str:
    return str(manifest["spec"]["forProvider"]["chart"]["version"])


def chart_crd_keys(answer: Answer) -> list[str]:
    return [k for k in answer.resources if k.startswith("chart-crds-")]


@pytest.mark.parametrize("stack", [c.STANDARD, c.DYNAMO])
def test_a_running_stack_stays_where_it_is_until_asked(stack: str, releases: versions.Release) -> None:
    composite, observed = running(stack)
    answer = stacks.compose(composite, observed)
    assert answer.status["stackRelease"] == OLD.name
    assert {version(m).endswith("-next") for m in stacks.of_kind(answer, "Release").values()} == {False}
    assert not chart_crd_keys(answer)


@pytest.mark.parametrize("stack", [c.STANDARD, c.DYNAMO])
def test_a_move_takes_each_component_after_its_needs_and_drops_nothing(
    stack: str, releases: versions.Release
) -> None:
    composite, observed = running(stack)
    ours = set(observed)
    found, answers = waves(asked(composite, NEXT), observed)
    when = {key: index for index, wave in enumerate(found) for key in wave}
    charts = {x.key: x for x in join.stack(stack) if isinstance(x, ChartComponent)}
    assert when.keys() == charts.keys(), "everything moves"
    assert len(set(when.values())) > 2, "and not at once"
    for key, chart in charts.items():
        for need in before(chart):
            assert when.get(need, -1) < when[key], f"{key} moved before {need}"
    for answer in answers:
        assert ours <= answer.resources.keys(), "what ran stays"
    assert [a.status["stackRelease"] for a in answers if a.status["stackRelease"] == NEXT]
    assert answers[-1].status["stackRelease"] == NEXT
    assert stacks.says(answers[-1]) == (True, "ComponentsReady", "")


@pytest.mark.parametrize("stack", [c.STANDARD, c.DYNAMO])
def test_what_serves_stays_ready_throughout_a_move(stack: str, releases: versions.Release) -> None:
    composite, observed = running(stack)
    _, answers = waves(asked(composite, NEXT), observed)
    told = [stacks.says(a)[:2] for a in answers]
    assert {status for status, _ in told} == {True}
    assert (True, "Upgrading") in told
    moving = [a for a in answers if stacks.says(a)[1] == "Upgrading"]
    assert all(a.ready is True for a in moving)
    assert all(f"moves from {OLD.name} to {NEXT}" in stacks.says(a)[2] for a in moving)


@pytest.mark.parametrize("stack", [c.STANDARD, c.DYNAMO])
def test_crds_that_a_chart_never_upgrades_are_applied_before_it_moves(
    stack: str, releases: versions.Release
) -> None:
    composite, observed = running(stack)
    found, answers = waves(asked(composite, NEXT), observed)
    (key,) = [k for k in chart_crd_keys(answers[0]) if "job" in k]
    job = stacks.remote(answers[0], key)
    folders = [x for x in join.stack(stack) if isinstance(x, ChartComponent) and x.crds is Crds.FOLDER]
    wanted = [
        word
        for pin in (releases.pin(x.pin) for x in folders)
        for word in (f"{pin.repository}/{pin.chart}", pin.version)
    ]
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert container["args"] == wanted
    assert not found[0] & {x.key for x in folders}, "the Job is not done yet"
    assert not chart_crd_keys(answers[-1]), "and goes with the move"


def test_a_job_that_does_not_finish_holds_the_move_and_nothing_else(releases: versions.Release) -> None:
    composite, observed = running(c.STANDARD)
    moving = asked(composite, NEXT)
    for _ in range(6):
        answer = stacks.compose(moving, observed)
        observed = {k: stacks.reported(r.manifest, "job" not in k) for k, r in answer.resources.items()}
        moving["status"] = dict(answer.status)
    state = stacks.component(answer, "chart-crds")
    assert state["state"] == "Upgrading"
    assert "its pod's log says why" in state["message"]
    assert stacks.component(answer, "envoy-gateway")["message"] == "waits for chart-crds"
    assert stacks.component(answer, "envoy-gateway")["version"] == OLD.pin("envoy-gateway").version
    assert stacks.component(answer, "ai-gateway-crds")["version"].endswith("-next"), "its CRDs are templates"
    assert answer.status["stackRelease"] == OLD.name
    assert stacks.says(answer)[:2] == (True, "Upgrading")
    assert answer.ready is True


def test_a_component_that_fails_to_move_stops_what_needs_it(releases: versions.Release) -> None:
    composite, observed = running(c.DYNAMO, cloud=c.EKS)
    moving = asked(composite, NEXT)
    for _ in range(10):
        answer = stacks.compose(moving, observed)
        observed = {k: stacks.reported(r.manifest) for k, r in answer.resources.items()}
        observed = stacks.failed(observed, "kai-scheduler", "pre-upgrade hook failed")
        moving["status"] = dict(answer.status)
    assert not version(answer.resources["grove"].manifest).endswith("-next")
    assert stacks.component(answer, "kai-scheduler")["message"] == "pre-upgrade hook failed"
    assert stacks.component(answer, "grove")["state"] == "Upgrading"
    assert stacks.says(answer)[:2] == (False, "ComponentFailed")
    assert answer.status["stackRelease"] == OLD.name
    back = stacks.compose(asked(moving, OLD.name), observed)
    assert not version(back.resources["kai-scheduler"].manifest).endswith("-next"), (
        "until the end it may go back"
    )


@pytest.mark.parametrize(
    ("change", "waits", "reason"),
    [
        ({}, False, "upgraded, and its pods run"),
        ({"version": None}, True, "nobody says which version is deployed"),
        ({"version": OLD.pin("kai-scheduler").version}, True, "Ready is still that of the old one"),
        ({"generation": 3, "observedGeneration": 2}, True, "the provider has not seen the new spec"),
        ({"generation": 3, "observedGeneration": 3}, False, "it has"),
        ({"generation": "junk", "observedGeneration": 2}, False, "junk says nothing"),
    ],
)
def test_what_is_ready_counts_only_once_it_is_the_new_one(
    change: dict[str, Any], waits: bool, reason: str, releases: versions.Release
) -> None:
    composite, observed = running(c.DYNAMO, cloud=c.EKS)
    moving = asked(composite, NEXT)
    first = stacks.compose(moving, observed)
    observed = {k: stacks.reported(r.manifest) for k, r in first.resources.items()}
    kai = observed["kai-scheduler"]
    if "version" in change:
        kai["status"]["atProvider"]["version"] = change["version"]
    if "generation" in change:
        kai["metadata"]["generation"] = change["generation"]
        kai["status"]["conditions"][1]["observedGeneration"] = change["observedGeneration"]
    grove = version(stacks.compose(moving, observed).resources["grove"].manifest)
    assert (not grove.endswith("-next")) == waits, reason


@pytest.mark.parametrize("stack", [c.STANDARD, c.DYNAMO])
def test_in_the_middle_of_a_move_nothing_is_lost_with_what_cannot_be_seen(
    stack: str, releases: versions.Release
) -> None:
    composite, observed = running(stack)
    moving = asked(composite, NEXT)
    for _ in range(5):
        answer = stacks.compose(moving, observed)
        before_ = answer.resources.keys() & observed.keys()
        for key in observed:
            for junk in (None, {}, {"spec": {"forProvider": "junk"}, "status": 7}):
                damaged = {k: v for k, v in observed.items() if k != key}
                if junk is not None:
                    damaged[key] = junk
                lost = before_ - stacks.compose(moving, damaged).resources.keys()
                assert {k for k in lost if key not in k} == set(), f"{key} as {junk} lost {lost}"
        observed = {k: stacks.reported(r.manifest) for k, r in answer.resources.items()}
        moving["status"] = dict(answer.status)


def test_there_is_no_way_back_from_a_release_that_is_installed_whole(releases: versions.Release) -> None:
    composite, observed = running(c.STANDARD)
    moving = asked(composite, NEXT)
    _, answers = waves(moving, observed)
    observed = {k: stacks.reported(r.manifest) for k, r in answers[-1].resources.items()}
    answer = stacks.compose(asked(moving, OLD.name), observed)
    status, code, message = stacks.says(answer)
    assert (status, code) == (False, "InvalidSpec")
    assert f"spec.stackRelease: {OLD.name} is older than {NEXT}, which is installed" in message
    assert answer.resources.keys() == observed.keys()
    assert answer.status["stackRelease"] == NEXT


def test_a_stack_that_lost_its_status_is_not_moved_on_a_guess(releases: versions.Release) -> None:
    composite, observed = running(c.STANDARD)
    del composite["status"]
    answer = stacks.compose(composite, observed)
    assert answer.status["stackRelease"] == OLD.name
    assert not version(answer.resources["envoy-gateway"].manifest).endswith("-next")


def test_a_provided_cluster_moves_what_we_own_there(releases: versions.Release) -> None:
    composite, observed = running(c.DYNAMO, provided=c.PROVIDED)
    _, answers = waves(asked(composite, NEXT), observed)
    (container,) = stacks.remote(answers[-1], "modelexpress-server-deployment")["spec"]["template"]["spec"][
        "containers"
    ]
    assert container["image"].endswith("-next")
    assert not any(chart_crd_keys(a) for a in answers)
    assert answers[-1].status["stackRelease"] == NEXT


@pytest.mark.parametrize("secret", [True, False])
def test_the_job_reads_charts_from_the_mirror_with_its_credentials(
    secret: bool, releases: versions.Release, crds: Path
) -> None:
    images: dict[str, Any] = {"mirror": "registry.example.org/m"}
    if secret:
        images["pullSecretRef"] = {"name": "login"}
    composite = stacks.stack(images=images, status={"stackRelease": OLD.name}, stackRelease=NEXT)
    answer, _ = stacks.settled(composite, stacks.LOGIN)
    (key,) = [k for k in chart_crd_keys(answer) if "job" in k]
    job = stacks.remote(answer, key)
    pod = job["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["image"].startswith("registry.example.org/m/alpine/k8s:")
    assert {a.split("/")[2] for a in container["args"] if a.startswith("oci://")} == {"registry.example.org"}
    assert ("imagePullSecrets" in pod) == secret
    assert any(e["name"] == "HELM_REGISTRY_CONFIG" for e in container["env"]) == secret
    assert (f"pull-secret-{c.SYSTEM_NAMESPACE}" in answer.resources) == secret
    assert judges.problems(job, crds) == []


def test_nothing_of_the_spec_is_part_of_a_shell_text(releases: versions.Release) -> None:
    commands = []
    for images in ({"mirror": "odd--name.example.org:5000/a_b"}, {}):
        composite = stacks.stack(images=images, status={"stackRelease": OLD.name}, stackRelease=NEXT)
        answer, _ = stacks.settled(composite)
        (key,) = [k for k in chart_crd_keys(answer) if "job" in k]
        container = stacks.remote(answer, key)["spec"]["template"]["spec"]["containers"][0]
        commands.append(container["command"])
    assert commands[0] == commands[1]
    assert "odd" not in str(commands[0])


def test_the_job_may_touch_crds_and_nothing_else(releases: versions.Release) -> None:
    composite = stacks.stack(status={"stackRelease": OLD.name}, stackRelease=NEXT)
    answer, _ = stacks.settled(composite)
    assert stacks.remote(answer, "chart-crds-role")["rules"] == [
        {
            "apiGroups": ["apiextensions.k8s.io"],
            "resources": ["customresourcedefinitions"],
            "verbs": ["get", "create", "patch"],
        }
    ]
