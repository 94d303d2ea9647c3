"""The spec of a ModelReplica, as far as code reads it."""

import re
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from modelplane import contracts as c
from modelplane.api.base import Model


def _plain(value: Any) -> Any:
    """Return a copy without nulls and with whole floats as integers.

    Crossplane's protobuf carries every number as a float, and a null would be sent to the cluster as one.
    """
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items() if v is not None}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


_LABEL_RULE = "lower-case letters, digits and hyphens only, with a letter or digit at both ends"


def _is_label(name: str) -> bool:
    return len(name) <= 63 and re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", name) is not None


def _mounted(container: dict[str, Any]) -> set[str]:
    """Return the names of the volumes that a container mounts; junk is passed over."""
    mounts = container.get("volumeMounts")
    found = mounts if isinstance(mounts, list) else []
    return {str(mount.get("name")) for mount in found if isinstance(mount, dict)}


class Selector(Model):
    """A condition on a device."""

    cel: str


class DeviceRequest(Model):
    """Devices that each pod of a member claims."""

    name: str
    device_class_name: str
    # As admitted: each 32 devices are another claim, so a number without bound would never be done with.
    count: int = Field(default=1, ge=1, le=64)
    selectors: tuple[Selector, ...] = ()


class Worker(Model):
    """Size of a gang beside its leader."""

    nodes: int = 1


class TemplateMetadata(Model):
    """Labels and annotations of a member's pods."""

    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)


class PodSpec(Model):
    """The open part of a pod; containers and volumes stay as written, since they are passed on."""

    containers: tuple[dict[str, Any], ...]
    init_containers: tuple[dict[str, Any], ...] = ()
    volumes: tuple[dict[str, Any], ...] = ()
    image_pull_secrets: tuple[dict[str, Any], ...] = ()
    termination_grace_period_seconds: int | None = None

    @field_validator("containers", "init_containers", "volumes", "image_pull_secrets", mode="before")
    @classmethod
    def _passed_on(cls, value: Any) -> Any:
        return _plain(value)

    @field_validator("containers")
    @classmethod
    def _one_engine(cls, value: tuple[dict[str, Any], ...]) -> tuple[dict[str, Any], ...]:
        if sum(1 for x in value if x.get("name") == c.ENGINE_CONTAINER) != 1:
            raise ValueError(f"exactly one container must be named {c.ENGINE_CONTAINER}")
        return value

    @model_validator(mode="after")
    def _names(self) -> "PodSpec":
        """Refuse names that no pod can have, beyond what admission has refused since."""
        seen: set[str] = set()
        for container in (*self.containers, *self.init_containers):
            name = container.get("name")
            if not isinstance(name, str) or not _is_label(name):
                raise ValueError(f"a container is named {name!r}: {_LABEL_RULE}")
            if name in seen or name == c.PROXY_CONTAINER:
                why = "is Modelplane's own" if name == c.PROXY_CONTAINER else "names two containers"
                raise ValueError(f"{name} {why}: give each container of a pod a name of its own")
            seen.add(name)
        for volume in self.volumes:
            if not _is_label(str(volume.get("name"))):
                raise ValueError(f"a volume is named {volume.get('name')!r}: {_LABEL_RULE}")
        return self

    @model_validator(mode="after")
    def _mounts(self) -> "PodSpec":
        """Refuse what no pod can have: Grove and LWS would make none, and say so in events only."""
        known = {str(v.get("name")) for v in self.volumes} | {c.CACHE_VOLUME, c.SHM_VOLUME}
        for container in (*self.containers, *self.init_containers):
            for name in sorted(_mounted(container) - known):
                raise ValueError(
                    f"container {container.get('name')} mounts {name}, "
                    "which is no volume of the member: add it to volumes"
                )
        return self


class PodTemplate(Model):
    """The pods of a member."""

    metadata: TemplateMetadata = TemplateMetadata()
    spec: PodSpec


class Member(Model):
    """Pods of one role in an engine."""

    role: Literal["Standalone", "Leader", "Worker"] = "Standalone"
    node_pool_name: str
    device_requests: tuple[DeviceRequest, ...] = ()
    worker: Worker = Worker()
    template: PodTemplate


class Engine(Model):
    """One serving unit: a single pod, or a gang of a leader and its workers, in identical copies."""

    name: str
    copies: int = 1
    phase: Literal["Prefill", "Decode"] | None = None
    port: int | None = None
    members: tuple[Member, ...]

    @field_validator("members")
    @classmethod
    def _shape(cls, value: tuple[Member, ...]) -> tuple[Member, ...]:
        if sorted(x.role for x in value) not in ([c.STANDALONE], [c.LEADER, c.WORKER]):
            raise ValueError("members must be one Standalone, or one Leader and one Worker")
        return value

    @property
    def is_gang(self) -> bool:
        """Tell whether a copy is more than one pod."""
        return len(self.members) > 1

    @property
    def serving(self) -> Member:
        """The member whose pod answers requests."""
        return next(m for m in self.members if m.role != c.WORKER)

    @property
    def workers(self) -> Member | None:
        """The member of the worker pods; None for a single pod."""
        return next((m for m in self.members if m.role == c.WORKER), None)

    @property
    def gang_size(self) -> int:
        """Pods in one copy."""
        return 1 + (self.workers.worker.nodes if self.workers else 0)


class CacheRef(Model):
    """The ModelCache with the weights."""

    name: str


class Serving(Model):
    """How requests flow through the engines."""

    mode: Literal["Unified", "PrefillDecode"] = "Unified"
    kv_block_size: int | None = None


class ModelReplicaSpec(Model):
    """One placed replica of a ModelDeployment."""

    cluster_name: str
    labels: dict[str, str] = Field(default_factory=dict)
    model_cache_ref: CacheRef | None = None
    serving: Serving = Serving()
    engines: tuple[Engine, ...]

    @field_validator("engines")
    @classmethod
    def _some(cls, value: tuple[Engine, ...]) -> tuple[Engine, ...]:
        if not value:
            raise ValueError("at least one engine is needed")
        return value

    @model_validator(mode="after")
    def _phases(self) -> "ModelReplicaSpec":
        wanted = [c.DECODE, c.PREFILL]
        if self.serving.mode == c.PREFILL_DECODE and sorted(e.phase or "" for e in self.engines) != wanted:
            raise ValueError("serving.mode PrefillDecode needs one Prefill and one Decode engine")
        return self

    @model_validator(mode="after")
    def _staged(self) -> "ModelReplicaSpec":
        """Refuse a mount of weights that nobody stages: its volume would be missing from the pod."""
        if self.model_cache_ref is not None:
            return self
        for engine in self.engines:
            for member in engine.members:
                pod = member.template.spec
                for container in (*pod.containers, *pod.init_containers):
                    if c.CACHE_VOLUME in _mounted(container):
                        raise ValueError(
                            f"engine {engine.name}, {member.role}: container {container['name']} mounts "
                            f"{c.CACHE_VOLUME}, and there is no modelCacheRef: set it in the "
                            "ModelDeployment's template, or mount a volume of its own"
                        )
        return self

    def phase(self, name: str) -> Engine | None:
        """Return the engine of that phase; None unless requests are split in phases."""
        if self.serving.mode != c.PREFILL_DECODE:
            return None
        return next((e for e in self.engines if e.phase == name), None)
