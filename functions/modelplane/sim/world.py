"""The simulated API server: objects, who composed them, what is being deleted, and what refuses to go."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from modelplane import contracts as c
from modelplane import names
from modelplane.core import Manifest, Requirement, paths

# Conditions carry a time; a played world has no clock.
EPOCH = "2026-01-01T00:00:00Z"

Cascade = Literal["background", "foreground"]


class Ref(NamedTuple):
    """What identifies an object."""

    api_version: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        space = f"{self.namespace}/" if self.namespace else ""
        return f"{self.kind} {space}{self.name}"


def ref(manifest: Mapping[str, Any]) -> Ref:
    """Return the object's Ref; missing parts are empty."""
    return Ref(
        paths.text(manifest, "apiVersion"),
        paths.text(manifest, "kind"),
        paths.namespace(manifest),
        paths.name(manifest),
    )


@dataclass(frozen=True, slots=True)
class Failure:
    """A fault injected into a played world.

    Attributes:
        hits: which objects it befalls.
        mode: how they fail, by the name that the kind's rule gives it.
        message: what the provider or controller says; empty: what the rule says.
    """

    hits: Callable[[Manifest], bool]
    mode: str
    message: str = ""


@dataclass
class World:
    """All objects of a control plane, and the composition tree over them.

    Objects are values: an update replaces one, so a snapshot of the world is a shallow copy.

    Attributes:
        objects: by Ref.
        children: composed Refs by composition resource name, per composite.
        born: the pass in which an object was made.
        deleting: what somebody deleted and something still holds, with the cascade asked for.
        waiting: why each of those is still there, as of the last pass.
        gone: the last state of what was deleted and has left.
        replays: deletions of roots that a Usage refused and will replay when it goes.
        leaks: what stayed behind on a cluster since nobody was left to clean it up.
        failures: faults in force.
        turn: which of those that could have their turn in a pass have it, and in which order: all, by name.
            Controllers know no order, so a teardown is played with many.
        passes: how many passes have been played.
    """

    objects: dict[Ref, Manifest] = field(default_factory=dict)
    children: dict[Ref, dict[str, Ref]] = field(default_factory=dict)
    born: dict[Ref, int] = field(default_factory=dict)
    deleting: dict[Ref, Cascade] = field(default_factory=dict)
    waiting: dict[Ref, str] = field(default_factory=dict)
    gone: dict[Ref, Manifest] = field(default_factory=dict)
    replays: dict[Ref, Cascade] = field(default_factory=dict)
    leaks: list[str] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    turn: Callable[[Iterable[Ref]], list[Ref]] = sorted
    passes: int = 0
    _owners: dict[Ref, tuple[Ref, str]] = field(default_factory=dict)

    @classmethod
    def of(cls, documents: Sequence[Mapping[str, Any]]) -> "World":
        """Return a world that holds the documents, as applied in one go."""
        world = cls()
        for document in documents:
            world.apply(document)
        return world

    def copy(self) -> "World":
        """Return a world of its own with the same objects."""
        return World(
            objects=dict(self.objects),
            children={owner: dict(found) for owner, found in self.children.items()},
            born=dict(self.born),
            deleting=dict(self.deleting),
            waiting=dict(self.waiting),
            gone=dict(self.gone),
            replays=dict(self.replays),
            leaks=list(self.leaks),
            failures=list(self.failures),
            passes=self.passes,
            _owners=dict(self._owners),
        )

    def apply(self, manifest: Mapping[str, Any]) -> Ref:
        """Create or replace an object as its owner's apply does; status and providers' marks stay.

        A changed spec raises the generation, as for every kind with a status subresource.
        """
        target = ref(manifest)
        metadata = dict(paths.mapping(manifest, "metadata"))
        new = {**manifest, "metadata": metadata}
        old = self.objects.get(target)
        if old is None:
            metadata.setdefault("uid", names.digest(*target, length=32))
            metadata["generation"] = 1
            self.born[target] = self.passes
            self.gone.pop(target, None)
        else:
            before = old["metadata"]
            metadata["uid"] = before["uid"]
            changed = _body(old) != _body(new)
            metadata["generation"] = before["generation"] + (1 if changed else 0)
            marks = paths.mapping(before, "annotations")
            kept = {k: v for k, v in marks.items() if k.startswith("crossplane.io/")}
            if merged := {**kept, **metadata.get("annotations", {})}:
                metadata["annotations"] = merged
            if target in self.deleting:
                metadata["deletionTimestamp"] = EPOCH
            if "status" in old and "status" not in new:
                new["status"] = old["status"]
            if new == old:
                return target
        self.objects[target] = new
        return target

    def report(self, target: Ref, status: Manifest) -> None:
        """Replace an object's status."""
        if self.objects[target].get("status") != status:
            self.objects[target] = {**self.objects[target], "status": status}

    def age(self, target: Ref) -> int:
        """Return how many passes ago the object was made."""
        return self.passes - self.born.get(target, 0)

    def adopt(self, owner: Ref, key: str, child: Ref) -> None:
        """Record a composed object."""
        self.children.setdefault(owner, {})[key] = child
        self._owners[child] = owner, key

    def owner(self, child: Ref) -> tuple[Ref, str] | None:
        """Return the composite that controls an object that exists, and the key it has there."""
        return self._owners.get(child) if child in self.objects else None

    def observed(self, owner: Ref) -> dict[str, Manifest]:
        """Return the composite's composed objects that exist, by key."""
        found = self.children.get(owner, {})
        return {k: self.objects[r] for k, r in sorted(found.items()) if r in self.objects}

    def users(self, target: Ref) -> list[str]:
        """Return what refuses the object's deletion: the Usages of it, one line each.

        A Usage refuses as long as it stands; that it goes with its user is its own controller's doing.
        """
        return sorted(
            f"{ref(obj)}: {paths.text(obj, 'spec', 'reason') or f'in use by {user_of(obj)}'}"
            for obj in self.usages()
            if end_of(obj, "of") == target
        )

    def usages(self) -> list[Manifest]:
        """Return all Usages."""
        return [obj for r, obj in self.objects.items() if r.api_version == c.PROTECTION_API]

    def delete(self, target: Ref, cascade: Cascade = "background") -> list[str]:
        """Ask for an object's deletion; return what refused, empty where it was accepted.

        It leaves when nothing holds it any more, which `deletion.advance` decides in every pass. In the
        background what it composed is collected after it, in the foreground it waits for that.
        """
        if target not in self.objects:
            return []
        if refusals := self.users(target):
            if any(u["spec"].get("replayDeletion") for u in self.usages() if end_of(u, "of") == target):
                self.replays[target] = cascade
            return refusals
        if target not in self.deleting:
            self.deleting[target] = cascade
            obj = self.objects[target]
            self.objects[target] = {**obj, "metadata": {**obj["metadata"], "deletionTimestamp": EPOCH}}
        return []

    def remove(self, target: Ref) -> None:
        """Let an object leave; what it composed stays recorded as its children until that has left too."""
        self.gone[target] = self.objects.pop(target)
        for known in (self.born, self.deleting, self.waiting, self.replays):
            known.pop(target, None)
        owner, key = self._owners.pop(target, (None, ""))
        if owner is not None and self.children[owner].get(key) == target:
            del self.children[owner][key]
        for parent in (owner, target):
            if parent is not None and not self.children.get(parent):
                self.children.pop(parent, None)

    def fail(self, what: Ref | Callable[[Manifest], bool], mode: str, message: str = "") -> Failure:
        """Let an object, or all a predicate holds for, fail from the next pass on; `recover` ends it."""
        hits = (lambda obj: ref(obj) == what) if isinstance(what, Ref) else what
        self.failures.append(Failure(hits, mode, message))
        return self.failures[-1]

    def recover(self) -> None:
        """End all injected failures."""
        self.failures.clear()

    def fetch(self, requirement: Requirement) -> list[Manifest]:
        """Return what a requirement finds, sorted by namespace and name as core sorts."""
        kind = requirement.api_version, requirement.kind
        found = [r for r in self.objects if r[:2] == kind and self._fits(r, requirement)]
        return [self.objects[r] for r in sorted(found, key=lambda r: r[2:])]

    def _fits(self, target: Ref, wanted: Requirement) -> bool:
        if wanted.namespace is not None and target.namespace != wanted.namespace:
            return False
        if wanted.match_name is not None:
            # Without a namespace a name addresses a cluster-scoped object.
            return target.name == wanted.match_name and target.namespace == (wanted.namespace or "")
        found = paths.labels(self.objects[target])
        return all(found.get(k) == v for k, v in (wanted.match_labels or {}).items())

    def of_kind(self, api_version: str, kind: str) -> Iterator[Manifest]:
        """Yield the objects of a kind, by namespace and name."""
        for r in sorted(r for r in self.objects if r[:2] == (api_version, kind)):
            yield self.objects[r]


def end_of(usage: Mapping[str, Any], end: str) -> Ref:
    """Return what a Usage's `of` or `by` names; one without a namespace means the Usage's own."""
    found = paths.mapping(usage, "spec", end)
    space = paths.text(found, "resourceRef", "namespace") or paths.namespace(usage)
    return Ref(
        paths.text(found, "apiVersion"),
        paths.text(found, "kind"),
        space,
        paths.text(found, "resourceRef", "name"),
    )


def user_of(usage: Mapping[str, Any]) -> str:
    """Return the name of what a Usage protects its object for."""
    by = end_of(usage, "by")
    return f"{by.kind} {by.name}"


def _body(obj: Mapping[str, Any]) -> Manifest:
    return {k: v for k, v in obj.items() if k not in ("metadata", "status")}
