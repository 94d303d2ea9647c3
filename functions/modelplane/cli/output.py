"""What all commands share: tables, JSON and YAML, exit statuses, and errors without tracebacks.

Rich, YAML and what the work needs are imported where they are used: help and completion answer without them.
"""

from __future__ import annotations

import functools
import importlib
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec

import click

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from modelplane.core import Manifest

P = ParamSpec("P")
FOUND, CANNOT = 1, 3
# Piped output is for programs and logs: nothing is wrapped or cut there.
_PIPED_WIDTH = 2000
Style = Mapping[str, Any]
PLAIN: Style = {}
RED, YELLOW, GREEN = ({"fg": name} for name in ("red", "yellow", "green"))
DIM: Style = {"dim": True}
BOLD: Style = {"bold": True}
# Of a line of a tree: ready, not ready, not composed yet.
READY: Mapping[bool | None, Style] = {True: GREEN, False: YELLOW, None: DIM}
STYLES: Mapping[str, Style] = {
    "error": RED,
    "warning": YELLOW,
    "note": DIM,
    "new": GREEN,
    "goes": RED,
    "no place": RED,
}


def coloured() -> bool:
    """Tell whether to use colour: where it is seen, and not where NO_COLOR is set (no-color.org)."""
    seen = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
    return (seen or bool(os.environ.get("FORCE_COLOR"))) and not os.environ.get("NO_COLOR")


def styled(text: str, style: Style = PLAIN) -> str:
    """Return the text in its style, where there is colour."""
    return click.style(text, **style) if style and coloured() else text


def say(text: str, style: Style = PLAIN) -> None:
    """Print a line as it is, never wrapped: paths and reasons are copied from it."""
    click.echo(styled(text, style), color=coloured())


def console(*, error: bool = False) -> Console:
    """Return a console; it has colour on a terminal only, and none where NO_COLOR is set."""
    from rich.console import Console

    plain = Console(stderr=error, highlight=False)
    return plain if plain.is_terminal else Console(stderr=error, highlight=False, width=_PIPED_WIDTH)


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], style: int | None = None) -> None:
    """Print a table, numbers to the right; column `style` colours its row by its word."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    found = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    lines = list(rows)
    for at, name in enumerate(columns):
        numbers = bool(lines) and all(isinstance(row[at], int) for row in lines)
        found.add_column(
            name, no_wrap=at < len(columns) - 1, overflow="fold", justify="right" if numbers else "left"
        )
    for row in lines:
        cells = [Text(str(cell)) for cell in row]
        look = STYLES.get(str(row[style]), PLAIN) if style is not None else PLAIN
        found.add_row(*cells, style="dim" if look.get("dim") else str(look.get("fg", "")))
    screen = console()
    with screen.capture() as capture:
        screen.print(found)
    for line in capture.get().rstrip("\n").split("\n"):
        click.echo(line.rstrip(), color=screen.is_terminal or None)


def heading(text: str) -> None:
    """Print the heading of a table."""
    say(f"\n{text}", BOLD)


def emit(value: Any, output: str) -> None:
    """Print a value as JSON or YAML."""
    if output == "json":
        click.echo(json.dumps(value, indent=2, ensure_ascii=False))
    else:
        from modelplane.render.dump import dump

        click.echo(dump([value]), nl=False)


@contextmanager
def working(text: str) -> Iterator[None]:
    """Show that work goes on, on a terminal only."""
    if not sys.stderr.isatty():
        yield
        return
    with console(error=True).status(text):
        yield


def fleet_objects(command: str, context: str | None, kubeconfig: Path | None) -> list[Manifest]:
    """Return our objects on the control plane; end with status 3 where it cannot be asked."""
    found: list[Manifest] = read_live(command, context, kubeconfig).objects
    return found


def live_module(command: str, name: str) -> Any:
    """Return a module that needs the kubernetes client: only commands that ask a control plane load it."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        cannot(command, f"needs the Python package {error.name}: pip install 'modelplane[cli]'")


def read_live(
    command: str,
    context: str | None,
    kubeconfig: Path | None,
    *,
    composed: bool = False,
    namespace: str = "",
) -> Any:
    """Return what `review.live` reads; end with status 3 where it cannot be asked."""
    live = live_module(command, "modelplane.review.live")
    try:
        with working("reading the control plane"):
            return live.read(live.connect(context, kubeconfig), composed=composed, namespace=namespace)
    except live.UnreachableError as error:
        cannot(command, str(error))


def over(there: Sequence[Manifest], given: Sequence[Manifest]) -> list[Manifest]:
    """Return the given objects as applied over what is there: status and identity stay."""
    from modelplane.core import paths
    from modelplane.sim.world import ref

    known = {ref(obj): obj for obj in there}
    found = []
    for obj in given:
        old = known.get(ref(obj))
        kept = {"status": old["status"]} if old and "status" in old else {}
        metadata = {**paths.mapping(old, "metadata"), **obj["metadata"]} if old else obj["metadata"]
        found.append({**kept, **obj, "metadata": metadata})
    return found


def cannot(command: str, why: str) -> NoReturn:
    """Say why a command could not do its work, and end with status 3."""
    click.echo(f"{command}: {why}", err=True)
    sys.exit(CANNOT)


def guarded(command: Callable[P, None]) -> Callable[P, None]:
    """Let a command end with one line per fault of its input instead of a traceback."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        from modelplane.render.collect import InputError

        try:
            command(*args, **kwargs)
        except InputError as error:
            for fault in error.faults:
                click.echo(fault, err=True)
            sys.exit(CANNOT)

    return run
