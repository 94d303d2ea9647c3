"""What a check found: problems in the order of the document, and whether rules may still run."""

from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from modelplane.api import schema_paths
from modelplane.api.schema_paths import Path, Step


@dataclass(frozen=True, order=True)
class Problem:
    """One reason why an API server would refuse the document; an empty path means the document itself."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


@dataclass
class Report:
    """Collects problems.

    `blocked` is set by those after which an API server runs no CEL: wrong type, missing field, value that is
    not listed, too long or too many (`hasBlockingErr` in apiextensions-apiserver's custom resource strategy).
    """

    problems: list[Problem] = field(default_factory=list)
    blocked: bool = False

    def add(self, path: Path, message: str, *step: Step, blocks: bool = False) -> None:
        """Note a problem at the path, or at one step below it."""
        self.problems.append(Problem(schema_paths.render((*path, *step)), message))
        self.blocked = self.blocked or blocks


def suggestion(name: str, known: list[str]) -> str:
    """Name the nearest of the known names as a question; without a near one, an empty text."""
    folded = {item.casefold(): item for item in known}
    near = get_close_matches(name.casefold(), list(folded), n=1, cutoff=0.6)
    return f': did you mean "{folded[near[0]]}"?' if near else ""


def show(value: Any) -> str:
    """Write a value as JSON would, short enough for one line."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    text = f'"{value}"' if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else text[:56] + '..."'
