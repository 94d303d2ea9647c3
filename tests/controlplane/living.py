"""A fleet that lives on the real core: applied, looked at as a whole, taken down."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence

import fleets
from controlplane.client import Client, Document, RefusedError, condition, documents
from controlplane.control_plane import ControlPlane
from controlplane.processes import wait_for
from controlplane.provider import ANSWERED, Providers
from modelplane import contracts as c
from modelplane.core import paths
from modelplane.kinds.registry import KINDS
from modelplane.sim.world import Ref, ref

# What docs/troubleshooting.md tells a fleet to set. With core's own (100 events, one more a second) the
# breaker of a composite of forty resources opens while they are made, since core counts an update twice and
# again for each of its watches, and the composite is then looked at every half minute
# (github.com/crossplane/crossplane/issues/7108, 7703 and 6910).
BREAKER = ("--circuit-breaker-burst=10000", "--circuit-breaker-refill-rate=100")
# On a machine with other work; an idle one takes a fifth.
PATIENCE_SECONDS = 1200
# Longer than a TTL of the function's, which core spreads by a tenth: it has looked at everything once more.
RESTING_SECONDS = 70
# Core takes up an edit at once; the providers' stand-in looks at everything twice a second.
MOMENT_SECONDS = 6
LOOK = "example.org/looked-at"
ROUNDS = 20
# What stands on the control plane beside composites: what providers answer for, and what core does.
LEAVES = (*ANSWERED, (c.PROTECTION_API, "Usage"), (c.PROTECTION_API, "ClusterUsage"))


class Fleet:
    """Every example side by side on one control plane, answered by the providers' stand-in."""

    def __init__(self, plane: ControlPlane, folders: Sequence[str] = fleets.FOLDERS) -> None:
        """Prepare it; nothing is applied yet. The control plane serves every kind that is composed."""
        self.plane = plane
        self.client: Client = plane.client
        self.documents = distinct(folders)
        for name in ("ml-team", c.SYSTEM_NAMESPACE):
            self.client.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        self.providers = Providers(plane.client)
        self.played = Played(folders)
        self._others: frozenset[Ref] = frozenset()
        self._others = frozenset(self.all())

    def apply(self) -> None:
        """Apply all documents, in no order that anybody would choose."""
        for document in sorted(self.documents, key=ref):
            self.client.apply(document)

    def delete(self, cascade: str) -> dict[Ref, str]:
        """Delete all documents at once as `kubectl delete -k` does; what was refused, and why."""
        refused = {}
        for document in sorted(self.documents, key=ref):
            try:
                self.client.delete(document, cascade)
            except RefusedError as error:
                refused[ref(document)] = str(error)
        return refused

    def goes(self, cascade: str) -> None:
        """Delete it and return once nothing is left; what stays at AWS the providers' `leaks` say."""
        refused = self.delete(cascade)
        # What runs keeps its cluster and its weights; core deletes those itself as soon as it may.
        assert {"InferenceCluster", "ModelCache"} >= {target.kind for target in refused}, refused
        self.until("everything is gone", lambda: not self.left(), self.left)

    def all(self) -> dict[Ref, Document]:
        """Every composite, what they compose and what providers answer for, none that was there before."""
        others = sorted(self.played.kinds - {*KINDS, *LEAVES})
        found = standing(self.client)
        # Services are others' too.
        found += [one for kind in others for one in self.client.list(*kind) if _key(one)]
        return {ref(one): one for one in found if ref(one) not in self._others}

    def composites(self) -> dict[Ref, Document]:
        """The composites alone."""
        return {ref(one): one for kind in KINDS for one in self.client.list(*kind)}

    def unready(self) -> list[str]:
        """The composites that are not Ready, with the first thing that each says of itself."""
        return [
            f"{target}: {_why(found)}"
            for target, found in sorted(self.composites().items())
            if condition(found, "Ready") != "True" or condition(found, "Synced") != "True"
        ]

    def becomes_ready(self) -> None:
        """Return once every composite is."""
        self.until("every composite is Ready", lambda: not self.unready(), self.unready)

    def until(self, what: str, holds: Callable[[], bool], seen: Callable[[], object]) -> None:
        """Return once it holds; raises what ended the providers, or `TimeoutError` with what was seen."""

        def answered() -> bool:
            self.providers.rest(1)
            return holds()

        wait_for(what, answered, PATIENCE_SECONDS, seen)

    def versions(self) -> dict[Ref, str]:
        """The resourceVersion of everything."""
        return versions(self.all().values())

    def comes_to_rest(self, seconds: float = RESTING_SECONDS) -> None:
        """Return once nobody has written anything for that time."""
        last, since = self.versions(), time.monotonic()
        written: list[str] = []

        def quiet() -> bool:
            nonlocal last, since
            found = self.versions()
            if found != last:
                written[:] = sorted({str(target) for target, _ in found.items() ^ last.items()})
                last, since = found, time.monotonic()
            return time.monotonic() - since > seconds

        self.until("nobody writes any more", quiet, lambda: written[:10])

    def settles(self) -> None:
        """Return once core has looked at every composite and that changes nothing any more.

        An edit makes it look at once. It is done anew until nothing changes, since news wanders from one
        composite to the next, and of what a composite only requires core does not tell it.
        """
        before: dict[Ref, Document] = {}
        for _ in range(ROUNDS):
            for one in self.composites().values():
                if "deletionTimestamp" not in one["metadata"]:
                    self.client.patch(one, {"metadata": {"annotations": {LOOK: str(time.monotonic())}}})
            self.until("core has looked at every edit", lambda: not self.unseen(), self.unseen)
            self.comes_to_rest(MOMENT_SECONDS)
            found = {target: content(one) for target, one in self.all().items()}
            if found == before:
                return
            before = found
        raise TimeoutError(f"something changes at each of {ROUNDS} looks")

    def unseen(self) -> list[str]:
        """The composites of whose latest spec core has said nothing yet; a busy core takes its time."""
        return [
            str(target)
            for target, found in sorted(self.composites().items())
            for said in paths.mappings(found, "status", "conditions")
            if said["type"] == "Synced" and said.get("observedGeneration") != found["metadata"]["generation"]
        ]

    def left(self) -> list[str]:
        """What is still there, and why where the providers know."""
        waiting = self.providers.waiting
        return [f"{target}: {waiting.get(target, '')}" for target in sorted(self.all())]


