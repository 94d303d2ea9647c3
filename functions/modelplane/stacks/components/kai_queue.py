"""The queue that every engine pod of the Dynamo stack is in."""

from modelplane import contracts as c
from modelplane.stacks import queue
from modelplane.stacks.component import ON_APPLY, Document, ObjectsComponent

COMPONENT = ObjectsComponent(
    key="kai-queue",
    own=True,
    needs=("kai-queue-root",),
    documents=lambda _: [Document(queue.unlimited(c.KAI_QUEUE, c.KAI_ROOT_QUEUE), ON_APPLY)],
)
