"""A cluster that somebody else runs: nothing is provisioned, its kubeconfig is a Secret they made."""

from collections.abc import Sequence

from modelplane import contracts as c
from modelplane.api.inference_cluster import Existing, InferenceClusterSpec, NodePool
from modelplane.clouds.cloud import Cloud, Secret

# Fields of a pool that only a cloud can act on; v0.4 admits them here, so they are named, not refused.
_CLOUD_ONLY = {
    "capacity_block": "capacityBlock",
    "reservation": "reservation",
    "purchase": "purchase",
    "local_storage": "localStorage",
    "taints": "taints",
    "labels": "labels",
}


def _block(spec: InferenceClusterSpec) -> Existing:
    block = spec.cluster.existing
    if block is None:
        raise ValueError("spec.cluster.existing is absent")
    return block


def _secrets(spec: InferenceClusterSpec) -> Sequence[Secret]:
    block = _block(spec)
    found = [Secret(c.KUBECONFIG, block.secret_ref.name, block.secret_ref.key)]
    if identity := block.identity_secret_ref:
        found.append(Secret(identity.type, identity.name, identity.key))
    return found


def _notes(pool: NodePool) -> Sequence[str]:
    unused = [wire for field, wire in _CLOUD_ONLY.items() if getattr(pool, field)]
    if not unused:
        return ()
    return (f"{', '.join(unused)} not applied: the nodes of an Existing cluster are not ours to make",)


EXISTING = Cloud(
    source=c.EXISTING,
    block="existing",
    notes=_notes,
    secrets=_secrets,
    storage_class=lambda spec: _block(spec).cache.storage_class_name,
    provided=lambda spec: _block(spec).components,
)
