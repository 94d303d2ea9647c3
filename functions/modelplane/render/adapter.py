"""Calling the function in process as Crossplane calls it over gRPC: the same request, the same response."""

from collections.abc import Callable, Mapping

from crossplane.function.proto.v1 import run_function_pb2 as fnv1
from google.protobuf import struct_pb2

from modelplane import contracts as c
from modelplane.core import (
    Answer,
    Composed,
    Condition,
    Event,
    Inputs,
    Kind,
    Manifest,
    Requirement,
    paths,
)
from modelplane.shell import wire
from modelplane.shell.respond import Responder
from modelplane.sim.reconcile import Function, Reply
from modelplane.sim.world import ref

_READY = {fnv1.READY_TRUE: True, fnv1.READY_FALSE: False}
_CONDITION = {fnv1.STATUS_CONDITION_TRUE: True, fnv1.STATUS_CONDITION_FALSE: False}


def function(kinds: Mapping[tuple[str, str], Kind], *, remember: bool = False) -> Function:
    """Return the function over these composers; its logs are dropped, its answers are the real ones.

    Args:
        kinds: the composers.
        remember: give a composite's last answer again to the same question, and encode no object twice: for
            callers that never write to what they have asked with, as a played world.
    """
    if not remember:
        responder = Responder(kinds, log=_Silent())
        return lambda inputs: reply(responder.respond(request(inputs)))
    encode, decode = _Encoder(), wire.Decoder().decode
    responder = Responder(kinds, log=_Silent(), read=decode)
    last: dict[tuple[str, ...], tuple[Inputs, Reply]] = {}

    def call(inputs: Inputs) -> Reply:
        asked = (*ref(inputs.composite), *sorted(inputs.required))
        before, answer = last.get(asked, (None, None))
        if answer is None or before != inputs:
            answer = reply(responder.respond(request(inputs, encode)), decode)
            last[asked] = inputs, answer
        return answer

    return call


class _Encoder:
    """Encodes objects, each once: a played world replaces what changes and never writes to it."""

    def __init__(self) -> None:
        self._kept: dict[int, tuple[Manifest, struct_pb2.Struct]] = {}

    def __call__(self, manifest: Manifest) -> struct_pb2.Struct:
        # The object is kept beside its encoding, or another could come to have its id.
        found = self._kept.get(id(manifest))
        if found is None:
            found = self._kept[id(manifest)] = (manifest, wire.to_struct(manifest))
        return found[1]


def request(
    inputs: Inputs, encode: Callable[[Manifest], struct_pb2.Struct] = wire.to_struct
) -> fnv1.RunFunctionRequest:
    """Return the RunFunction request of a snapshot."""
    req = fnv1.RunFunctionRequest()
    req.meta.tag = "render"
    req.observed.composite.resource.CopyFrom(encode(inputs.composite))
    for key, manifest in inputs.observed.items():
        req.observed.resources[key].resource.CopyFrom(encode(manifest))
    for name, found in inputs.required.items():
        req.required_resources[name].SetInParent()
        for manifest in found:
            req.required_resources[name].items.add().resource.CopyFrom(encode(manifest))
    return req


def reply(
    rsp: fnv1.RunFunctionResponse, decode: Callable[[struct_pb2.Struct], Manifest] = wire.to_dict
) -> Reply:
    """Return what a RunFunction response says."""
    requirements = [_requirement(name, s) for name, s in sorted(rsp.requirements.resources.items())]
    for result in rsp.results:
        if result.severity == fnv1.SEVERITY_FATAL:
            return Reply(requirements, fatal=result.message)
    composite = wire.to_dict(rsp.desired.composite.resource)
    held_back = paths.mapping(wire.to_dict(rsp.context), c.HELD_BACK_CONTEXT)
    answer = Answer(
        resources={
            key: Composed(decode(r.resource), r.ready == fnv1.READY_TRUE)
            for key, r in sorted(rsp.desired.resources.items())
        },
        held_back={str(k): str(v) for k, v in held_back.items()},
        status=paths.mapping(composite, "status"),
        conditions=[Condition(x.type, _CONDITION.get(x.status), x.reason, x.message) for x in rsp.conditions],
        events=[Event(r.message, warning=r.severity == fnv1.SEVERITY_WARNING) for r in rsp.results],
        ready=_READY.get(rsp.desired.composite.ready),
    )
    return Reply(requirements, answer)


def _requirement(name: str, selector: fnv1.ResourceSelector) -> Requirement:
    match = selector.WhichOneof("match")
    return Requirement(
        name,
        selector.api_version,
        selector.kind,
        match_name=selector.match_name if match == "match_name" else None,
        match_labels=dict(selector.match_labels.labels) if match == "match_labels" else None,
        namespace=selector.namespace if selector.HasField("namespace") else None,
    )


class _Silent:
    """A log that nobody reads."""

    def bind(self, **_: str) -> "_Silent":
        return self

    def info(self, event: str, **_: object) -> None:
        """Say nothing."""

    def error(self, event: str, **_: object) -> None:
        """Say nothing: the answer is fatal, and says it."""
