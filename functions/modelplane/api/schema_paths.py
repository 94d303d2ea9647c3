"""Field paths as text and as steps: `spec.nodePools[0].labels["a.b/c"]`."""

import re
from collections.abc import Iterable

Step = str | int
Path = tuple[Step, ...]

_PLAIN = re.compile(r"^[A-Za-z_$][A-Za-z0-9_$-]*$")
_STEP = re.compile(
    r"""\.?(?P<name>[^.\[\]"']+) | \[(?P<index>\d+)\] | \[(?P<quote>["'])(?P<key>.*?)(?P=quote)\]""",
    re.VERBOSE,
)


def render(steps: Iterable[Step]) -> str:
    """Write steps as one path; no steps give the empty text, which means the document itself."""
    text = ""
    for step in steps:
        if isinstance(step, int):
            text += f"[{step}]"
        elif _PLAIN.match(step):
            text += f".{step}" if text else step
        else:
            text += f'["{step}"]'
    return text


def parse(text: str) -> Path:
    """Read a path back into steps; a leading dot, as in a rule's `fieldPath`, is allowed."""
    steps: list[Step] = []
    for match in _STEP.finditer(text):
        if match["index"] is not None:
            steps.append(int(match["index"]))
        else:
            steps.append(match["name"] if match["name"] is not None else match["key"])
    return tuple(steps)
