"""Structure, defaults and unknown fields, judged as an API server judges them."""

import copy

import pytest

from modelplane.api import schema_paths
from modelplane.api.schema import Problem, Schema


def obj(**properties):
    return {"type": "object", "properties": properties}


STRING, INTEGER = {"type": "string"}, {"type": "integer"}
POOLS = obj(
    pools={
        "type": "array",
        "items": obj(
            name=STRING, size={**INTEGER, "default": 1}, disk=obj(kind={**STRING, "default": "gp3"})
        ),
    }
)
KEYED = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name", "protocol"],
    "items": {**obj(name=STRING, protocol={**STRING, "default": "TCP"}), "required": ["name"]},
}

DEFAULTS = [
    ("a default is set where the field is absent", obj(a={**INTEGER, "default": 3}), {}, {"a": 3}),
    ("a value that is there stays", obj(a={**INTEGER, "default": 3}), {"a": 0}, {"a": 0}),
    (
        "items of a list are defaulted",
        POOLS,
        {"pools": [{}, {"size": 4}]},
        {"pools": [{"size": 1}, {"size": 4}]},
    ),
    (
        "a default below an absent parent is not set, below a present one it is",
        POOLS,
        {"pools": [{"disk": {}}, {}]},
        {"pools": [{"disk": {"kind": "gp3"}, "size": 1}, {"size": 1}]},
    ),
    (
        "a default that is an object is itself defaulted",
        obj(a={**obj(b={**INTEGER, "default": 1}, c={**INTEGER, "default": 2}), "default": {"b": 5}}),
        {},
        {"a": {"b": 5, "c": 2}},
    ),
    (
        "values of a map are defaulted",
        obj(m={"type": "object", "additionalProperties": obj(a={**INTEGER, "default": 1})}),
        {"m": {"x": {}, "y": {"a": 2}}},
        {"m": {"x": {"a": 1}, "y": {"a": 2}}},
    ),
    (
        "null counts as absent where it is not allowed",
        obj(a={**STRING, "default": "x"}),
        {"a": None},
        {"a": "x"},
    ),
    (
        "null stays where it is allowed, even with a default",
        obj(a={**STRING, "nullable": True, "default": "x"}),
        {"a": None},
        {"a": None},
    ),
    ("null without default is dropped where it is not allowed", obj(a=STRING, b=STRING), {"a": None}, {}),
    (
        "null in a list is no absent field, so it stays for the check to refuse",
        obj(a={"type": "array", "items": STRING}),
        {"a": [None]},
        {"a": [None]},
    ),
    (
        "a field that the schema does not declare is left alone",
        obj(a=STRING),
        {"z": {"q": 1}},
        {"z": {"q": 1}},
    ),
    ("false and 0 are defaults too", obj(a={"type": "boolean", "default": False}), {}, {"a": False}),
]


@pytest.mark.parametrize(
    ("reason", "openapi", "given_", "wanted"), DEFAULTS, ids=[row[0] for row in DEFAULTS]
)
def test_defaults(reason, openapi, given_, wanted):
    before = copy.deepcopy(given_)
    assert Schema(openapi).default(given_) == wanted, reason
    assert given_ == before, "the given object must stay as it is"


def test_default_shares_nothing_with_schema_or_object():
    schema = Schema(obj(a={**obj(b={"type": "array"}), "default": {"b": []}}, c=obj()))
    given_ = {"c": {"d": [1]}}
    result = schema.default(given_)
    result["a"]["b"].append(1)
    result["c"]["d"].append(2)
    assert schema.default({}) == {"a": {"b": []}}
    assert given_ == {"c": {"d": [1]}}


