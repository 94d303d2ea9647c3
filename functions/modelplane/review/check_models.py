"""Checks of deployments and caches: devices, weights, where a cache and a model may both be, ranks."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from modelplane import contracts as c
from modelplane.core import paths
from modelplane.render.collect import Source
from modelplane.review import weights
from modelplane.review.finding import ERROR, WARNING, Finding, at
from modelplane.review.fleet import CACHE, matches
from modelplane.review.view import Member, View, members, spec_of
from modelplane.schedule import cel
from modelplane.schedule.devices import Node
from modelplane.schedule.match import Refusal, Request, match
from modelplane.schedule.quantity import NANO

SELECTOR = "selector"
CACHE_MISSING = "cache-missing"
CACHE_FOOTPRINT = "cache-footprint"
WEIGHTS_CACHE = "weights-cache"
WEIGHTS_MEMORY = "weights-memory"
RANK = "rank"

_GIB = 1 << 30
# Set by the one controller, on pods of the one stack: LeaderWorkerSet's and Grove's own variables.
_ONE_STACK = {
    re.compile(r"\bLWS_[A-Z_]+\b"): c.STANDARD,
    re.compile(r"\bGROVE_[A-Z_]+\b"): c.DYNAMO,
}
_LITERAL_RANK = re.compile(r"--node-rank[= ]+(\d+)\b")


def selectors(view: View) -> Iterator[Finding]:
    """Find selectors that do not compile, and requests that no device of any class answers."""
    for source in view.deployments:
        for member in members(source.body):
            for path, raw in member.requests:
                yield from _request(view, source, path, raw)


def _request(view: View, source: Source, path: str, raw: Mapping[str, Any]) -> Iterator[Finding]:
    texts = [paths.text(s, "cel") for s in paths.mappings(raw, "selectors")]
    broken = False
    for index, text in enumerate(texts):
        if text and (error := cel.selector(text).error):
            broken = True
            where = f"{path}.selectors[{index}].cel"
            yield at(
                source, ERROR, SELECTOR, where, f"it does not compile: {error}", "correct the expression"
            )
    if broken or not view.nodes:
        return
    count = paths.integer(raw, "count", default=1) or 1
    wanted = Request(paths.text(raw, "name"), 1, tuple(text for text in texts if text))
    fitting = [name for name, node in view.nodes.items() if not isinstance(match((wanted,), node), Refusal)]
    classes = f"{len(view.nodes)} class{'es' if len(view.nodes) > 1 else ''}"
    if not fitting:
        which = _culprit(view, wanted, texts)
        reason = f"no device of any of the {classes} here answers request {wanted.name}{which}"
        yield at(source, ERROR, SELECTOR, path, reason, "correct the selectors, or add a class that has such")
        return
    many = Request(wanted.name, count, wanted.selectors)
    if all(isinstance(match((many,), view.nodes[name]), Refusal) for name in fitting):
        most = max(_number(wanted, view.nodes[name]) for name in fitting)
        reason = f"each pod asks for {count} devices, and no node of any class has more than {most} of them"
        step = "lower the count, or spread the engine over more nodes"
        yield at(source, ERROR, SELECTOR, f"{path}.count", reason, step)


def _culprit(view: View, wanted: Request, texts: list[str]) -> str:
    """Name the first selector that alone is true of nothing."""
    for text in texts:
        alone = Request(wanted.name, 1, (text,))
        if text and all(isinstance(match((alone,), node), Refusal) for node in view.nodes.values()):
            return f": {text} is true of none"
    return ""


def _number(wanted: Request, node: Node) -> int:
    """Return how many such devices one node has for one request: halving, as a class may claim any number."""
    low, high = 1, sum(device.count for device in node.devices)
    while low < high:
        middle = (low + high + 1) // 2
        if isinstance(match((Request(wanted.name, middle, wanted.selectors),), node), Refusal):
            high = middle - 1
        else:
            low = middle
    return low


def caches(view: View) -> Iterator[Finding]:
    """Find caches that are not there, or are never staged where the model may land."""
    for source in view.deployments:
        name, cache = view.cache(source.body)
        field = "spec.template.spec.modelCacheRef.name"
        if not name:
            continue
        if cache is None:
            reason = f"ModelCache {paths.namespace(source.body)}/{name} does not exist"
            step = "create it, correct the name, or name the file that holds it with --required"
            yield at(source, ERROR, CACHE_MISSING, field, reason, step)
            continue
        if reason := _apart(view, source.body, cache):
            step = "let spec.clusterSelector of both match a cluster with a storage class for caches"
            yield at(source, ERROR, CACHE_FOOTPRINT, field, reason, step)


def _apart(view: View, deployment: Mapping[str, Any], cache: Mapping[str, Any]) -> str:
    what = f"ModelCache {paths.name(cache)}"
    staged = paths.mapping(cache, "spec", "clusterSelector", "matchLabels")
    wanted = paths.mapping(deployment, "spec", "template", "spec", "clusterSelector", "matchLabels")
    for key in sorted(staged.keys() & wanted.keys()):
        if staged[key] != wanted[key]:
            return f"{what} is staged where {key}={staged[key]}, the model may land only where {wanted[key]}"
    if not (may := view.candidates(deployment)):
        return ""
    both = [x for x in may if matches(paths.labels(x), staged)]
    names = ", ".join(map(paths.name, may))
    if not both:
        return f"{what} is staged on none of the clusters where the model may land ({names})"
    if not any(_holds(x, cache) for x in both):
        names = ", ".join(map(paths.name, both))
        return f"{what} is staged nowhere: no storage class for caches on {names}"
    return ""


def _holds(cluster: Mapping[str, Any], cache: Mapping[str, Any]) -> bool:
    # A claim of the team's own holds the model already: no class is needed.
    own = paths.text(cache, "spec", "source") == c.CLAIM
    return own or bool(paths.text(cluster, "status", "cache", "storageClassName"))


def weights_in_cache(view: View) -> Iterator[Finding]:
    """Find caches smaller than the weights they stage."""
    for source in view.of(CACHE):
        found = weights.of(paths.text(source.body, "spec", "huggingFace", "repo"))
        size = paths.integer(source.body, "spec", "huggingFace", "sizeGiB")
        if found is not None and size is not None and found.size > size * _GIB:
            field = "spec.huggingFace.sizeGiB"
            yield at(
                source,
                WARNING,
                WEIGHTS_CACHE,
                field,
                f"{found}; the volume has {size} GiB",
                f"give it at least {_above(found.size)} GiB",
            )


def _above(size: float) -> int:
    """Return whole GiB with a tenth to spare for what else a repository holds."""
    return int(size * 1.1 / _GIB) + 1


def weights_in_memory(view: View) -> Iterator[Finding]:
    """Find engines whose weights are larger than the GPU memory that a copy can have anywhere."""
    for source in view.deployments:
        spec = spec_of(source.body)
        nodes = view.reachable(source.body) or view.nodes
        if spec is None or not nodes:
            continue
        _, cache = view.cache(source.body)
        repo = paths.text(cache, "spec", "huggingFace", "repo")
        for index, engine in enumerate(spec.template.spec.engines):
            own = [m for m in members(source.body) if m.engine == engine.name]
            found = weights.of(_repo(own) or repo)
            most = max((_memory(own, node) for node in nodes.values()), default=0)
            if found is not None and 0 < most < found.size:
                yield at(
                    source,
                    WARNING,
                    WEIGHTS_MEMORY,
                    f"spec.template.spec.engines[{index}]",
                    f"{found}; the devices of a copy of engine {engine.name} hold {most / _GIB:.1f} GiB",
                    "ask for more or larger devices, more nodes, or a quantized model",
                )


def _repo(own: list[Member]) -> str:
    return next((repo for member in own if (repo := weights.served(member.engine_container))), "")


def _memory(own: list[Member], node: Node) -> int:
    """Return the memory of all devices that one copy claims on such nodes; 0 where it does not fit."""
    total = 0
    for member in own:
        requests = tuple(
            Request(
                paths.text(raw, "name"),
                paths.integer(raw, "count", default=1) or 1,
                tuple(text for s in paths.mappings(raw, "selectors") if (text := paths.text(s, "cel"))),
            )
            for _, raw in member.requests
        )
        found = match(requests, node)
        if isinstance(found, Refusal):
            return 0
        pods = paths.integer(member.raw, "worker", "nodes", default=1) or 1 if member.role == c.WORKER else 1
        for amount, device in zip(found.amounts, node.devices, strict=True):
            memory = next((v for name, v in device.shape.capacity if name.endswith("memory")), None)
            total += pods * amount * (memory.nano // NANO if memory is not None else 0)
    return total


def ranks(view: View) -> Iterator[Finding]:
    """Find ranks that only one stack sets, and one literal rank for several workers."""
    for source in view.deployments:
        stacks = {paths.text(x, "spec", "stack") or c.STANDARD for x in view.candidates(source.body)}
        for member in members(source.body):
            for path, container in member.containers:
                yield from _one_stack(source, path, container, stacks)
                workers = paths.integer(member.raw, "worker", "nodes", default=1) or 1
                if member.role == c.WORKER and workers > 1:
                    yield from _same_rank(source, path, container, workers)


def _one_stack(
    source: Source, path: str, container: Mapping[str, Any], stacks: set[str]
) -> Iterator[Finding]:
    for field, text in _texts(path, container):
        for pattern, stack in _ONE_STACK.items():
            if (found := pattern.search(text)) is None or stacks == {stack}:
                continue
            where = (
                f"the deployment may land on {' and '.join(sorted(stacks))}"
                if stacks
                else "no cluster is given"
            )
            severity = ERROR if stacks and stack not in stacks else WARNING
            yield at(
                source,
                severity,
                RANK,
                field,
                f"{found[0]} is set on stack {stack} only, and {where}",
                f"use $({c.ENV_RANK}) and $({c.ENV_LEADER_ADDRESS}), which both stacks set",
            )


def _same_rank(source: Source, path: str, container: Mapping[str, Any], workers: int) -> Iterator[Finding]:
    for field, text in _texts(path, container):
        if found := _LITERAL_RANK.search(text):
            reason = f"all {workers} workers would have rank {found[1]}"
            yield at(source, ERROR, RANK, field, reason, f"write --node-rank=$({c.ENV_RANK})")


def _texts(path: str, container: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for part in ("command", "args"):
        for index, text in enumerate(paths.items(container, part)):
            if isinstance(text, str):
                yield f"{path}.{part}[{index}]", text
    for index, entry in enumerate(paths.mappings(container, "env")):
        yield f"{path}.env[{index}].value", paths.text(entry, "value")
