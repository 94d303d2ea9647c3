"""Random specs that the API server admits, drawn from the shipped schema: no field of it is forgotten."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from builders import replicas as r
from modelplane import contracts as c
from modelplane import names
from modelplane.api import definitions
from modelplane.core import Manifest

# Text that means something to a shell, to kubelet, to YAML, to a URL or to nobody.
ODD = [
    "",
    " ",
    "$(HOME)",
    "$(X",
    "'; rm -rf /",
    "{{x}}",
    "é",
    "a\nb",
    "--port",
    "--port=",
    "--port=9000",
    "-",
]
_LABEL = ["", "a", "decode", "A.b_c-9", "x" * 63]
_KEYS = ["app", "example.org/a", "kai.scheduler/queue", "llm-d.ai/role", "llm-d.ai/engine-type", "grove.io/x"]
_NAMES = ["a", "engine", "b-1", "x" * 63, "0"]
_VOLUMES: list[Manifest] = [
    {"emptyDir": {}},
    {"secret": {"secretName": "hub"}},
    {"configMap": {"name": "conf", "optional": True}},
    {"persistentVolumeClaim": {"claimName": "own"}},
    {"projected": {"sources": [{"secret": {"name": "hub"}}, {"configMap": {"name": "conf"}}]}},
    {"ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"]}}}},
]
# Fields whose text is another object's name, a path or a word of a command: by the last step of their path.
_HINTS: dict[str, list[Any]] = {
    "name": _NAMES,
    "mountPath": ["/dev/shm", "/dev/shm/", "/mnt/models", "/mnt", "/w", "/v"],
    "command": ["sh", "-c", "exec vllm serve m --port 9000", "python3", "-m", "sglang.launch_server", *ODD],
    "args": ["--port", "8080", "--port=abc", "--block-size=32", "ray start --port 6379; vllm serve", *ODD],
    "fieldPath": ["status.podIP", "metadata.name"],
    "key": ["TOKEN"],
    "deviceClassName": ["gpu.nvidia.com", "efa.networking.k8s.aws"],
    "cel": ['device.driver == "gpu.nvidia.com"', "device.driver == 'dra.net'"],
    "image": ["example.org/engine:1", "lmsysorg/sglang:v1", "r:5000/x@sha256:" + "0" * 64],
    "host": ["127.0.0.1"],
    "path": ["/health", "/"],
    "service": ["", "ready"],
    "value": ODD,
}


def _value(node: Manifest, step: str) -> st.SearchStrategy[Any]:
    if "enum" in node:
        return st.sampled_from(node["enum"])
    if node.get("x-kubernetes-int-or-string"):
        return st.sampled_from([8000, "http"] if step == "port" else [1, "2", "16Gi", "500m"])
    if step == "volumes" and node["type"] == "object":
        # Any source is passed on: the schema says nothing of it.
        return st.builds(
            lambda n, v: {"name": n, **v}, st.sampled_from(["v", "w"]), st.sampled_from(_VOLUMES)
        )
    by_type: dict[str, Callable[[Manifest, str], st.SearchStrategy[Any]]] = {
        "object": _object,
        "array": _array,
        "integer": lambda n, _: _integer(n),
        "boolean": lambda _, __: st.booleans(),
        "string": lambda _, s: st.sampled_from(_HINTS.get(s, ODD)),
    }
    return by_type[node["type"]](node, step)


def _integer(node: Manifest) -> st.SearchStrategy[int]:
    least, most = node.get("minimum", 0), node.get("maximum", 2**31 - 1)
    return st.sampled_from(sorted({least, min(least + 1, most), min(least + 9, most), most}))


def _array(node: Manifest, step: str) -> st.SearchStrategy[list[Any]]:
    keys = node.get("x-kubernetes-list-map-keys")
    unique: Any = (lambda x: tuple(str(x.get(k)) for k in keys)) if keys else None
    least = node.get("minItems", 0)
    most = min(node.get("maxItems", 3), max(least, 3))
    return st.lists(_value(node["items"], step), min_size=least, max_size=most, unique_by=unique)


def _object(node: Manifest, step: str) -> st.SearchStrategy[Manifest]:
    if "properties" not in node:
        resources = step in ("limits", "requests")
        keys = ["cpu", "memory", c.EFA_RESOURCE] if resources else _KEYS
        values = _value(node["additionalProperties"], "") if resources else st.sampled_from(_LABEL)
        return st.dictionaries(st.sampled_from(keys), values, max_size=2)
    fields = {k: _value(v, k) for k, v in node["properties"].items()}
    wanted = [*node.get("required", ()), *list(fields)[: node.get("minProperties", 0)]]
    must = {k: v for k, v in fields.items() if k in wanted}
    return st.fixed_dictionaries(must, optional={k: v for k, v in fields.items() if k not in must})


def _schema(*path: str) -> Manifest:
    found: Any = definitions.load()[(c.API, "ModelReplica")].schema.openapi
    for step in ("spec", *path):
        found = found["properties"][step] if step != "[]" else found["items"]
    return dict(found)


def _container() -> st.SearchStrategy[Manifest]:
    pod = ("engines", "[]", "members", "[]", "template", "spec")
    containers = _schema(*pod)["properties"]["containers"]
    return _object(dict(containers["items"]), "containers")


@st.composite
def _member(draw: st.DrawFn, role: str) -> Manifest:
    schema = _schema("engines", "[]", "members", "[]")
    found = draw(_object(schema, "member"))
    found["role"], found["nodePoolName"] = role, draw(st.sampled_from(["gpu", "gpu2"]))
    if role != c.WORKER:
        found.pop("worker", None)
    pod = found["template"].setdefault("spec", {})
    engine = {**draw(_container()), "name": "engine"}
    others = {x["name"]: x for x in pod.get("containers", []) if x["name"] != "engine"}
    pod["containers"] = [engine, *list(others.values())[:2]]
    taken = {x["name"] for x in pod["containers"]}
    pod["initContainers"] = [x for x in pod.get("initContainers", []) if x["name"] not in taken]
    given = {v["name"] for v in pod.get("volumes", [])}
    for container in (*pod["containers"], *pod["initContainers"]):
        _as_admitted(container, given)
    return found


def _as_admitted(container: Manifest, volumes: set[str]) -> None:
    """Mount what there is, probe in one way: what a rule refuses, a random draw would hardly ever keep."""
    for mount, name in zip(container.get("volumeMounts", []), ["v", "w", "v"], strict=False):
        mount["name"] = name
    container["volumeMounts"] = [m for m in container.get("volumeMounts", []) if m["name"] in volumes]
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        ways = [w for w in ("exec", "httpGet", "tcpSocket", "grpc") if w in container.get(probe, {})]
        for way in ways[1:]:
            del container[probe][way]
        if not ways:
            container.pop(probe, None)


@st.composite
def _engine(draw: st.DrawFn, name: str, phase: str) -> Manifest:
    roles = draw(st.sampled_from([(c.STANDALONE,), (c.LEADER, c.WORKER), (c.WORKER, c.LEADER)]))
    members = [draw(_member(role)) for role in roles]
    if not any("deviceRequests" in m for m in members):
        members[-1]["deviceRequests"] = [r.device()]
    found: Manifest = {"name": name, "members": members, "copies": draw(st.sampled_from([1, 2, 64]))}
    return {**found, **({"phase": phase} if phase else {})}


@st.composite
def replica(draw: st.DrawFn) -> Manifest:
    """A ModelReplica as its deployment's composer may write it, with all defaults the API server adds."""
    split = draw(st.booleans())
    phases = ["Prefill", "Decode"] if split else [""] * draw(st.integers(1, 2))
    called = st.sampled_from(["a", "b", "epp", "gang", "0-" + "x" * 61, "leader", "a-leader"])
    engines = draw(st.lists(called, min_size=len(phases), max_size=len(phases), unique=True))
    spec: Manifest = {
        "engines": [draw(_engine(name, phase)) for name, phase in zip(engines, phases, strict=True)],
        "serving": {**draw(_object(_schema("serving"), "serving")), "mode": "Unified"},
        "labels": draw(_object(_schema("labels"), "labels")),
    }
    if split:
        spec["serving"]["mode"] = "PrefillDecode"
    if draw(st.booleans()):
        spec["modelCacheRef"] = {"name": "w"}
    deployment = draw(st.sampled_from(["a", "2.5b", "x" * 63, "a.b-c.d"]))
    found = r.replica(name=names.replica(deployment, "north", draw(st.integers(0, 63))))
    found["spec"] = {"clusterName": "north", **spec}
    return definitions.load().default(found)
