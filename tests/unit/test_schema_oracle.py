"""Our check against the jsonschema library, for the keywords that both know."""

import jsonschema
from hypothesis import given, settings
from hypothesis import strategies as st

from modelplane.api.schema import Schema

_BOUNDS = st.integers(-3, 3)
_SCALARS = st.one_of(
    st.builds(lambda low, high: {"type": "integer", "minimum": low, "maximum": high}, _BOUNDS, _BOUNDS),
    st.builds(lambda number: {"type": "number", "multipleOf": number}, st.sampled_from([0.5, 1, 2])),
    st.builds(
        lambda low, high, pattern: {
            "type": "string",
            "minLength": low,
            "maxLength": high,
            "pattern": pattern,
        },
        st.integers(0, 2),
        st.integers(0, 3),
        st.sampled_from(["^a", "b", "^[ab]*c", ""]),
    ),
    st.builds(
        lambda values: {"enum": values}, st.lists(st.sampled_from(["a", 1, True, 0, False, 1.5]), min_size=1)
    ),
    st.just({"type": "boolean"}),
)


def _nested(children):
    names = st.sampled_from(["a", "b"])
    return st.one_of(
        st.builds(
            lambda properties, required: {
                "type": "object",
                "properties": {"a": {}, "b": {}, **properties},
                "required": sorted(required),
            },
            st.dictionaries(names, children),
            st.sets(names),
        ),
        st.builds(
            lambda items, low, high, unique: {
                "type": "array",
                "items": items,
                "minItems": low,
                "maxItems": high,
                "uniqueItems": unique,
            },
            children,
            st.integers(0, 2),
            st.integers(0, 3),
            st.booleans(),
        ),
        st.builds(
            lambda key, branches: {key: branches},
            st.sampled_from(["allOf", "anyOf", "oneOf"]),
            st.lists(children, min_size=1, max_size=2),
        ),
        st.builds(lambda branch: {"not": branch}, children),
    )


_SCHEMAS = st.recursive(_SCALARS, _nested, max_leaves=5)
_VALUES = st.recursive(
    st.one_of(st.booleans(), _BOUNDS, st.sampled_from([0.5, 1.0, 1.5]), st.text("abc", max_size=4)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(["a", "b"]), inner, max_size=2)
    ),
    max_leaves=6,
)


@settings(max_examples=300, derandomize=True)
@given(_SCHEMAS, _VALUES)
def test_agrees_with_jsonschema_on_the_keywords_both_know(part, value):
    openapi = {"type": "object", "properties": {"v": part}}
    document = {"v": value}
    expected = jsonschema.Draft202012Validator(openapi).is_valid(document)
    problems = [
        problem for problem in Schema(openapi).check(document) if "unknown field" not in problem.message
    ]
    assert (problems == []) is expected, problems
