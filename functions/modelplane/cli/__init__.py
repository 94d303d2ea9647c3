"""The `modelplane` command: each subcommand is loaded only when it is called."""

import importlib
import sys

import click

# The server must not pay for the renderer's imports, nor the renderer for the server's.
_COMMANDS = {
    "render": ("modelplane.cli.render", "render", "Render manifests offline through the real function."),
    "serve": ("modelplane.shell.server", "serve", "Serve the composition function that Crossplane calls."),
}


class _Lazy(click.Group):
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


@click.command(cls=_Lazy)
@click.version_option(package_name="modelplane")
def main() -> None:
    """Modelplane: a fleet control plane for AI inference."""


if __name__ == "__main__":
    sys.exit(main())
