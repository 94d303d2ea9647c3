"""The GPU pools of an InferenceCluster: their recipe from a class, and what status says of them.

A class may vanish or lose its provisioning block while its pools run. The recipe is then read back from the
composite that was made by it; a pool is left out only before it was ever made.
"""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from modelplane.api.inference_cluster import NodePool
from modelplane.clouds.cloud import Cloud, Provision
from modelplane.core import Inputs, Manifest, Requirement, paths
from modelplane.kinds import cluster_teams

WAITING_FOR_CLASSES = "WaitingForClasses"
INVALID_NODE_POOL = "InvalidNodePool"
# Pools that a cloud's composite admits.
_MOST = 8

_DEVICE_TEXTS = ("name", "claim", "driver", "deviceClassName")
_ATTRIBUTE_TYPES = {"string": str, "version": str, "bool": bool, "int": int}


@dataclass(frozen=True, slots=True)
class Pools:
    """What became of the pools.

    Attributes:
        made: the pools to ask the cloud for.
        lost: names of pools that run and whose recipe is nowhere: the request must stay as it is.
        problems: what is wrong, by pool name.
        leaving: names of pools that are out of the spec and still asked for, since replicas stand there.
        reason: of the condition; empty where nothing is wrong.
        devices: of one node, by pool name.
    """

    made: Sequence[Manifest] = ()
    lost: Sequence[str] = ()
    leaving: Sequence[str] = ()
    problems: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""
    devices: Mapping[str, list[Manifest]] = field(default_factory=dict)

    @property
    def message(self) -> str:
        """The problems in one line."""
        return "; ".join(self.problems.values())


def class_requirement(name: str) -> str:
    """Return the name of the lookup of a class."""
    return f"class-{name}"


def requirements(cluster: Manifest, api_version: str) -> list[Requirement]:
    """Return the lookup of every class a pool names."""
    found = {paths.text(pool, "className") for pool in paths.mappings(cluster, "spec", "nodePools")}
    return [
        Requirement(class_requirement(name), api_version, "InferenceClass", match_name=name)
        for name in sorted(found - {""})
    ]


def resolve(inputs: Inputs, cloud: Cloud, pools: Sequence[NodePool]) -> Pools:
    """Return the pools with their recipes and devices."""
    made: list[Manifest] = []
    lost: list[str] = []
    problems: dict[str, str] = {}
    missing = False
    devices: dict[str, list[Manifest]] = {}
    for pool in pools:
        found = inputs.one(class_requirement(pool.class_name))
        if found is None:
            missing = True
            problems[pool.name] = (
                f"pool {pool.name}: InferenceClass {pool.class_name} does not exist; create it or correct"
                " className"
            )
        devices[pool.name] = _devices(found) or _recorded(inputs, pool.name, "devices")
        if cloud.provision is None:
            continue
        recipe = cloud.provision.recipe(found) if found is not None else None
        if recipe is None:
            problems.setdefault(pool.name, _unfit(pool, cloud.provision))
            recipe = _observed_recipe(inputs, cloud.provision, pool.name)
        if recipe is not None:
            made.append(cloud.provision.pool(pool, recipe))
        elif _runs(inputs, cloud.provision, pool.name):
            lost.append(pool.name)
    reason = (WAITING_FOR_CLASSES if missing else INVALID_NODE_POOL) if problems else ""
    leaving = _leaving(inputs, cloud, {pool.name for pool in pools})[: max(0, _MOST - len(made))]
    made += [copy.deepcopy(dict(pool)) for pool in leaving]
    return Pools(made, lost, [str(pool["name"]) for pool in leaving], problems, reason, devices)


def _leaving(inputs: Inputs, cloud: Cloud, asked: set[str]) -> list[Mapping[str, Any]]:
    """Return what was asked of the cloud for pools that are out of the spec and that replicas stand on.

    A replica serves until its replacement does, elsewhere; without its nodes it would not. The first look
    that finds no replica at all may be a lookup gone wrong: the guard, which goes at the second, tells.
    """
    if cloud.provision is None:
        return []
    replicas = inputs.all(cluster_teams.REPLICAS)
    used = {
        paths.text(member, "nodePoolName")
        for replica in replicas
        for engine in paths.mappings(replica, "spec", "engines")
        for member in paths.mappings(engine, "members")
    }
    doubt = not replicas and cluster_teams.GUARD in inputs.observed
    standing = paths.mappings(inputs.observed.get(cloud.provision.key), "spec", "nodePools")
    return [p for p in standing if (name := p.get("name")) not in asked and (doubt or name in used)]


def _unfit(pool: NodePool, provision: Provision) -> str:
    block = provision.provider.lower()
    return (
        f"pool {pool.name}: InferenceClass {pool.class_name} has no spec.provisioning.{block} with instance"
        f" type and accelerator, so {provision.provider} cannot make its nodes; add it or name another class"
    )


