"""ModelExpress's record kinds: the server lists one of each when it starts, and exits if it cannot."""

from modelplane.stacks import crd
from modelplane.stacks.component import ObjectsComponent

PIN = "modelexpress-crds"

COMPONENT = ObjectsComponent(
    key="modelexpress-crds",
    pin=PIN,
    own=True,
    documents=lambda context: crd.documents(context.release.pin(PIN)),
)