def standing(client: Client) -> list[Document]:
    """Every composite, what providers answer for and what holds deletions up."""
    return [one for kind in (*KINDS, *LEAVES) for one in client.list(*kind)]


def content(one: Document) -> Document:
    """All of an object but what the API server keeps of it, when something became true, and our own mark."""
    kept = {k: v for k, v in one.items() if k != "metadata"}
    if conditions := list(paths.mappings(one, "status", "conditions")):
        bare = [{k: v for k, v in said.items() if k != "lastTransitionTime"} for said in conditions]
        kept["status"] = {**kept["status"], "conditions": bare}
    said = {k: v for k, v in paths.mapping(one, "metadata", "annotations").items() if k != LOOK}
    named = {k: one["metadata"].get(k) for k in ("uid", "labels", "finalizers", "ownerReferences")}
    return {**kept, "metadata": {**named, "annotations": said}}


def versions(found: Iterable[Document]) -> dict[Ref, str]:
    """The resourceVersion of each, which every write that changes something moves on."""
    return {ref(one): one["metadata"]["resourceVersion"] for one in found}


def distinct(folders: Sequence[str]) -> list[Document]:
    """The documents of example folders as users write them, each once; several name the same classes."""
    return list({ref(one): one for folder in folders for one in example(folder)}.values())


def example(folder: str) -> Iterator[Document]:
    """The documents of an example as they stand in its files, its classes included."""
    for path in sorted((fleets.EXAMPLES / folder).glob("*.yaml")):
        for found in documents(path):
            if found["kind"] != "Kustomization":
                yield found
                continue
            for other in found["resources"]:
                if (target := fleets.EXAMPLES / folder / other).is_dir():
                    yield from example(target.name)


def composed(found: Iterable[Document]) -> set[str]:
    """What composites have composed, by owner, key and kind: core makes up names that we leave out."""
    return {
        f"{owner['kind']} {owner['name']}: {_key(one)} ({one['kind']})"
        for one in found
        for owner in paths.mappings(one, "metadata", "ownerReferences")
        if owner.get("controller") and _key(one)
    }


def _key(one: Document) -> str:
    return paths.text(one, "metadata", "annotations", c.RESOURCE_NAME_ANNOTATION)


class Played:
    """The simulator's rest for the same examples: what is composed, and of which kinds."""

    def __init__(self, folders: Sequence[str]) -> None:
        world = fleets.play(list({ref(one): one for one in fleets.documents(*folders)}.values())).world
        pairs = [
            (owner, key, child)
            for owner, children in world.children.items()
            if owner[:2] in KINDS
            for key, child in children.items()
        ]
        self.composed = {f"{owner.kind} {owner.name}: {key} ({child.kind})" for owner, key, child in pairs}
        self.kinds = {child[:2] for *_, child in pairs}


def _why(found: Document) -> str:
    """The first condition that says no, and what it says."""
    for one in paths.mappings(found, "status", "conditions"):
        if one.get("status") != "True" and one.get("message"):
            return f"{one['type']} {one['reason']}: {one['message']}"
    return "it says nothing"
