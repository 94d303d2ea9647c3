"""`modelplane graph`: what belongs to what."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from modelplane.cli import options
from modelplane.cli import output as out

if TYPE_CHECKING:
    from modelplane.sim.world import World


@click.command()
@click.argument("files", nargs=-1, type=options.FILES)
@click.option("--live", is_flag=True, help="Draw what the control plane has, instead of files.")
@options.live_options
@click.option("-o", "--output", type=click.Choice(["mermaid", "svg"]), default="mermaid", show_default=True)
@out.guarded
def graph(
    files: tuple[Path, ...], live: bool, context: str | None, kubeconfig: Path | None, output: str
) -> None:
    """Draw services, deployments, caches and replicas on their clusters.

    From FILES the fleet is shown at rest, clouds simulated; with --live as it is. What is dashed is not
    ready. Mermaid is what GitHub and this project's documents draw by themselves.
    """
    if live == bool(files):
        raise click.UsageError("name files, or --live: one of them")
    from modelplane.review.graph import graph as draw
    from modelplane.review.graph import mermaid
    from modelplane.review.picture import svg

    world = out.read_live("graph", context, kubeconfig).world() if live else _played(files)
    found = draw(world)
    if not found.nodes and not found.clusters:
        where = "the control plane" if live else ", ".join(map(str, files))
        out.cannot("graph", f"{where}: nothing to draw: no cluster, deployment, cache or service")
    click.echo(svg(found) if output == "svg" else mermaid(found), nl=False)


def _played(files: Sequence[Path]) -> World:
    from modelplane.render.run import rendering
    from modelplane.sim.play import Unsettled

    work = rendering(files, recurse=True)
    try:
        with out.working("rendering"):
            for _ in work.passes():
                pass
    except Unsettled as error:
        out.cannot("graph", str(error))
    return work.world
