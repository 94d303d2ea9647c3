"""The InferencePool API: what a replica's route points at, and the endpoint picker chooses within."""

from modelplane import contracts as c
from modelplane.stacks import crd
from modelplane.stacks.component import Check, ObjectsComponent

PIN = "inference-pool-crd"

COMPONENT = ObjectsComponent(
    key="inference-pool-crd",
    pin=PIN,
    documents=lambda context: crd.documents(context.release.pin(PIN)),
    provides=(Check.serves(c.INFERENCE_API),),
)
