"""Rendering: files in, passes out."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from modelplane import contracts as c
from modelplane.api import definitions
from modelplane.core import Manifest, paths
from modelplane.kinds.registry import KINDS
from modelplane.render import adapter, collect, tree
from modelplane.sim import prerequisites
from modelplane.sim.play import Pass, composites, one_pass, play
from modelplane.sim.reconcile import Admission, Function
from modelplane.sim.world import Ref, World, ref


class Admitted:
    """Admission that gives its last verdicts again where the same object comes over the same old one."""

    def __init__(self) -> None:
        self._last: dict[Ref, list[tuple[Manifest, Manifest | None, tuple[Manifest, Sequence[str]]]]] = {}

    def __call__(self, manifest: Manifest, old: Manifest | None) -> tuple[Manifest, Sequence[str]]:
        """Return the verdict of `admit`."""
        # A composite comes twice in a pass: as its parent composes it, and with its status.
        target = ref(manifest)
        known = self._last.get(target, [])
        for asked, before, verdict in known:
            if asked == manifest and before == old:
                return verdict
        verdict = admit(manifest, old)
        self._last[target] = [*known[-1:], (manifest, old, verdict)]
        return verdict


_SERVER_OWNED = {"uid", "generation", "deletionTimestamp"}


@dataclass
class Rendering:
    """One rendering and what it has seen so far.

    Attributes:
        world: the simulated control plane.
        recurse: whether passes go on, children included, until nothing changes.
    """

    world: World
    recurse: bool
    function: Function = field(default_factory=lambda: adapter.function(KINDS, remember=True))
    kinds: set[tuple[str, str]] = field(default_factory=lambda: set(KINDS))
    admission: Admission = field(default_factory=Admitted)

    def passes(self) -> Iterator[tuple[Pass, list[tree.Line]]]:
        """Yield each pass with its tree; without recursion there is one, over the given composites only."""
        if not self.recurse:
            done = one_pass(self.world, self.kinds, self.function, self.admission)
            yield done, tree.lines(done, self.world.children)
            return
        for done in play(self.world, self.kinds, self.function, self.admission):
            yield done, tree.lines(done, self.world.children)


def rendering(
    roots: Sequence[Path], observed: Sequence[Path] = (), required: Sequence[Path] = (), *, recurse: bool
) -> Rendering:
    """Return a rendering of the files.

    Args:
        roots: what to render.
        observed: objects already composed; each names its key in the annotation Crossplane writes.
        required: objects that composers may read.
        recurse: see `Rendering`.

    Raises:
        InputError: for anything unreadable or refused.
    """
    documents = collect.read(roots)
    others = collect.read(required) if required else []
    world = World.of([*prerequisites.objects(), *others, *documents])
    if observed:
        _adopt(world, [ref(d) for d in documents], collect.sources(observed))
    kinds = set(KINDS)
    if not recurse:
        # One call per given composite: what is only required is read, not reconciled.
        kinds = {(r.api_version, r.kind) for r in map(ref, documents)} & kinds
    if not composites(world, kinds):
        known = ", ".join(sorted(kind for api, kind in KINDS if api == c.API))
        raise collect.InputError(
            [f"{', '.join(map(str, roots))}: nothing here that Modelplane composes: it composes {known}"]
        )
    return Rendering(world, recurse, kinds=kinds)


def _adopt(world: World, rendered: Sequence[Ref], found: Sequence[collect.Source]) -> None:
    candidates = [r for r in rendered if r[:2] in KINDS]
    faults = []
    for source in found:
        key = paths.text(source.body, "metadata", "annotations", c.RESOURCE_NAME_ANNOTATION)
        wanted = paths.text(source.body, "metadata", "labels", c.COMPOSITE_LABEL)
        fits = _owners(source.body, [r for r in candidates if wanted in ("", r.name)])
        if not key:
            path = f'metadata.annotations["{c.RESOURCE_NAME_ANNOTATION}"]'
            faults.append(source.fault(path, "is required: the key the object is composed under"))
        elif len(fits) != 1:
            names = ", ".join(map(str, candidates))
            said = f'"{wanted}" is none of them' if wanted and not fits else "must name one of them"
            path = f'metadata.labels["{c.COMPOSITE_LABEL}"]'
            faults.append(source.fault(path, f"{said}: rendered are {names}"))
        else:
            world.adopt(fits[0], key, world.apply(source.body))
    if faults:
        raise collect.InputError(faults)


def _owners(observed: Manifest, candidates: Sequence[Ref]) -> list[Ref]:
    """Return who of the candidates can have composed an object: whom it calls its controller, if anybody."""
    found = [
        (paths.text(o, "apiVersion"), paths.text(o, "kind"))
        for o in paths.mappings(observed, "metadata", "ownerReferences")
        if o.get("controller")
    ]
    return [r for r in candidates if not found or r[:2] in found]


def admit(manifest: Manifest, old: Manifest | None) -> tuple[Manifest, Sequence[str]]:
    """Default and judge an object as the API server does; kinds of others pass as they are."""
    known = definitions.load()
    if known.of(manifest) is None:
        return manifest, ()
    problems = known.judge(manifest, old)
    return known.default(manifest), [str(p) for p in problems]


def composed(done: Pass, children: Mapping[Ref, Mapping[str, Ref]]) -> list[Manifest]:
    """Return every composed object after a pass, without statuses, composites' children in key order."""
    return [
        desired(done.objects[child])
        for owner in sorted(children)
        for _, child in sorted(children[owner].items())
        if child in done.objects
    ]


def desired(manifest: Manifest) -> Manifest:
    """Return the part of an object that a composer asked for."""
    metadata = {k: v for k, v in manifest["metadata"].items() if k not in _SERVER_OWNED}
    return {**{k: v for k, v in manifest.items() if k != "status"}, "metadata": metadata}