ACCEPTED = [
    ("a whole float is an integer: that is how numbers arrive by protobuf", obj(a=INTEGER), {"a": 3.0}),
    ("an integer is a number", obj(a={"type": "number"}), {"a": 3}),
    ("int-or-string takes an integer", obj(a={"x-kubernetes-int-or-string": True}), {"a": 80}),
    ("int-or-string takes a string", obj(a={"x-kubernetes-int-or-string": True}), {"a": "25%"}),
    (
        "the anyOf that accompanies int-or-string refuses neither",
        obj(a={"x-kubernetes-int-or-string": True, "anyOf": [INTEGER, STRING], "pattern": "^[0-9]+%?$"}),
        {"a": 80},
    ),
    ("preserve-unknown keeps any field",
     obj(a={"type": "object", "x-kubernetes-preserve-unknown-fields": True}),
     {"a": {"x": [1, {"y": None}]}}),
    ("additionalProperties: true keeps any field", obj(a={"type": "object", "additionalProperties": True}),
     {"a": {"x": 1}}),
    ("a map takes any key", obj(a={"type": "object", "additionalProperties": STRING}), {"a": {"x/y.z": "1"}}),
    ("apiVersion, kind and metadata need no declaration", obj(),
     {"apiVersion": "a/v1", "kind": "K", "metadata": {
        "name": "a.b", "labels": {"a.b/c": "d", "e": ""}, "annotations": {"A.b/c": "any text\n"}}}),
    ("an embedded resource has them too", obj(a={**obj(), "x-kubernetes-embedded-resource": True}),
     {"a": {"apiVersion": "v1", "kind": "K", "metadata": {"name": "x"}}}),
    ("null where nullable", obj(a={**STRING, "nullable": True}), {"a": None}),
    ("branches of logic declare a part only", {**obj(a=STRING, b=STRING), "oneOf": [
        {"required": ["a"]}, {"required": ["b"]}]}, {"a": "x"}),
    ("items of an atomic list may repeat", obj(a={"type": "array", "items": STRING}), {"a": ["x", "x"]}),
    ("list map items differ in one key", obj(a=KEYED), {"a": [
        {"name": "x", "protocol": "TCP"}, {"name": "x", "protocol": "UDP"}]}),
    ("a key with a default may be left out of a list map's item", obj(a=KEYED), {"a": [{"name": "x"}]}),
    ("an unknown format is no check", obj(a={**STRING, "format": "made-up"}), {"a": "x"}),
    ("a pattern without anchors is searched", obj(a={**STRING, "pattern": "b"}), {"a": "abc"}),
    ("length counts characters, not bytes", obj(a={**STRING, "maxLength": 2}), {"a": "äö"}),
    ("the limits themselves", obj(a={**INTEGER, "minimum": 1, "maximum": 1, "multipleOf": 1}), {"a": 1}),
    ("a time with an offset", obj(a={**STRING, "format": "date-time"}), {"a": "2026-01-31T12:00:00.5+01:00"}),
]  # fmt: skip


@pytest.mark.parametrize(("reason", "openapi", "given_"), ACCEPTED, ids=[row[0] for row in ACCEPTED])
def test_accepts(reason, openapi, given_):
    assert Schema(openapi).check(given_) == [], reason


