"""What a ServingStack says of its components: version, state, and why one is not there yet."""

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

_DONE = {READY, FOUND}
# A provider's error may quote a whole manifest; the first lines say what is wrong.
_MESSAGE_LIMIT = 512


@dataclass(frozen=True, slots=True)
class Report:
    """One component's state."""

    name: str
    version: str
    state: str
    message: str = ""

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
    """Return RequirementsMet: what a Provided cluster lacks."""
    if provided != c.PROVIDED:
        return Condition(c.REQUIREMENTS_MET, True, REASON_MANAGED)
    missing = [x for x in found if x.state == MISSING]
    if missing:
        what = "; ".join(f"{x.name} ({x.message})" for x in missing)
        message = f"the cluster lacks {what}: install it, or set components to {c.MANAGED}"
        return Condition(c.REQUIREMENTS_MET, False, REASON_MISSING, message)
    if any(x.state == CHECKING for x in found):
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
    name, pinned = each.component.key, "" if each.checks else version(each.component, context)
    pending = [x for x in each.desired if not inputs.is_ready(x.key)]
    if not pending:
        return Report(name, pinned, FOUND if each.checks else READY)
    absent = [x for x in pending if x.key not in inputs.observed]
    for desired in pending:
        if problem := _problem(inputs.observed.get(desired.key)):
            return Report(name, pinned, MISSING if each.checks else FAILED, _problem_of(each, problem))
    if absent:
        return Report(name, pinned, CHECKING if each.checks else WAITING, _waits(absent[0], inputs))
    return Report(name, pinned, CHECKING if each.checks else INSTALLING, _progress(pending[0], inputs))


def _waits(desired: Desired, inputs: Inputs) -> str:
    closed = [key for key in desired.after if key in inputs.observed and not inputs.is_ready(key)]
    absent = [key for key in desired.after if key not in inputs.observed]
    waits = [key for key in (*closed, *absent) if not key.startswith("provider-config-")]
    return f"waits for {', '.join(waits)}" if waits else ""


def _problem(observed: Mapping[str, Any] | None) -> str:
    """The provider's own words for what failed, or an empty string where nothing has."""
    synced = paths.condition(observed, "Synced")
    if synced.get("status") == "False":
        return paths.text(synced, "message") or paths.text(synced, "reason")
    if paths.text(observed, "status", "atProvider", "state") == "failed":
        return paths.text(observed, "status", "atProvider", "releaseDescription") or "the Helm release failed"
    return ""


def _problem_of(each: Rendered, problem: str) -> str:
    if each.checks:
        what = ", ".join(f"{x.kind} {x.name}" for x in each.component.provides)
        problem = f"needs {what}: {problem}"
    return problem[:_MESSAGE_LIMIT]


def _progress(desired: Desired, inputs: Inputs) -> str:
    ready = paths.condition(inputs.observed.get(desired.key), c.READY)
    return paths.text(ready, "message")[:_MESSAGE_LIMIT]