def _observed_pools(inputs: Inputs, provision: Provision, name: str) -> list[Mapping[str, Any]]:
    observed = paths.mappings(inputs.observed.get(provision.key), "spec", "nodePools")
    return [pool for pool in observed if pool.get("name") == name]


def _observed_recipe(inputs: Inputs, provision: Provision, name: str) -> Manifest | None:
    for pool in _observed_pools(inputs, provision, name):
        return provision.recorded(pool)
    return None


def _runs(inputs: Inputs, provision: Provision, name: str) -> bool:
    recorded = paths.mappings(inputs.composite, "status", "gpuPools")
    return bool(_observed_pools(inputs, provision, name)) or any(p.get("name") == name for p in recorded)


def gpu_pools(inputs: Inputs, cloud: Cloud, pools: Sequence[NodePool], found: Pools) -> list[Manifest]:
    """Return `status.gpuPools`: pools without known devices are left out, they cannot be placed on."""
    listed = []
    for pool in pools:
        if not found.devices.get(pool.name):
            continue
        entry: Manifest = {"name": pool.name, "nodes": pool.nodes, "devices": found.devices[pool.name]}
        seen = _reported(inputs, cloud, pool.name)
        zones = [z for z in paths.items(seen, "zones") if isinstance(z, str)] or list(pool.zones)
        if zones:
            entry["zones"] = zones
        source = seen or _entry(inputs, pool.name)
        for count in _counted(pool, source):
            if (number := paths.integer(source, count)) is not None:
                entry[count] = number
        listed.append(entry)
    return listed


def _counted(pool: NodePool, source: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the counts to pass on: placement takes readyNodes for all there can be.

    A pool that grows would never grow past them, since its autoscaler waits for what is placed. But one that
    is empty does not wake for a claim (kubernetes/autoscaler#7799): what went there would wait for ever.
    """
    low = pool.min_node_count or 0
    grows = pool.max_node_count is not None and pool.max_node_count > low
    asleep = low == 0 and paths.integer(source, "readyNodes") == 0
    return ("slices",) if grows and not asleep else ("readyNodes", "slices")


def pool_states(inputs: Inputs, cloud: Cloud, pools: Sequence[NodePool], found: Pools) -> list[Manifest]:
    """Return `status.pools`: the cloud's word for each, and all that its owner should know."""
    listed = []
    for pool in pools:
        seen = _reported(inputs, cloud, pool.name)
        entry: Manifest = {"name": pool.name}
        if state := paths.text(seen, "status"):
            entry["status"] = state
        said = [found.problems.get(pool.name, ""), paths.text(seen, "message"), *cloud.notes(pool)]
        if message := "; ".join(text for text in said if text):
            entry["message"] = message
        listed.append(entry)
    still = "not in the spec any more; it stays until its replicas have left"
    return [*listed, *({"name": name, "message": still} for name in found.leaving)]


def _reported(inputs: Inputs, cloud: Cloud, name: str) -> Mapping[str, Any]:
    """Return what the cloud's composite reports of the pool; nothing where it reports nothing."""
    if cloud.provision is None:
        return {}
    reported = paths.mappings(inputs.observed.get(cloud.provision.key), "status", "nodePools")
    return next((pool for pool in reported if pool.get("name") == name), {})


def _entry(inputs: Inputs, name: str) -> Mapping[str, Any]:
    recorded = paths.mappings(inputs.composite, "status", "gpuPools")
    return next((pool for pool in recorded if pool.get("name") == name), {})


def _recorded(inputs: Inputs, name: str, part: str) -> list[Manifest]:
    return [copy.deepcopy(dict(x)) for x in paths.mappings(_entry(inputs, name), part)]


def _devices(inference_class: Mapping[str, Any] | None) -> list[Manifest]:
    """Return a class's devices with its defaults; a device without name or driver is passed over."""
    found = []
    for device in paths.mappings(inference_class, "spec", "devices"):
        if not paths.text(device, "name") or not paths.text(device, "driver"):
            continue
        entry: Manifest = {"claim": "DRA"}
        entry.update({k: device[k] for k in _DEVICE_TEXTS if paths.text(device, k)})
        entry["count"] = paths.integer(device, "count", default=1)
        if attributes := _attributes(device):
            entry["attributes"] = attributes
        capacity = {
            key: {"value": paths.text(amount, "value")}
            for key, amount in paths.mapping(device, "capacity").items()
            if paths.text(amount, "value")
        }
        if capacity:
            entry["capacity"] = capacity
        found.append(entry)
    return found


def _attributes(device: Mapping[str, Any]) -> Manifest:
    found: Manifest = {}
    for key, value in paths.mapping(device, "attributes").items():
        for type_, python in _ATTRIBUTE_TYPES.items():
            held = paths.at(value, type_)
            if type(held) is python:
                found[key] = {type_: held}
                break
    return found
