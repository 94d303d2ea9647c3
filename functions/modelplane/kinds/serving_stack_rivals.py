"""Looking for installs of somebody else's before ours stands beside them, on clusters that we did not make.

Each rival is observed once, before the component it would fight with is first installed, and the first
component of all waits for every look. What we have installed is never looked at again, so a stack that runs
cannot be stopped by this.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from modelplane import contracts as c
from modelplane import names
from modelplane.core import Desired, Inputs, paths
from modelplane.kinds import serving_stack_status as status
from modelplane.stacks.component import ChartComponent
from modelplane.stacks.render import Rendered, Renderer
from modelplane.stacks.rival import Rival

LOOKING = "looks for an install of somebody else's"
_PROVIDED = "have the cluster's components Provided (spec.cluster.existing.components)"
# Once charts of ours are there the setting alone is refused (serving_stack_standing).
_AGAIN = "delete the cluster and register it with components Provided"
# What the provider reports of an Object that only observes: no such object, or no such kind on the cluster.
_ABSENT = (status.NOT_THERE, "no matches for kind", "could not find the requested resource")


@dataclass(frozen=True, slots=True)
class Look:
    """What the look for the rivals of one component has come to.

    Attributes:
        objects: the Objects that look.
        found: what stands in the way, each with the next step.
        problem: why the cluster has not answered; empty where it has, or is about to.
        clear: nothing stands in the way.
    """

    objects: tuple[Desired, ...]
    found: tuple[str, ...] = ()
    problem: str = ""
    clear: bool = False

    @property
    def message(self) -> str:
        """Why the component is not installed yet."""
        return "; ".join(self.found) or self.problem or LOOKING


def looks(
    rendered: Sequence[Rendered], renderer: Renderer, inputs: Inputs, *, first: bool
) -> dict[str, Look]:
    """Return a look per component that may have rivals and was never installed; none on clusters we made.

    Args:
        rendered: the components.
        renderer: of the stack.
        inputs: of the pass.
        first: nothing is installed yet, so the cluster may still become Provided.
    """
    if renderer.context.cloud != c.EXISTING:
        return {}
    return {
        each.component.key: _look(each, rivals, renderer, inputs, _PROVIDED if first else _AGAIN)
        for each in rendered
        if not each.checks
        and (rivals := each.component.rivals(renderer.context))
        and not _installed(each, inputs)
    }


def held(rendered: Sequence[Rendered], found: Mapping[str, Look], *, first: bool) -> list[Rendered]:
    """Return the components, those with a rival or an open question not to be created.

    Args:
        rendered: the components.
        found: the looks, by component.
        first: nothing is installed yet. Then one rival keeps all of them away: half a stack could not stay
            beside what is there, nor give way to it, since a cluster with charts does not become Provided.
    """
    open_ = [key for key, look in found.items() if not look.clear]
    standing = [key for key in open_ if found[key].found]
    others = (
        f"nothing is installed before the way is clear for {', '.join(standing)}" if standing else LOOKING
    )

    def why(each: Rendered) -> str:
        if each.component.key in open_:
            return found[each.component.key].message
        return others if first and open_ and not each.checks and not each.component.own else ""

    return [
        replace(each, desired=tuple(replace(d, blocked=blocked) for d in each.desired))
        if (blocked := why(each))
        else each
        for each in rendered
    ]


def _installed(each: Rendered, inputs: Inputs) -> bool:
    if any(desired.key in inputs.observed for desired in each.desired):
        return True
    # An Object or Release that cannot be seen in this pass was there before: asking again would drop it.
    told = paths.mappings(inputs.composite, "status", "components")
    return any(x.get("name") == each.component.key and paths.text(x, "state") in status.CREATED for x in told)


def _look(each: Rendered, rivals: Sequence[Rival], renderer: Renderer, inputs: Inputs, give_way: str) -> Look:
    keys = [f"rival-{each.component.key}-{index}" for index in range(len(rivals))]
    objects = tuple(renderer.look(key, rival) for key, rival in zip(keys, rivals, strict=True))
    found, problem, clear = [], "", True
    for key, rival in zip(keys, rivals, strict=True):
        seen = inputs.observed.get(key)
        why = status.problem(seen)
        if why and any(word in why for word in _ABSENT):
            continue
        standing = paths.mapping(seen, "status", "atProvider", "manifest")
        if why or not standing or not paths.is_true(seen, "Synced"):
            problem, clear = problem or why[: status.MESSAGE_LIMIT], False
        elif not rival.ours(standing, _release(each, renderer)):
            found.append(f"{rival} is somebody else's: remove it, or {rival.instead or give_way}")
    return Look(objects, tuple(found), problem, clear and not found)


def _release(each: Rendered, renderer: Renderer) -> str:
    if not isinstance(each.component, ChartComponent):
        return ""
    pin = renderer.context.release.pin(each.component.pin)
    return each.component.release_name or names.release(pin.chart)


def objects(found: Mapping[str, Look]) -> list[Desired]:
    """Return all Objects that look."""
    return [desired for look in found.values() for desired in look.objects]
