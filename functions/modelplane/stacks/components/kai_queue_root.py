"""The parent of our queue: KAI gives work to leaf queues only."""

from modelplane import contracts as c
from modelplane.stacks import queue
from modelplane.stacks.component import ON_APPLY, Document, ObjectsComponent

COMPONENT = ObjectsComponent(
    key="kai-queue-root",
    own=True,
    needs=("kai-scheduler",),
    # Its webhook answers by then; before, every try is refused.
    after=("kai-services",),
    documents=lambda _: [Document(queue.unlimited(c.KAI_ROOT_QUEUE), ON_APPLY)],
)
