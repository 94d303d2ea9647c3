"""The composition tree as lines: what each composite made, and whether it is ready or why not."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from modelplane import contracts as c
from modelplane.core import Manifest, paths
from modelplane.sim.play import Pass
from modelplane.sim.reconcile import Report
from modelplane.sim.world import Ref, ref


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a tree.

    Attributes:
        guide: the drawn branch before it.
        key: composition resource name; empty for a root.
        what: kind and name.
        ready: None where the object is not composed yet.
        why: the one reason that matters; empty where ready.
    """

    guide: str
    key: str
    what: str
    ready: bool | None
    why: str = ""

    def __str__(self) -> str:
        mark = {True: "ready", False: "not ready", None: "not yet"}[self.ready]
        head = self.guide + ": ".join(part for part in (self.key, self.what) if part)
        return f"{head}  [{mark}]{f' {self.why}' if self.why else ''}"


def lines(done: Pass, children: Mapping[Ref, Mapping[str, Ref]]) -> list[Line]:
    """Return the trees of a pass, one root per composite that nothing composed."""
    reports = {r.target: r for r in done.reports}
    composed = {child for found in children.values() for child in found.values()}
    roots = [target for target in sorted(reports) if target not in composed]
    return [line for root in roots for line in _tree(root, "", "", "", done, children, reports)]


def _tree(
    target: Ref,
    key: str,
    guide: str,
    indent: str,
    done: Pass,
    children: Mapping[Ref, Mapping[str, Ref]],
    reports: Mapping[Ref, Report],
) -> Iterator[Line]:
    obj = done.objects.get(target, {})
    report = reports.get(target)
    ready, why = _composite_state(obj, report) if report else _leaf_state(obj)
    yield Line(guide, key, _what(target, obj), ready, why)
    found = {k: r for k, r in children.get(target, {}).items() if r in done.objects}
    guards = {
        k for k, r in found.items() if r.api_version == c.PROTECTION_API and _leaf_state(done.objects[r])[0]
    }
    held = dict(report.answer.held_back) if report and report.answer else {}
    settled = (
        {k for k, x in report.answer.resources.items() if x.ready} if report and report.answer else set()
    )
    rows = sorted((found.keys() - guards) | held.keys())
    for row in rows:
        last = row == rows[-1] and not guards
        branch, deeper = ("└─ ", "   ") if last else ("├─ ", "│  ")
        if row in found:
            child = found[row]
            refused = report.refused.get(row, "") if report else ""
            # What no composite of ours composed, as members of a collection, waits for nobody's next pass.
            new = report is not None and child not in reports and row not in settled
            first, *rest = _tree(child, row, indent + branch, indent + deeper, done, children, reports)
            yield _unready(first, refused or "created") if refused or (new and first.ready) else first
            yield from rest
        else:
            yield Line(indent + branch, row, "", None, held[row])
    if guards:
        # One line: a stack has dozens, and a person asks for them only when one is missing.
        yield Line(f"{indent}└─ ", "", f"{len(guards)} Usages that keep the deletion order", True)


def _what(target: Ref, obj: Manifest) -> str:
    """Return what a person calls the object: a chart by its version, an Object by what it carries."""
    if target.kind == "Release":
        chart = paths.mapping(obj, "spec", "forProvider", "chart")
        return f"Release {chart.get('name')} {chart.get('version')}"
    if target.kind == "Object" and target.api_version == c.KUBERNETES_API:
        return f"Object with {ref(paths.mapping(obj, 'spec', 'forProvider', 'manifest'))}"
    return str(target)


def _unready(line: Line, why: str) -> Line:
    return Line(line.guide, line.key, line.what, False, why)


def _composite_state(obj: Manifest, report: Report) -> tuple[bool, str]:
    if why := report.refused.get(""):
        return False, why
    if paths.is_true(obj, "Ready"):
        return True, ""
    # In the order the kind states them: what comes first is what the others wait for.
    for ours in report.answer.conditions if report.answer else ():
        if ours.status is not True:
            return False, f"{ours.type} {ours.reason}{_because(ours.message)}"
    return False, paths.text(paths.condition(obj, "Ready"), "message")


def _leaf_state(obj: Manifest) -> tuple[bool, str]:
    if paths.text(obj, "metadata", "deletionTimestamp"):
        return False, f"being deleted{_because(paths.text(paths.condition(obj, 'Synced'), 'message'))}"
    synced = paths.condition(obj, "Synced")
    if synced.get("status") == "False":
        return False, paths.text(synced, "message")
    ready = paths.condition(obj, "Ready")
    if ready.get("status") == "False":
        return False, paths.text(ready, "message") or paths.text(ready, "reason")
    return True, ""


def _because(why: str) -> str:
    return f": {why}" if why else ""
