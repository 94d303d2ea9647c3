"""Keeping: what a function leaves out of an object is removed from it, what it adds it owns."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelplane.core import keep

CROSSPLANES = [
    ("labels", "crossplane.io/composite", "Crossplane writes its composite"),
    ("labels", "crossplane.io/in-use", "a Usage writes it, and takes it off"),
    ("annotations", "crossplane.io/composition-resource-name", "Crossplane writes the key"),
    ("annotations", "crossplane.io/external-create-pending", "a provider's own lock"),
    ("annotations", "crossplane.io/external-create-succeeded", "and its result"),
    ("annotations", "crossplane.io/usage-details", "a Usage describes itself"),
    ("annotations", "usage.crossplane.io/deletion-attempt-with-policy", "kept, it would replay a deletion"),
]
SERVERS = ["uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink"]
SERVERS += ["ownerReferences", "finalizers", "deletionTimestamp", "generateName"]

VALUE = st.recursive(
    st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
KEY = st.from_regex(r"[a-z]{1,5}(\.example)?/[a-z]{1,5}", fullmatch=True)
MARKS = st.dictionaries(KEY, st.text(max_size=5), max_size=3)


@st.composite
def observed_objects(draw: st.DrawFn) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": "a", **draw(st.dictionaries(st.sampled_from(SERVERS), VALUE))}
    if draw(st.booleans()):
        metadata["namespace"] = "team"
    for field in ("labels", "annotations"):
        owned = {key: "x" for where, key, _ in CROSSPLANES if where == field and draw(st.booleans())}
        metadata[field] = {**draw(MARKS), **owned}
    body = draw(st.dictionaries(st.sampled_from(["spec", "data", "type", "roleRef"]), VALUE))
    return {"apiVersion": "v1", "kind": "Thing", "metadata": metadata, "status": draw(VALUE), **body}


@given(observed_objects())
def test_kept_is_all_that_is_observed_but_what_the_server_and_crossplane_own(
    observed: dict[str, Any],
) -> None:
    before = copy.deepcopy(observed)
    kept = keep.kept(observed)
    owned = {key for _, key, _ in CROSSPLANES}
    want = {k: v for k, v in observed.items() if k != "status"}
    want["metadata"] = {k: v for k, v in observed["metadata"].items() if k not in SERVERS}
    for field in ("labels", "annotations"):
        left = {k: v for k, v in want["metadata"].pop(field).items() if k not in owned}
        if left:
            want["metadata"][field] = left
    assert kept == want
    assert observed == before


@given(observed_objects())
def test_keeping_what_is_kept_changes_nothing(observed: dict[str, Any]) -> None:
    assert keep.kept(keep.kept(observed)) == keep.kept(observed)


@pytest.mark.parametrize(("field", "key", "reason"), CROSSPLANES)
def test_marks_that_others_write_are_not_taken_over(field: str, key: str, reason: str) -> None:
    observed = {"metadata": {"name": "a", field: {key: "x", "team/cost": "y"}}}
    assert keep.kept(observed)["metadata"] == {"name": "a", field: {"team/cost": "y"}}, reason


def test_the_name_at_the_provider_is_kept() -> None:
    observed = {"metadata": {"name": "a", "annotations": {"crossplane.io/external-name": "vpc-1"}}}
    assert keep.kept(observed) == observed


def test_a_kept_object_shares_nothing_with_the_observed_one() -> None:
    observed = {"metadata": {"name": "a", "labels": {"x": "y"}}, "spec": {"pools": [{"name": "a"}]}}
    kept = keep.kept(observed)
    kept["spec"]["pools"][0]["name"] = "b"
    kept["metadata"]["labels"]["x"] = "z"
    assert observed == {"metadata": {"name": "a", "labels": {"x": "y"}}, "spec": {"pools": [{"name": "a"}]}}


@pytest.mark.parametrize(
    ("status", "want", "reason"),
    [
        (
            {"url": "http://a", "replicas": {"ready": 1}},
            {"url": "http://a", "replicas": {"ready": 1}},
            "our own",
        ),
        ({"url": "a", "conditions": [{}]}, {"url": "a"}, "conditions are sent apart"),
        ({"url": "a", "crossplane": {}}, {"url": "a"}, "Crossplane refuses its own part from a function"),
        (None, {}, "none yet"),
        ("junk", {}, "unreadable"),
    ],
)
def test_a_kept_status_is_the_composite_s_own_fields(
    status: object, want: dict[str, Any], reason: str
) -> None:
    assert keep.kept_status({"status": status}) == want, reason
