"""From a stack's list of names to its components. It fails closed: half a stack is never composed."""

from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module

from modelplane import contracts as c
from modelplane.stacks import dynamo, standard
from modelplane.stacks.component import ChartComponent, Component, ComponentError, Crds, ObjectsComponent

STACKS: Mapping[str, Sequence[str]] = {c.STANDARD: standard.COMPONENTS, c.DYNAMO: dynamo.COMPONENTS}


@cache
def stack(name: str) -> tuple[Component, ...]:
    """Return the components of a stack, each after all that it needs.

    Raises:
        ComponentError: for an unknown stack or a list that does not hold together.
    """
    if name not in STACKS:
        raise ComponentError(f"stack {name} is not known; known are {', '.join(STACKS)}")
    return join([find(key) for key in STACKS[name]])


def find(key: str) -> Component:
    """Return the component that `components/<key>.py` exports."""
    module = f"modelplane.stacks.components.{key.replace('-', '_')}"
    try:
        found = import_module(module).COMPONENT
    except ModuleNotFoundError as error:
        raise ComponentError(f"component {key} has no file: {module} does not exist") from error
    if not isinstance(found, (ChartComponent, ObjectsComponent)) or found.key != key:
        raise ComponentError(f"{module} does not export component {key}")
    return found


def join(components: Sequence[Component]) -> tuple[Component, ...]:
    """Return the components once they hold together: keys unique, every edge to one that is in the list."""
    seen: set[str] = set()
    keys = {x.key for x in components}
    for component in components:
        if isinstance(component, ChartComponent) and component.crds is Crds.UNSTATED:
            raise ComponentError(f"{component.key} does not say how its CRDs follow an upgrade")
        if component.key in seen:
            raise ComponentError(f"component {component.key} stands twice in the stack")
        for edge in (*component.needs, *component.after, *component.outlives):
            if edge not in keys:
                raise ComponentError(f"{component.key} names {edge}, which the stack does not hold")
        for need in (*component.needs, *component.after):
            # A need that comes later could be part of a circle, in which nothing is ever created.
            if need not in seen:
                raise ComponentError(f"{component.key} stands before {need}, which it needs")
        seen.add(component.key)
    return tuple(components)
