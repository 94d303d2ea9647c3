"""Between protobuf Structs and plain dicts, and no further.

Converting is what a composition function pays for (about 8x a 1 MB request), so each object is converted
once: a fleet's clusters arrive with every call and hardly ever change, and are found again by their bytes.
"""

import sys
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from google.protobuf import struct_pb2

from modelplane.core import Manifest

_WHOLE = 2.0**53


def to_dict(struct: struct_pb2.Struct) -> Manifest:
    """Return the Struct as a dict; whole numbers become ints, since the wire has only doubles."""
    return {sys.intern(key): _value(value) for key, value in struct.fields.items()}


def _value(value: struct_pb2.Value) -> Any:
    kind = value.WhichOneof("kind")
    if kind == "string_value":
        return value.string_value
    if kind == "struct_value":
        # Keys repeat from object to object: one copy of each takes a third off a decoded fleet.
        return {sys.intern(k): _value(v) for k, v in value.struct_value.fields.items()}
    if kind == "list_value":
        return [_value(v) for v in value.list_value.values]
    if kind == "bool_value":
        return value.bool_value
    if kind == "number_value":
        number = value.number_value
        return int(number) if number.is_integer() and abs(number) <= _WHOLE else number
    return None


def to_struct(manifest: Mapping[str, Any]) -> struct_pb2.Struct:
    """Return the dict as a Struct."""
    struct = struct_pb2.Struct()
    struct.update(dict(manifest))
    return struct


class Decoder:
    """Decodes objects and keeps the result by content, least recently used first out.

    Args:
        limit: how many bytes of serialized objects are kept; 0 keeps none. As dicts they take some six times
            that: the default holds a fleet of 5,000 clusters (18 MB) and ends at about 200 MB.
    """

    def __init__(self, limit: int = 32 * 1024 * 1024) -> None:
        self._limit = limit
        self._size = 0
        self._kept: OrderedDict[bytes, Manifest] = OrderedDict()

    @property
    def size(self) -> int:
        """How many serialized bytes are kept."""
        return self._size

    def decode(self, struct: struct_pb2.Struct) -> Manifest:
        """Return the object as a dict: the same dict for the same content, so never write to it."""
        content = struct.SerializeToString(deterministic=True)
        found = self._kept.get(content)
        if found is not None:
            self._kept.move_to_end(content)
            return found
        decoded = to_dict(struct)
        self._kept[content] = decoded
        self._size += len(content)
        while self._size > self._limit and self._kept:
            dropped, _ = self._kept.popitem(last=False)
            self._size -= len(dropped)
        return decoded
