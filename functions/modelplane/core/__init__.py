"""The pure core: values that say what a composite wants, and the rules that hold for every kind."""

from modelplane.core.inputs import Inputs, Kind
from modelplane.core.paths import Manifest
from modelplane.core.plan import (
    Condition,
    Desired,
    Event,
    Hold,
    InvalidSpecError,
    Plan,
    PlanError,
    Ready,
    Requirement,
    Waiting,
)
from modelplane.core.settle import Answer, Composed

__all__ = [
    "Answer",
    "Composed",
    "Condition",
    "Desired",
    "Event",
    "Hold",
    "Inputs",
    "InvalidSpecError",
    "Kind",
    "Manifest",
    "Plan",
    "PlanError",
    "Ready",
    "Requirement",
    "Waiting",
]
