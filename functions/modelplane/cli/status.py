"""`modelplane status`: what a control plane runs, and what keeps it from more."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import click

from modelplane.cli import options
from modelplane.cli import output as out


@click.command()
@click.argument("object", required=False, default="", metavar="[KIND/NAME]")
@options.live_options
@click.option("-n", "--namespace", default="", help="Look into this namespace only.")
@click.option("-w", "--watch", is_flag=True, help="Show again whenever something changes, until Ctrl-C.")
@click.option(
    "--interval",
    type=click.FloatRange(min=0.5),
    default=5.0,
    show_default=True,
    help="Seconds between looks.",
)
@options.output_option
def status(
    object: str,  # noqa: A002  (what the user names)
    context: str | None,
    kubeconfig: Path | None,
    namespace: str,
    watch: bool,
    interval: float,
    output: str,
) -> None:
    """Show the trees of a control plane down to gangs: what is ready, and the first reason why not.

    Then free devices of every pool, caches, services and endpoints. KIND/NAME (or KIND/NAMESPACE/NAME) shows
    one object and what it composed. Reads only; Secrets are never asked for.

    Exit status 1: something is not ready. 3: the control plane cannot be asked, or the object is not there.
    """
    if not watch:
        sys.exit(_once(object, context, kubeconfig, namespace, output))
    try:
        _watch(object, context, kubeconfig, namespace, interval, output)
    except KeyboardInterrupt:
        sys.exit(0)


def _read(name: str, context: str | None, kubeconfig: Path | None, namespace: str) -> Any:
    live = out.read_live("status", context, kubeconfig, composed=True, namespace=namespace)
    found = out.live_module("status", "modelplane.review.status")
    try:
        return found.status(live, name)
    except found.NotFoundError as error:
        out.cannot("status", str(error))


def _once(name: str, context: str | None, kubeconfig: Path | None, namespace: str, output: str) -> int:
    found = _read(name, context, kubeconfig, namespace)
    _show(found, output)
    return out.FOUND if any(line.ready is not True for line in found.lines if not line.guide) else 0


def _watch(
    name: str, context: str | None, kubeconfig: Path | None, namespace: str, interval: float, output: str
) -> None:
    last: object = None
    people = output == "table"
    while True:
        try:
            found = _read(name, context, kubeconfig, namespace)
        except SystemExit:
            # What could be asked once will be again: a control plane that restarts must not end a watch.
            if last is None:
                raise
            found = last
        if found != last:
            if people and sys.stdout.isatty():
                click.clear()
            elif people and last is not None:
                click.echo("---")
            _show(found, output)
            if people and sys.stdout.isatty():
                out.say(f"\nlooks every {interval:g} s; Ctrl-C ends", out.DIM)
            last = found
        time.sleep(interval)


def _show(found: Any, output: str) -> None:
    if output != "table":
        out.emit(_plain(found), output)
        return
    if not found.lines:
        click.echo("nothing of Modelplane is there yet")
    for line in found.lines:
        out.say(str(line), out.READY[line.ready])
    _tables(found)


def _tables(found: Any) -> None:
    if found.rooms:
        out.heading("Free devices")
        rows = [(r.cluster, r.pool, r.device, r.nodes, r.total, r.after) for r in found.rooms]
        out.table(("CLUSTER", "POOL", "DEVICE", "NODES", "TOTAL", "FREE"), rows)
    if found.caches:
        out.heading("Caches")
        out.table(("CACHE", "READY", "CLUSTERS"), found.caches)
    if found.services:
        out.heading("Services")
        out.table(("SERVICE", "ENDPOINTS", "URL"), found.services)
    if found.endpoints:
        out.heading("Endpoints")
        out.table(("ENDPOINT", "STATE", "URL"), found.endpoints)
    for line in found.unread:
        click.echo(f"not read: {line}", err=True)


def _plain(found: Any) -> dict[str, Any]:
    return {
        "objects": [
            {
                "depth": len(line.guide) // 3,
                **({"key": line.key} if line.key else {}),
                "object": line.what,
                "ready": line.ready is True,
                **({"why": line.why} if line.why else {}),
            }
            for line in found.lines
        ],
        "capacity": [
            {
                "cluster": r.cluster,
                "pool": r.pool,
                "device": r.device,
                "nodes": r.nodes,
                "total": r.total,
                "free": r.after,
            }
            for r in found.rooms
        ],
        "caches": [{"name": n, "ready": r, "clusters": x} for n, r, x in found.caches],
        "services": [{"name": n, "endpoints": e, "url": u} for n, e, u in found.services],
        "endpoints": [{"name": n, "state": s, "url": u} for n, s, u in found.endpoints],
        "notRead": list(found.unread),
    }
