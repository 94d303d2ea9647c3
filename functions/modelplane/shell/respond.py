"""One RunFunction call: a request in, a response out. The only module that writes protobuf."""

from __future__ import annotations

import datetime
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from crossplane.function import response
from crossplane.function.proto.v1 import run_function_pb2 as fnv1
from google.protobuf import struct_pb2

from modelplane import contracts as c
from modelplane.core import Answer, Condition, Inputs, Kind, Manifest, Requirement, paths, settle, usages
from modelplane.shell import wire
from modelplane.shell.step import Call, StepError, dispatch

_STATUS = {
    True: fnv1.STATUS_CONDITION_TRUE,
    False: fnv1.STATUS_CONDITION_FALSE,
    None: fnv1.STATUS_CONDITION_UNKNOWN,
}
_MESSAGE_LIMIT = 4096
_PACKAGE = f"{Path(__file__).parent.parent}/"


class Log(Protocol):
    """The part of a structlog logger that is used."""

    def bind(self, **values: str) -> Log:
        """Return one that says these with every line."""

    def info(self, event: str, **values: object) -> None:
        """Say an event."""

    def error(self, event: str, **values: object) -> None:
        """Say a fault."""


class Responder:
    """Answers RunFunction requests.

    Args:
        kinds: the composers, by apiVersion and kind.
        clock: for durations in logs only; no answer depends on it.
        log: where it says what it did; structlog where none is given.
        read: how observed objects are decoded. What keeps them saves a player of passes a tenth; on a server
            they would push the fleet's own objects out of memory.
    """

    def __init__(
        self,
        kinds: Mapping[tuple[str, str], Kind],
        clock: Callable[[], float] = time.monotonic,
        log: Log | None = None,
        read: Callable[[struct_pb2.Struct], Manifest] = wire.to_dict,
    ) -> None:
        self._kinds = kinds
        self._decoder = wire.Decoder()
        self._clock = clock
        self._log = log or _logger()
        self._read = read

    def respond(self, req: fnv1.RunFunctionRequest) -> fnv1.RunFunctionResponse:
        """Return the response; a fault in one composite is fatal to that one and to no other."""
        started = self._clock()
        rsp = response.to(req, datetime.timedelta(0))
        xr = wire.to_dict(req.observed.composite.resource)
        log = self._log.bind(
            xr_kind=paths.text(xr, "kind"), xr_namespace=paths.namespace(xr), xr_name=paths.name(xr)
        )
        try:
            call = dispatch(self._kinds, xr, wire.to_dict(req.input))
            if call.kind is None:
                _write_usages(req, rsp, xr)
            else:
                self._compose(req, rsp, call, call.kind)
        except StepError as error:
            response.fatal(rsp, str(error))
            log.error("refused", why=str(error))
        except Exception as error:  # noqa: BLE001  (one bad composite must not take the others down)
            where = _where(error)
            response.fatal(
                rsp,
                f"internal error composing {paths.text(xr, 'kind')} {paths.name(xr)}: "
                f"{type(error).__name__} at {_ours(where)}; nothing was changed. Please report it.",
            )
            # Neither message nor locals: they may hold what a user wrote.
            log.error("failed", error=type(error).__name__, where=where)
        log.info("ran", ms=round((self._clock() - started) * 1000, 1), resources=len(rsp.desired.resources))
        return rsp

    def _compose(
        self, req: fnv1.RunFunctionRequest, rsp: fnv1.RunFunctionResponse, call: Call, kind: Kind
    ) -> None:
        requirements = kind.requires(call.composite)
        _require(rsp, requirements)
        fetched = {**dict(req.extra_resources), **dict(req.required_resources)}
        # A name that a spec leaves empty finds nothing; asked for, it would fail the whole pipeline.
        asked = [r for r in requirements if r.match_name != ""]
        if any(r.name not in fetched for r in asked):
            # Crossplane fetches what is asked for, throws this answer away and calls again.
            return
        inputs = Inputs(
            composite=call.composite,
            observed={k: self._read(r.resource) for k, r in req.observed.resources.items()},
            required={r.name: [] for r in requirements}
            | {r.name: [self._decoder.decode(i.resource) for i in fetched[r.name].items] for r in asked},
        )
        answer = settle.compose(kind, inputs)
        rsp.meta.ttl.FromTimedelta(datetime.timedelta(seconds=answer.ttl))
        _write(rsp, answer, call.status_to)


