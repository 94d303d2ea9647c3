"""KAI at work: its chart installs an operator only, which then runs the scheduler and the queues' webhook.

Without this look a scheduler whose image cannot be pulled would read as ready, and every gang would pend.
"""

from modelplane import contracts as c
from modelplane.core.builders import OBSERVE_ONLY
from modelplane.stacks.component import Check, Document, ObjectsComponent, condition_true

# What the operator says of the services and of the scheduler that it runs (kai-scheduler/KAI-Scheduler,
# docs/operator/README.md "Status Conditions"; pkg/operator/controller/status_reconciler). The first name is
# the operator's only one, the second the chart's (templates/default-shard.yaml).
_SERVICES = ("Config", "kai-config")
_SCHEDULER = ("SchedulingShard", "default")
_AVAILABLE = condition_true("Available")


def _look(name: str, sought: tuple[str, str]) -> Document:
    kind, called = sought
    manifest = {"apiVersion": c.KAI_CONFIG_API, "kind": kind, "metadata": {"name": called}}
    return Document(manifest, _AVAILABLE, name, OBSERVE_ONLY)


COMPONENT = ObjectsComponent(
    key="kai-services",
    after=("kai-scheduler",),
    documents=lambda _: [_look("config", _SERVICES), _look("shard", _SCHEDULER)],
    # Shards may have any name there.
    provides=(Check(c.KAI_CONFIG_API, *_SERVICES, _AVAILABLE),),
)
