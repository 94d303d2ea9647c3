"""Between protobuf Structs and plain dicts, and no further.

Converting is what a composition function pays for, and asking the protobuf runtime for each of a Struct's
values is most of that: an object for every one of them. So a Struct is serialized, which is fast, and its
bytes are read here. A fleet's objects arrive with every call, hardly ever change and are much alike: whole
objects and their parts are found again by their bytes.
"""

import struct as packing
import sys
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from google.protobuf import struct_pb2

from modelplane.core import Manifest, paths

_WHOLE = 2.0**53
# Field tags of google/protobuf/struct.proto: the only entry of a Struct, of a map and of a ListValue has
# number 1, a map's value 2, and a Value is one of the six below.
_ENTRY, _MAPPED = 0x0A, 0x12
_NULL, _NUMBER, _STRING, _BOOL, _STRUCT, _LIST = 0x08, 0x11, 0x1A, 0x20, 0x2A, 0x32
_SIZED = (_STRING, _STRUCT, _LIST)
_SHORT = 0x7F
_double = packing.Struct("<d").unpack_from

# Larger parts differ from object to object, and would be kept for nothing.
_PART = 512
_PARTS = 32768

_Parts = dict[bytes, tuple[str, Any]]
_Identity = tuple[str, str, str, str]


class _UnknownFieldError(Exception):
    """The bytes hold what struct.proto does not declare."""


def to_dict(struct: struct_pb2.Struct) -> Manifest:
    """Return the Struct as a dict; whole numbers become ints, since the wire has only doubles."""
    return _read(struct, struct.SerializeToString(), None)


def _read(struct: struct_pb2.Struct, content: bytes, parts: _Parts | None) -> Manifest:
    try:
        return _members(content, 0, len(content), parts)
    except _UnknownFieldError:
        known = struct_pb2.Struct()
        known.CopyFrom(struct)
        known.DiscardUnknownFields()
        content = known.SerializeToString()
        return _members(content, 0, len(content), None)


def _members(data: bytes, at: int, end: int, parts: _Parts | None) -> Manifest:
    """Return the fields of the Struct in these bytes."""
    found: Manifest = {}
    while at < end:
        # Sizes below 128, nearly all, are read in place here and below: the call would cost more than they.
        if data[at] != _ENTRY:
            raise _UnknownFieldError
        stop = data[at + 1]
        at += 2
        if stop > _SHORT:
            at, stop = _long(data, at - 1)
        stop += at
        if parts is None or stop - at > _PART:
            key, value = _member(data, at, parts)
        else:
            entry = data[at:stop]
            known = parts.get(entry)
            if known is None:
                known = parts[entry] = _member(data, at, parts)
            key, value = known
        found[key] = value
        at = stop
    return found


def _member(data: bytes, at: int, parts: _Parts | None) -> tuple[str, Any]:
    if data[at] != _ENTRY:
        raise _UnknownFieldError
    size = data[at + 1]
    at += 2
    if size > _SHORT:
        at, size = _long(data, at - 1)
    # Keys repeat from object to object: one copy of each takes a third off a decoded fleet.
    key = sys.intern(data[at : at + size].decode())
    at += size
    if data[at] != _MAPPED:
        raise _UnknownFieldError
    size = data[at + 1]
    at += 2
    if size > _SHORT:
        at, size = _long(data, at - 1)
    return key, _value(data, at, at + size, parts) if size else None


def _value(data: bytes, at: int, end: int, parts: _Parts | None) -> Any:
    tag = data[at]
    if tag in _SIZED:
        size = data[at + 1]
        at += 2
        if size > _SHORT:
            at, size = _long(data, at - 1)
        if at + size != end:
            raise _UnknownFieldError
        if tag == _STRING:
            return data[at:end].decode()
        if tag == _STRUCT:
            return _members(data, at, end, parts)
        return _items(data, at, end, parts)
    if tag == _NUMBER and end - at == 9:
        number: float = _double(data, at + 1)[0]
        return int(number) if number.is_integer() and abs(number) <= _WHOLE else number
    if end - at != 2 or tag not in (_BOOL, _NULL):
        raise _UnknownFieldError
    return data[at + 1] != 0 if tag == _BOOL else None


def _items(data: bytes, at: int, end: int, parts: _Parts | None) -> list[Any]:
    found: list[Any] = []
    while at < end:
        if data[at] != _ENTRY:
            raise _UnknownFieldError
        size = data[at + 1]
        at += 2
        if size > _SHORT:
            at, size = _long(data, at - 1)
        found.append(_value(data, at, at + size, parts) if size else None)
        at += size
    return found


def _long(data: bytes, at: int) -> tuple[int, int]:
    """Return where the content after the size at this place starts, and the size."""
    size = shift = 0
    while True:
        more = data[at]
        at += 1
        size |= (more & 0x7F) << shift
        if more <= _SHORT:
            return at, size
        shift += 7


def to_struct(manifest: Mapping[str, Any]) -> struct_pb2.Struct:
    """Return the dict as a Struct."""
    struct = struct_pb2.Struct()
    struct.update(dict(manifest))
    return struct


class Decoder:
    """Decodes objects and keeps the result by content, least recently used first out.

    Equal small parts of what it gives are one object, in different dicts and within one: a fleet's pools
    carry the same devices a thousand times. Of one object the latest content is kept: each write to it makes
    the one before useless, and a process that runs for weeks would fill up with those.

    Args:
        limit: how many bytes of serialized objects are kept; 0 keeps none. As dicts they take up to six
            times that: the default holds a fleet of 5,000 clusters (18 MB).
    """

    def __init__(self, limit: int = 32 * 1024 * 1024) -> None:
        self._limit = limit
        self._size = 0
        self._kept: OrderedDict[bytes, Manifest] = OrderedDict()
        self._latest: dict[_Identity, bytes] = {}
        self._parts: _Parts = {}

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
        if len(self._parts) > _PARTS:
            self._parts.clear()
        parts = len(self._parts)
        decoded = _read(struct, content, self._parts)
        self._keep(content, decoded, parts)
        return decoded

    def _keep(self, content: bytes, decoded: Manifest, parts: int) -> None:
        self._kept[content] = decoded
        self._size += len(content)
        if (whose := _identity(decoded)) is not None:
            before = self._latest.get(whose)
            if before is not None:
                # What is new in it is a time or a count, which no other object will have.
                while len(self._parts) > parts:
                    self._parts.popitem()
                self._drop(before)
            self._latest[whose] = content
        while self._size > self._limit and self._kept:
            self._drop(next(iter(self._kept)))

    def _drop(self, content: bytes) -> None:
        decoded = self._kept.pop(content)
        self._size -= len(content)
        if (whose := _identity(decoded)) is not None:
            del self._latest[whose]


def _identity(manifest: Manifest) -> _Identity | None:
    """Return what tells objects apart, or None where it says nothing of itself."""
    name = paths.name(manifest)
    kind = paths.text(manifest, "apiVersion"), paths.text(manifest, "kind")
    return (*kind, paths.namespace(manifest), name) if name else None
