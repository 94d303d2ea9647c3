"""Reading other people's objects: whatever stands there, nothing raises."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelplane.core import paths

JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["metadata", "status", "conditions", "name", "type", "a"]), inner)
    ),
    max_leaves=12,
)
STEPS = st.lists(st.sampled_from(["metadata", "status", "conditions", "name", "a", 0, 1, -1]), max_size=4)


@pytest.mark.parametrize(
    ("obj", "path", "want", "reason"),
    [
        ({"a": {"b": 1}}, ("a", "b"), 1, "a path of keys"),
        ({"a": [1, 2]}, ("a", 1), 2, "a place in a list"),
        ({"a": [1, 2]}, ("a", -1), 2, "the last one"),
        ({"a": [1, 2]}, ("a", 2), "other", "beyond the end"),
        ({"a": [1, 2]}, ("a", -3), "other", "before the start"),
        ({"a": "text"}, ("a", 0), "other", "text is no list"),
        ({"a": "text"}, ("a", "b"), "other", "text is no mapping"),
        ({"a": None}, ("a",), "other", "null is missing"),
        ({"a": {"b": None}}, ("a", "b", "c"), "other", "null on the way"),
        ({"a": False}, ("a",), False, "false is a value"),
        ({"a": 0}, ("a",), 0, "zero is a value"),
        (None, ("a",), "other", "nothing observed"),
        ({"a": 1}, (), {"a": 1}, "no path is the object itself"),
    ],
)
def test_a_path_gives_the_value_or_the_default(
    obj: object, path: tuple[str | int, ...], want: Any, reason: str
) -> None:
    assert paths.at(obj, *path, default="other") == want, reason


@pytest.mark.parametrize(
    ("value", "want", "reason"),
    [
        (3, 3, "an int"),
        (3.0, 3, "Crossplane sends every number as a float"),
        (-2.0, -2, "a negative one"),
        (3.5, None, "no whole number"),
        (True, None, "a flag is no number"),
        ("3", None, "text is no number"),
        (None, None, "null"),
        (float("inf"), None, "a Struct can carry infinity, and int() of it raises"),
        (float("nan"), None, "so with NaN"),
        (1e300, int(1e300), "large, but whole"),
    ],
)
def test_an_integer_is_a_whole_number(value: object, want: int | None, reason: str) -> None:
    assert paths.integer({"a": value}, "a") == want, reason


def test_an_integer_that_is_none_has_the_given_default() -> None:
    assert paths.integer({"a": "x"}, "a", default=7) == 7
    assert paths.integer({}, "a", default=7) == 7


@pytest.mark.parametrize(
    ("status", "want", "reason"),
    [
        ({"conditions": [{"type": "Ready", "status": "True"}]}, True, "true"),
        ({"conditions": [{"type": "Ready", "status": "False"}]}, False, "false"),
        ({"conditions": [{"type": "Ready", "status": "Unknown"}]}, False, "unknown"),
        ({"conditions": [{"type": "Ready", "status": True}]}, False, "a condition's status is text"),
        ({"conditions": [{"type": "Synced", "status": "True"}]}, False, "another type"),
        ({"conditions": ["Ready", {"type": "Ready", "status": "True"}]}, True, "junk beside it"),
        ({"conditions": {"type": "Ready"}}, False, "no list"),
        ({}, False, "no conditions yet"),
        (None, False, "no status yet"),
    ],
)
def test_a_condition_is_true_only_where_it_says_so(status: object, want: bool, reason: str) -> None:
    assert paths.is_true({"status": status}, "Ready") is want, reason


@pytest.mark.parametrize(
    ("read", "value", "want", "reason"),
    [
        (paths.mapping, {"b": 1}, {"b": 1}, "a mapping"),
        (paths.mapping, [1], {}, "a list is no mapping"),
        (paths.items, [1, "x"], [1, "x"], "a list with all that is in it"),
        (paths.items, "text", [], "text is no list"),
        (paths.items, {"b": 1}, [], "a mapping is no list"),
        (paths.text, "x", "x", "text"),
        (paths.text, 3, "", "a number is no text"),
    ],
)
def test_a_value_of_another_type_reads_as_none(read: Any, value: object, want: object, reason: str) -> None:
    assert read({"a": value}, "a") == want, reason


def test_mappings_pass_over_what_is_none() -> None:
    assert list(paths.mappings({"a": [{"b": 1}, "x", None, {}]}, "a")) == [{"b": 1}, {}]


def test_identity_of_an_object_without_metadata_is_empty() -> None:
    assert (paths.name({}), paths.namespace(None), paths.labels({"metadata": []})) == ("", "", {})


@given(JUNK, STEPS)
def test_no_reader_raises_on_junk(obj: object, steps: list[str | int]) -> None:
    assert isinstance(paths.mapping(obj, *steps), dict)
    assert isinstance(paths.items(obj, *steps), list)
    assert all(isinstance(found, dict) for found in paths.mappings(obj, *steps))
    assert isinstance(paths.text(obj, *steps), str)
    assert isinstance(paths.integer(obj, *steps, default=0), int)
    assert paths.is_true(obj, "Ready") in (True, False)


SAID = [
    ({"reason": "InvalidChart", "message": "not found"}, "InvalidChart: not found", "both"),
    ({"reason": "InvalidChart"}, "InvalidChart", "a reason alone"),
    ({"message": "not found"}, "not found", "a message alone"),
    ({"reason": "Accepted", "message": "Accepted"}, "Accepted", "the same twice (Envoy Gateway, Traefik)"),
    ({"reason": "Pending", "message": "Pending: no address"}, "Pending: no address", "a message that has it"),
    ({"reason": "", "message": ""}, "otherwise", "two empty texts"),
    ({"reason": 3, "message": ["x"]}, "otherwise", "junk"),
    ({}, "otherwise", "no such condition"),
    (None, "otherwise", "no object"),
]


@pytest.mark.parametrize(("condition", "want", "reason"), SAID, ids=[s[2] for s in SAID])
def test_a_condition_is_quoted_with_its_reason(condition: Any, want: str, reason: str) -> None:
    assert paths.said(condition, "otherwise") == want, reason
