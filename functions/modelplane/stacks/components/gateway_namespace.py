"""The namespace of what belongs to the platform on a serving cluster: the gateway, above all.

It stays when the stack goes. Where a control plane serves too, everything of the fleet is in it.
"""

from modelplane import contracts as c
from modelplane.core.builders import WITHOUT_DELETE
from modelplane.stacks.component import ObjectsComponent, namespace

COMPONENT = ObjectsComponent(
    key="gateway-namespace",
    own=True,
    documents=lambda _: [namespace(c.SYSTEM_NAMESPACE, WITHOUT_DELETE)],
)
