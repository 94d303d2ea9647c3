"""Every object any example composes, at every pass, against the schema of the real thing."""

import json
from pathlib import Path

import pytest

import fleets
import judges
from modelplane.core import Manifest, paths
from modelplane.render.run import desired
from modelplane.sim import rules


def _composed(folder: str) -> list[Manifest]:
    """Each distinct desired object of all passes, remote ones included."""
    found: dict[str, Manifest] = {}
    for call in fleets.played(folder).calls:
        assert call.reply.answer is not None
        for composed in call.reply.answer.resources.values():
            for manifest in judges.with_remote(composed.manifest):
                found[json.dumps(manifest, sort_keys=True)] = manifest
    return list(found.values())


@pytest.mark.parametrize("folder", fleets.FOLDERS)
def test_every_composed_object_is_valid_for_the_real_api(folder: str, crds: Path) -> None:
    faults = [
        f"{m.get('kind')} {paths.name(m)}: {fault}"
        for m in _composed(folder)
        for fault in judges.problems(m, crds)
    ]
    assert faults == []


@pytest.mark.parametrize("folder", fleets.FOLDERS)
def test_every_status_we_write_is_declared(folder: str, crds: Path) -> None:
    """Server-side apply refuses an undeclared status field for the whole composite."""
    objects = fleets.played(folder).final.objects
    faults = [
        f"{r.target}: {fault}"
        for r in fleets.played(folder).final.reports
        for fault in judges.problems(objects[r.target], crds)
    ]
    assert faults == []


@pytest.mark.parametrize("folder", fleets.FOLDERS)
def test_every_status_that_is_played_could_be_that_of_the_real_thing(folder: str, crds: Path) -> None:
    """A simulator that reports what no API has teaches composers to wait for it."""
    faults = [
        f"{m['kind']} {paths.name(m)}: {fault}"
        for m in _reported(folder).values()
        for fault in judges.problems(m, crds)
        if fault.startswith("status")
    ]
    assert faults == []


def _reported(folder: str) -> dict[str, Manifest]:
    """One object per kind and form of status: leaves, and what an Object saw on its cluster."""
    found: dict[str, Manifest] = {}
    for played, _ in fleets.played(folder).passes:
        for target, leaf in played.objects.items():
            if not rules.is_leaf(target.api_version, target.kind):
                continue
            for manifest in (leaf, dict(paths.mapping(leaf, "status", "atProvider", "manifest"))):
                # A CRD of a Provided cluster stands here by its name only.
                if "status" in manifest and manifest["kind"] != "CustomResourceDefinition":
                    found[f"{manifest['kind']} {_form(manifest['status'])}"] = manifest
    return found


def _form(value: object) -> object:
    if isinstance(value, dict):
        return {k: _form(v) for k, v in sorted(value.items())}
    return [_form(v) for v in value] if isinstance(value, list) else type(value).__name__


@pytest.mark.parametrize("folder", fleets.FOLDERS)
def test_no_composed_object_sends_null(folder: str) -> None:
    """A null owns the field and fights whoever defaults it."""

    def nulls(value: object, path: str) -> list[str]:
        if value is None:
            return [path]
        if isinstance(value, dict):
            return [p for k, v in value.items() for p in nulls(v, f"{path}.{k}")]
        if isinstance(value, list):
            return [p for i, v in enumerate(value) for p in nulls(v, f"{path}[{i}]")]
        return []

    objects = [desired(o) for o in fleets.played(folder).final.objects.values()]
    assert [p for o in objects for p in nulls(o, f"{o['kind']} {paths.name(o)}")] == []


def test_no_two_examples_share_a_name_with_other_contents() -> None:
    """Applying two guides to one control plane must not change the first (case C87)."""
    seen: dict[tuple[str, str, str], tuple[str, Manifest]] = {}
    clashes = []
    for folder in fleets.FOLDERS:
        for document in fleets.documents(folder):
            key = (document["kind"], paths.namespace(document), paths.name(document))
            first = seen.setdefault(key, (folder, document))
            if first[1] != document:
                clashes.append(f"{' '.join(key)}: {first[0]} and {folder}")
    assert clashes == []


def test_the_model_is_the_same_file_on_both_stacks() -> None:
    """The stack is the platform's choice; the ML team's file does not know it."""
    names = [
        {
            fleets.EXAMPLES / folder / line[2:].strip()
            for line in listing.read_text().splitlines()
            if "qwen3" in line
        }
        for folder in ("dynamo-h200", "standard-h200")
        for listing in [fleets.EXAMPLES / folder / "kustomization.yaml"]
    ]
    resolved = [{p.resolve() for p in found} for found in names]
    assert resolved[0] == resolved[1] == {fleets.EXAMPLES / "qwen3-coder"}
