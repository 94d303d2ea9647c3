"""What a component of a serving stack is.

A component is one file in `components/` that exports `COMPONENT`, one line in a stack's list, and its pin in
facts/versions.yaml: nothing else knows it. It says what it installs, what it needs, and when it works; order
of creation, order of removal, readiness, status and the checks of a Provided cluster follow from that.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from modelplane import contracts as c
from modelplane.core.paths import Manifest
from modelplane.facts.versions import Pin, Release
from modelplane.stacks.rival import Rival

# For objects without a state of their own (a Role, a ResourceQuota): they work once they are applied.
ON_APPLY = ""

_OCI = "oci://"


class ComponentError(Exception):
    """Raised for a component that contradicts itself or its stack: always our bug."""


class Crds(Enum):
    """How a chart's CRDs become those of a newer version; Helm never touches a `crds/` folder again."""

    UNSTATED = "nobody has said: refused"
    NONE = "it has none"
    TEMPLATES = "they are templates, so an upgrade brings them"
    ITSELF = "a hook or an init container of the chart applies them"
    FOLDER = "only the first install brings them: a Job applies them in a move between releases"


@dataclass(frozen=True, slots=True)
class Listener:
    """A listener of the cluster's gateway."""

    name: str
    port: int
    protocol: str


@dataclass(frozen=True, slots=True)
class Images:
    """Where images and charts come from instead of their public sources.

    Attributes:
        mirror: registry host, with an optional path; empty for the public sources.
        pull_secret: name of a Secret with credentials for it, beside the Releases; empty for none. Pods name
            a copy of it in their own namespace.
    """

    mirror: str = ""
    pull_secret: str = ""

    def image(self, image: str) -> str:
        """Return where an image is pulled from; its first part is the source registry."""
        return f"{self.mirror}/{image.partition('/')[2]}" if self.mirror else image

    def repository(self, repository: str) -> str:
        """Return where a chart is pulled from. A mirror is a registry, so it serves OCI charts only."""
        if not self.mirror or not repository.startswith(_OCI):
            return repository
        return f"{_OCI}{self.image(repository.removeprefix(_OCI))}"


@dataclass(frozen=True, slots=True)
class Context:
    """All that a component's values and manifests may depend on.

    Attributes:
        release: the pins.
        cloud: where the cluster runs, as in the spec.
        gateway_class: name of the GatewayClass.
        listeners: of the gateway.
        images: mirror and pull secret.
        pool_taints: keys of taints on GPU nodes beside the GPU's own.
        crd_charts: pins of the charts whose CRDs have to be applied for them now, in a move between releases.
    """

    release: Release
    cloud: str = c.EXISTING
    gateway_class: str = c.CLUSTER_GATEWAY_CLASS
    listeners: Sequence[Listener] = (Listener("http", 80, "HTTP"),)
    images: Images = field(default_factory=Images)
    pool_taints: Sequence[str] = ()
    crd_charts: Sequence[Pin] = ()

    @property
    def node_tolerations(self) -> list[Manifest]:
        """Tolerations for what must run on every GPU node, and on no other tainted one: each has a key."""
        keys = dict.fromkeys((c.GPU_TAINT, *self.pool_taints))
        return [{"key": key, "operator": "Exists"} for key in keys]


@dataclass(frozen=True, slots=True)
class Document:
    """One object a component puts on the cluster.

    Attributes:
        manifest: what is applied.
        ready: when it works: a CEL query over it, or `ON_APPLY`.
        name: ends its composed key after the component's, where a component has several; else empty.
        policies: what the provider may do with it; empty for everything.
    """

    manifest: Manifest
    ready: str
    name: str = ""
    policies: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Check:
    """What a Provided cluster must have itself in place of a component.

    The object is only observed. It must be small: the provider copies it whole into its own status.

    Attributes:
        api_version: of the object to look for.
        kind: of it.
        name: of it.
        ready: when it counts: a CEL query, or `ON_APPLY` where being there is enough.
    """

    api_version: str
    kind: str
    name: str
    ready: str

    @classmethod
    def serves(cls, api: str) -> "Check":
        """Look for an API, such as `grove.io/v1alpha1`, whoever installed it and wherever.

        The API server makes an APIService for every version of every CRD group. It is a few lines, where the
        CRD itself may be a megabyte.
        """
        group, _, version = api.partition("/")
        return cls(
            "apiregistration.k8s.io/v1", "APIService", f"{version}.{group}", condition_true("Available")
        )