def _logger() -> Log:
    # Here, not above: with what it loads by itself it is a tenth of the start of a command that logs nothing.
    import structlog  # noqa: PLC0415

    found: Log = structlog.get_logger("modelplane")
    return found


def _require(rsp: fnv1.RunFunctionResponse, requirements: Sequence[Requirement]) -> None:
    for r in requirements:
        if r.match_name == "":
            continue
        response.require_resources(
            rsp,
            r.name,
            r.api_version,
            r.kind,
            match_name=r.match_name,
            match_labels=dict(r.match_labels) if r.match_labels is not None else None,
            namespace=r.namespace,
        )


def _write(rsp: fnv1.RunFunctionResponse, answer: Answer, status_to: tuple[str, ...]) -> None:
    for key, composed in answer.resources.items():
        target = rsp.desired.resources[key]
        target.resource.CopyFrom(wire.to_struct(composed.manifest))
        target.ready = fnv1.READY_TRUE if composed.ready else fnv1.READY_FALSE
    if status_to and answer.status:
        # Struct.update replaces whole top-level fields: it would drop the status that earlier steps wrote.
        place = rsp.desired.composite.resource
        for step in status_to:
            place = place.fields[step].struct_value
        place.update(dict(answer.status))
    if answer.ready is False:
        # Where nothing is said core derives it from all resources of all steps.
        rsp.desired.composite.ready = fnv1.READY_FALSE
    elif answer.ready and rsp.desired.composite.ready != fnv1.READY_FALSE:
        rsp.desired.composite.ready = fnv1.READY_TRUE
    for condition in answer.conditions:
        rsp.conditions.append(_condition(condition))
    for event in answer.events:
        severity = fnv1.SEVERITY_WARNING if event.warning else fnv1.SEVERITY_NORMAL
        rsp.results.append(fnv1.Result(severity=severity, message=event.message[:_MESSAGE_LIMIT]))
    if answer.held_back:
        rsp.context.fields[c.HELD_BACK_CONTEXT].struct_value.update(dict(answer.held_back))


def _condition(condition: Condition) -> fnv1.Condition:
    return fnv1.Condition(
        type=condition.type,
        status=_STATUS[condition.status],
        reason=condition.reason,
        message=condition.message[:_MESSAGE_LIMIT],
    )


def _write_usages(req: fnv1.RunFunctionRequest, rsp: fnv1.RunFunctionResponse, xr: Manifest) -> None:
    """The teardown pass alone: one Usage per consumer of a provider config that earlier steps compose."""
    manifests = {k: wire.to_dict(r.resource) for k, r in req.desired.resources.items()}
    observed = set(req.observed.resources)
    # A resource that Crossplane names itself has its name once it is observed.
    for key, manifest in manifests.items():
        if not paths.name(manifest) and key in observed:
            seen = wire.to_dict(req.observed.resources[key].resource)
            manifest.setdefault("metadata", {})["name"] = paths.name(seen)
    for edge in sorted(usages.config_edges(manifests, paths.namespace(xr))):
        key = usages.usage_key(edge)
        if key in manifests or not all(paths.name(manifests[k]) for k in edge):
            continue
        usage = usages.usage(paths.name(xr), paths.namespace(xr), edge, manifests)
        target = rsp.desired.resources[key]
        target.resource.CopyFrom(wire.to_struct(usage.manifest))
        target.ready = fnv1.READY_TRUE if key in observed else fnv1.READY_FALSE


def _where(error: Exception) -> list[str]:
    frames = traceback.extract_tb(error.__traceback__)
    return [f"{f.filename.removeprefix(_PACKAGE)}:{f.lineno}" for f in frames] or ["unknown"]


def _ours(where: Sequence[str]) -> str:
    """Return the innermost place in this package: the one a report needs; else the innermost of all."""
    return next((place for place in reversed(where) if not place.startswith("/")), where[-1])
