"""What all commands share: tables, JSON and YAML, exit statuses, and errors without tracebacks."""

import functools
import importlib
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn, ParamSpec

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from modelplane.cli import render
from modelplane.core import Manifest, paths
from modelplane.render.collect import InputError
from modelplane.sim.world import ref

P = ParamSpec("P")
FOUND, CANNOT = 1, 3
FILES = render.FILES
# Piped output is for programs and logs: nothing is wrapped or cut there.
_PIPED_WIDTH = 2000
STYLES = {"error": "red", "warning": "yellow", "note": "dim", "new": "green", "goes": "red", "stays": ""}

output_option = click.option(
    "-o",
    "--output",
    type=click.Choice(["table", "json", "yaml"]),
    default="table",
    show_default=True,
    help="How to print.",
)


required_option = click.option(
    "--required", multiple=True, type=FILES, help="Objects that are there already (file or folder)."
)


def files_argument(name: str = "files") -> Callable[[Any], Any]:
    """Return the argument for files and folders, at least one."""
    return click.argument(name, nargs=-1, required=True, type=FILES)


def live_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add what kubectl takes to find a control plane."""
    kubeconfig = click.option(
        "--kubeconfig", type=click.Path(path_type=Path), help="Kubeconfig to use, as kubectl takes it."
    )
    context = click.option("--context", help="Context of the kubeconfig.")
    return context(kubeconfig(command))


def say(text: str, style: str = "") -> None:
    """Print a line as it is, never wrapped: paths and reasons are copied from it."""
    console().print(Text(text, style=style), soft_wrap=True)


def console(*, error: bool = False) -> Console:
    """Return a console; it has colour on a terminal only, and none where NO_COLOR is set."""
    plain = Console(stderr=error, highlight=False)
    return plain if plain.is_terminal else Console(stderr=error, highlight=False, width=_PIPED_WIDTH)


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], style: int | None = None) -> None:
    """Print a table; column `style` colours its row by its word."""
    found = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    for at, name in enumerate(columns):
        found.add_column(name, no_wrap=at < len(columns) - 1, overflow="fold")
    for row in rows:
        cells = [Text(str(cell)) for cell in row]
        found.add_row(*cells, style=STYLES.get(str(row[style]), "") if style is not None else "")
    screen = console()
    with screen.capture() as capture:
        screen.print(found)
    for line in capture.get().rstrip("\n").split("\n"):
        click.echo(line.rstrip(), color=screen.is_terminal or None)


def heading(text: str) -> None:
    """Print the heading of a table."""
    say(f"\n{text}", "bold")


def emit(value: Any, output: str) -> None:
    """Print a value as JSON or YAML."""
    if output == "json":
        click.echo(json.dumps(value, indent=2, ensure_ascii=False))
    else:
        click.echo(render.dump([value]), nl=False)


@contextmanager
def working(text: str) -> Iterator[None]:
    """Show that work goes on, on a terminal only."""
    screen = console(error=True)
    if not screen.is_terminal:
        yield
        return
    with screen.status(text):
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
        try:
            command(*args, **kwargs)
        except InputError as error:
            for fault in error.faults:
                click.echo(fault, err=True)
            sys.exit(CANNOT)

    return run
