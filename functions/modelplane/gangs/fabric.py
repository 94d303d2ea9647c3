"""What a member has of the fabric between its pool's nodes."""

from collections.abc import Mapping
from typing import Any

from modelplane import contracts as c
from modelplane.api.model_replica import Member
from modelplane.core import paths
from modelplane.gangs.site import Site

_DRIVER = (f'"{c.EFA_DRIVER}"', f"'{c.EFA_DRIVER}'")


def in_use(site: Site, member: Member) -> str:
    """Return the fabric the member's pods reach; empty where the pool has none or the member asks for none.

    EFA interfaces stand in a pod only where it asks for them, and libfabric or NIXL told to use them fails
    where there are none. InfiniBand needs no asking: how its devices come into pods is the cluster's affair.
    """
    fabric = site.fabric(member.node_pool_name)
    return fabric if fabric != c.FABRIC_EFA or _asks_for_efa(member) else ""


def _asks_for_efa(member: Member) -> bool:
    if any(
        request.device_class_name == c.EFA_DEVICE_CLASS
        or any(_names_driver(s.cel) for s in request.selectors)
        for request in member.device_requests
    ):
        return True
    return any(_takes_efa(container) for container in member.template.spec.containers)


def _names_driver(expression: str) -> bool:
    return any(quoted in expression for quoted in _DRIVER)


def _takes_efa(container: Mapping[str, Any]) -> bool:
    return container.get("name") == c.ENGINE_CONTAINER and any(
        c.EFA_RESOURCE in paths.mapping(container, "resources", kind) for kind in ("limits", "requests")
    )
