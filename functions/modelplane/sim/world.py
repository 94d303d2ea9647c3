"""The simulated API server: objects, who composed them, and what refuses to go."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from modelplane import contracts as c
from modelplane import names
from modelplane.core import Manifest, Requirement, paths

# Conditions carry a time; a played world has no clock.
EPOCH = "2026-01-01T00:00:00Z"


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


@dataclass
class World:
    """All objects of a control plane, and the composition tree over them.

    Objects are values: an update replaces one, so a snapshot of the world is a shallow copy.

    Attributes:
        objects: by Ref.
        children: composed Refs by composition resource name, per composite.
        born: the pass in which an object was made.
        passes: how many passes have been played.
    """

    objects: dict[Ref, Manifest] = field(default_factory=dict)
    children: dict[Ref, dict[str, Ref]] = field(default_factory=dict)
    born: dict[Ref, int] = field(default_factory=dict)
    passes: int = 0

    @classmethod
    def of(cls, documents: Sequence[Mapping[str, Any]]) -> "World":
        """Return a world that holds the documents, as applied in one go."""
        world = cls()
        for document in documents:
            world.apply(document)
        return world

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
        else:
            before = old["metadata"]
            metadata["uid"] = before["uid"]
            changed = _body(old) != _body(new)
            metadata["generation"] = before["generation"] + (1 if changed else 0)
            marks = paths.mapping(before, "annotations")
            kept = {k: v for k, v in marks.items() if k.startswith("crossplane.io/")}
            if merged := {**kept, **metadata.get("annotations", {})}:
                metadata["annotations"] = merged
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

    def observed(self, owner: Ref) -> dict[str, Manifest]:
        """Return the composite's composed objects that exist, by key."""
        found = self.children.get(owner, {})
        return {k: self.objects[r] for k, r in sorted(found.items()) if r in self.objects}

    def users(self, target: Ref) -> list[str]:
        """Return what refuses the object's deletion: Usages of it that stand, one line each."""
        found = []
        for obj in self.objects.values():
            if obj.get("apiVersion") == c.PROTECTION_API and _names(obj, "of", target, obj):
                by = paths.mapping(obj, "spec", "by")
                if not by or self._stands(obj):
                    found.append(f"{ref(obj)}: {paths.text(obj, 'spec', 'reason') or _by_text(by)}")
        return sorted(found)

    def _stands(self, usage: Manifest) -> bool:
        return any(_names(usage, "by", r, usage) for r in self.objects)

    def delete(self, target: Ref) -> list[str]:
        """Delete an object and, as garbage collection does, all it composed; return what refused.

        What a Usage protects stays, and so does all that composed it in the tree below.
        """
        if refusals := self.users(target):
            return refusals
        self.objects.pop(target, None)
        self.born.pop(target, None)
        refused = []
        for key, child in list(self.children.get(target, {}).items()):
            if why := self.delete(child):
                refused += why
            else:
                del self.children[target][key]
        if not self.children.get(target):
            self.children.pop(target, None)
        return refused

    def fetch(self, requirement: Requirement) -> list[Manifest]:
        """Return what a requirement finds, sorted by namespace and name as core sorts."""
        return [
            self.objects[r] for r in sorted(self.objects, key=lambda r: r[2:]) if self._fits(r, requirement)
        ]

    def _fits(self, target: Ref, wanted: Requirement) -> bool:
        if (target.api_version, target.kind) != (wanted.api_version, wanted.kind):
            return False
        if wanted.namespace is not None and target.namespace != wanted.namespace:
            return False
        if wanted.match_name is not None:
            # Without a namespace a name addresses a cluster-scoped object.
            return target.name == wanted.match_name and target.namespace == (wanted.namespace or "")
        found = paths.labels(self.objects[target])
        return all(found.get(k) == v for k, v in (wanted.match_labels or {}).items())

    def of_kind(self, api_version: str, kind: str) -> Iterator[Manifest]:
        """Yield the objects of a kind, by namespace and name."""
        for r in sorted(self.objects):
            if (r.api_version, r.kind) == (api_version, kind):
                yield self.objects[r]


def _body(obj: Mapping[str, Any]) -> Manifest:
    return {k: v for k, v in obj.items() if k not in ("metadata", "status")}


def _names(usage: Manifest, end: str, target: Ref, by: Manifest) -> bool:
    found = paths.mapping(usage, "spec", end)
    if (found.get("apiVersion"), found.get("kind")) != (target.api_version, target.kind):
        return False
    space = paths.text(found, "resourceRef", "namespace") or paths.namespace(by)
    return paths.text(found, "resourceRef", "name") == target.name and target.namespace in ("", space)


def _by_text(by: Mapping[str, Any]) -> str:
    return f"in use by {by.get('kind')} {paths.text(by, 'resourceRef', 'name')}"
