"""A namespace for ModelExpress alone: its Role reaches every ConfigMap there."""

from modelplane import contracts as c
from modelplane.stacks.component import ObjectsComponent, namespace

COMPONENT = ObjectsComponent(
    key="modelexpress-namespace",
    own=True,
    documents=lambda _: [namespace(c.MODELEXPRESS_NAMESPACE)],
)
