"""What one InferenceCluster composer asks of a cloud: a value per cloud, no copy of the composer.

A cloud that provisions is a composite of its own (EKSCluster) behind a status contract: `secrets[]` with a
Kubeconfig once the cluster is Ready, `cache.storageClassName`, `nodePools[]`. Who fulfils it is its own
Composition's business, so a platform team may replace it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from modelplane.api.inference_cluster import InferenceClusterSpec, NodePool
from modelplane.core.paths import Manifest


@dataclass(frozen=True, slots=True)
class Secret:
    """An entry of `spec.secrets[]` and `status.secrets[]`; an empty namespace is that of its object."""

    type: str
    name: str
    key: str
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class Provision:
    """How a cloud is asked for a cluster.

    Attributes:
        kind: of the composite that makes it, in the infrastructure group.
        key: its composition resource name.
        provider: the value of an InferenceClass's `provisioning.provider` that fits.
        spec: the composite's spec, given its pools.
        pool: one of its pools, from ours and the recipe.
        recipe: the part of a pool that an InferenceClass decides, or None where the class has no such block.
        recorded: the same part, read back from a pool of an observed composite; None where it is not there.
    """

    kind: str
    key: str
    provider: str
    spec: Callable[[InferenceClusterSpec, Sequence[Manifest]], Manifest]
    pool: Callable[[NodePool, Mapping[str, Any]], Manifest]
    recipe: Callable[[Mapping[str, Any]], Manifest | None]
    recorded: Callable[[Mapping[str, Any]], Manifest | None]


@dataclass(frozen=True, slots=True)
class Cloud:
    """A source of clusters.

    Attributes:
        source: the value of `spec.cluster.source`.
        block: the field of `spec.cluster` that it reads; an absent one is an invalid spec.
        notes: what a pool's owner should know about it here.
        provision: how it is made; None where the cluster exists.
        secrets: how an existing cluster is reached; none where the composite's status tells.
        storage_class: for ReadWriteMany volumes of an existing cluster; empty where the status tells.
        lifeline: API and kind of what may carry the mark of a leaf that the stack needs to be taken down; all
            else of the cloud outlives it in turn. None where there is none.
        provided: whether the stack's components are somebody else's; None where they are always ours.
    """

    source: str
    block: str
    notes: Callable[[NodePool], Sequence[str]]
    provision: Provision | None = None
    secrets: Callable[[InferenceClusterSpec], Sequence[Secret]] = lambda _: ()
    lifeline: tuple[str, str] | None = None
    storage_class: Callable[[InferenceClusterSpec], str] = lambda _: ""
    provided: Callable[[InferenceClusterSpec], str | None] = lambda _: None
