"""A replica's spec and surroundings may hold anything: an answer comes back, and what runs is not lost."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from functools import cache
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from builders import replicas as r
from modelplane.core import Manifest, paths

JUNK = st.sampled_from(
    [
        None,
        "",
        "x",
        "$(x)",
        0,
        -1,
        1e400,
        float("nan"),
        2**63,
        True,
        [],
        [None],
        {},
        {"": None},
        {"name": {}},
        [[1]],
    ]
)
STACK = st.sampled_from(["Standard", "Dynamo"])


def _composite() -> Manifest:
    engine = r.container(
        args=["--port=8000"],
        env=[{"name": "A", "valueFrom": {"secretKeyRef": {"name": "hub", "key": "TOKEN"}}}],
        resources={"limits": {"cpu": 4}},
        volumeMounts=[{"name": "v", "mountPath": "/v"}],
        readinessProbe={"httpGet": {"port": 8000}},
    )
    pod: dict[str, Any] = {
        "engine": engine,
        "metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}},
        "sidecars": [r.container("logs")],
        "initContainers": [r.container("init")],
        "volumes": [{"name": "v", "projected": {"sources": [{"secret": {"name": "hub"}}]}}],
        "imagePullSecrets": [{"name": "pull"}],
        "terminationGracePeriodSeconds": 60,
        "requests": [r.device(), r.NIC],
    }
    return r.replica(
        r.gang("a", leader=dict(pod), worker=dict(pod)),
        r.engine("b"),
        modelCacheRef={"name": "w"},
        labels={"x": "y"},
    )


def _places(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in items:
        yield from _places(value, (*path, key))


def _with(whole: Manifest, path: tuple[Any, ...], value: Any) -> Manifest:
    found = copy.deepcopy(whole)
    here: Any = found
    for step in path[:-1]:
        here = here[step]
    here[path[-1]] = value
    return found


COMPOSITE = _composite()
ENGINE = ("spec", "engines", 0, "members", 0, "template", "spec", "containers", 0)
SPEC = list(_places(COMPOSITE["spec"], ("spec",)))


@cache
def _running(stack: str) -> dict[str, Manifest]:
    return r.settled(COMPOSITE, r.cluster(stack=stack, fabric="EFA"), r.cache())[1]


@settings(max_examples=100)
@example(path=(*ENGINE, "resources"), value="", stack="Standard")
@example(path=(*ENGINE, "name"), value=[], stack="Standard")
@example(path=(*ENGINE[:5], "deviceRequests", 0, "count"), value=2**63, stack="Standard")
@example(path=(*ENGINE[:-1], 1, "name"), value=None, stack="Dynamo")
@given(path=st.sampled_from(SPEC), value=JUNK, stack=STACK)
def test_any_junk_in_the_spec_is_answered_and_drops_no_engine_it_still_names(
    path: tuple[Any, ...], value: Any, stack: str
) -> None:
    composite = _with(COMPOSITE, path, value)
    seen = _running(stack)
    answer = r.answer(composite, r.cluster(stack=stack, fabric="EFA"), r.cache(), observed=seen)
    assert {x.type for x in answer.conditions} == {"ModelAccepted", "ModelReady", "ReferencesResolved"}
    named = [paths.text(e, "name") for e in paths.mappings(composite, "spec", "engines")]
    if named == ["a", "b"]:
        # Both engines are still asked for, so whatever else is odd, both still run.
        assert {k for k in seen if k.startswith("model-serving")} <= answer.resources.keys()


@settings(max_examples=100)
@given(data=st.data(), value=JUNK, stack=STACK, what=st.sampled_from(["cluster", "cache", "observed"]))
def test_any_junk_around_a_running_replica_drops_nothing(
    data: st.DataObject, value: Any, stack: str, what: str
) -> None:
    cluster, cache_, seen = r.cluster(stack=stack, fabric="EFA"), r.cache(), dict(_running(stack))
    if what == "observed":
        key = data.draw(st.sampled_from(sorted(seen)))
        seen[key] = _with(seen[key], data.draw(st.sampled_from(list(_places(seen[key])))), value)
    else:
        whole = cluster if what == "cluster" else cache_
        # Its kind and name are how it was found.
        places = [p for p in _places(whole) if p[0] in ("spec", "status")]
        changed = _with(whole, data.draw(st.sampled_from(places)), value)
        cluster, cache_ = (changed, cache_) if what == "cluster" else (cluster, changed)
    answer = r.answer(COMPOSITE, cluster, cache_, observed=seen)
    assert seen.keys() <= answer.resources.keys()
