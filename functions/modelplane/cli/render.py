"""`modelplane render`: what manifests become, before anything is applied."""

from __future__ import annotations

import errno
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from modelplane.cli import output as out_
from modelplane.cli.options import FILES

if TYPE_CHECKING:
    from modelplane.core import Manifest
    from modelplane.render.run import Rendering
    from modelplane.render.tree import Line
    from modelplane.sim.play import Pass


# How wide a tree draws a branch.
_BRANCH = 3


@click.command()
@click.argument("files", nargs=-1, required=True, type=FILES)
@click.option("--recurse", is_flag=True, help="Play reconciles over the whole tree until nothing changes.")
@click.option(
    "--brief",
    is_flag=True,
    help="Show what nothing composed while it changes, and at the end what that composed.",
)
@click.option("--observed", multiple=True, type=FILES, help="Objects already composed (file or folder).")
@click.option("--required", multiple=True, type=FILES, help="Objects composers may read (file or folder).")
@click.option(
    "-o", "--output", type=click.Choice(["tree", "yaml", "json"]), default="tree", show_default=True
)
@click.option("--out", type=FILES, help="Also write each pass's new or changed objects, and the tree, here.")
def render(
    files: tuple[Path, ...],
    recurse: bool,
    brief: bool,
    observed: tuple[Path, ...],
    required: tuple[Path, ...],
    output: str,
    out: Path | None,
) -> None:
    """Render FILES (YAML files, folders, folders with a kustomization) through the real function, offline.

    Providers and clouds are simulated: a tree says what is composed and in which order, not that it runs.
    Exit status 1: an input is refused, a composite failed, or the passes do not settle.
    """
    from modelplane.render import collect
    from modelplane.render.run import rendering
    from modelplane.sim.play import Unsettled

    try:
        work = rendering(files, observed, required, recurse=recurse)
        failed = _play(work, output, out, brief=brief)
    except collect.InputError as error:
        for fault in error.faults:
            click.echo(fault, err=True)
        sys.exit(1)
    except Unsettled as error:
        click.echo(f"render: {error}", err=True)
        sys.exit(1)
    except OSError as error:
        if error.errno == errno.EPIPE:
            # Whoever read us has had enough: nothing to say, and nobody to say it to.
            raise
        place = error.filename or out or "standard output"
        click.echo(f"render: cannot write {place}: {(error.strerror or str(error)).lower()}", err=True)
        sys.exit(1)
    sys.exit(1 if failed else 0)


def _play(work: Rendering, output: str, out: Path | None, *, brief: bool) -> list[str]:
    from modelplane.render.dump import dump
    from modelplane.render.run import composed

    writer = _Writer(out) if out else None
    before: dict[str, list[Line]] = {}
    last: Pass | None = None
    for done, lines in work.passes():
        last = done
        trees = _by_root(lines)
        changed = {root: tree for root, tree in trees.items() if before.get(root) != tree}
        shown = _roots(trees, before) if brief else changed
        if output == "tree" and shown:
            _print(done, shown)
        if writer:
            writer.write(done, changed)
        before = trees
    assert last is not None
    if output == "tree" and brief:
        out_.say(f"at rest after pass {last.number}", out_.BOLD)
        _print_roots(before)
    final = composed(last, work.world.children)
    if output == "yaml":
        click.echo(dump(final), nl=False)
    elif output == "json":
        click.echo(json.dumps(final, indent=2, sort_keys=True))
    if writer:
        writer.finish(final)
    return _failures(last)


def _failures(done: Pass) -> list[str]:
    failed = [f"{r.target}: {r.refused['']}" for r in done.reports if r.refused.get("")]
    warned = [f"{r.target}: {warning}" for r in done.reports for warning in r.warnings]
    for line in [*failed, *warned]:
        click.echo(line, err=True)
    return failed


def _by_root(lines: list[Line]) -> dict[str, list[Line]]:
    trees: dict[str, list[Line]] = {}
    for line in lines:
        if not line.guide:
            trees[line.what] = []
        trees[next(reversed(trees))].append(line)
    return trees


def _print(done: Pass, trees: dict[str, list[Line]]) -> None:
    out_.say(f"pass {done.number}", out_.BOLD)
    for line in (line for tree in trees.values() for line in tree):
        out_.say(str(line), out_.READY[line.ready])


def _roots(trees: dict[str, list[Line]], before: dict[str, list[Line]]) -> dict[str, list[Line]]:
    """Return the first line of each tree, where it differs from the one before."""
    return {root: tree[:1] for root, tree in trees.items() if before.get(root, [])[:1] != tree[:1]}


def _print_roots(trees: dict[str, list[Line]]) -> None:
    """Print what nothing composed and what that composed; what is deeper is a number."""
    for tree in trees.values():
        rows = [at for at, line in enumerate(tree) if len(line.guide) <= _BRANCH]
        for at, following in zip(rows, [*rows[1:], len(tree)], strict=True):
            deeper = following - at - 1
            below = f" ({deeper} below)" if deeper else ""
            out_.say(f"{tree[at]}{below}", out_.READY[tree[at].ready])


class _Writer:
    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for old in [*folder.glob("pass-*.yaml"), *folder.glob("final.yaml"), *folder.glob("tree.txt")]:
            old.unlink()
        self._folder = folder

    def write(self, done: Pass, trees: dict[str, list[Line]]) -> None:
        from modelplane.render.dump import dump
        from modelplane.render.run import desired

        if done.changed:
            path = self._folder / f"pass-{done.number:02}.yaml"
            path.write_text(dump([desired(o) for _, o in sorted(done.changed.items())]))
        if trees:
            with (self._folder / "tree.txt").open("a") as file:
                file.write(f"pass {done.number}\n")
                file.writelines(f"{line}\n" for tree in trees.values() for line in tree)

    def finish(self, final: list[Manifest]) -> None:
        from modelplane.render.dump import dump

        (self._folder / "final.yaml").write_text(dump(final))
