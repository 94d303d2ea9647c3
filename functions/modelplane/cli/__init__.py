"""The `modelplane` command: each subcommand is loaded only when it is called."""

import errno
import importlib
import os
import sys
import traceback
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


class _Lazy(click.Group):
    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except OSError as error:
            if error.errno == errno.EPIPE or _DEBUG in os.environ:
                raise
            place = f"{error.filename}: " if error.filename else ""
            click.echo(f"modelplane: {place}{error.strerror or type(error).__name__}", err=True)
            sys.exit(_FAULT)
        except Exception as error:
            if _DEBUG in os.environ:
                raise
            click.echo(_fault(error), err=True)
            sys.exit(_FAULT)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in _COMMANDS:
            return None
        module, attribute, _ = _COMMANDS[cmd_name]
        command = getattr(importlib.import_module(module), attribute)
        return command if isinstance(command, click.Command) else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, _, text) in sorted(_COMMANDS.items())])


def _fault(error: Exception) -> str:
    """Return one line without values: a manifest may hold what nobody should see in a log."""
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
