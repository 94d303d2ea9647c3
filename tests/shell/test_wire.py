"""Between Structs and dicts: what a composer reads is what was sent, but for the one number type."""

from __future__ import annotations

import json
import math
import tracemalloc
from typing import Any

import pytest
from google.protobuf import struct_pb2
from hypothesis import given
from hypothesis import strategies as st

from modelplane.shell import wire

NUMBER = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
VALUE = st.recursive(
    st.none() | st.booleans() | NUMBER | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)
MANIFEST = st.dictionaries(st.text(max_size=5), VALUE, max_size=4)


def number(value: float) -> struct_pb2.Struct:
    struct = struct_pb2.Struct()
    struct.fields["n"].number_value = value
    return struct


@pytest.mark.parametrize(
    ("sent", "want", "reason"),
    [
        (3.0, 3, "a whole number is an int: it may be a count or go into text"),
        (-3.0, -3, "a negative one"),
        (0.0, 0, "zero"),
        (3.5, 3.5, "any other stays a float"),
        (2.0**53, 2**53, "the last whole number that a double is sure of"),
        (2.0**60, 2.0**60, "beyond it the digits are not those that were written"),
        (math.inf, math.inf, "infinity is no int"),
    ],
)
def test_a_number_is_an_int_where_it_is_whole(sent: float, want: float, reason: str) -> None:
    found = wire.to_dict(number(sent))["n"]
    assert (found, type(found)) == (want, type(want)), reason


@given(MANIFEST)
def test_what_is_sent_is_what_is_read(manifest: dict[str, Any]) -> None:
    assert wire.to_dict(wire.to_struct(manifest)) == manifest


def test_reading_leaves_the_message_as_it_was() -> None:
    struct = wire.to_struct({"a": {"b": [1, {"c": None}]}})
    before = struct.SerializeToString(deterministic=True)
    wire.to_dict(struct)
    assert struct.SerializeToString(deterministic=True) == before


def test_a_value_that_was_never_set_reads_as_null() -> None:
    struct = struct_pb2.Struct()
    struct.fields["a"].SetInParent()
    assert wire.to_dict(struct) == {"a": None}


def grown(depth: int, extra: bytes) -> struct_pb2.Struct:
    """A Struct as a newer protobuf might send it: with a field we do not know, so many levels down."""
    struct = wire.to_struct({"a": {"b": ["x" * 200, {"c": 1.5}, True, None]}, "z": 7})
    value = struct.fields["a"]
    (struct, value, value.struct_value.fields["b"])[depth].MergeFromString(extra)
    return struct


# Field 15 as a number and as a text.
EXTRAS = [b"\x78\x01", b"\x7a\x03abc"]


@pytest.mark.parametrize("depth", [0, 1, 2])
@pytest.mark.parametrize("extra", EXTRAS, ids=["number", "text"])
def test_a_field_we_do_not_know_is_passed_over(depth: int, extra: bytes) -> None:
    struct = grown(depth, extra)
    assert extra in struct.SerializeToString()
    want = {"a": {"b": ["x" * 200, {"c": 1.5}, True, None]}, "z": 7}
    assert wire.to_dict(struct) == want
    assert wire.Decoder().decode(struct) == want


def test_equal_parts_are_one_object_and_stay_what_they_were() -> None:
    decoder = wire.Decoder()
    pools = [{"name": f"p{n}", "devices": [{"name": "gpu", "count": 8}]} for n in range(3)]
    one = decoder.decode(wire.to_struct({"n": 1, "pools": pools}))
    other = decoder.decode(wire.to_struct({"n": 2, "pools": pools}))
    assert one["pools"][0]["devices"] is other["pools"][2]["devices"]
    assert (one["pools"], one["n"], other["n"]) == (pools, 1, 2)


def test_the_same_content_is_decoded_once() -> None:
    decoder = wire.Decoder()
    first = decoder.decode(wire.to_struct({"a": 1, "b": {"c": 2}}))
    assert decoder.decode(wire.to_struct({"b": {"c": 2}, "a": 1})) is first, (
        "whatever the order of its fields"
    )
    assert decoder.decode(wire.to_struct({"a": 1, "b": {"c": 3}})) is not first


