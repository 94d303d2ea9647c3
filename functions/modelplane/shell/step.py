"""Which composer a call is for: the composite's own kind, or the kind a platform's Composition names."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from modelplane import contracts as c
from modelplane.core import Kind, Manifest, paths

_FIELDS = {"apiVersion", "kind", "compose", "specFrom", "statusTo"}


class StepError(Exception):
    """A call nobody here can answer; the message says what to change in the Composition."""


@dataclass(frozen=True, slots=True)
class Call:
    """One dispatched call.

    Attributes:
        kind: the composer; None for the Usages pass alone.
        composite: the composite as the composer sees it.
        status_to: field path of the XR that takes the status; empty for none.
    """

    kind: Kind | None
    composite: Manifest
    status_to: tuple[str, ...] = ("status",)


def dispatch(kinds: Mapping[tuple[str, str], Kind], xr: Manifest, step: Mapping[str, Any]) -> Call:
    """Return the call for a composite and its step's input (empty where there is none).

    Raises:
        StepError: where no composer fits, naming the ones there are.
    """
    if not step:
        api_version, name = paths.text(xr, "apiVersion"), paths.text(xr, "kind")
        kind = kinds.get((api_version, name))
        if kind is None:
            raise StepError(
                f"no composer for {api_version} {name}; a Composition of another kind names one in its step's"
                f" input: apiVersion: {c.API}, kind: {c.STEP_KIND}, compose: one of {_known(kinds)}"
            )
        return Call(kind, xr)
    _check(step)
    if step["compose"] == c.STEP_USAGES:
        return Call(None, xr)
    by_name = {k.kind: k for k in kinds.values()}
    kind = by_name.get(str(step["compose"]))
    if kind is None:
        raise StepError(f"input.compose: {step['compose']} is not one of {_known(kinds)}")
    spec_from = str(step.get("specFrom") or "spec")
    spec = _part(xr, spec_from)
    if spec is None and spec_from != "spec":
        # An empty spec instead would take defaults for what the user wrote, and drop what runs.
        raise StepError(f"input.specFrom: {paths.text(xr, 'kind')} has no object at {spec_from}")
    composite = {
        **xr,
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "spec": dict(spec or {}),
    }
    status_to = str(step.get("statusTo", "status"))
    composite["status"] = {
        **(_part(xr, status_to) or {}),
        "conditions": paths.items(xr, "status", "conditions"),
    }
    return Call(kind, composite, tuple(status_to.split(".")) if status_to else ())


def _check(step: Mapping[str, Any]) -> None:
    if (step.get("apiVersion"), step.get("kind")) != (c.API, c.STEP_KIND):
        raise StepError(f"input: want apiVersion {c.API}, kind {c.STEP_KIND}")
    if unknown := step.keys() - _FIELDS:
        raise StepError(f"input: unknown field {', '.join(sorted(unknown))}")
    if not isinstance(step.get("compose"), str):
        raise StepError("input.compose: missing; name the kind to compose")
    for path in ("specFrom", "statusTo"):
        if not isinstance(step.get(path, ""), str):
            raise StepError(f"input.{path}: want a field path such as spec.cluster")
    status_to = step.get("statusTo", "status")
    first, *rest = status_to.split(".")
    # Crossplane itself writes these two parts of a status.
    own = rest[:1] in (["conditions"], ["crossplane"])
    if status_to and (first != "status" or "" in rest or own):
        raise StepError("input.statusTo: want a path below status, or an empty string for none")


def _part(xr: Manifest, path: str) -> Mapping[str, Any] | None:
    found = paths.at(xr, *path.split(".")) if path else None
    return found if isinstance(found, Mapping) else None


def _known(kinds: Mapping[tuple[str, str], Kind]) -> str:
    return ", ".join([*sorted(k.kind for k in kinds.values()), c.STEP_USAGES])
