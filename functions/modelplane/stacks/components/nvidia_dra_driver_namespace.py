"""The DRA driver's namespace, before its quota can stand in it."""

from modelplane import contracts as c
from modelplane.stacks.component import ObjectsComponent, namespace

COMPONENT = ObjectsComponent(
    key="nvidia-dra-driver-namespace",
    documents=lambda _: [namespace(c.DRA_DRIVER_NAMESPACE)],
)
