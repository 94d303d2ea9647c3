"""Comparing two trees of manifests, two rendered trees, or two stack releases.

Manifests are not rendered apart: the new ones are applied over what the old ones have become, so replicas
stay where they are, what is held stays held, and only what would change on a control plane is a change.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from modelplane import contracts as c
from modelplane.api import documents
from modelplane.api.documents import DocumentError
from modelplane.core import Manifest, paths
from modelplane.facts import versions
from modelplane.render import collect
from modelplane.render.run import Rendering, desired
from modelplane.review.changes import ADDED, CHANGED, REMOVED, Change, Field, State, changes, differences
from modelplane.sim import prerequisites
from modelplane.sim.world import World, ref
from modelplane.stacks import join
from modelplane.stacks.component import ChartComponent, Component, Context, ObjectsComponent, pin_of

# What `render --out` leaves in a folder.
RENDERED = "final.yaml"


def of_manifests(old: Sequence[Path], new: Sequence[Path]) -> list[Change]:
    """Return what applying the new manifests over the old ones changes once all has come to rest.

    Raises:
        InputError: something cannot be read or is refused.
        Unsettled: a world keeps changing.
    """
    before, after = collect.read(old), collect.read(new)
    world = World.of([*prerequisites.objects(), *before])
    _rest(world)
    first = _state(world)
    for target in {ref(x) for x in before} - {ref(x) for x in after}:
        world.delete(target)
    for manifest in after:
        world.apply(manifest)
    _rest(world)
    return changes(first, _state(world))


def _rest(world: World) -> None:
    for _ in Rendering(world, recurse=True).passes():
        pass


def _state(world: World) -> dict[tuple[str, str], Manifest]:
    """Return what people applied and what was composed; Usages follow from it and are left out."""
    found: dict[tuple[str, str], Manifest] = {}
    given = {ref(x) for x in prerequisites.objects()}
    for target, obj in world.objects.items():
        if target.api_version == c.PROTECTION_API or target in given or target in world.deleting:
            continue
        owner = world.owner(target)
        key = (str(owner[0]), owner[1]) if owner else ("", str(target))
        found[key] = desired(obj)
    return found


def is_rendered(path: Path) -> bool:
    """Tell whether a path is what `render --out` wrote."""
    return path.is_dir() and (path / RENDERED).is_file()


def of_rendered(old: Path, new: Path) -> list[Change]:
    """Return the differences between two rendered trees, as two versions of the package left them.

    Raises:
        InputError: a tree cannot be read.
    """
    return changes(_rendered(old), _rendered(new))


def _rendered(folder: Path) -> State:
    try:
        found = [document.body for document in documents.read(folder / RENDERED)]
    except DocumentError as error:
        raise collect.InputError([str(error)]) from None
    return {
        _key(obj): obj
        for obj in found
        if paths.text(obj, "apiVersion") != c.PROTECTION_API and paths.name(obj)
    }


def _key(obj: Manifest) -> tuple[str, str]:
    owner = str(paths.labels(obj).get(c.COMPOSITE_LABEL, ""))
    key = paths.text(obj, "metadata", "annotations", c.RESOURCE_NAME_ANNOTATION)
    space = paths.namespace(obj)
    return (f"{space}/{owner}", key) if key else ("", str(ref(obj)))


def is_release(name: str) -> bool:
    """Tell whether the name is one of a stack release."""
    return name in versions.releases()


def of_releases(old: str, new: str, stack: str) -> list[Change]:
    """Return what moving a cluster of the stack from one release to another changes, per component."""
    before, after = (Context(versions.release(name)) for name in (old, new))
    found = [_component(component, before, after) for component in join.stack(stack)]
    return [change for change in found if change is not None]


def _component(component: Component, before: Context, after: Context) -> Change | None:
    sides = [_pinned(component, context) for context in (before, after)]
    fields = tuple(differences(*sides))
    if not fields:
        return None
    old, new = (paths.text(side, "version") for side in sides)
    kind = ADDED if not old and new else REMOVED if old and not new else CHANGED
    moved = f"{old or 'not there'} -> {new or 'not there'}" if old != new else ""
    return Change("each cluster", kind, component.key, "", moved, _without_pin(fields))


def _pinned(component: Component, context: Context) -> Manifest:
    try:
        pin = pin_of(component, context)
        values: Mapping[str, object] = (
            component.merged(context, {}) if isinstance(component, ChartComponent) else {}
        )
        objects = component.documents(context) if isinstance(component, ObjectsComponent) else ()
    except versions.UnknownPinError:
        return {}
    found: Manifest = {
        "values": dict(values),
        "objects": {x.name or x.manifest["kind"]: x.manifest for x in objects},
    }
    if pin is not None:
        found |= {
            "version": pin.version,
            "repository": pin.repository,
            "chart": pin.chart,
            "image": pin.image,
        }
    return found


def _without_pin(fields: Sequence[Field]) -> tuple[Field, ...]:
    return tuple(f for f in fields if f.path != "version")
