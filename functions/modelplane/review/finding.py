"""One thing that is wrong or doubtful in a manifest: where, what, why, and what to do."""

from dataclasses import dataclass
from typing import Literal

from modelplane.render.collect import Source
from modelplane.review.fleet import shown
from modelplane.sim.world import ref

Severity = Literal["error", "warning", "note"]
ERROR: Severity = "error"
WARNING: Severity = "warning"
# What could not be looked at, so that silence is never taken for approval.
NOTE: Severity = "note"


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding.

    Attributes:
        severity: an error cannot work; a warning may not, or rests on an estimate.
        check: which check found it.
        reason: what is wrong.
        step: what to do.
        file: where it stands; empty where it stands nowhere.
        line: counted from 1; 0 where unknown.
        object: kind, namespace and name.
        field: path in the object.
    """

    severity: Severity
    check: str
    reason: str
    step: str = ""
    file: str = ""
    line: int = 0
    object: str = ""
    field: str = ""

    @property
    def where(self) -> str:
        """File and line."""
        return f"{self.file}:{self.line}" if self.line else self.file

    def __str__(self) -> str:
        place = f"{self.where}: " if self.file else ""
        what = ": ".join(x for x in (self.object, self.field) if x)
        said = f"{self.reason}; {self.step}" if self.step else self.reason
        return f"{place}{self.severity}: {f'{what}: ' if what else ''}{said}"


def at(source: Source, severity: Severity, check: str, field: str, reason: str, step: str) -> Finding:
    """Return a finding about a field of an object that was read from a file."""
    path = field if source.item is None else f"items[{source.item}].{field}"
    target = ref(source.body)
    return Finding(
        severity,
        check,
        reason,
        step,
        str(source.document.file),
        source.document.line_of(path),
        f"{target.kind} {shown(target)}",
        field,
    )