def _no_values(_: Context) -> Manifest:
    return {}


def _no_rivals(_: Context) -> Sequence[Rival]:
    return ()


@dataclass(frozen=True, slots=True)
class Fixed:
    """A value of ours that the platform may not change.

    Attributes:
        path: of the value.
        why: what does not work otherwise.
    """

    path: tuple[str, ...]
    why: str


@dataclass(frozen=True, slots=True)
class Component:
    """One component of a stack: a Helm chart, or objects.

    Attributes:
        key: its name in status and in `spec.components`, and its composed key.
        pin: key of its pin; empty for objects of our own.
        needs: components that must work before it is created, and that must outlive it.
        after: components that must work before it is created, and may go before it does.
        outlives: components that must be gone before it may go, besides those that need it.
        provides: what a Provided cluster must have instead; empty where nothing can or need be checked.
        own: it is ours, so a Provided cluster gets it too.
        optional: a Provided cluster may lack it, and `spec.components` may leave it out.
        namespace: where its pods run, and a chart goes to; empty where it runs none.
        rivals: what must not be on an existing cluster already when it is first installed there.
    """

    key: str
    pin: str = ""
    needs: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    outlives: tuple[str, ...] = ()
    provides: tuple[Check, ...] = ()
    own: bool = False
    optional: bool = False
    namespace: str = ""
    rivals: Callable[[Context], Sequence[Rival]] = _no_rivals


@dataclass(frozen=True, slots=True)
class ChartComponent(Component):
    """A Helm chart. It works once its release is deployed and its pods run: every release waits for them.

    Attributes:
        release_name: for charts that insist on one.
        values: what we set.
        mirrored: what is set besides when images come from a mirror or need a pull secret.
        rolls_back: whether the chart supports `helm rollback` after an upgrade that failed.
        crds: how its CRDs follow an upgrade.
        fixed: values of ours without which the stack does not work.
    """

    release_name: str = ""
    values: Callable[[Context], Manifest] = _no_values
    mirrored: Callable[[Images], Manifest] = field(default=lambda _: {})
    rolls_back: bool = True
    crds: Crds = Crds.UNSTATED
    fixed: tuple[Fixed, ...] = ()

    def merged(self, context: Context, overrides: Mapping[str, Any]) -> Manifest:
        """Return the values: ours, then those for the mirror, then the platform's."""
        ours = merge(self.values(context), self.mirrored(context.images))
        return merge(ours, overrides)


@dataclass(frozen=True, slots=True)
class ObjectsComponent(Component):
    """Objects that are applied one by one."""

    documents: Callable[[Context], Sequence[Document]] = field(default=lambda _: ())


def pin_of(component: Component, context: Context) -> Pin | None:
    """Return the component's pin in the release, or None where it has none."""
    return context.release.pin(component.pin) if component.pin else None


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> Manifest:
    """Return both, `over` winning key by key. A list replaces a list; a null takes our key away."""
    merged = dict(base)
    for key, value in over.items():
        here = merged.get(key)
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, Mapping):
            merged[key] = merge(here if isinstance(here, Mapping) else {}, value)
        else:
            merged[key] = value
    return merged


def condition_true(type_: str) -> str:
    """Return the readiness query: the object's status condition of that type is True.

    Guarded with has(), since a query that errors before the status exists reads as a failure.
    """
    return (
        "has(object.status) && has(object.status.conditions) && "
        f'object.status.conditions.exists(c, c.type == "{type_}" && c.status == "True")'
    )


def pull_secrets(images: Images) -> list[Manifest]:
    """Return the imagePullSecrets for a pod; an empty list for none."""
    return [{"name": c.PULL_SECRET}] if images.pull_secret else []


def namespace(name: str, policies: tuple[str, ...] = ()) -> Document:
    """Return a namespace of our own, ready when it takes objects."""
    return Document(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}},
        'has(object.status) && has(object.status.phase) && object.status.phase == "Active"',
        policies=policies,
    )
