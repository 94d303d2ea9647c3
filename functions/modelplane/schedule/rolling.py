"""How a new template reaches replicas that run: a few at a time, within the strategy's bounds.

The pace is Kubernetes' own for Deployments (pkg/controller/deployment, rolling.go): never more than the
wanted number plus maxSurge, never fewer that serve than the wanted number minus maxUnavailable.
"""

from collections.abc import Sequence

from modelplane.schedule.ask import Ask, Rolling
from modelplane.schedule.seats import Seat, State
from modelplane.schedule.views import Replica


def outdated(ask: Ask, replica: Replica) -> Seat | None:
    """Return the seat of a replica that runs an older template, or None; unmarked ones run this one."""
    if ask.rolling is None or replica.revision in ("", ask.revision):
        return None
    why = "it runs an older template"
    return Seat(replica.cluster, replica.index, State.LEAVING, {}, replica, why, outdated=True)


def allowance(ask: Ask, good: int, old: int) -> int:
    """Return how many new replicas may be placed in this pass."""
    wanted = max(0, ask.replicas - good)
    if ask.rolling is None or not old:
        return wanted
    return min(wanted, max(0, ask.replicas + ask.rolling.surge - good - old))


def kept(ask: Ask, old: Sequence[Seat], good: Sequence[Seat]) -> list[Seat]:
    """Return the outdated ones that stay this pass: those that do not serve go first."""
    pace = ask.rolling or Rolling(0, 0)
    least = max(0, ask.replicas - pace.unavailable)
    starting = sum(1 for s in good if not s.ready)
    idle = [s for s in old if not s.ready]
    serving = [s for s in old if s.ready]
    spare = max(0, len(old) + len(good) - least - starting)
    goes = max(0, len(serving) + len(good) - starting - least)
    return [*serving[: max(0, len(serving) - goes)], *idle[: max(0, len(idle) - spare)]]
