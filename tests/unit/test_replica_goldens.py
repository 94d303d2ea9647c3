"""What each shape of replica becomes on each stack, against what was reviewed.

`make golden` rewrites the data beside this file; review the diff.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from builders import replica_cases
from modelplane.render.dump import dump

DATA = Path(__file__).parent / "data" / "replicas"
WRITE = os.environ.get("MODELPLANE_GOLDEN") == "write"
# Front and picker differ by nothing but names: one case shows them whole.
WHOLE = "one-gpu"
FRONT = ("epp", "model-route", "model-host-route")


@pytest.mark.parametrize("stack", replica_cases.STACKS)
@pytest.mark.parametrize("case", replica_cases.CASES)
def test_a_replica_becomes_what_was_reviewed(case: str, stack: str) -> None:
    found = replica_cases.objects(case, stack)
    now = dump([m for key, m in sorted(found.items()) if case == WHOLE or not key.startswith(FRONT)])
    reviewed = DATA / f"{case}.{stack.lower()}.yaml"
    if WRITE:
        reviewed.parent.mkdir(parents=True, exist_ok=True)
        reviewed.write_text(now)
    assert now == reviewed.read_text(), "run `make golden` and review the diff"


def test_no_reviewed_file_is_left_over() -> None:
    wanted = {
        f"{case}.{stack.lower()}.yaml" for case in replica_cases.CASES for stack in replica_cases.STACKS
    }
    assert {f.name for f in DATA.iterdir()} == wanted
