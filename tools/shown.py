"""What documents show of our commands: found in their console blocks, run, and written back where it changed.

A block is `$ command` and the lines it prints. A line that holds only `…` stands for any number of lines; a
block with one is never rewritten, since nobody but its author knows what to leave out.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path

from click.testing import CliRunner

from modelplane import cli

ROOT = Path(__file__).resolve().parent.parent
CUT = "…"
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# Commands that write nothing outside their output, and end.
OURS = re.compile(r"\.venv/bin/modelplane (?:(?:validate|plan|diff|graph|render)\b.*|\w+ --help)")


@dataclass(frozen=True)
class Shown:
    """One command of a document and the lines shown below it."""

    command: str
    lines: tuple[str, ...]

    @property
    def whole(self) -> bool:
        """Whether all its output is shown."""
        return CUT not in self.lines


def blocks(text: str) -> Iterator[Shown]:
    """The commands of a document's console blocks, in order."""
    for language, block in FENCE.findall(text):
        if language == "console":
            for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
                command, *lines = part.splitlines()
                yield Shown(command, tuple(lines))


def output(command: str) -> list[str]:
    """What one of our commands prints from the root of the checkout, line by line, both streams together."""
    arguments = shlex.split(command)[1:]
    with chdir(ROOT):
        # A width of its own: help is wrapped at that of the terminal.
        runner = CliRunner(env={"COLUMNS": "90", "NO_COLOR": "1"})
        text = runner.invoke(cli.main, arguments, prog_name="modelplane").output
    return [line.rstrip() for line in text.rstrip("\n").splitlines()]


def filled(text: str) -> str:
    """The document with every whole output as it is now."""

    def fill(match: re.Match[str]) -> str:
        if match[1] != "console":
            return match[0]
        parts = []
        for shown in blocks(match[0]):
            new = output(shown.command) if shown.whole and OURS.fullmatch(shown.command) else shown.lines
            parts.append("\n".join([f"$ {shown.command}", *new]))
        return "```console\n" + "\n".join(parts) + "\n```"

    return FENCE.sub(fill, text)


def main() -> int:
    """Fill the documents named, or all below docs/; prints what changed."""
    named = [Path(x) for x in sys.argv[1:]] or sorted((ROOT / "docs").rglob("*.md"))
    for path in named:
        text = path.read_text(encoding="utf-8")
        if (new := filled(text)) != text:
            path.write_text(new, encoding="utf-8")
            print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
