"""The `modelplane` command: each subcommand is loaded only when it is called."""

import errno
import importlib
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

# The server must not pay for the renderer's imports, nor the renderer for the server's.
_COMMANDS = {
    "completion": ("modelplane.cli.completion", "completion", "Print the completion script of a shell."),
    "diff": ("modelplane.cli.diff", "diff", "Say what changes on which cluster, recreations marked."),
    "facts": ("modelplane.cli.facts", "facts", "Turn AWS's words on instance types into table entries."),
    "graph": ("modelplane.cli.graph", "graph", "Draw what belongs to what, as Mermaid or SVG."),
    "plan": ("modelplane.cli.plan", "plan", "Say where replicas would land, and why not elsewhere."),
    "render": ("modelplane.cli.render", "render", "Render manifests offline through the real function."),
    "status": (
        "modelplane.cli.status",
        "status",
        "Show what a control plane runs, and what keeps it from more.",
    ),
    "validate": ("modelplane.cli.validate", "validate", "Judge manifests before they are applied."),
    "serve": ("modelplane.shell.server", "serve", "Serve the composition function that Crossplane calls."),
}


# Set to anything: a fault of ours ends in its traceback.
_DEBUG = "MODELPLANE_DEBUG"
_FAULT = 70
# What click ends a command by, told by click itself.
_CLICKS = (click.ClickException, click.exceptions.Exit, click.Abort)
# Ends at a signal by itself, as its runtime has it.
_SERVER = "serve"


class _Interrupted:
    """Whether the user pressed Ctrl-C: compiled code between us and the signal makes another error of it.

    CEL's does (cel-expr-python 0.1.3: RuntimeError ABORTED, or an evaluation that is simply not true). The
    second Ctrl-C ends the process at once.
    """

    def __init__(self) -> None:
        self.yes = False

    @contextmanager
    def heard(self) -> Iterator[None]:
        """Listen; outside the main thread, where Python lets nobody, do nothing."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = signal.signal(signal.SIGINT, self._hear)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def _hear(self, *_: object) -> None:
        self.yes = True
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        raise KeyboardInterrupt


class _Lazy(click.Group):
    def invoke(self, ctx: click.Context) -> object:
        interrupted = _Interrupted()
        try:
            with interrupted.heard():
                return super().invoke(ctx)
        except Exception as error:
            if interrupted.yes:
                raise click.Abort from None
            if isinstance(error, _CLICKS) or _DEBUG in os.environ or _nobody_reads(error):
                raise
            click.echo(_fault(error), err=True)
            sys.exit(_FAULT)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in _COMMANDS:
            return None
        if cmd_name == _SERVER:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        module, attribute, _ = _COMMANDS[cmd_name]
        command = getattr(importlib.import_module(module), attribute)
        return command if isinstance(command, click.Command) else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, _, text) in sorted(_COMMANDS.items())])


def _nobody_reads(error: Exception) -> bool:
    return isinstance(error, OSError) and error.errno == errno.EPIPE


def _fault(error: Exception) -> str:
    """Return one line without values: a manifest may hold what nobody should see in a log."""
    if isinstance(error, ModuleNotFoundError):
        return f"modelplane: needs the Python package {error.name}: pip install 'modelplane[cli]'"
    if isinstance(error, OSError):
        place = f"{error.filename}: " if error.filename else ""
        return f"modelplane: {place}{error.strerror or type(error).__name__}"
    frame = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{Path(frame.filename).name}:{frame.lineno}"
    return (
        f"modelplane: a fault of its own: {type(error).__name__} at {place}; {_DEBUG}=1 shows the traceback"
    )


@click.command(cls=_Lazy)
@click.version_option(package_name="modelplane")
def main() -> None:
    """Modelplane: a fleet control plane for AI inference."""


if __name__ == "__main__":
    sys.exit(main())
