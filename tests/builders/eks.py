"""Clusters on EKS and their parts: specs with good defaults, played to rest, and asked again by hand."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from functools import cache
from typing import Any

import fleets
from modelplane import contracts as c
from modelplane.api import definitions
from modelplane.core import Answer, Inputs, Manifest, settle
from modelplane.kinds.registry import KINDS
from modelplane.render.run import admit
from modelplane.sim.play import one_pass
from modelplane.sim.world import World, ref

REGION = "us-west-2"
GPU = {"acceleratorType": "nvidia-h100"}
ROLE_ARN = "arn:aws:iam::111122223333:role/nodes"
SUBNETS = tuple({"id": f"subnet-0{x}", "zone": f"{REGION}{x}"} for x in "abc")


def composite(
    kind: str, name: str, spec: Mapping[str, Any], labels: Mapping[str, str] | None = None
) -> Manifest:
    """A composite in modelplane-system with the defaults of its definition."""
    metadata: Manifest = {"name": name, "namespace": c.SYSTEM_NAMESPACE}
    if labels:
        metadata["labels"] = dict(labels)
    body = {"apiVersion": c.INFRA_API, "kind": kind, "metadata": metadata, "spec": copy.deepcopy(dict(spec))}
    return definitions.load().default(body)


def pool(name: str = "gpu", **over: Any) -> Manifest:
    """A pool of two p5.48xlarge; None removes a field."""
    wanted = {
        "name": name,
        "role": "GPU",
        "instanceType": "p5.48xlarge",
        "gpu": GPU,
        "nodeCount": 2,
        "minNodeCount": 2,
        "maxNodeCount": 2,
        **over,
    }
    return {key: value for key, value in wanted.items() if value is not None}


def cluster(*pools: Manifest, name: str = "lab", **spec: Any) -> Manifest:
    """An EKSCluster; None removes a field."""
    wanted = {"region": REGION, "nodePools": list(pools) or [pool()], **spec}
    return composite(c.EKS_CLUSTER, name, {k: v for k, v in wanted.items() if v is not None})


def network(**spec: Any) -> Manifest:
    """An EKSNetwork of a cluster."""
    wanted = {"clusterName": "lab", "region": REGION, **spec}
    return composite(c.EKS_NETWORK, "lab-network", wanted, {c.CLUSTER_LABEL: "lab"})


def node_pool(**spec: Any) -> Manifest:
    """An EKSNodePool whose cluster stands, with two nodes in the first of its zones; None removes a field."""
    wanted = {
        "clusterName": "lab",
        "poolName": "gpu",
        "region": REGION,
        "version": "1.36",
        "nodeRoleArn": ROLE_ARN,
        "securityGroupIds": ["sg-0a", "sg-0e"],
        "subnets": [SUBNETS[0]],
        **pool(),
        **spec,
        "name": None,
    }
    return composite(
        c.EKS_NODE_POOL,
        "lab-pool-gpu",
        {k: v for k, v in wanted.items() if v is not None},
        {c.CLUSTER_LABEL: "lab", c.POOL_LABEL: "gpu"},
    )


def ask(
    body: Manifest,
    observed: Mapping[str, Manifest] | None = None,
    required: Mapping[str, list[Manifest]] | None = None,
) -> Answer:
    """One call of the composite's composer."""
    kind = KINDS[body["apiVersion"], body["kind"]]
    found = {r.name: list((required or {}).get(r.name, [])) for r in kind.requires(body)}
    return settle.compose(kind, Inputs(body, dict(observed or {}), found))


@cache
def _at_rest(text: str) -> World:
    return fleets.play([json.loads(text)]).world


def at_rest(body: Manifest) -> World:
    """A world of its own with this composite at rest."""
    return copy.deepcopy(_at_rest(json.dumps(body, sort_keys=True)))


def one(world: World, kind: str, part: str = "") -> Manifest:
    """The only object of a kind whose name has that part."""
    (found,) = [o for r, o in world.objects.items() if r.kind == kind and part in r.name]
    return found


def children(world: World, kind: str, part: str = "") -> dict[str, Manifest]:
    """What the only composite of a kind with that part in its name has composed, by key."""
    composed = world.children[ref(one(world, kind, part))]
    return {key: world.objects[target] for key, target in composed.items() if target in world.objects}


def edited(world: World, body: Manifest, passes: int = 1) -> World:
    """The world some passes after the composite was applied anew."""
    world.apply(body)
    for _ in range(passes):
        one_pass(world, set(KINDS), fleets.real_function(), admit)
    return world


def again(world: World, observed: Mapping[str, Manifest] | None = None, **spec: Any) -> Answer:
    """What the only EKSCluster of a world answers, with its spec edited; None removes a field."""
    body = one(world, c.EKS_CLUSTER)
    body = {**body, "spec": {k: v for k, v in {**body["spec"], **spec}.items() if v is not None}}
    return ask(body, children(world, c.EKS_CLUSTER) if observed is None else observed)


def condition(answer: Answer, type_: str) -> tuple[bool | None, str, str]:
    """Status, reason and message of a condition."""
    found = next(x for x in answer.conditions if x.type == type_)
    return found.status, found.reason, found.message


def parameters(answer: Answer, key: str) -> Any:
    """What a composed resource asks its provider for."""
    return answer.resources[key].manifest["spec"]["forProvider"]


def told(answer: Answer, key: str, **at_provider: Any) -> Manifest:
    """A composed resource as observed, ready, with what AWS says of it."""
    status = {"atProvider": at_provider, "conditions": [{"type": c.READY, "status": "True"}]}
    return {**answer.resources[key].manifest, "status": status}


def seen(answer: Answer) -> dict[str, Manifest]:
    """All of an answer as AWS reports it once it works."""
    return {key: told(answer, key, **_says(key, x.manifest)) for key, x in answer.resources.items()}


def _says(key: str, manifest: Manifest) -> Manifest:
    if manifest["kind"] == "LaunchTemplate":
        return {"id": f"lt-{key[-8:]}", "latestVersion": 3}
    if manifest["kind"] == "NodeGroup":
        spec = manifest["spec"]
        scaling = {**spec["initProvider"]["scalingConfig"], **spec["forProvider"]["scalingConfig"]}
        return {"status": "ACTIVE", "version": spec["forProvider"]["version"], "scalingConfig": scaling}
    return {"id": f"id-{key}"}


def running(body: Manifest) -> tuple[dict[str, Manifest], Answer]:
    """What an EKSNodePool has made once its groups are active, and its answer to that."""
    found: dict[str, Manifest] = {}
    answer = ask(body)
    for _ in range(4):
        found = {**seen(answer), **found}
        answer = ask(body, found)
    return found, answer
