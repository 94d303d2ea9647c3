"""ServingStacks, and what the providers report of what they compose."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Mapping
from typing import Any

from modelplane import contracts as c
from modelplane.core import Answer, Inputs, paths, settle
from modelplane.kinds import serving_stack
from modelplane.sim.world import World

ADDRESS = "203.0.113.7"
# What crossplane-runtime says of an Object that only observes, where there is nothing to observe.
ABSENT = "observe failed: external resource does not exist"
KUBECONFIG = {"type": "Kubeconfig", "name": "north-kubeconfig", "key": "kubeconfig"}

CONFIGS = ["provider-config-helm", "provider-config-kubernetes"]
SHAPES = list(itertools.product((c.STANDARD, c.DYNAMO), (c.MANAGED, c.PROVIDED), (c.EKS, c.EXISTING)))


def stack(name: str = "north-stack", status: Mapping[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    """A ServingStack on an Existing cluster; `spec` overrides fields of the spec, None removes one."""
    merged = {
        "cloud": c.EXISTING,
        "stack": c.STANDARD,
        "clusterName": "north",
        "secrets": [dict(KUBECONFIG)],
        **spec,
    }
    composite: dict[str, Any] = {
        "apiVersion": c.INFRA_API,
        "kind": "ServingStack",
        "metadata": {"name": name, "namespace": c.SYSTEM_NAMESPACE},
        "spec": {key: value for key, value in merged.items() if value is not None},
    }
    if status is not None:
        composite["status"] = dict(status)
    return composite


def secret(name: str, *keys: str, namespace: str = c.SYSTEM_NAMESPACE) -> dict[str, Any]:
    """A Secret with those keys."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace},
        "data": dict.fromkeys(keys, "czNjcmV0LXZhbHVl"),
    }


# The mirror's Secret of a stack with images.pullSecretRef "login".
LOGIN = secret("login", ".dockerconfigjson", "username", "password")


def compose(
    composite: Mapping[str, Any],
    observed: Mapping[str, Any] | None = None,
    *others: Mapping[str, Any],
) -> Answer:
    """One call of the composer; `others` is what else is on the control plane, for what it requires."""
    world = World.of(others)
    required = {r.name: world.fetch(r) for r in serving_stack.KIND.requires(dict(composite))}
    return settle.compose(serving_stack.KIND, Inputs(dict(composite), dict(observed or {}), required))


def reported(manifest: Mapping[str, Any], ready: bool = True) -> dict[str, Any]:
    """The composed object as observed once its provider has applied it."""
    seen = copy.deepcopy(dict(manifest))
    status = "True" if ready else "False"
    if manifest["metadata"].get("labels", {}).get(c.ROLE_LABEL) == c.ROLE_RIVAL:
        return failed({"rival": seen}, "rival", ABSENT)["rival"]
    if manifest["kind"] in ("Object", "Release"):
        seen["status"] = {
            "conditions": [{"type": "Synced", "status": "True"}, {"type": c.READY, "status": status}]
        }
    if manifest["kind"] == "Release":
        version = manifest["spec"]["forProvider"]["chart"]["version"]
        seen["status"]["atProvider"] = {"state": "deployed", "revision": 1, "version": version}
    remote = paths.mapping(manifest, "spec", "forProvider", "manifest")
    if remote:
        at_provider = copy.deepcopy(dict(remote))
        if remote["kind"] == "Gateway":
            at_provider["status"] = {"addresses": [{"type": "IPAddress", "value": ADDRESS}]}
        seen["status"]["atProvider"] = {"manifest": at_provider}
    return seen


def settled(
    composite: Mapping[str, Any], *others: Mapping[str, Any], passes: int = 30
) -> tuple[Answer, dict[str, Any]]:
    """Compose until nothing changes, every composed object becoming ready between two calls."""
    observed: dict[str, Any] = {}
    for _ in range(passes):
        answer = compose(composite, observed, *others)
        seen = {key: reported(composed.manifest) for key, composed in answer.resources.items()}
        if seen == observed:
            return answer, observed
        observed = seen
    raise AssertionError(f"did not settle in {passes} passes; held back: {answer.held_back}")


def failed(observed: Mapping[str, Any], key: str, message: str) -> dict[str, Any]:
    """The observed objects with one that its provider cannot apply."""
    changed = copy.deepcopy(dict(observed))
    changed[key]["status"] = {
        "conditions": [
            {"type": "Synced", "status": "False", "reason": "ReconcileError", "message": message},
            {"type": c.READY, "status": "False", "reason": "Creating"},
        ]
    }
    return changed


def says(answer: Answer, type_: str = c.COMPONENTS_READY) -> tuple[bool | None, str, str]:
    """A condition: status, reason and message."""
    found = next(x for x in answer.conditions if x.type == type_)
    return found.status, found.reason, found.message


def component(answer: Answer, name: str) -> Mapping[str, Any]:
    """A component's entry in status."""
    found: Mapping[str, Any] = next(x for x in answer.status["components"] if x["name"] == name)
    return found


def remote(answer: Answer, key: str) -> dict[str, Any]:
    """What a composed Object applies on the cluster."""
    found: dict[str, Any] = answer.resources[key].manifest["spec"]["forProvider"]["manifest"]
    return found


def of_kind(answer: Answer, kind: str) -> dict[str, Any]:
    """The composed manifests of one kind, by key."""
    return {k: r.manifest for k, r in answer.resources.items() if r.manifest["kind"] == kind}


def edges(answer: Answer) -> list[tuple[str, str]]:
    """Each composed Usage as (key that is held, key that holds it)."""
    by_name = {
        (m["kind"], paths.name(m)): k for k, m in ((k, r.manifest) for k, r in answer.resources.items())
    }
    configs = {m["apiVersion"]: k for k, m in of_kind(answer, "ProviderConfig").items()}

    def key(ref: Mapping[str, Any]) -> str:
        if ref["apiVersion"] == c.EKS_API:
            return "lifeline"
        if ref["kind"] == "ProviderConfig":
            return configs[ref["apiVersion"]]
        return by_name[(ref["kind"], ref["resourceRef"]["name"])]

    return [(key(m["spec"]["of"]), key(m["spec"]["by"])) for m in of_kind(answer, "Usage").values()]
