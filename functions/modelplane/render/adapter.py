"""Calling the function in process as Crossplane calls it over gRPC: the same request, the same response."""

from collections.abc import Mapping

import structlog
from crossplane.function.proto.v1 import run_function_pb2 as fnv1

from modelplane import contracts as c
from modelplane.core import Answer, Composed, Condition, Event, Inputs, Kind, Requirement, paths
from modelplane.shell import wire
from modelplane.shell.respond import Responder
from modelplane.sim.reconcile import Function, Reply

_READY = {fnv1.READY_TRUE: True, fnv1.READY_FALSE: False}
_CONDITION = {fnv1.STATUS_CONDITION_TRUE: True, fnv1.STATUS_CONDITION_FALSE: False}


def function(kinds: Mapping[tuple[str, str], Kind]) -> Function:
    """Return the function over these composers; its logs are dropped, its answers are the real ones."""
    structlog.configure(processors=[_drop])
    responder = Responder(kinds)

    def call(inputs: Inputs) -> Reply:
        return reply(responder.respond(request(inputs)))

    return call


def request(inputs: Inputs) -> fnv1.RunFunctionRequest:
    """Return the RunFunction request of a snapshot."""
    req = fnv1.RunFunctionRequest()
    req.meta.tag = "render"
    req.observed.composite.resource.CopyFrom(wire.to_struct(inputs.composite))
    for key, manifest in inputs.observed.items():
        req.observed.resources[key].resource.CopyFrom(wire.to_struct(manifest))
    for name, found in inputs.required.items():
        req.required_resources[name].SetInParent()
        for manifest in found:
            req.required_resources[name].items.add().resource.CopyFrom(wire.to_struct(manifest))
    return req


def reply(rsp: fnv1.RunFunctionResponse) -> Reply:
    """Return what a RunFunction response says."""
    requirements = [_requirement(name, s) for name, s in sorted(rsp.requirements.resources.items())]
    for result in rsp.results:
        if result.severity == fnv1.SEVERITY_FATAL:
            return Reply(requirements, fatal=result.message)
    composite = wire.to_dict(rsp.desired.composite.resource)
    held_back = paths.mapping(wire.to_dict(rsp.context), c.HELD_BACK_CONTEXT)
    answer = Answer(
        resources={
            key: Composed(wire.to_dict(r.resource), r.ready == fnv1.READY_TRUE)
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


def _drop(_: object, __: str, ___: object) -> dict[str, object]:
    raise structlog.DropEvent
