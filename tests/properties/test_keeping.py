"""Whatever a plan says, nothing that it names and that runs is dropped."""

from __future__ import annotations

import copy

from hypothesis import given
from hypothesis import strategies as st

from builders.core import desired, kind, ready, thing, widget
from modelplane.core import Desired, Inputs, Plan, Waiting, settle
from modelplane.core.paths import Manifest

BUILT = kind(conditions=("Built", "Sent"))
KEYS = st.sampled_from("abcdef")


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    keys = draw(st.lists(KEYS, unique=True))
    edges = st.lists(st.sampled_from(keys), unique=True, max_size=2) if keys else st.just([])
    resources: list[Desired | Waiting] = []
    for key in keys:
        if draw(st.booleans()):
            resources.append(Waiting(key, "x"))
        else:
            after, outlives = draw(edges), [k for k in draw(edges) if k != key]
            resources.append(
                desired(
                    key, blocked=draw(st.sampled_from(["", "no"])), after=(*after,), outlives=(*outlives,)
                )
            )
    return Plan(resources, keep=frozenset(draw(st.sets(KEYS))), keep_all=draw(st.booleans()))


OBSERVED = st.dictionaries(KEYS, st.sampled_from(["True", "False", "none"])).map(
    lambda states: {k: thing(k) if s == "none" else ready(thing(k), s) for k, s in states.items()}
)


@given(plans(), OBSERVED)
def test_whatever_the_plan_names_and_is_observed_stays(plan: Plan, observed: dict[str, Manifest]) -> None:
    inputs = Inputs(widget(), observed)
    before = copy.deepcopy(inputs)
    found = settle.settle(BUILT, plan, inputs)
    named = {r.key for r in plan.resources} | plan.keep
    assert inputs == before, "inputs are never written to"
    assert (set(observed) if plan.keep_all else named & set(observed)) <= set(found.resources)
    assert {r.key for r in plan.resources} <= set(found.resources) | set(found.held_back)
    assert not set(found.resources) & set(found.held_back)
    assert settle.settle(BUILT, plan, Inputs(widget(), dict(reversed(observed.items())))) == found
