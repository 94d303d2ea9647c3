"""`modelplane diff`: what changes on which cluster, and what of it is made anew."""

from __future__ import annotations

import sys
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from modelplane import contracts as c
from modelplane.cli import options
from modelplane.cli import output as out

if TYPE_CHECKING:
    from modelplane.review import changes as ch

# What `review.changes` calls a change; the test of the marks compares.
_RECREATED = "recreated"
_MARK = {
    "added": ("+", out.GREEN),
    "removed": ("-", out.RED),
    "changed": ("~", out.YELLOW),
    _RECREATED: ("!", {**out.RED, **out.BOLD}),
}
_FIELDS = 12


@click.command()
@click.argument("old")
@click.argument("new")
@click.option(
    "--stack",
    type=click.Choice([c.STANDARD, c.DYNAMO]),
    default=c.DYNAMO,
    show_default=True,
    help="Whose components, where OLD and NEW are stack releases.",
)
@click.option("--fields", is_flag=True, help="Show every field that differs, not the first few.")
@options.output_option
@out.guarded
def diff(old: str, new: str, stack: str, fields: bool, output: str) -> None:
    """Say what changes from OLD to NEW.

    Both are manifests (a file or folder): NEW is applied over what OLD has become, clouds simulated. Or both
    are folders that `render --out` wrote, with one version of the package and another. Or both are names of
    stack releases: then pins and values of each component are compared.

    Exit status 1: something changes. 3: it could not look.
    """
    with out.working("comparing"):
        found = _compare(old, new, stack)
    if output == "table":
        _print(found, everything=fields)
    else:
        out.emit({"changes": [_plain(x) for x in found]}, output)
    sys.exit(out.FOUND if found else 0)


def _compare(old: str, new: str, stack: str) -> list[ch.Change]:
    from modelplane.facts import versions
    from modelplane.review import diff as compare
    from modelplane.sim.play import Unsettled

    if compare.is_release(old) and compare.is_release(new):
        return compare.of_releases(old, new, stack)
    for name, other in ((old, new), (new, old)):
        if not Path(name).exists() and compare.is_release(other):
            known = ", ".join(versions.releases())
            out.cannot("diff", f"stack release {name} is not known here; known are {known}")
    before, after = Path(old), Path(new)
    rendered = [compare.is_rendered(path) for path in (before, after)]
    if all(rendered):
        return compare.of_rendered(before, after)
    if any(rendered):
        which, other = (old, new) if rendered[0] else (new, old)
        out.cannot("diff", f"{which} is a rendered tree and {other} is none: give two of a kind")
    try:
        return compare.of_manifests([before], [after])
    except Unsettled as error:
        out.cannot("diff", str(error))


def _print(found: list[ch.Change], *, everything: bool) -> None:
    for cluster, group in groupby(found, key=lambda x: x.cluster):
        out.heading(cluster)
        for change in group:
            mark, style = _MARK[change.change]
            was = f" (was {change.was})" if change.was else ""
            effect = f" [{change.effect}]" if change.effect else ""
            word = f" {_RECREATED}" if change.change == _RECREATED else ""
            out.say(f"{mark} {change.what}{word}{was}{effect}", style)
            shown = change.fields if everything else change.fields[:_FIELDS]
            for field in shown:
                old, new = (x if x is not None else "(absent)" for x in (field.old, field.new))
                out.say(f"    {field.path}: {old} -> {new}")
            if len(shown) < len(change.fields):
                click.echo(f"    and {len(change.fields) - len(shown)} more (--fields)")
    counts = ", ".join(
        f"{sum(1 for x in found if x.change == kind)} {kind}"
        for kind in _MARK
        if any(x.change == kind for x in found)
    )
    click.echo(f"\n{counts}" if found else "nothing changes")


def _plain(change: ch.Change) -> dict[str, Any]:
    found: dict[str, Any] = {"cluster": change.cluster, "change": change.change, "object": change.what}
    found |= {k: v for k, v in (("was", change.was), ("effect", change.effect)) if v}
    if change.fields:
        found["fields"] = [{"path": f.path, "old": f.old, "new": f.new} for f in change.fields]
    return found
