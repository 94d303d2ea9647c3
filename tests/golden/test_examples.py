"""Every example at every pass, against what was reviewed. `make golden` rewrites; review the diff."""

import os
from pathlib import Path

import pytest

import fleets
from modelplane.render.dump import dump
from modelplane.render.run import desired

GOLDEN = Path(__file__).parent
WRITE = os.environ.get("MODELPLANE_GOLDEN") == "write"


def expected(folder: str) -> dict[str, str]:
    """What an example renders to now: the tree of all passes, and what is new or changed in each."""
    played = fleets.played(folder)
    files = {}
    trees = []
    before: list[str] = []
    for done, lines in played.passes:
        text = [str(line) for line in lines]
        if text != before:
            trees += [f"pass {done.number}", *text]
        before = text
        if done.changed:
            files[f"pass-{done.number:02}.yaml"] = dump([desired(o) for _, o in sorted(done.changed.items())])
    return {"tree.txt": "\n".join(trees) + "\n", **files}


@pytest.mark.parametrize("folder", fleets.FOLDERS)
def test_example_renders_as_reviewed_at_every_pass(folder: str) -> None:
    golden = GOLDEN / folder
    now = expected(folder)
    if WRITE:
        golden.mkdir(exist_ok=True)
        for old in golden.iterdir():
            old.unlink()
        for name, text in now.items():
            (golden / name).write_text(text)
    reviewed = {f.name: f.read_text() for f in sorted(golden.iterdir())} if golden.is_dir() else {}
    assert now.keys() == reviewed.keys(), "run `make golden` and review the diff"
    for name, text in now.items():
        assert text == reviewed[name], f"{folder}/{name}: run `make golden` and review the diff"


@pytest.mark.parametrize("folder", fleets.FOLDERS)
def test_nothing_in_an_example_is_refused_once_it_has_settled(folder: str) -> None:
    refused = {str(r.target): dict(r.refused) for r in fleets.played(folder).final.reports if r.refused}
    assert refused == {}
