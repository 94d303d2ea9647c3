"""Requests as Crossplane sends them, and readers of responses, for the tests of the shell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from crossplane.function.proto.v1 import run_function_pb2 as fnv1

from builders.core import kind, widget
from modelplane import contracts as c
from modelplane.core import Inputs, Kind, Plan
from modelplane.core.paths import Manifest
from modelplane.shell import wire
from modelplane.shell.respond import Responder

Compose = Callable[[Inputs], Plan]


def request(
    xr: Manifest | None = None,
    *,
    observed: dict[str, Manifest] | None = None,
    earlier: dict[str, Manifest] | None = None,
    required: dict[str, list[Manifest]] | None = None,
    step: Manifest | None = None,
) -> fnv1.RunFunctionRequest:
    req = fnv1.RunFunctionRequest(meta=fnv1.RequestMeta(tag="t1"))
    req.observed.composite.resource.CopyFrom(wire.to_struct(xr or widget()))
    for key, manifest in (observed or {}).items():
        req.observed.resources[key].resource.CopyFrom(wire.to_struct(manifest))
    for key, manifest in (earlier or {}).items():
        req.desired.resources[key].resource.CopyFrom(wire.to_struct(manifest))
    for name, found in (required or {}).items():
        req.required_resources[name].SetInParent()
        for manifest in found:
            req.required_resources[name].items.add().resource.CopyFrom(wire.to_struct(manifest))
    if step is not None:
        req.input.CopyFrom(wire.to_struct({"apiVersion": c.API, "kind": "Step", **step}))
    return req


def respond(req: fnv1.RunFunctionRequest, *kinds: Kind) -> fnv1.RunFunctionResponse:
    return Responder({(k.api_version, k.kind): k for k in kinds}).respond(req)


def run(
    compose: Compose, req: fnv1.RunFunctionRequest | None = None, **of_kind: Any
) -> fnv1.RunFunctionResponse:
    return respond(req or request(), kind(compose, **of_kind))


def manifests(rsp: fnv1.RunFunctionResponse) -> dict[str, Manifest]:
    return {key: wire.to_dict(r.resource) for key, r in rsp.desired.resources.items()}


def fatal(rsp: fnv1.RunFunctionResponse) -> str:
    (message,) = (r.message for r in rsp.results if r.severity == fnv1.SEVERITY_FATAL)
    return str(message)
