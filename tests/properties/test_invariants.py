"""The design's invariants as properties, over every call that any example makes at any pass."""

import copy
import os
import random
from typing import Any

import pytest
from crossplane.function.proto.v1 import run_function_pb2 as fnv1
from hypothesis import given, settings
from hypothesis import strategies as st

import fleets
from modelplane import contracts as c
from modelplane.core import Inputs, Manifest, paths
from modelplane.kinds.registry import KINDS
from modelplane.render import adapter
from modelplane.shell.respond import Responder

# The fleets: what a platform and a team would run. The other folders are parts of them.
FLEETS = fleets.FLEETS

JUNK: list[Any] = [None, 7, "", "junk", [], {}, [None], {"a": None}]
# More examples find more: MODELPLANE_EXAMPLES=1000 for an hour of doubt before a release.
EXAMPLES = int(os.environ.get("MODELPLANE_EXAMPLES", "60"))
RULES = settings(
    max_examples=EXAMPLES,
    derandomize=EXAMPLES == 60,
)


def _calls(folder: str) -> list[fleets.Call]:
    return [call for call in fleets.played(folder).calls if call.inputs.observed]


def _corrupt(data: st.DataObject, obj: Manifest) -> Manifest:
    """One object with one field, somewhere, turned into junk or taken away."""
    broken = copy.deepcopy(obj)
    here: Any = broken
    for _ in range(data.draw(st.integers(0, 4), label="depth")):
        steps = list(here) if isinstance(here, dict) else list(range(len(here)))
        steps = [s for s in steps if isinstance(here[s], (dict, list)) and here[s]]
        if not steps:
            break
        here = here[data.draw(st.sampled_from(steps), label="step")]
    if isinstance(here, dict) and here:
        key = data.draw(st.sampled_from(sorted(here)), label="key")
        if data.draw(st.booleans(), label="drop"):
            del here[key]
        else:
            here[key] = data.draw(st.sampled_from(JUNK), label="junk")
    elif isinstance(here, list):
        here.clear()
    return broken


def _damaged(data: st.DataObject, call: fleets.Call) -> Inputs:
    """The call's snapshot with one observed or required object vanished, renamed or corrupted."""
    observed = dict(call.inputs.observed)
    required = {k: list(v) for k, v in call.inputs.required.items()}
    places = [("observed", k, 0) for k in sorted(observed)]
    places += [("required", k, i) for k in sorted(required) for i in range(len(required[k]))]
    where, key, index = data.draw(st.sampled_from(places), label="object")
    how = data.draw(st.sampled_from(["vanish", "rename", "corrupt", "corrupt"]), label="how")
    obj = observed[key] if where == "observed" else required[key][index]
    if how == "rename":
        obj = {**obj, "metadata": {**obj["metadata"], "name": "renamed"}}
    elif how == "corrupt":
        obj = _corrupt(data, obj)
    if where == "observed":
        observed[key] = obj
        if how == "vanish":
            del observed[key]
    else:
        required[key][index : index + 1] = [] if how == "vanish" else [obj]
    return Inputs(call.inputs.composite, observed, required)


def says_not_ready(obj: Manifest | None) -> bool:
    return paths.condition(obj, c.READY).get("status") == "False"


@pytest.mark.parametrize("folder", FLEETS)
@RULES
@given(data=st.data())
def test_never_shrinks_on_doubt(folder: str, data: st.DataObject) -> None:
    """Invariant 1: what is observed stays desired, or a fatal result keeps all of it."""
    call = data.draw(st.sampled_from(_calls(folder)), label="call")
    inputs = _damaged(data, call)
    reply = fleets.real_function()(inputs)
    if reply.fatal:
        assert "internal error" not in reply.fatal, reply.fatal
        return
    assert reply.answer is not None
    assert call.reply.answer is not None
    before = call.reply.answer.resources.keys() & call.inputs.observed.keys()
    lost = before - reply.answer.resources.keys()
    assert not lost, f"{call.target} lost {sorted(lost)}"


@pytest.mark.parametrize("folder", FLEETS)
def test_converges_and_then_stays_byte_identical(folder: str) -> None:
    """Invariant 2: a bounded number of passes, all ready, and a further pass changes nothing."""
    final = fleets.played(folder).final
    assert final.changed == {}
    # Network, control plane, system nodes, add-ons and provider configs of a cluster on EKS are some twenty;
    # then eight waves of a stack, namespace, weights, gang, picker, route, endpoint: none waits for two.
    assert final.number <= 60
    unready = [
        str(report.target)
        for report in final.reports
        if not paths.is_true(final.objects[report.target], c.READY)
    ]
    assert unready == []


@pytest.mark.parametrize("folder", FLEETS)
@RULES
@given(data=st.data())
def test_same_inputs_in_any_order_give_the_same_bytes(folder: str, data: st.DataObject) -> None:
    """Invariant 3: pure and order-free; two servers answer alike."""
    call = data.draw(st.sampled_from(fleets.played(folder).calls), label="call")
    shuffle = random.Random(data.draw(st.integers(0, 2**16), label="seed"))
    observed = list(call.inputs.observed.items())
    required = {k: list(v) for k, v in call.inputs.required.items()}
    shuffle.shuffle(observed)
    for found in required.values():
        shuffle.shuffle(found)
    shuffled = adapter.request(Inputs(call.inputs.composite, dict(observed), required))
    first = Responder(KINDS).respond(adapter.request(call.inputs))
    again = Responder(KINDS).respond(shuffled)
    assert _bytes(first) == _bytes(again)


@pytest.mark.parametrize("folder", FLEETS)
def test_composers_never_write_to_their_inputs(folder: str) -> None:
    """Invariant 3: the decoded objects are shared between calls, so a write would leak."""
    for call in fleets.played(folder).last_calls():
        kind = KINDS[call.target.api_version, call.target.kind]
        before = copy.deepcopy(
            (call.inputs.composite, dict(call.inputs.observed), dict(call.inputs.required))
        )
        kind.compose(call.inputs)
        kind.requires(call.inputs.composite)
        after = (call.inputs.composite, dict(call.inputs.observed), dict(call.inputs.required))
        assert after == before, call.target


@pytest.mark.parametrize("folder", FLEETS)
def test_every_condition_type_is_always_set(folder: str) -> None:
    for call in fleets.played(folder).calls:
        kind = KINDS[call.target.api_version, call.target.kind]
        assert call.reply.answer is not None
        assert [x.type for x in call.reply.answer.conditions] == list(kind.conditions), call.target
        assert all(x.reason for x in call.reply.answer.conditions), call.target


@pytest.mark.parametrize("folder", FLEETS)
def test_nothing_is_ready_before_it_is_observed(folder: str) -> None:
    for call in fleets.played(folder).calls:
        assert call.reply.answer is not None
        for key, composed in call.reply.answer.resources.items():
            assert not (composed.ready and key not in call.inputs.observed), (call.target, key)


@pytest.mark.parametrize("folder", FLEETS)
def test_no_composite_grows_past_what_core_applies_in_time(folder: str) -> None:
    """Core applies one after the other within two minutes, and refuses a response over 4 MiB."""
    for call in fleets.played(folder).last_calls():
        assert call.reply.answer is not None
        assert len(call.reply.answer.resources) <= 120, call.target
        size = len(Responder(KINDS).respond(adapter.request(call.inputs)).SerializeToString())
        assert size <= 300_000, call.target


def _bytes(rsp: fnv1.RunFunctionResponse) -> bytes:
    return rsp.SerializeToString(deterministic=True)
