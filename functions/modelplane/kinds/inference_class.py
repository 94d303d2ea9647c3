"""InferenceClass: the shape of a GPU node. Data that others read; it composes nothing."""

from modelplane import contracts as c
from modelplane.core import Condition, Inputs, Kind, Plan

AVAILABLE = "Available"


def compose(_: Inputs) -> Plan:
    """Return the Plan of any InferenceClass: admission has judged it, and nothing is composed."""
    return Plan(conditions=[Condition(c.ACCEPTED, True, AVAILABLE)])


KIND = Kind(c.API, "InferenceClass", compose, (c.ACCEPTED,))
