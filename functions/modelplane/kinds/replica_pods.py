"""What Kubernetes refuses in a pod, found before anything is handed to a controller.

A wrong Deployment is refused when it is applied, and says so. LeaderWorkerSet and Grove take any pod template
and fail when they make pods of it, which they tell in events on the cluster alone: a gang without pods and
without a word. These are the API server's own rules for what a member may write (Kubernetes 1.36,
pkg/apis/core/validation/validation.go); each was seen refused by one. Nothing stricter than those.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from modelplane import contracts as c
from modelplane.api.model_replica import ModelReplicaSpec
from modelplane.core import InvalidSpecError, paths
from modelplane.schedule import quantity

# A field below a container or volume, and what is wrong with it together with the next step.
Problem = tuple[str, str]

_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_KEY = re.compile(r"[-._a-zA-Z0-9]+")
_HEADER = re.compile(r"[-A-Za-z0-9]+")
_PORT_NAME = re.compile(r"(?=.*[a-z])[a-z0-9]+(-[a-z0-9]+)*")
_FIELD = re.compile(
    r"metadata\.(name|namespace|uid)|metadata\.(labels|annotations)\['.+'\]"
    r"|spec\.(nodeName|serviceAccountName)|status\.(hostIP|hostIPs|podIP|podIPs)"
)
_PLAIN_RESOURCES = ("cpu", "memory", "ephemeral-storage")
_PROBES = ("startupProbe", "readinessProbe", "livenessProbe")


def check(spec: ModelReplicaSpec) -> None:
    """Check the pods that members write.

    Raises:
        InvalidSpecError: the first thing no pod can have, by its path.
    """
    for i, engine in enumerate(spec.engines):
        for j, member in enumerate(engine.members):
            pod = member.template.spec
            at = f"spec.engines[{i}].members[{j}].template.spec"
            lists: tuple[tuple[str, Sequence[Mapping[str, Any]], Callable[..., Iterator[Problem]]], ...] = (
                ("containers", pod.containers, _container),
                ("initContainers", pod.init_containers, _init_container),
                ("volumes", pod.volumes, _volume),
            )
            for name, entries, rules in lists:
                for k, entry in enumerate(entries):
                    for field, message in rules(entry):
                        raise InvalidSpecError(c.MODEL_ACCEPTED, f"{at}.{name}[{k}]{field}", message)


def _init_container(container: Mapping[str, Any]) -> Iterator[Problem]:
    if container.get("restartPolicy") != "Always":
        for probe in _PROBES:
            if probe in container:
                yield (
                    f".{probe}",
                    "an init container that ends is not probed: remove it, or set restartPolicy: Always",
                )
    yield from _container(container)


def _container(container: Mapping[str, Any]) -> Iterator[Problem]:
    for i, entry in enumerate(paths.items(container, "env")):
        yield from ((f".env[{i}]{field}", message) for field, message in _env(entry))
    for probe in _PROBES:
        if found := paths.mapping(container, probe):
            yield from ((f".{probe}{field}", message) for field, message in _probe(probe, found))
    for i, mount in enumerate(paths.items(container, "volumeMounts")):
        yield from ((f".volumeMounts[{i}]{field}", message) for field, message in _mount(mount))
    yield from (
        (f".resources{x}", message) for x, message in _resources(paths.mapping(container, "resources"))
    )


def _env(entry: object) -> Iterator[Problem]:
    name = paths.text(entry, "name")
    if not name or "=" in name or not (name.isascii() and name.isprintable()):
        yield ".name", "a variable's name takes printable ASCII without '=': correct it"
    source = paths.at(entry, "valueFrom")
    if source is None:
        return
    if paths.text(entry, "value"):
        yield ".valueFrom", "a variable takes value or valueFrom: keep one"
    kinds = [x for x in ("secretKeyRef", "configMapKeyRef", "fieldRef") if paths.at(source, x) is not None]
    if len(kinds) != 1:
        yield ".valueFrom", "takes exactly one of secretKeyRef, configMapKeyRef and fieldRef: keep one"
    for kind in kinds:
        if kind == "fieldRef":
            yield from _field(paths.mapping(source, kind))
            continue
        if not _SUBDOMAIN.fullmatch(paths.text(source, kind, "name")):
            yield f".valueFrom.{kind}.name", "takes an object's name in lower case: correct it"
        if not _KEY.fullmatch(paths.text(source, kind, "key")):
            yield f".valueFrom.{kind}.key", "takes letters, digits, '-', '_' and '.': correct it"


def _field(ref: Mapping[str, Any]) -> Iterator[Problem]:
    if ref.get("apiVersion", "v1") not in ("", "v1"):
        yield ".valueFrom.fieldRef.apiVersion", "takes v1: remove it"
    if not _FIELD.fullmatch(paths.text(ref, "fieldPath")):
        yield (
            ".valueFrom.fieldRef.fieldPath",
            "takes a field such as metadata.name or status.podIP: correct it",
        )


def _probe(which: str, probe: Mapping[str, Any]) -> Iterator[Problem]:
    if "exec" in probe and not paths.items(probe, "exec", "command"):
        yield ".exec.command", "is empty: give the command to run"
    if which != "readinessProbe" and probe.get("successThreshold", 1) != 1:
        yield ".successThreshold", "only a readinessProbe takes more than 1: remove it"
    if which == "readinessProbe" and "terminationGracePeriodSeconds" in probe:
        yield ".terminationGracePeriodSeconds", "a readinessProbe stops nothing: remove it"
    for way in ("httpGet", "tcpSocket"):
        if way in probe and not _is_port(paths.at(probe, way, "port")):
            yield (
                f".{way}.port",
                "takes a number from 1 to 65535, or a port's name (lower-case letters, digits and hyphens, a "
                "letter among them): correct it",
            )
    for i, header in enumerate(paths.items(probe, "httpGet", "httpHeaders")):
        if not _HEADER.fullmatch(paths.text(header, "name")):
            yield f".httpGet.httpHeaders[{i}].name", "takes letters, digits and hyphens: correct it"


def _is_port(port: object) -> bool:
    if isinstance(port, str):
        return len(port) <= 15 and _PORT_NAME.fullmatch(port) is not None
    return isinstance(port, int) and 1 <= port <= 65535


def _mount(mount: object) -> Iterator[Problem]:
    sub, expression = paths.text(mount, "subPath"), paths.text(mount, "subPathExpr")
    if sub and expression:
        yield ".subPathExpr", "a mount takes subPath or subPathExpr: keep one"
    for field, path in (("subPath", sub), ("subPathExpr", expression)):
        if path.startswith("/") or ".." in path.split("/"):
            yield f".{field}", "takes a path inside the volume, without '..': correct it"
    if paths.text(mount, "mountPropagation") == "Bidirectional":
        yield (
            ".mountPropagation",
            "Bidirectional takes a privileged container: use HostToContainer, or leave it out",
        )


def _resources(resources: Mapping[str, Any]) -> Iterator[Problem]:
    amounts: dict[str, dict[str, quantity.Quantity]] = {"requests": {}, "limits": {}}
    for kind, known in amounts.items():
        for name, said in paths.mapping(resources, kind).items():
            found = _amount(said)
            if found is None or found.sign < 0:
                yield f".{kind}[{name}]", "takes a quantity such as 2 or 16Gi: correct it"
            elif not _is_resource(name):
                yield f".{kind}[{name}]", "is no resource: cpu, memory, or a name with a domain before it"
            else:
                known[name] = found
    requests, limits = amounts["requests"], amounts["limits"]
    for name, found in {**limits, **requests}.items():
        if _is_counted(name) and (requests.get(name, found) != limits.get(name)):
            yield (
                f".limits[{name}]",
                "of this resource the limit is set and the request equals it: set them alike",
            )
        elif name in limits and name in requests and limits[name].sub(requests[name]).sign < 0:
            yield f".requests[{name}]", "is more than the limit: lower it, or raise the limit"
        if _is_extended(name) and not found.is_integer:
            yield f".limits[{name}]", "is counted in whole numbers: correct it"
    if any(n.startswith("hugepages-") for n in limits) and not {"cpu", "memory"} & {*limits, *requests}:
        yield "", "huge pages take cpu or memory beside them: set one"


def _amount(said: object) -> quantity.Quantity | None:
    try:
        return quantity.parse(str(said))
    except ValueError:
        return None


def _is_resource(name: str) -> bool:
    return name in _PLAIN_RESOURCES or name.startswith("hugepages-") or "/" in name


def _is_counted(name: str) -> bool:
    """Tell whether a resource cannot be promised to more pods than there is of it."""
    return _is_extended(name) or name.startswith("hugepages-")


def _is_extended(name: str) -> bool:
    return "/" in name and "kubernetes.io/" not in name


def _volume(volume: Mapping[str, Any]) -> Iterator[Problem]:
    sources = sorted(volume.keys() - {"name"})
    if len(sources) > 1:
        yield "", f"a volume is made of one thing: keep one of {', '.join(sources)}"
    for source in sources:
        parts = [(f".{source}", volume[source])]
        parts += [
            (f".projected.sources[{i}].{kind}", value)
            for i, part in enumerate(paths.items(volume, "projected", "sources"))
            if isinstance(part, Mapping)
            for kind, value in part.items()
        ]
        for at, part in parts:
            for i, item in enumerate(paths.items(part, "items")):
                path = paths.text(item, "path")
                if not path or path.startswith("/") or ".." in path.split("/"):
                    yield f"{at}.items[{i}].path", "takes a path inside the volume, without '..': correct it"
