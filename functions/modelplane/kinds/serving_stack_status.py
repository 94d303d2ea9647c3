"""What a ServingStack says of its components: version, state, and why one is not there yet."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from modelplane import contracts as c
from modelplane.core import Condition, Desired, Inputs, paths, refused
from modelplane.facts.versions import Release
from modelplane.stacks.component import ChartComponent
from modelplane.stacks.components import chart_crds
from modelplane.stacks.render import Rendered

WAITING = "Waiting"
INSTALLING = "Installing"
UPGRADING = "Upgrading"
READY = "Ready"
FAILED = "Failed"
# Of what has to be looked for on the cluster: a Provided cluster's own components, or rivals of ours.
CHECKING = "Checking"
FOUND = "Found"
MISSING = "Missing"
BLOCKED = "Blocked"

# States of a component that has been created, whatever became of it.
CREATED = frozenset({INSTALLING, UPGRADING, READY, FAILED})

REASON_READY = "ComponentsReady"
REASON_CONNECTING = "Connecting"
REASON_INSTALLING = "Installing"
REASON_UPGRADING = "Upgrading"
REASON_FAILED = "ComponentFailed"
REASON_SECRET = "SecretUnusable"
REASON_MISSING = "ComponentMissing"
REASON_FOREIGN = "ForeignInstall"
REASON_MANAGED = "ComponentsManaged"
REASON_FOUND = "ComponentsFound"
REASON_CHECKING = "Checking"
REASON_CHECK_FAILED = "CheckFailed"

_DONE = {READY, FOUND}
_CONFIG = re.compile(r"provider-config-")
NOT_THERE = refused.NOT_THERE
# A provider's error may quote a whole manifest; the first lines say what is wrong.
MESSAGE_LIMIT = 512


class Look(Protocol):
    """A look for rivals of a component."""

    @property
    def found(self) -> tuple[str, ...]:
        """What stands in the way."""

    @property
    def clear(self) -> bool:
        """Nothing does."""

    @property
    def problem(self) -> str:
        """Why the cluster has not answered."""

    @property
    def message(self) -> str:
        """Why the component is not installed yet."""


@dataclass(frozen=True, slots=True)
class Scene:
    """What one pass knows beside the components.

    Attributes:
        inputs: of the pass.
        looks: for rivals, by component.
        moved: whether a component has moved to the release, by component; empty without a move.
        waits: what a component that has not moved waits for.
        target: the release that components have, or move to.
        before: the release they come from; None without a move or where it is not known.
    """

    inputs: Inputs
    target: Release
    before: Release | None = None
    looks: Mapping[str, Look] = field(default_factory=dict)
    moved: Mapping[str, bool] = field(default_factory=dict)
    waits: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Report:
    """One component's state.

    Attributes:
        name: its key.
        version: what is deployed, else what is pinned.
        state: how far it is.
        message: why it is no further.
        check: it is the cluster's own, and only looked for.
        failing: a provider says that something is wrong.
    """

    name: str
    version: str
    state: str
    message: str = ""
    check: bool = False
    failing: bool = False

    def entry(self) -> dict[str, str]:
        """Return the status entry; what is empty is left out."""
        fields = {"name": self.name, "version": self.version, "state": self.state, "message": self.message}
        return {key: value for key, value in fields.items() if value}


def reports(rendered: Sequence[Rendered], scene: Scene) -> list[Report]:
    """Return a report per component that composes anything, in the stack's order."""
    return [_report(each, scene) for each in rendered if each.desired]


def _report(each: Rendered, scene: Scene) -> Report:
    state, message = _state(each, scene)
    look = scene.looks.get(each.component.key)
    failing = state == FAILED or (look is not None and bool(look.problem))
    return Report(each.component.key, _version(each, scene), state, message, each.checks, failing)


def _version(each: Rendered, scene: Scene) -> str:
    """What is deployed where a provider says it, else what is pinned; empty for what we do not pin."""
    component = each.component
    if each.checks or not component.pin:
        return ""
    if isinstance(component, ChartComponent):
        seen = scene.inputs.observed.get(component.key)
        if deployed := paths.text(seen, "status", "atProvider", "version"):
            return deployed
    behind = scene.before and not scene.moved.get(component.key, True)
    release = scene.before if behind and scene.before else scene.target
    pin = release.pins.get(component.pin)
    return pin.version if pin else ""


def _state(each: Rendered, scene: Scene) -> tuple[str, str]:
    inputs, key = scene.inputs, each.component.key
    if (look := scene.looks.get(key)) and not look.clear:
        return (BLOCKED if look.found else CHECKING), look.message
    pending = [x for x in each.desired if not inputs.is_ready(x.key)]
    for desired in pending:
        if why := problem(inputs.observed.get(desired.key)):
            missing = each.checks and NOT_THERE in why
            return (MISSING, _sought(desired)) if missing else (FAILED, why[:MESSAGE_LIMIT])
    if not scene.moved.get(key, True) and _was_there(each, inputs):
        return UPGRADING, scene.waits.get(key) or _progress((pending or each.desired)[0], inputs)
    if not pending:
        return FOUND if each.checks else READY, ""
    if each.checks:
        return CHECKING, _progress(pending[0], inputs)
    absent = [x for x in pending if x.key not in inputs.observed]
    return (WAITING, _waits(absent[0], inputs)) if absent else (INSTALLING, _progress(pending[0], inputs))


def _was_there(each: Rendered, inputs: Inputs) -> bool:
    # The Job that applies CRDs is there for the move only, so it never was.
    whole = all(desired.key in inputs.observed for desired in each.desired)
    return whole or each.component.key == chart_crds.COMPONENT.key


