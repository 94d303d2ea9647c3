"""The providers' stand-in: real objects answered as the one simulator says, since no cloud is at hand.

crossplane-runtime's managed reconciler (pkg/reconciler/managed, v2.3) gives the order of what is written: a
finalizer first, then the external name, then the status; a deleted one leaves when its finalizer goes. What
is reported, when, what fails and what holds a deletion is `modelplane.sim.rules`, for each kind.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field

from controlplane.client import Client, Document, RefusedError
from modelplane import contracts as c
from modelplane.core import Manifest, paths
from modelplane.sim import collections, deletion, rules
from modelplane.sim.world import Failure, Ref, World, ref

MANAGER = "providers"
FINALIZER = "finalizer.managedresource.crossplane.io"
EXTERNAL_NAME = "crossplane.io/external-name"
# Between two looks at everything: long enough that core works on what a look has changed.
PAUSE_SECONDS = 0.5
# All else in the rules is core's, or the controller manager's, or stands on serving clusters only.
GROUPS = (
    "kubernetes.m.crossplane.io",
    "helm.m.crossplane.io",
    "aws.m.upbound.io",
    "gateway.networking.k8s.io",
)
ANSWERED = tuple(kind for kind in rules.RULES if kind[0].partition("/")[0].endswith(GROUPS))
CONFLICT = 409


@dataclass
class Seen:
    """What was found of one object.

    Attributes:
        uid: tells an object from an earlier one of the same name.
        since: the turn in which it was found first.
        written: the status written last.
    """

    uid: str
    since: int
    written: Manifest = field(default_factory=dict)


class Providers:
    """All providers of a control plane in one thread; `fails` and `recover` inject faults."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._seen: dict[Ref, Seen] = {}
        self._last: dict[Ref, Manifest] = {}
        self._gone: dict[Ref, Manifest] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="providers", daemon=True)
        self._failures: list[Failure] = []
        self.turns = 0
        self.leaks: list[str] = []
        self.waiting: dict[Ref, str] = {}
        self.fault: BaseException | None = None

    def start(self) -> None:
        """Answer until `stop`."""
        self._thread.start()

    def stop(self) -> None:
        """Answer no more; raises what ended the thread before."""
        self._stopping.set()
        self._thread.join()
        if self.fault is not None:
            raise self.fault

    def fail(self, failure: Failure) -> None:
        """Let the objects it hits fail from the next turn on."""
        self._failures = [*self._failures, failure]

    def recover(self) -> None:
        """End all injected failures."""
        self._failures = []

    def rest(self, turns: int = 4) -> None:
        """Return after that many further turns; raises what ended the thread."""
        until = self.turns + turns
        while self.turns < until:
            if self.fault is not None:
                raise self.fault
            time.sleep(0.1)

    def _run(self) -> None:
        try:
            while not self._stopping.wait(PAUSE_SECONDS):
                self._turn()
        # Whatever it is: a test that waits for an answer has to be told.
        except BaseException as error:  # noqa: BLE001
            self.fault = error

    def _turn(self) -> None:
        world = self._world()
        before = dict(world.objects)
        for target in sorted(t for t in before if t[:2] in ANSWERED):
            if target in world.deleting:
                self._delete(target, world)
            elif self._initialized(target, before[target]):
                rules.act(target, world)
        for target, obj in sorted(world.objects.items()):
            if target not in before:
                self._create(target, world)
            elif target[:2] in ANSWERED and obj.get("status") != before[target].get("status"):
                self._report(target, obj)
        self._last, self.turns = before, self.turns + 1

    def _world(self) -> World:
        """Everything the rules look at, as it is now."""
        world = World(failures=self._failures, passes=self.turns)
        for kind in (*ANSWERED, ("v1", "Secret")):
            for obj in self._client.list(*kind):
                world.objects[ref(obj)] = obj
        for target, obj in world.objects.items():
            uid = obj["metadata"]["uid"]
            if target not in self._seen or self._seen[target].uid != uid:
                self._seen[target] = Seen(uid, self.turns)
            world.born[target] = self._seen[target].since
            if paths.text(obj, "metadata", "deletionTimestamp"):
                world.deleting[target] = "background"
            if collection := paths.labels(obj).get(collections.MEMBER_LABEL):
                owner = Ref(c.KUBERNETES_API, "ObservedObjectCollection", target.namespace, collection)
                world.adopt(
                    owner, paths.text(obj, "spec", "forProvider", "manifest", "metadata", "name"), target
                )
        for target in self._last.keys() - world.objects.keys():
            self._gone[target] = self._last[target]
            self.waiting.pop(target, None)
        for target in world.objects:
            self._gone.pop(target, None)
        world.gone = dict(self._gone)
        return world

    def _initialized(self, target: Ref, obj: Document) -> bool:
        """Whether its finalizer is there; else it is written, which is all for this turn."""
        metadata = obj["metadata"]
        if FINALIZER not in metadata.get("finalizers", ()):
            self._patch(obj, {"metadata": {"finalizers": [*metadata.get("finalizers", ()), FINALIZER]}})
            return False
        name = paths.text(obj, "status", "atProvider", "id")
        named = EXTERNAL_NAME in metadata.get("annotations", {})
        if name and not named and target.api_version.partition("/")[0].endswith("upbound.io"):
            self._patch(obj, {"metadata": {"annotations": {EXTERNAL_NAME: name}}})
        return True

    def _delete(self, target: Ref, world: World) -> None:
        obj, rule = world.objects[target], rules.RULES[target[:2]]
        finalizers = obj["metadata"].get("finalizers", [])
        if FINALIZER not in finalizers:
            return
        if why := rule.held(obj, world):
            self.waiting[target] = why
            if "status" in obj:
                world.report(target, deletion.deleting(obj, why))
            return
        self.waiting.pop(target, None)
        if leak := rule.leaves(obj, world):
            self.leaks.append(leak)
        for made in rule.makes(obj):
            self._client.delete(made)
        self._patch(obj, {"metadata": {"finalizers": [one for one in finalizers if one != FINALIZER]}})

    def _report(self, target: Ref, obj: Manifest) -> None:
        seen, status = self._seen[target], obj["status"]
        if seen.written == status:
            return
        seen.written = status
        bare = {
            "apiVersion": target.api_version,
            "kind": target.kind,
            "metadata": {
                "name": target.name,
                **({"namespace": target.namespace} if target.namespace else {}),
            },
        }
        try:
            self._client.apply({**bare, "status": status}, MANAGER, subresource="status")
        except RefusedError as error:
            if error.status != 404:
                raise RuntimeError(f"the status of {target}: {error}") from error

    def _create(self, target: Ref, world: World) -> None:
        obj = dict(world.objects[target])
        obj["metadata"] = {k: v for k, v in obj["metadata"].items() if k not in ("uid", "generation")}
        if (owner := world.owner(target)) and (parent := world.objects.get(owner[0])):
            reference = {"apiVersion": owner[0].api_version, "kind": owner[0].kind, "name": owner[0].name}
            reference |= {"uid": parent["metadata"]["uid"], "controller": True}
            obj["metadata"]["ownerReferences"] = [reference]
        status = obj.pop("status", None)
        self._client.apply(obj, MANAGER)
        if status is not None:
            self._client.apply({**obj, "status": status}, MANAGER, subresource="status")

    def _patch(self, obj: Document, body: Document) -> None:
        """Merge, unless somebody wrote in between or it has left: the next turn sees what is true then."""
        metadata = {**body["metadata"], "resourceVersion": obj["metadata"]["resourceVersion"]}
        try:
            self._client.patch(obj, {"metadata": metadata})
        except RefusedError as error:
            if error.status not in (404, CONFLICT):
                raise
