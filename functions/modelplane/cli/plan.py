"""`modelplane plan`: where replicas would land, what they displace, and why not elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from modelplane.cli import options
from modelplane.cli import output as out

if TYPE_CHECKING:
    from modelplane.review import forecast as fc
    from modelplane.review.fleet import Fleet
    from modelplane.sim.world import Ref


@click.command()
@options.files_argument()
@options.required_option
@click.option("--live", is_flag=True, help="Place on the fleet of the control plane, among what runs there.")
@options.live_options
@click.option("--all", "everything", is_flag=True, help="Show deployments that nothing changes for, too.")
@options.output_option
@out.guarded
def plan(
    files: tuple[Path, ...],
    required: tuple[Path, ...],
    live: bool,
    context: str | None,
    kubeconfig: Path | None,
    everything: bool,
    output: str,
) -> None:
    """Say where the replicas of FILES would land, by the scheduler that runs on the control plane.

    A cluster without status is taken as it will be once it stands. New replicas are taken to serve, so that
    what they replace leaves: shown is where everything comes to rest. Nothing is written anywhere.

    Exit status 1: a replica has no place. 3: it could not look.
    """
    from modelplane.render import collect
    from modelplane.review import forecast
    from modelplane.review.fleet import DEPLOYMENT, Fleet
    from modelplane.sim.world import ref

    objects = out.fleet_objects("plan", context, kubeconfig) if live else []
    known = collect.read(required) if required else []
    given = collect.read(files)
    with out.working("placing"):
        fleet = Fleet.of([*objects, *known, *out.over(objects, given)])
        try:
            found = forecast.forecast(fleet)
        except forecast.UnsettledError as error:
            out.cannot("plan", str(error))
    asked = {ref(obj) for obj in given}
    # Somebody else's replica that had no place before and has none now is no news of these files.
    news = [a for a in found.answers if a.moves or a.deployment in asked]
    shown = list(found.answers) if everything else news
    if output == "table":
        _print(fleet, shown, found.rooms)
    else:
        rooms = [_room(r) for r in found.rooms]
        out.emit({"deployments": [_answer(a) for a in shown], "capacity": rooms}, output)
    if not any(r[:2] == DEPLOYMENT for r in asked | set(_refs(found))):
        out.cannot("plan", f"{', '.join(map(str, files))}: no ModelDeployment to place; name a file with one")
    sys.exit(out.FOUND if any(a.missing or a.says for a in news) else 0)


def _refs(found: fc.Forecast) -> Iterable[Ref]:
    return (a.deployment for a in found.answers)


def _print(fleet: Fleet, answers: list[fc.Answer], rooms: Iterable[fc.Room]) -> None:
    if fleet.foreseen:
        click.echo(f"taken as standing: {', '.join(fleet.foreseen)}")
    for name, bad in sorted(fleet.failing.items()):
        click.echo(f"never stands as it is: {name}: {'; '.join(x.message for x in bad)}")
    if answers:
        out.heading("Replicas")
        rows = [
            (a.name, r.change, r.cluster, ", ".join(r.pools), f"{r.name}{f': {r.why}' if r.why else ''}")
            for a in answers
            for r in a.replicas
        ]
        rows += [(a.name, "no place", "", "", f"{a.missing} of {a.wanted}") for a in answers if a.missing]
        out.table(("DEPLOYMENT", "CHANGE", "CLUSTER", "POOLS", "REPLICA"), rows, style=1)
    for answer in answers:
        if answer.whys:
            out.heading(f"Why not, for {answer.name}")
            out.table(("CLUSTER", "POOL", "REASON"), [(w.cluster, w.pool, w.reason) for w in answer.whys])
        elif answer.says:
            click.echo(f"\n{answer.name}: {answer.says}")
    if found := list(rooms):
        out.heading("Free devices")
        rows_ = [(r.cluster, r.pool, r.device, r.nodes, r.total, r.before, r.after) for r in found]
        out.table(("CLUSTER", "POOL", "DEVICE", "NODES", "TOTAL", "BEFORE", "AFTER"), rows_)


def _answer(answer: fc.Answer) -> dict[str, Any]:
    found: dict[str, Any] = {
        "namespace": answer.deployment.namespace,
        "name": answer.deployment.name,
        "wanted": answer.wanted,
        "missing": answer.missing,
        "replicas": [
            {
                "name": r.name,
                "cluster": r.cluster,
                "pools": list(r.pools),
                "change": r.change,
                **({"why": r.why} if r.why else {}),
            }
            for r in answer.replicas
        ],
    }
    if answer.says:
        found["says"] = answer.says
    if answer.whys:
        found["whyNot"] = [
            {"cluster": w.cluster, **({"pool": w.pool} if w.pool else {}), "reason": w.reason}
            for w in answer.whys
        ]
    return found


def _room(room: fc.Room) -> dict[str, Any]:
    return {
        "cluster": room.cluster,
        "pool": room.pool,
        "device": room.device,
        "nodes": room.nodes,
        "total": room.total,
        "freeBefore": room.before,
        "freeAfter": room.after,
    }
