"""Secrets and ConfigMaps that a member refers to: which there are, and under which name a pod finds them.

A replica's copy has a name of its own, since two replicas that wrote one object would delete it under each
other; what is not copied keeps the name the user wrote.
"""

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from modelplane.core import paths
from modelplane.core.paths import Manifest
from modelplane.gangs.site import Site

SECRET = "Secret"
CONFIG_MAP = "ConfigMap"
# A pull Secret is a Secret whose type matters; its copy is a separate object, as a type cannot change.
PULL_SECRET = "PullSecret"

_ENV = {"secretKeyRef": SECRET, "configMapKeyRef": CONFIG_MAP}
# Where a volume names one, whatever it is made of (Kubernetes 1.36, core/v1 Volume); a test holds this to
# the schema of a pod. flexVolume names one too and is refused at admission.
_REMOTE = ("cephfs", "cinder", "iscsi", "rbd", "scaleIO", "storageos")
_VOLUME: dict[tuple[str, ...], str] = {
    ("secret", "secretName"): SECRET,
    ("configMap", "name"): CONFIG_MAP,
    ("csi", "nodePublishSecretRef", "name"): SECRET,
    ("azureFile", "secretName"): SECRET,
    **{(source, "secretRef", "name"): SECRET for source in _REMOTE},
}
_PROJECTED = {("secret", "name"): SECRET, ("configMap", "name"): CONFIG_MAP}


@dataclass(frozen=True, slots=True, order=True)
class Use:
    """One place that needs a Secret or ConfigMap.

    Attributes:
        kind: `Secret`, `PullSecret` or `ConfigMap`.
        name: in the team's namespace.
        key: the only key that is needed; empty for all of it.
        optional: a pod starts without it.
    """

    kind: str
    name: str
    key: str = ""
    optional: bool = False


def uses(spec: object) -> list[Use]:
    """Return every use in a replica's spec, sorted; junk in the spec is passed over."""
    found: set[Use] = set()
    for engine in paths.mappings(spec, "engines"):
        for member in paths.mappings(engine, "members"):
            pod = paths.mapping(member, "template", "spec")
            found.update(_in_pod(pod))
    return sorted(found)


def _in_pod(pod: Mapping[str, Any]) -> Iterator[Use]:
    for secret in paths.mappings(pod, "imagePullSecrets"):
        yield from _use(PULL_SECRET, paths.text(secret, "name"))
    for container in (*paths.mappings(pod, "containers"), *paths.mappings(pod, "initContainers")):
        for entry in paths.mappings(container, "env"):
            for field, kind in _ENV.items():
                ref = paths.mapping(entry, "valueFrom", field)
                yield from _use(kind, paths.text(ref, "name"), paths.text(ref, "key"), ref.get("optional"))
    for volume in paths.mappings(pod, "volumes"):
        for at, kind in _VOLUME.items():
            yield from _in_source(volume, at, kind)
        for part in paths.mappings(volume, "projected", "sources"):
            for at, kind in _PROJECTED.items():
                yield from _in_source(part, at, kind)


def _in_source(volume: Mapping[str, Any], at: tuple[str, ...], kind: str) -> Iterator[Use]:
    source = paths.mapping(volume, *at[:-1])
    name, optional = paths.text(source, at[-1]), source.get("optional")
    # With a list of items a pod gets those alone, and does not start where one is missing.
    keys = [key for item in paths.mappings(source, "items") if (key := paths.text(item, "key"))]
    for key in keys or [""]:
        yield from _use(kind, name, key, optional)


def _use(kind: str, name: str, key: str = "", optional: object = False) -> Iterator[Use]:
    if name:
        yield Use(kind, name, key, optional is True)


def environment(site: Site, entries: Iterable[Manifest]) -> list[Manifest]:
    """Return the entries with the names under which their sources are found on the cluster."""
    found = []
    for entry in entries:
        renamed = copy.deepcopy(entry)
        for field, kind in _ENV.items():
            if name := paths.text(entry, "valueFrom", field, "name"):
                renamed["valueFrom"][field]["name"] = site.reference(kind, name)
        found.append(renamed)
    return found


def pull_secrets(site: Site, secrets: Sequence[Manifest], ours: Sequence[Manifest]) -> list[Manifest]:
    """Return the pull secrets under their names on the cluster, each once: server-side apply refuses more."""
    found = [site.reference(PULL_SECRET, paths.text(s, "name")) for s in secrets]
    found += [paths.text(s, "name") for s in ours]
    return [{"name": name} for name in dict.fromkeys(found)]


def volume(site: Site, wanted: Manifest) -> Manifest:
    """Return the volume with its sources under their names on the cluster."""
    found = copy.deepcopy(wanted)
    for at, kind in _VOLUME.items():
        _rename(site, found, at, kind)
    for part in paths.items(found, "projected", "sources"):
        for at, kind in _PROJECTED.items():
            _rename(site, part, at, kind)
    return found


def _rename(site: Site, volume: object, at: tuple[str, ...], kind: str) -> None:
    """Put the name on the cluster in the place of the user's, in a volume that is a copy of our own."""
    if name := paths.text(volume, *at):
        paths.at(volume, *at[:-1])[at[-1]] = site.reference(kind, name)
