"""What a live control plane runs: trees as `render` draws them, the fleet's room, caches, endpoints."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from modelplane import contracts as c
from modelplane.core import Answer, Composed, Condition, Manifest, paths
from modelplane.kinds.registry import KINDS
from modelplane.render import tree
from modelplane.review.fleet import CACHE, ENDPOINT, SERVICE, Fleet
from modelplane.review.forecast import Room, room
from modelplane.review.live import Live
from modelplane.sim.play import Pass
from modelplane.sim.reconcile import Report
from modelplane.sim.world import Ref, World

_STATUS = {"True": True, "False": False}


class NotFoundError(Exception):
    """Nothing of that kind and name is there; says what is."""


@dataclass(frozen=True)
class Status:
    """A snapshot.

    Attributes:
        lines: the composition trees.
        rooms: free devices of every pool.
        caches: name, ready/matched, and per cluster what it waits for.
        services: name, ready/total endpoints, URL.
        endpoints: name, whether it is ready, URL.
        unread: what could not be read, in words.
    """

    lines: Sequence[tree.Line]
    rooms: Sequence[Room]
    caches: Sequence[tuple[str, str, str]]
    services: Sequence[tuple[str, str, str]]
    endpoints: Sequence[tuple[str, str, str]]
    unread: Sequence[str]


def status(live: Live, only: str = "") -> Status:
    """Return what was read as people look at it; `only` is `kind/name` or `kind/namespace/name`.

    Raises:
        NotFoundError: nothing is called so.
    """
    world = live.world()
    wanted = _roots(world, only)
    lines = tree.lines(_seen(world), world.children)
    fleet = Fleet(world)
    unread = [f"{kind}: {said}" for kind, said in sorted(live.refused.items())]
    unread += [f"{kind}: the control plane does not serve it" for kind in live.absent]
    if only:
        return Status(_below(lines, wanted), (), (), (), (), unread)
    return Status(
        lines,
        room(fleet),
        [_cache(obj) for obj in world.of_kind(*CACHE)],
        [_service(obj) for obj in world.of_kind(*SERVICE)],
        [_endpoint(obj) for obj in world.of_kind(*ENDPOINT)],
        unread,
    )


def _seen(world: World) -> Pass:
    """Return the world as a pass in which every composite reported what its conditions say."""
    reports = tuple(
        _report(world, target, KINDS[target[:2]].conditions)
        for target in sorted(world.objects)
        if target[:2] in KINDS
    )
    return Pass(number=1, reports=reports, objects=world.objects)


def _report(world: World, target: Ref, types: Sequence[str]) -> Report:
    obj = world.objects[target]
    children = world.observed(target)
    answer = Answer(
        resources={key: Composed(child, _works(child)) for key, child in children.items()},
        conditions=[x for x in (_condition(obj, type_) for type_ in types) if x is not None],
    )
    synced = paths.condition(obj, "Synced")
    failed = paths.text(synced, "message") if synced.get("status") == "False" else ""
    return Report(target, answer, 0, {"": f"Synced {failed}"} if failed else {})


def _works(child: Manifest) -> bool:
    """Tell whether a leaf works: what a provider answers for does once it says so, all else by existing."""
    answered = (child.get("apiVersion"), child.get("kind")) in (
        (c.KUBERNETES_API, "Object"),
        (c.HELM_API, "Release"),
    )
    return paths.is_true(child, c.READY) if answered else True


def _condition(obj: Manifest, type_: str) -> Condition | None:
    found = paths.condition(obj, type_)
    if not found:
        return None
    said = paths.text(found, "reason"), paths.text(found, "message")
    return Condition(type_, _STATUS.get(str(found.get("status"))), *said)


def _roots(world: World, only: str) -> set[str]:
    """Return the objects asked for, as a tree calls them."""
    if not only:
        return set()
    kind, _, name = only.partition("/")
    space, slash, bare = name.rpartition("/")
    known = {r.kind.lower(): r.kind for r in world.objects if r[:2] in KINDS}
    known |= {f"{lower}s": found for lower, found in known.items()}
    if kind.lower() not in known:
        kinds = ", ".join(sorted(set(known.values()))) or "nothing of Modelplane"
        raise NotFoundError(f"no {kind} is there; there are {kinds}")
    found = [
        r
        for r in world.objects
        if r[:2] in KINDS
        and r.kind == known[kind.lower()]
        and r.name == bare
        and (not slash or r.namespace == space)
    ]
    if not found:
        names_ = sorted(r.name for r in world.objects if r.kind == known[kind.lower()])
        raise NotFoundError(f"no {known[kind.lower()]} {name} is there; there are {', '.join(names_)}")
    return {str(r) for r in found}


def _below(lines: Sequence[tree.Line], wanted: set[str]) -> list[tree.Line]:
    """Return the subtrees of what is wanted, drawn from the left edge."""
    found: list[tree.Line] = []
    at = 0
    while at < len(lines):
        first = lines[at]
        end = at + 1
        while end < len(lines) and len(lines[end].guide) > len(first.guide):
            end += 1
        if first.what in wanted:
            cut = len(first.guide)
            found.append(tree.Line("", "", first.what, first.ready, first.why))
            found += [tree.Line(x.guide[cut:], x.key, x.what, x.ready, x.why) for x in lines[at + 1 : end]]
            at = end
        else:
            at += 1
    return found


def _name(obj: Mapping[str, Any]) -> str:
    return f"{paths.namespace(obj)}/{paths.name(obj)}"


def _cache(obj: Manifest) -> tuple[str, str, str]:
    where = []
    for entry in paths.mappings(obj, "status", "clusters"):
        said = paths.text(entry, "message")
        where.append(
            f"{paths.text(entry, 'name')} {paths.text(entry, 'phase')}{f' ({said})' if said else ''}"
        )
    return _name(obj), paths.text(obj, "status", "summary", "ready") or "?", ", ".join(where)


def _service(obj: Manifest) -> tuple[str, str, str]:
    ready = paths.integer(obj, "status", "endpoints", "ready", default=0)
    total = paths.integer(obj, "status", "endpoints", "total", default=0)
    return _name(obj), f"{ready}/{total}", paths.text(obj, "status", "address")


def _endpoint(obj: Manifest) -> tuple[str, str, str]:
    ready = "ready" if paths.is_true(obj, c.READY) else "not ready"
    return _name(obj), ready, _public(paths.text(obj, "spec", "url"))


def _public(url: str) -> str:
    """Return a URL without what may be a password in it."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="").geturl()
