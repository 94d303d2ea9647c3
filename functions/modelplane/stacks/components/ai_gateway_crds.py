"""Envoy AI Gateway's own CRDs. Its chart has them as templates, so an upgrade brings new ones."""

from modelplane import contracts as c
from modelplane.stacks.component import ChartComponent, Check, Crds

COMPONENT = ChartComponent(
    key="ai-gateway-crds",
    pin="ai-gateway-crds",
    namespace=c.AI_GATEWAY_NAMESPACE,
    crds=Crds.TEMPLATES,
    provides=(Check.serves(c.AI_GATEWAY_API),),
)
