"""What a stack has installed on its cluster, from all that shows it, and the edits that would take it away.

One pass may not see what is there: a Release that is not observed is not a Release that is gone. So every
trace counts: what is observed, the Usages that name Releases, what Crossplane says it composed, and what
status said last.
"""

from collections.abc import Collection, Iterator, Sequence

from modelplane import contracts as c
from modelplane.api.serving_stack import ServingStackSpec
from modelplane.core import Inputs, InvalidSpecError, paths
from modelplane.kinds import serving_stack_status as status
from modelplane.stacks.render import Rendered

_GATEWAY_CLASS = "gateway-class"
_GATEWAY = "gateway"
_RELEASE = "Release"


def installed(managed: Sequence[Rendered], inputs: Inputs) -> list[str]:
    """Return what was installed here and would not be on a Provided cluster, sorted.

    A key or the name of a component where one is known, else the name of a Release.

    Args:
        managed: the components as a Managed stack renders them.
        inputs: of the pass.
    """
    keys = {x.key for each in managed if not each.component.own for x in each.desired}
    own = {each.component.key for each in managed if each.component.own}
    seen = {k for k, obj in inputs.observed.items() if k in keys or paths.text(obj, "kind") == _RELEASE}
    return sorted(seen.union(_told(own, inputs))) or sorted(_referred(inputs))


def _told(own: Collection[str], inputs: Inputs) -> Iterator[str]:
    for entry in paths.mappings(inputs.composite, "status", "components"):
        # What is only looked at has no version, and may be in the state Failed as well.
        created = paths.text(entry, "state") in status.CREATED and paths.text(entry, "version")
        if created and (name := paths.text(entry, "name")) and name not in own:
            yield name


def _referred(inputs: Inputs) -> set[str]:
    found = set()
    for ref in paths.mappings(inputs.composite, "spec", "crossplane", "resourceRefs"):
        if paths.text(ref, "kind") == _RELEASE:
            found.add(paths.text(ref, "name") or _RELEASE)
    for usage in inputs.observed.values():
        for end in ("of", "by"):
            if paths.text(usage, "spec", end, "kind") == _RELEASE:
                found.add(paths.text(usage, "spec", end, "resourceRef", "name") or _RELEASE)
    return found


def refuse_unwinding(spec: ServingStackSpec, standing: Sequence[str], inputs: Inputs) -> None:
    """Refuse edits that read like a setting and would take away what serves.

    Raises:
        InvalidSpecError: for components Provided over `standing` charts, and for another gateway class.
    """
    if spec.provided == c.PROVIDED and standing:
        message = (
            f"{c.PROVIDED} would remove the charts that are installed here ({', '.join(standing)}) under what"
            f" runs on them: restore {c.MANAGED} (InferenceCluster: spec.cluster.existing.components), or"
            " delete the cluster and register it again"
        )
        raise InvalidSpecError(c.COMPONENTS_READY, "spec.provided", message)
    name = _class(inputs)
    if name and name != spec.gateway.class_name:
        message = f"the class is {name}, and another would be made beside it: restore {name}"
        raise InvalidSpecError(c.COMPONENTS_READY, "spec.gateway.className", message)


def _class(inputs: Inputs) -> str:
    """The gateway's class as it was applied, from either of the two objects that know it."""
    made = ("spec", "forProvider", "manifest")
    return paths.text(inputs.observed.get(_GATEWAY_CLASS), *made, "metadata", "name") or paths.text(
        inputs.observed.get(_GATEWAY), *made, "spec", "gatewayClassName"
    )