def big(name: str) -> struct_pb2.Struct:
    return wire.to_struct({"name": name, "data": "x" * 1000})


@pytest.mark.parametrize(
    ("limit", "used", "kept", "reason"),
    [
        (10_000, "abc", "abc", "all of them fit"),
        (2_200, "abc", "bc", "the oldest goes"),
        (2_200, "abac", "ac", "used again is not the oldest"),
        (500, "ab", "", "one larger than the limit is decoded and not kept"),
        (0, "a", "", "nothing is kept"),
    ],
)
def test_the_decoder_stays_within_its_bytes(limit: int, used: str, kept: str, reason: str) -> None:
    decoder = wire.Decoder(limit)
    last = {name: decoder.decode(big(name)) for name in used}
    assert all(found == wire.to_dict(big(name)) for name, found in last.items())
    assert all(decoder.decode(big(name)) is last[name] for name in kept), reason
    dropped = set(used) - set(kept)
    assert all(decoder.decode(big(name)) is not last[name] for name in dropped), reason


@given(st.lists(MANIFEST, max_size=6))
def test_remembered_parts_never_change_what_is_read(manifests: list[dict[str, Any]]) -> None:
    decoder = wire.Decoder(0)
    for manifest in [*manifests, *manifests]:
        found, alone = decoder.decode(wire.to_struct(manifest)), wire.to_dict(wire.to_struct(manifest))
        assert found == alone == manifest
        assert json.dumps(found, sort_keys=True) == json.dumps(alone, sort_keys=True), "1 is not true"


@given(st.lists(MANIFEST, max_size=30), st.integers(0, 200))
def test_no_sequence_of_objects_takes_a_decoder_over_its_limit(
    manifests: list[dict[str, Any]], limit: int
) -> None:
    decoder = wire.Decoder(limit)
    for manifest in manifests:
        assert decoder.decode(wire.to_struct(manifest)) == manifest
        assert decoder.size <= limit


def test_keys_of_all_objects_are_one_text() -> None:
    one, other = (wire.to_dict(wire.to_struct({"spec": {"replicas": n}})) for n in (1, 2))
    assert next(iter(one["spec"])) is next(iter(other["spec"]))


def written(name: str, number: int) -> struct_pb2.Struct:
    """An object after so many writes."""
    status = {"at": f"minute {number}", "counts": [{"n": number}], "text": "x" * 1000}
    return wire.to_struct({"kind": "K", "metadata": {"name": name, "generation": number}, "status": status})


def test_of_an_object_that_is_written_again_and_again_the_latest_content_is_kept() -> None:
    decoder = wire.Decoder()
    others = {name: decoder.decode(written(name, 0)) for name in "bcd"}
    sizes = set()
    for number in range(1000, 2000):
        found = decoder.decode(written("a", number))
        assert found["status"]["counts"] == [{"n": number}]
        sizes.add(decoder.size)
    assert len(sizes) == 1, "one for each object"
    assert all(decoder.decode(written(name, 0)) is last for name, last in others.items())
    assert decoder.decode(written("a", 1999)) is found
    assert decoder.decode(written("a", 1000)) == wire.to_dict(written("a", 1000)), (
        "an older one is read again"
    )


def test_a_process_does_not_grow_while_one_object_is_written() -> None:
    decoder = wire.Decoder()
    tracemalloc.start()
    try:
        # Python keeps small objects for use again; that is over soon.
        for number in range(2000):
            decoder.decode(written("a", number))
        before, _ = tracemalloc.get_traced_memory()
        for number in range(2000, 3000):
            decoder.decode(written("a", number))
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 20_000, "a thousand contents are a megabyte"


ODD = [
    {"metadata": "text"},
    {"metadata": {"name": 7}},
    {"metadata": {"name": ["a"]}, "kind": {"a": 1}},
    {"metadata": {}},
    {},
]


@pytest.mark.parametrize("odd", ODD, ids=str)
def test_what_does_not_say_which_object_it_is_is_decoded_all_the_same(odd: dict[str, Any]) -> None:
    decoder = wire.Decoder(300)
    for number in range(20):
        manifest = {**odd, "n": number}
        assert decoder.decode(wire.to_struct(manifest)) == manifest
        assert decoder.size <= 300
