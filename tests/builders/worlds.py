"""Played worlds for the tests of the simulator: made-up kinds, a function out of a table, and predicates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from builders import core
from modelplane import contracts as c
from modelplane.core import Answer, Composed, Condition, Inputs, Manifest, Requirement, paths
from modelplane.sim import reach
from modelplane.sim.reconcile import Function, Reply
from modelplane.sim.world import Ref, World, ref

KINDS = {(core.WIDGET_API, core.WIDGET)}
OWNER = ref(core.widget())


def admit(manifest: Manifest, _: Manifest | None) -> tuple[Manifest, Sequence[str]]:
    """An API server that refuses only what the manifest asks to be refused for."""
    return manifest, [str(x) for x in paths.items(manifest, "refuse")]


def answering(
    resources: Mapping[str, Manifest],
    *,
    ready: Sequence[str] = (),
    requires: Sequence[Requirement] = (),
    said: bool | None = None,
    **over: Any,
) -> Function:
    """A function that always wants these resources.

    `ready` names those it calls ready, `said` is what it says of the composite itself.
    """
    composed = {key: Composed(manifest, key in ready) for key, manifest in resources.items()}

    def call(_: Inputs) -> Reply:
        return Reply(requires, Answer(resources=composed, ready=said, **over))

    return call


def condition(type_: str = "Built", status: bool | None = True, reason: str = "Done") -> Condition:
    """A condition of a widget."""
    return Condition(type_, status, reason)


def world(*others: Manifest) -> World:
    """A world with one widget, `OWNER`, and what else is given."""
    return World.of([core.widget(), *others])


def config(name: str = "config", namespace: str = "team") -> Manifest:
    """A provider config that reads the Secret `kubeconfig` of its namespace."""
    secret = {"namespace": namespace, "name": "kubeconfig", "key": "kubeconfig"}
    return {
        **core.config(name, namespace),
        "spec": {"credentials": {"source": "Secret", "secretRef": secret}},
    }


def carrying(name: str, manifest: Manifest, *, query: str = "", **spec: Any) -> Manifest:
    """An Object in namespace team that carries the manifest to the cluster of `config`."""
    readiness = (
        {"policy": "DeriveFromCelQuery", "celQuery": query} if query else {"policy": "SuccessfulCreate"}
    )
    made = core.consumer(name, namespace="team")
    made["spec"] = {**made["spec"], "forProvider": {"manifest": manifest}, "readiness": readiness, **spec}
    return made


def release(name: str, chart: str) -> Manifest:
    """A Release in namespace team on the cluster of `helm`."""
    made = core.consumer(name, "helm", "team")
    spec = {**made["spec"], "forProvider": {"chart": {"name": chart, "version": "1"}, "namespace": chart}}
    return {**made, "apiVersion": c.HELM_API, "kind": "Release", "spec": spec}


def helm() -> Manifest:
    """The provider config of Releases."""
    return {**config("helm"), "apiVersion": c.HELM_API}


def remote(kind: str, name: str = "it", api: str = "v1", **over: Any) -> Manifest:
    """An object of a serving cluster, in namespace default where the kind has one."""
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name, "namespace": "default"}, **over}


def carries(kind: str, part: str = "") -> Callable[[Manifest], bool]:
    """Whether an object carries one of that kind whose name has that part."""

    def hits(obj: Manifest) -> bool:
        inner = reach.carried(obj)
        return inner.get("kind") == kind and part in paths.name(inner)

    return hits


def installs(chart: str) -> Callable[[Manifest], bool]:
    """Whether an object is the Release of that chart."""
    return lambda obj: paths.text(obj, "spec", "forProvider", "chart", "name") == chart


def of_kind(kind: str) -> Callable[[Manifest], bool]:
    """Whether an object is of that kind."""
    return lambda obj: obj["kind"] == kind


def reasons(found: World, target: Ref) -> dict[str, str]:
    """The composite's conditions that are not True, as `reason: message` by type."""
    return {
        str(x["type"]): f"{x.get('reason')}: {x.get('message', '')}"
        for x in paths.mappings(found.objects[target], "status", "conditions")
        if x.get("status") != "True"
    }