REFUSED = [
    ("wrong type", obj(a=INTEGER), {"a": "x"}, "a", "must be an integer, is a string"),
    ("true is no integer", obj(a=INTEGER), {"a": True}, "a", "must be an integer, is true or false"),
    ("1.5 is no integer", obj(a=INTEGER), {"a": 1.5}, "a", "must be an integer, is a number"),
    ("true is no int-or-string", obj(a={"x-kubernetes-int-or-string": True}), {"a": True}, "a",
     "must be an integer or a string, is true or false"),
    ("null where not nullable", obj(a={"type": "array", "items": STRING}), {"a": [None]}, "a[0]",
     "must be a string, is null"),
    ("enum names what is allowed", obj(a={**STRING, "enum": ["A", "B"]}), {"a": "C"}, "a",
     '"C" is not supported: use one of "A", "B"'),
    ("nullable does not add null to an enum", obj(a={**STRING, "nullable": True, "enum": ["A"]}),
     {"a": None}, "a",
     'null is not supported: use one of "A"'),
    ("1 is not true in an enum", obj(a={"enum": [True]}), {"a": 1}, "a",
     "1 is not supported: use one of true"),
    ("minimum", obj(a={**INTEGER, "minimum": 1}), {"a": 0}, "a", "0 is too small: must be at least 1"),
    ("exclusive minimum", obj(a={**INTEGER, "minimum": 1, "exclusiveMinimum": True}), {"a": 1}, "a",
     "1 is too small: must be more than 1"),
    ("maximum", obj(a={**INTEGER, "maximum": 1}), {"a": 2}, "a", "2 is too large: must be at most 1"),
    ("exclusive maximum", obj(a={**INTEGER, "maximum": 1, "exclusiveMaximum": True}), {"a": 1}, "a",
     "1 is too large: must be less than 1"),
    ("multipleOf", obj(a={"type": "number", "multipleOf": 0.1}), {"a": 0.25}, "a",
     "0.25 is not a multiple of 0.1"),
    ("int32", obj(a={**INTEGER, "format": "int32"}), {"a": 2**31}, "a", "2147483648 does not fit into int32"),
    ("int64", obj(a={**INTEGER, "format": "int64"}), {"a": -(2**63) - 1}, "a",
     "-9223372036854775809 does not fit into int64"),
    ("date-time", obj(a={**STRING, "format": "date-time"}), {"a": "2026-13-01T00:00:00Z"}, "a",
     '"2026-13-01T00:00:00Z" is not a time such as 2026-01-31T12:00:00Z'),
    ("byte", obj(a={**STRING, "format": "byte"}), {"a": "!"}, "a", '"!" is not base64'),
    ("pattern", obj(a={**STRING, "pattern": "^a$"}), {"a": "b"}, "a", '"b" does not match ^a$'),
    ("$ means the end, not before a last newline", obj(a={**STRING, "pattern": "^a$"}), {"a": "a\n"}, "a",
     '"a\n" does not match ^a$'),
    ("minLength 1", obj(a={**STRING, "minLength": 1}), {"a": ""}, "a", "must not be empty"),
    ("maxLength", obj(a={**STRING, "maxLength": 1}), {"a": "ab"}, "a",
     "must have at most 1 characters, has 2"),
    ("minItems", obj(a={"type": "array", "minItems": 1}), {"a": []}, "a", "needs at least 1 items, has 0"),
    ("maxItems", obj(a={"type": "array", "maxItems": 1}), {"a": [1, 2]}, "a",
     "allows at most 1 items, has 2"),
    ("minProperties", obj(a={**obj(), "minProperties": 1}), {"a": {}}, "a",
     "needs at least 1 entries, has 0"),
    ("maxProperties", obj(a={"type": "object", "additionalProperties": INTEGER, "maxProperties": 1}),
     {"a": {"x": 1, "y": 2}}, "a", "allows at most 1 entries, has 2"),
    ("required", obj(a={**obj(b=STRING), "required": ["b"]}), {"a": {}}, "a.b", "is required"),
    ("unknown field with a near name", obj(nodePools=STRING), {"nodepools": "x"}, "nodepools",
     'unknown field "nodepools": did you mean "nodePools"?'),
    ("unknown field without one", obj(a=STRING), {"zebra": 1}, "zebra", 'unknown field "zebra"'),
    ("unknown field below a list", POOLS, {"pools": [{"nam": "x"}]}, "pools[0].nam",
     'unknown field "nam": did you mean "name"?'),
    ("an object without properties has only unknown fields", obj(a=obj()), {"a": {"b": 1}}, "a.b",
     'unknown field "b"'),
    ("declared fields below preserve-unknown are still checked",
     {**obj(a=INTEGER), "x-kubernetes-preserve-unknown-fields": True}, {"a": "x", "b": 1}, "a",
     "must be an integer, is a string"),
    ("metadata below the root is a field like others", obj(a=obj()), {"a": {"metadata": {}}}, "a.metadata",
     'unknown field "metadata"'),
    ("unknown metadata", obj(), {"metadata": {"label": {}}}, "metadata.label",
     'unknown field "label": did you mean "labels"?'),
    ("a label key's length", obj(), {"metadata": {"labels": {"x" * 64: "a"}}}, f"metadata.labels.{'x' * 64}",
     "the name of a key is 1 to 63 letters, digits, '-', '_' and '.', starts and ends alphanumeric"),
    ("a label value's characters", obj(), {"metadata": {"labels": {"a/b": "c d"}}}, 'metadata.labels["a/b"]',
     "a label value is at most 63 letters, digits, '-', '_' and '.', ends alphanumeric"),
    ("a label value is a string", obj(), {"metadata": {"labels": {"a": 1}}}, "metadata.labels.a",
     "must be a string"),
    ("an upper-case name", obj(), {"metadata": {"name": "A"}}, "metadata.name",
     "must be lower-case letters, digits, '-' and '.', at most 253 characters"),
    ("an embedded resource needs a kind", obj(a={**obj(), "x-kubernetes-embedded-resource": True}),
     {"a": {"apiVersion": "v1"}}, "a.kind", "is required"),
    ("duplicate in a set", obj(a={"type": "array", "items": STRING, "x-kubernetes-list-type": "set"}),
     {"a": ["x", "y", "x"]}, "a[2]", "is a duplicate of item 0"),
    ("1 and 1.0 are one item of a set",
     obj(a={"type": "array", "items": INTEGER, "x-kubernetes-list-type": "set"}),
     {"a": [1, 1.0]}, "a[1]", "is a duplicate of item 0"),
    ("duplicate keys in a list map", obj(a=KEYED), {"a": [{"name": "x", "protocol": "TCP"}] * 2}, "a[1]",
     "is a duplicate of item 0"),
    ("missing key in a list map", obj(a={**KEYED, "items": obj(name=STRING, protocol=STRING)}),
     {"a": [{"name": "x"}]}, "a[0].protocol", "is required, as it is a key of the list"),
    ("uniqueItems", obj(a={"type": "array", "uniqueItems": True}), {"a": [{"x": 1}, {"x": 1}]}, "a[1]",
     "is a duplicate of item 0"),
    ("oneOf with none", {**obj(a=STRING, b=STRING), "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
     {}, "",
     "needs exactly one of: a, b"),
    ("oneOf with two", {**obj(a=STRING, b=STRING), "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
     {"a": "", "b": ""}, "", "allows only one of: a, b"),
    ("anyOf", {**obj(a=STRING, b=STRING), "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}, {}, "",
     "needs at least one of: a, b"),
    ("anyOf over values", obj(a={**STRING, "anyOf": [{"pattern": "^x"}, {"maxLength": 1}]}), {"a": "yy"}, "a",
     'fits none of 2 forms: a: "yy" does not match ^x; or a: must have at most 1 characters, has 2'),
    ("allOf", obj(a={**STRING, "allOf": [{"pattern": "^x"}, {"maxLength": 1}]}), {"a": "xx"}, "a",
     "must have at most 1 characters, has 2"),
    ("not", {**obj(a=STRING), "not": {"required": ["a"]}}, {"a": ""}, "", "must not set a"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("reason", "openapi", "given_", "path", "message"), REFUSED, ids=[row[0] for row in REFUSED]
)
def test_refuses(reason, openapi, given_, path, message):
    assert Schema(openapi).check(given_) == [Problem(path, message)], reason


PATHS = [
    ("fields and indices", ("spec", "nodePools", 0, "name"), "spec.nodePools[0].name"),
    ("a key with dots is quoted", ("labels", "a.b/c"), 'labels["a.b/c"]'),
    ("the document itself", (), ""),
]


@pytest.mark.parametrize(("reason", "steps", "text"), PATHS, ids=[row[0] for row in PATHS])
def test_paths_read_back(reason, steps, text):
    assert schema_paths.render(steps) == text, reason
    assert schema_paths.parse(text) == steps, reason
