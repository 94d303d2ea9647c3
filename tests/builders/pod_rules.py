"""What members may write and no pod can have: judged here by our rules, and by a real API server."""

from __future__ import annotations

from typing import Any

from builders import replicas as r
from modelplane.core import Manifest

ENGINE = "containers[0]"
Row = tuple[dict[str, Any], str, str, str]


def _env(**entry: Any) -> dict[str, Any]:
    return {"engine": r.container(env=[{"name": "A", **entry}])}


def _from(**source: Any) -> dict[str, Any]:
    return _env(valueFrom=source)


def _probe(which: str, **over: Any) -> dict[str, Any]:
    probe = over if over.keys() & {"exec", "httpGet"} else {"tcpSocket": {"port": 8000}, **over}
    return {"engine": r.container(**{which: probe})}


def _mount(**over: Any) -> dict[str, Any]:
    mount = {"name": "v", "mountPath": "/v", **over}
    return {"engine": r.container(volumeMounts=[mount]), "volumes": [{"name": "v", "emptyDir": {}}]}


def _resources(**kinds: Any) -> dict[str, Any]:
    return {"engine": r.container(resources=kinds)}


def _volume(**source: Any) -> dict[str, Any]:
    return {"volumes": [{"name": "v", **source}]}


_TCP: Manifest = {"tcpSocket": {"port": 9}}
# A member's fields, the field that is refused, a word of why, and the reason.
REFUSED: list[Row] = [
    (_env(name="a=b", value="x"), f"{ENGINE}.env[0].name", "without '='", "half a variable"),
    (_env(name="é", value="x"), f"{ENGINE}.env[0].name", "ASCII", "no ASCII"),
    (
        _env(value="x", valueFrom={"fieldRef": {"fieldPath": "status.podIP"}}),
        f"{ENGINE}.env[0].valueFrom",
        "keep one",
        "two values",
    ),
    (_from(), f"{ENGINE}.env[0].valueFrom", "exactly one", "from nowhere"),
    (
        _from(fieldRef={"fieldPath": "status.podIP"}, configMapKeyRef={"name": "a", "key": "b"}),
        f"{ENGINE}.env[0].valueFrom",
        "exactly one",
        "from two places",
    ),
    (
        _from(fieldRef={"fieldPath": "status.phase"}),
        f"{ENGINE}.env[0].valueFrom.fieldRef.fieldPath",
        "status.podIP",
        "a field no pod hands out",
    ),
    (
        _from(fieldRef={"fieldPath": "status.podIP", "apiVersion": "v2"}),
        f"{ENGINE}.env[0].valueFrom.fieldRef.apiVersion",
        "takes v1",
        "another API",
    ),
    (
        _from(secretKeyRef={"name": "Bad_Name", "key": "a"}),
        f"{ENGINE}.env[0].valueFrom.secretKeyRef.name",
        "lower case",
        "no object's name",
    ),
    (
        _from(configMapKeyRef={"name": "a", "key": "a b"}),
        f"{ENGINE}.env[0].valueFrom.configMapKeyRef.key",
        "letters, digits",
        "no key",
    ),
    (_probe("livenessProbe", exec={}), f"{ENGINE}.livenessProbe.exec.command", "is empty", "no command"),
    (
        _probe("startupProbe", successThreshold=2),
        f"{ENGINE}.startupProbe.successThreshold",
        "only a readinessProbe",
        "once up is up",
    ),
    (
        _probe("livenessProbe", successThreshold=2),
        f"{ENGINE}.livenessProbe.successThreshold",
        "only a readinessProbe",
        "the same",
    ),
    (
        _probe("readinessProbe", terminationGracePeriodSeconds=5),
        f"{ENGINE}.readinessProbe.terminationGracePeriodSeconds",
        "stops nothing",
        "it kills nobody",
    ),
    (
        _probe("readinessProbe", httpGet={"port": 0}),
        f"{ENGINE}.readinessProbe.httpGet.port",
        "1 to 65535",
        "no port",
    ),
    (
        _probe("readinessProbe", httpGet={"port": "8000"}),
        f"{ENGINE}.readinessProbe.httpGet.port",
        "a letter among them",
        "a number as text is a name to Kubernetes",
    ),
    (
        _probe("livenessProbe", httpGet={"port": 9, "httpHeaders": [{"name": "a b", "value": "x"}]}),
        f"{ENGINE}.livenessProbe.httpGet.httpHeaders[0].name",
        "hyphens",
        "no header",
    ),
    (_mount(subPath="/x"), f"{ENGINE}.volumeMounts[0].subPath", "inside the volume", "out of the volume"),
    (_mount(subPath="a/../.."), f"{ENGINE}.volumeMounts[0].subPath", "without '..'", "out of the volume"),
    (
        _mount(subPath="a", subPathExpr="b"),
        f"{ENGINE}.volumeMounts[0].subPathExpr",
        "keep one",
        "two paths",
    ),
    (
        _mount(mountPropagation="Bidirectional"),
        f"{ENGINE}.volumeMounts[0].mountPropagation",
        "privileged",
        "members are not privileged",
    ),
    (_resources(limits={"cpu": "a lot"}), f"{ENGINE}.resources.limits[cpu]", "16Gi", "no quantity"),
    (_resources(limits={"cpu": "-1"}), f"{ENGINE}.resources.limits[cpu]", "16Gi", "less than nothing"),
    (_resources(limits={"foo": 1}), f"{ENGINE}.resources.limits[foo]", "is no resource", "no domain"),
    (
        _resources(limits={"cpu": 1}, requests={"cpu": "1500m"}),
        f"{ENGINE}.resources.requests[cpu]",
        "more than the limit",
        "more than the limit",
    ),
    (
        _resources(requests={"vpc.amazonaws.com/efa": 1}),
        f"{ENGINE}.resources.limits[vpc.amazonaws.com/efa]",
        "the limit is set",
        "a device is not overcommitted",
    ),
    (
        _resources(limits={"vpc.amazonaws.com/efa": "500m"}),
        f"{ENGINE}.resources.limits[vpc.amazonaws.com/efa]",
        "whole numbers",
        "half a device",
    ),
    (_resources(limits={"hugepages-2Mi": "1Gi"}), f"{ENGINE}.resources", "huge pages", "alone"),
    (
        {"initContainers": [r.container("x", readinessProbe=_TCP)]},
        "initContainers[0].readinessProbe",
        "restartPolicy: Always",
        "it ends",
    ),
    (
        _volume(emptyDir={}, configMap={"name": "x"}),
        "volumes[0]",
        "keep one of configMap, emptyDir",
        "two things at once",
    ),
    (
        _volume(configMap={"name": "x", "items": [{"key": "a", "path": "../a"}]}),
        "volumes[0].configMap.items[0].path",
        "inside the volume",
        "out of the volume",
    ),
    (
        _volume(projected={"sources": [{"secret": {"name": "x", "items": [{"key": "a", "path": "/a"}]}}]}),
        "volumes[0].projected.sources[0].secret.items[0].path",
        "inside the volume",
        "the same",
    ),
]
ADMITTED: list[tuple[dict[str, Any], str]] = [
    (_env(name="my.var-1", value="x"), "Kubernetes is wide about names"),
    (_env(value="", valueFrom={"fieldRef": {"fieldPath": "metadata.name"}}), "an empty value is none"),
    *(
        (_from(fieldRef={"fieldPath": x}), "a pod hands it out")
        for x in ("spec.nodeName", "status.hostIPs", "metadata.labels['app']", "metadata.annotations['a/b']")
    ),
    (_probe("readinessProbe", successThreshold=2), "ready is told twice"),
    (_probe("readinessProbe", httpGet={"port": "http"}), "the engine's port has this name"),
    (_probe("livenessProbe", terminationGracePeriodSeconds=5), "liveness stops"),
    (_mount(subPath="a..b/c"), "two dots inside a name"),
    (_mount(subPathExpr="$(A)"), "a path from a variable"),
    (_mount(mountPropagation="HostToContainer"), "one way"),
    (_resources(limits={"cpu": 0.5, "memory": "1e9"}, requests={"cpu": "500m"}), "numbers and exponents"),
    (_resources(limits={"vpc.amazonaws.com/efa": "4"}, requests={"vpc.amazonaws.com/efa": 4}), "alike"),
    (_resources(limits={"hugepages-2Mi": "1Gi", "memory": "2Gi"}), "with memory beside them"),
    ({"initContainers": [r.container("x", startupProbe=_TCP, restartPolicy="Always")]}, "a sidecar"),
    (_volume(), "nothing at all is an emptyDir"),
]
