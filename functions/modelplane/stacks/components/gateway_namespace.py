"""The namespace of what belongs to the platform on a serving cluster: the gateway, above all."""

from modelplane import contracts as c
from modelplane.stacks.component import ObjectsComponent, namespace

COMPONENT = ObjectsComponent(
    key="gateway-namespace",
    own=True,
    documents=lambda _: [namespace(c.SYSTEM_NAMESPACE)],
)
