"""What `modelplane diff` says changes, and what it never shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from builders.manifests import deployment, existing, gpu_class, member, write
from modelplane.facts import versions
from modelplane.render.run import Rendering, composed, rendering
from modelplane.review import diff
from modelplane.review.changes import (
    ADDED,
    CHANGED,
    CONTROL_PLANE,
    HIDDEN,
    LEFT,
    RECREATED,
    REMOVED,
    RESTARTS,
    Change,
    changes,
    differences,
)

BASE = [gpu_class(), existing(), deployment()]


def compared(tmp_path: Path, *new: dict[str, Any]) -> list[Change]:
    return diff.of_manifests([write(tmp_path / "old", *BASE)], [write(tmp_path / "new", *new)])


def told(found: list[Change]) -> set[tuple[str, str, str, str]]:
    return {(x.cluster, x.change, x.what.split(" ")[0], x.effect) for x in found}


def test_the_same_manifests_change_nothing(tmp_path: Path) -> None:
    assert compared(tmp_path, *BASE) == []


def test_a_new_image_restarts_pods_on_its_cluster(tmp_path: Path) -> None:
    found = compared(tmp_path, *BASE[:2], deployment(member(image="vllm/vllm-openai:v0.24.0")))
    assert told(found) == {
        (CONTROL_PLANE, CHANGED, "ModelDeployment", ""),
        ("lab", CHANGED, "ModelReplica", ""),
        ("lab", CHANGED, "Deployment", RESTARTS),
    }
    (field,) = next(x for x in found if x.effect).fields
    assert field.path == 'spec.template.spec.containers["engine"].image'
    assert (field.old, field.new) == ("vllm/vllm-openai:v0.23.0", "vllm/vllm-openai:v0.24.0")


def test_what_no_deletion_reaches_is_said_to_stay(tmp_path: Path) -> None:
    found = compared(tmp_path, *BASE[:2])
    gone = {kind: effect for _, change, kind, effect in told(found) if change == REMOVED}
    assert gone["Namespace"] == LEFT, "a team's own Secrets may be in it"
    assert gone["Deployment"] == gone["ModelReplica"] == ""


def test_what_is_immutable_is_marked_as_made_anew(tmp_path: Path) -> None:
    found = compared(tmp_path, *BASE[:2], deployment(member(cel="device.driver == 'gpu.nvidia.com'")))
    assert ("lab", RECREATED, "ResourceClaimTemplate", "") in told(found)
    claim = next(x for x in found if x.change == RECREATED and x.what.startswith("ResourceClaimTemplate"))
    assert claim.was.startswith("ResourceClaimTemplate ")
    assert claim.was != claim.what


def test_what_is_no_longer_there_goes_with_all_it_made(tmp_path: Path) -> None:
    found = compared(tmp_path, *BASE[:2])
    assert {x.change for x in found} == {REMOVED}
    assert {"ModelDeployment", "ModelReplica", "Deployment", "HTTPRoute"} <= {
        x.what.split(" ")[0] for x in found
    }


def test_a_second_model_touches_nothing_of_the_first(tmp_path: Path) -> None:
    found = compared(tmp_path, *BASE, deployment(name="other"))
    assert {x.change for x in found} == {ADDED}


SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}


def _object(manifest: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "Object", "metadata": {"name": "o"}, "spec": {"forProvider": {"manifest": manifest}}}


HIDDEN_ROWS = [
    ("data of a Secret", SECRET | {"data": {"a": "hunter2"}}, SECRET | {"data": {"a": "hunter3"}}),
    ("a Secret that comes to have data", SECRET, SECRET | {"stringData": {"a": "hunter2"}}),
    ("a Secret on a cluster", _object(SECRET | {"data": {"a": "hunter2"}}), _object(SECRET | {"data": {}})),
    (
        "a variable that sounds like one",
        {"env": [{"name": "HF_TOKEN", "value": "hunter2"}]},
        {"env": [{"name": "HF_TOKEN", "value": "hunter3"}]},
    ),
    ("a variable that is new", {"env": []}, {"env": [{"name": "API_KEY", "value": "hunter2"}]}),
    (
        "a value in a chart's values",
        {"values": {"adminPassword": "hunter2"}},
        {"values": {"adminPassword": "x"}},
    ),
    ("a whole block that goes", {"values": {"a": {"password": "hunter2"}}}, {"values": {}}),
]


@pytest.mark.parametrize(("reason", "old", "new"), HIDDEN_ROWS, ids=[r[0] for r in HIDDEN_ROWS])
def test_no_secret_value_is_shown(reason: str, old: dict[str, Any], new: dict[str, Any]) -> None:
    found = list(differences(old, new))
    assert found, reason
    assert "hunter" not in str(found), reason
    assert HIDDEN in str(found), reason


def test_lists_of_named_items_are_compared_by_name() -> None:
    old = {"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}
    new = {"env": [{"name": "B", "value": "3"}, {"name": "A", "value": "1"}]}
    assert [(f.path, f.old, f.new) for f in differences(old, new)] == [('env["B"].value', "2", "3")]


def test_two_rendered_trees_are_compared_by_owner_and_key(tmp_path: Path) -> None:
    from modelplane.render.dump import dump  # noqa: PLC0415  (the writer of such trees)

    work: Rendering = rendering([write(tmp_path / "in", *BASE)], recurse=True)
    last = [done for done, _ in work.passes()][-1]
    trees = []
    for name, image in (("old", "v0.23.0"), ("new", "v0.24.0")):
        (tmp_path / name).mkdir()
        text = dump(composed(last, work.world.children)).replace("v0.23.0", image)
        (tmp_path / name / diff.RENDERED).write_text(text)
        trees.append(tmp_path / name)
    assert all(map(diff.is_rendered, trees))
    assert {x.effect for x in diff.of_rendered(*trees)} == {"", RESTARTS}
    assert diff.of_rendered(trees[0], trees[0]) == []


def test_a_release_is_compared_with_another_by_pin_and_values(monkeypatch: pytest.MonkeyPatch) -> None:
    newest = versions.newest()
    pins = dict(newest.pins)
    moved = pins["grove"]
    pins["grove"] = type(moved)(**{f: getattr(moved, f) for f in moved.__slots__} | {"version": "v9.9.9"})
    later = versions.Release("later", newest.date, newest.kubernetes_min, newest.kubernetes_max, pins)
    monkeypatch.setattr(versions, "releases", lambda: {newest.name: newest, "later": later})
    (change,) = diff.of_releases(newest.name, "later", "Dynamo")
    assert (change.what, change.effect) == ("grove", f"{moved.version} -> v9.9.9")
    assert diff.of_releases(newest.name, newest.name, "Dynamo") == []


def test_a_pin_that_came_or_left_is_told() -> None:
    one = {("x", "a"): {"kind": "A", "metadata": {"name": "a"}}}
    assert [x.change for x in changes({}, one)] == [ADDED]
    assert [x.change for x in changes(one, {})] == [REMOVED]
