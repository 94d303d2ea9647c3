"""Arguments and options that commands share. Light: help and completion load nothing else."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click


class _Files(click.Path):
    """A path; an empty one, as an unset variable gives, is refused: it would mean the current folder."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("a path must not be empty", param, ctx)
        return super().convert(value, param, ctx)


FILES = _Files()

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
    kubeconfig = click.option("--kubeconfig", type=FILES, help="Kubeconfig to use, as kubectl takes it.")
    context = click.option("--context", help="Context of the kubeconfig.")
    return context(kubeconfig(command))
