"""What a ServingStack says of its components: version, state, and why one is not there yet."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from modelplane import contracts as c
from modelplane.core import Condition, Desired, Inputs, paths
from modelplane.stacks.component import Context
from modelplane.stacks.render import Rendered, version

WAITING = "Waiting"
INSTALLING = "Installing"
READY = "Ready"
FAILED = "Failed"
# Of a Provided cluster's own components.
CHECKING = "Checking"
FOUND = "Found"
MISSING = "Missing"

REASON_READY = "ComponentsReady"
REASON_CONNECTING = "Connecting"
REASON_INSTALLING = "Installing"
REASON_FAILED = "ComponentFailed"
REASON_MISSING = "ComponentMissing"
REASON_MANAGED = "ComponentsManaged"
REASON_FOUND = "ComponentsFound"
REASON_CHECKING = "Checking"
REASON_CHECK_FAILED = "CheckFailed"

_DONE = {READY, FOUND}
_CONFIG = re.compile(r"provider-config-")
# What crossplane-runtime reports of an Object that only observes (pkg/reconciler/managed/reconciler.go).
_NOT_THERE = "external resource does not exist"
# A provider's error may quote a whole manifest; the first lines say what is wrong.
_MESSAGE_LIMIT = 512


@dataclass(frozen=True, slots=True)
class Report:
    """One component's state."""

    name: str
    version: str
    state: str
    message: str = ""
    check: bool = False

    def entry(self) -> dict[str, str]:
        """Return the status entry; what is empty is left out."""
        fields = {"name": self.name, "version": self.version, "state": self.state, "message": self.message}
        return {key: value for key, value in fields.items() if value}


def reports(rendered: Sequence[Rendered], context: Context, inputs: Inputs) -> list[Report]:
    """Return a report per component that composes anything, in the stack's order."""
    return [_report(each, context, inputs) for each in rendered if each.desired]


def components_ready(found: Sequence[Report], connected: bool) -> Condition:
    """Return ComponentsReady: its message names the first component that is not, and how many are."""
    if not connected:
        message = "the provider configs that reach the cluster are being created"
        return Condition(c.COMPONENTS_READY, False, REASON_CONNECTING, message)
    pending = [x for x in found if x.state not in _DONE]
    if not pending:
        return Condition(c.COMPONENTS_READY, True, REASON_READY)
    # A component that waits is not the cause: one that fails, is missing or is being installed is.
    first = min(pending, key=lambda x: _URGENCY[x.state])
    why = f": {first.message}" if first.message else f" is {first.state.lower()}"
    message = f"{first.name}{why}; {len(found) - len(pending)} of {len(found)} components are ready"
    return Condition(c.COMPONENTS_READY, False, _REASONS[first.state], message)


def requirements_met(found: Sequence[Report], provided: str) -> Condition:
    """Return RequirementsMet: what a Provided cluster lacks, unknown while it has not been asked."""
    if provided != c.PROVIDED:
        return Condition(c.REQUIREMENTS_MET, True, REASON_MANAGED)
    checks = [x for x in found if x.check]
    if missing := [f"{x.name} ({x.message})" for x in checks if x.state == MISSING]:
        message = f"the cluster lacks {'; '.join(missing)}: install it, or have components {c.MANAGED}"
        return Condition(c.REQUIREMENTS_MET, False, REASON_MISSING, message)
    if failed := [f"{x.name}: {x.message}" for x in checks if x.state == FAILED]:
        return Condition(c.REQUIREMENTS_MET, None, REASON_CHECK_FAILED, failed[0])
    if any(x.state == CHECKING for x in checks):
        return Condition(c.REQUIREMENTS_MET, None, REASON_CHECKING, "the cluster has not answered yet")
    return Condition(c.REQUIREMENTS_MET, True, REASON_FOUND)


_URGENCY: Mapping[str, int] = {FAILED: 0, MISSING: 1, INSTALLING: 2, CHECKING: 3, WAITING: 4}
_REASONS: Mapping[str, str] = {
    FAILED: REASON_FAILED,
    MISSING: REASON_MISSING,
    INSTALLING: REASON_INSTALLING,
    CHECKING: REASON_CHECKING,
    WAITING: REASON_INSTALLING,
}


def _report(each: Rendered, context: Context, inputs: Inputs) -> Report:
    pinned = "" if each.checks else version(each.component, context)
    state, message = _state(each, inputs)
    return Report(each.component.key, pinned, state, message, each.checks)


def _state(each: Rendered, inputs: Inputs) -> tuple[str, str]:
    pending = [x for x in each.desired if not inputs.is_ready(x.key)]
    if not pending:
        return FOUND if each.checks else READY, ""
    for desired in pending:
        if problem := _problem(inputs.observed.get(desired.key)):
            missing = each.checks and _NOT_THERE in problem
            return (MISSING, _sought(desired)) if missing else (FAILED, problem[:_MESSAGE_LIMIT])
    if each.checks:
        return CHECKING, _progress(pending[0], inputs)
    absent = [x for x in pending if x.key not in inputs.observed]
    return (WAITING, _waits(absent[0], inputs)) if absent else (INSTALLING, _progress(pending[0], inputs))


def _waits(desired: Desired, inputs: Inputs) -> str:
    waits = [key for key in desired.after if not _CONFIG.match(key) and not inputs.is_ready(key)]
    return f"waits for {', '.join(waits)}" if waits else ""


def _sought(desired: Desired) -> str:
    sought = paths.mapping(desired.manifest, "spec", "forProvider", "manifest")
    return f"{sought['kind']} {paths.name(sought)} is not there"


def _problem(observed: Mapping[str, Any] | None) -> str:
    """The provider's own words for what failed, or an empty string where nothing has."""
    synced = paths.condition(observed, "Synced")
    if synced.get("status") == "False":
        return paths.text(synced, "message") or paths.text(synced, "reason")
    if paths.text(observed, "status", "atProvider", "state") == "failed":
        return paths.text(observed, "status", "atProvider", "releaseDescription") or "the Helm release failed"
    return ""


def _progress(desired: Desired, inputs: Inputs) -> str:
    ready = paths.condition(inputs.observed.get(desired.key), c.READY)
    return paths.text(ready, "message")[:_MESSAGE_LIMIT]
