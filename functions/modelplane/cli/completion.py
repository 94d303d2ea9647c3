"""`modelplane completion`: the script that teaches a shell our commands and options."""

import click
from click.shell_completion import get_completion_class


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script of a SHELL.

    In bash: eval "$(modelplane completion bash)". In fish: modelplane completion fish | source.
    """
    found = get_completion_class(shell)
    assert found is not None
    root = ctx.find_root()
    script = found(root.command, {}, "modelplane", "_MODELPLANE_COMPLETE")
    click.echo(script.source())
