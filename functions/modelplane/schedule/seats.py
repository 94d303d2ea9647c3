"""What the scheduler answers: where each replica sits, and why the others sit nowhere."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from modelplane.schedule.views import Replica


class State(Enum):
    """What becomes of a replica."""

    NEW = "new"
    # Runs the deployment's present template, on the pools it has.
    KEPT = "kept"
    # Stays exactly as it is observed: what decides about it is not in view.
    AS_IS = "as it is"
    # Runs an older template, or on a cluster it must leave, until others have taken over.
    LEAVING = "leaving"


@dataclass(frozen=True, slots=True)
class Bench:
    """An engine's place: its pool, and the device class of each claimed request, member by member."""

    pool: str
    classes: tuple[Mapping[str, str], ...]


@dataclass(frozen=True, slots=True)
class Seat:
    """A replica's place.

    Attributes:
        cluster: its InferenceCluster.
        index: tells replicas on one cluster apart.
        state: what becomes of it.
        benches: by engine; empty for one that stays as it is.
        replica: as observed; None for a new one.
        why: why it leaves, or why it cannot be looked at.
        urgent: a leaving one that must go even where nothing takes its place.
        yields: a leaving one that took, at the same moment, what another deployment now holds.
        doubtful: one that stays as it is and might be leaving, were all in view: it fills a place, but is no
            surplus that scaling down may take.
        outdated: a leaving one that runs an older template and is replaced at the strategy's pace.
        replaces: name of the leaving replica that goes once this one serves.
        lost: one that does not serve: which of its pools has lost nodes that what is placed there needs.
    """

    cluster: str
    index: int
    state: State
    benches: Mapping[str, Bench] = field(default_factory=dict)
    replica: Replica | None = None
    why: str = ""
    urgent: bool = False
    yields: bool = False
    doubtful: bool = False
    outdated: bool = False
    replaces: str = ""
    lost: str = ""

    @property
    def ready(self) -> bool:
        """Whether it is observed and serves."""
        return self.replica is not None and self.replica.ready


class Cause(Enum):
    """What kept a cluster from taking a replica; the nearest to a fit stands first."""

    ROOM = "no room"
    DEVICES = "no matching devices"
    POOLS = "no pools"
    CACHE_CLASS = "no storage class for caches"
    GATEWAY = "no gateway address"
    NOT_READY = "not ready"
    TAINT = "a taint that is not tolerated"
    FOOTPRINT = "outside the cache's footprint"
    LABELS = "other labels than the selector's"


NEARNESS = {cause: at for at, cause in enumerate(Cause)}


@dataclass(frozen=True, slots=True)
class Why:
    """Why a cluster, or one pool of it, could not take a replica."""

    cluster: str
    cause: Cause
    tell: Callable[[], str]
    pool: str = ""

    @property
    def reason(self) -> str:
        """The cause in words, with what is needed and what is there."""
        return self.tell()


@dataclass(frozen=True, slots=True)
class Outcome:
    """The scheduler's answer.

    Attributes:
        seats: every replica that stays or comes, by cluster and index.
        missing: wanted replicas without a seat of their own, and without an outdated one that stands in.
        whys: where there are missing ones: what ruled each cluster or pool out.
        checked: clusters that were looked at for them.
        gone: replicas that were there and do not stay; one without a reason was beyond the wanted number.
    """

    seats: Sequence[Seat] = ()
    missing: int = 0
    whys: Sequence[Why] = ()
    checked: int = 0
    gone: Sequence[Seat] = ()
