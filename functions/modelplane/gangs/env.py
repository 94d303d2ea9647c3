"""The environment Modelplane adds to an engine: one contract, whatever controller makes the pods.

Managed entries stand before the user's, since kubelet expands `$(NAME)` from left to right (Kubernetes,
"Define Dependent Environment Variables").
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from modelplane import contracts as c
from modelplane.core.paths import Manifest
from modelplane.gangs.site import Site

MX_REVISION = "MX_MODEL_REVISION"


def value(name: str, literal: str) -> Manifest:
    """Return an entry with a literal, in which kubelet expands `$(NAME)`."""
    return {"name": name, "value": literal}


def field(name: str, path: str) -> Manifest:
    """Return an entry that reads a field of the pod; apiVersion is written, else the API server adds it."""
    return {"name": name, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}}


def contract(leader_address: str, rank: str, gang_size: int) -> list[Manifest]:
    """Return what every pod of a gang knows of it: the same three names on both stacks."""
    return [
        value(c.ENV_LEADER_ADDRESS, leader_address),
        value(c.ENV_RANK, rank),
        value(c.ENV_GANG_SIZE, str(gang_size)),
    ]


def cache() -> list[Manifest]:
    """Return what points hub clients at the staged weights."""
    return [value(c.ENV_HF_CACHE, c.CACHE_MOUNT)]


def model_express(site: Site, fabric: str, host: str, port: int) -> list[Manifest]:
    """Return what ModelExpress clients read; nothing without a server or without staged weights.

    Args:
        site: where the engine runs.
        fabric: of the member's pool.
        host: where the engine's API answers, seen from this pod.
        port: of the engine's API.
    """
    if not site.is_dynamo or site.cache is None:
        return []
    server = f"{c.MODELEXPRESS_SERVER}.{c.MODELEXPRESS_NAMESPACE}.svc:{c.MODELEXPRESS_PORT}"
    entries = [
        value("MX_SERVER_ADDRESS", server),
        # Deprecated, but it wins where both are set, and some clients read only this one
        # (modelexpress v0.5.1, docs/DEPLOYMENT.md).
        value("MODEL_EXPRESS_URL", server),
        value(MX_REVISION, site.cache.identity),
        value("MX_P2P_METADATA", "1"),
        # A source is published once this answers; the client's own guess is port 8000 of the pod, where a
        # worker has no API (modelexpress v0.5.1, docs/metadata.md).
        value("MX_ARTIFACT_READY_URL", f"http://{host}:{port}{c.HEALTH_PATH}"),
        field("POD_NAME", "metadata.name"),
        field("POD_UID", "metadata.uid"),
        field("POD_NAMESPACE", "metadata.namespace"),
    ]
    if fabric == c.FABRIC_EFA:
        # UCX falls to TCP on EFA without a word (dynamo, docs/kubernetes/cloud-providers/eks/efa.md).
        entries.append(value("MX_NIXL_BACKEND", "LIBFABRIC"))
    return entries


def for_fabric(fabric: str) -> list[Manifest]:
    """Return what libfabric needs on EFA; nothing on other fabrics or none.

    FI_EFA_USE_DEVICE_RDMA stays unset: libfabric then uses RDMA where the device has it, while a set one
    aborts the ranks on devices without (fi_efa(7)).
    """
    if fabric != c.FABRIC_EFA:
        return []
    return [value("FI_PROVIDER", "efa"), value("FI_EFA_ENABLE_SHM_TRANSFER", "0")]


def phase(fabric: str) -> list[Manifest]:
    """Return what prefill and decode engines need to hand key-value blocks to each other."""
    entries = [
        # The default is the loopback address, useless across nodes (vllm #24249).
        field("VLLM_NIXL_SIDE_CHANNEL_HOST", "status.podIP"),
        value("VLLM_NIXL_SIDE_CHANNEL_PORT", str(c.NIXL_PORT)),
    ]
    if fabric == c.FABRIC_EFA:
        entries.append(value("SGLANG_DISAGGREGATION_NIXL_BACKEND", "LIBFABRIC"))
    return entries


def merge(managed: Sequence[Manifest], user: Iterable[Mapping[str, Any]]) -> list[Manifest]:
    """Return managed entries, then the user's, every name once.

    Grove's webhook refuses two entries of one name. The user's wins, except over the gang's own contract; of
    two of the user's the last wins, as in Kubernetes.
    """
    fixed = {e["name"] for e in managed if _is_ours(e["name"])}
    own: dict[str, Manifest] = {}
    for entry in user:
        name = str(entry.get("name", ""))
        if name not in fixed:
            own.pop(name, None)
            own[name] = dict(entry)
    return [*(e for e in managed if e["name"] not in own), *own.values()]


def refused(managed: Sequence[Manifest], user: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the names of the user's entries that `merge` leaves out in favour of the gang's contract."""
    fixed = {e["name"] for e in managed if _is_ours(e["name"])}
    return sorted({str(e.get("name")) for e in user} & fixed)


def _is_ours(name: str) -> bool:
    return name.startswith(c.ENV_RESERVED_PREFIX)
