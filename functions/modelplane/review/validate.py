"""What can be told of manifests before they are applied: what admission refuses, then what it cannot see."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from modelplane.render import collect
from modelplane.review import check_fleet, check_models, check_places
from modelplane.review.finding import ERROR, NOTE, WARNING, Finding
from modelplane.review.fleet import Fleet
from modelplane.review.view import View

ADMISSION = "admission"
CHECKS: Sequence[Callable[[View], Iterator[Finding]]] = (
    check_fleet.classes,
    check_fleet.clusters,
    check_fleet.instance_types,
    check_fleet.root_disks,
    check_models.selectors,
    check_models.caches,
    check_models.weights_in_cache,
    check_models.weights_in_memory,
    check_models.ranks,
    check_places.places,
    check_places.services,
    check_places.unused,
    check_places.unchecked,
)
_ORDER = {ERROR: 0, WARNING: 1, NOTE: 2}
_FAULT = re.compile(
    r"(?P<file>.+?)(?::(?P<line>\d+)(?::\d+)?)?: (?:document \d+, (?P<object>\w+ \S+): )?"
    r"(?:(?P<field>(?:spec|metadata|status|apiVersion|kind)\S*): )?(?P<reason>.*)",
    re.DOTALL,
)


def validate(
    roots: Sequence[Path], required: Sequence[Path] = (), live: Sequence[Mapping[str, Any]] = ()
) -> tuple[list[Finding], int]:
    """Return the findings, in the order of files and lines, and how many objects were judged.

    What admission refuses ends it: the other checks would report what follows from that.

    Args:
        roots: what to judge.
        required: what is there already: read, not judged beyond admission.
        live: what a control plane has; a file's object of the same name replaces it.
    """
    try:
        judged = collect.sources(roots)
        known = collect.sources(required) if required else []
    except collect.InputError as error:
        return [_admission(fault) for fault in error.faults], 0
    bodies = [source.body for source in judged]
    fleet = Fleet.of([*live, *(source.body for source in known), *bodies])
    view = View(judged, fleet)
    found = [finding for check in CHECKS for finding in check(view)]
    return sorted(found, key=_place), len(judged)


def _place(finding: Finding) -> tuple[bool, str, int, int]:
    return not finding.file, finding.file, finding.line, _ORDER[finding.severity]


def _admission(fault: str) -> Finding:
    found = _FAULT.fullmatch(fault)
    if found is None:
        return Finding(ERROR, ADMISSION, fault)
    what, field = found["object"] or "", found["field"] or ""
    return Finding(ERROR, ADMISSION, found["reason"], "", found["file"], int(found["line"] or 0), what, field)