def _waits(desired: Desired, inputs: Inputs) -> str:
    if desired.blocked:
        return desired.blocked
    waits = [key for key in desired.after if not _CONFIG.match(key) and not inputs.is_ready(key)]
    return f"waits for {', '.join(waits)}" if waits else ""


def _sought(desired: Desired) -> str:
    sought = paths.mapping(desired.manifest, "spec", "forProvider", "manifest")
    return f"{sought['kind']} {paths.name(sought)} is not there"


def problem(observed: Mapping[str, Any] | None) -> str:
    """The provider's own words for what failed, or an empty string where nothing has."""
    if why := refused.said(observed):
        return why
    if paths.text(observed, "status", "atProvider", "state") == "failed":
        return paths.text(observed, "status", "atProvider", "releaseDescription") or "the Helm release failed"
    return ""


def _progress(desired: Desired, inputs: Inputs) -> str:
    """The provider's word for why it is not ready, else that of the object's own controller."""
    ready = paths.condition(inputs.observed.get(desired.key), c.READY)
    if said := paths.text(ready, "message"):
        return said[:MESSAGE_LIMIT]
    remote = inputs.remote(desired.key)
    for condition in paths.mappings(remote, "status", "conditions"):
        said = paths.text(condition, "message")
        if said and condition.get("status") == "False":
            return f"{remote.get('kind')} {paths.name(remote)}: {said}"[:MESSAGE_LIMIT]
    if remote.get("kind") == "Job":
        space = paths.namespace(remote)
        return f"Job {space}/{paths.name(remote)} on the cluster has not finished; its pod's log says why"
    return ""


@dataclass(frozen=True, slots=True)
class Whole:
    """What is known of the stack beside its components.

    Attributes:
        connected: the provider configs are there.
        serving: in a move: all that served still does.
        move: in a move: from which release to which.
        secrets: what is wrong with the Secrets that reach the cluster.
        pull: what is wrong with the mirror's Secret.
        withheld: a copy of that one is missing.
    """

    connected: bool
    serving: bool = False
    move: str = ""
    secrets: Sequence[str] = ()
    pull: str = ""
    withheld: bool = False


def components_ready(found: Sequence[Report], whole: Whole) -> Condition:
    """Return ComponentsReady: its message names the first component that is not, and how many are."""
    if not whole.connected:
        message = "the provider configs that reach the cluster are being created"
        return Condition(c.COMPONENTS_READY, False, REASON_CONNECTING, message)
    pending = [x for x in found if x.state not in _DONE]
    if secrets := _unusable(found, whole):
        return Condition(c.COMPONENTS_READY, False, REASON_SECRET, "; ".join(secrets))
    count = f"{len(found) - len(pending)} of {len(found)} components are ready"
    if not pending:
        return Condition(c.COMPONENTS_READY, True, REASON_READY)
    # A component that waits is not the cause: one that fails, is missing or is being installed is.
    first = min(pending, key=lambda x: _URGENCY[x.state])
    why = f": {first.message}" if first.message else f" is {first.state.lower()}"
    if first.state == UPGRADING:
        message = f"{whole.move}: {first.name}{why}; {count}"
        return Condition(c.COMPONENTS_READY, whole.serving, REASON_UPGRADING, message)
    reason = REASON_CHECK_FAILED if first.state == CHECKING and first.failing else _REASONS[first.state]
    return Condition(c.COMPONENTS_READY, False, reason, f"{first.name}{why}; {count}")


def _unusable(found: Sequence[Report], whole: Whole) -> list[str]:
    """The Secrets to blame. One that we cannot see is no cause while providers reach the cluster with it."""
    failing = any(x.failing for x in found)
    reached = any(x.state in _DONE for x in found)
    told = list(whole.secrets) if failing and not reached else []
    return [*told, whole.pull] if whole.pull and (failing or whole.withheld) else told


def requirements_met(found: Sequence[Report], provided: str) -> Condition:
    """Return RequirementsMet: what a Provided cluster lacks, or what stands in the way on a Managed one."""
    if blocked := [f"{x.name} ({x.message})" for x in found if x.state == BLOCKED]:
        message = f"not installed beside what is there: {'; '.join(blocked)}"
        return Condition(c.REQUIREMENTS_MET, False, REASON_FOREIGN, message)
    checks = [x for x in found if x.check]
    if missing := [f"{x.name} ({x.message})" for x in checks if x.state == MISSING]:
        message = f"the cluster lacks {'; '.join(missing)}: install it, or have components {c.MANAGED}"
        return Condition(c.REQUIREMENTS_MET, False, REASON_MISSING, message)
    if failed := [f"{x.name}: {x.message}" for x in checks if x.state == FAILED]:
        return Condition(c.REQUIREMENTS_MET, None, REASON_CHECK_FAILED, failed[0])
    if any(x.state == CHECKING for x in found):
        return Condition(c.REQUIREMENTS_MET, None, REASON_CHECKING, "the cluster has not answered yet")
    reason = REASON_FOUND if provided == c.PROVIDED else REASON_MANAGED
    return Condition(c.REQUIREMENTS_MET, True, reason)


_URGENCY: Mapping[str, int] = {
    FAILED: 0,
    BLOCKED: 1,
    MISSING: 2,
    INSTALLING: 3,
    UPGRADING: 4,
    CHECKING: 5,
    WAITING: 6,
}
_REASONS: Mapping[str, str] = {
    FAILED: REASON_FAILED,
    BLOCKED: REASON_FOREIGN,
    MISSING: REASON_MISSING,
    INSTALLING: REASON_INSTALLING,
    CHECKING: REASON_CHECKING,
    WAITING: REASON_INSTALLING,
}
