"""`modelplane validate`: what is wrong with manifests, before anything is applied."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import click

from modelplane.cli import options
from modelplane.cli import output as out

if TYPE_CHECKING:
    from modelplane.review.finding import Finding


@click.command()
@options.files_argument()
@options.required_option
@click.option("--live", is_flag=True, help="Take what the control plane has as there already.")
@options.live_options
@click.option("--strict", is_flag=True, help="Let warnings fail too.")
@options.output_option
@out.guarded
def validate(
    files: tuple[Path, ...],
    required: tuple[Path, ...],
    live: bool,
    context: str | None,
    kubeconfig: Path | None,
    strict: bool,
    output: str,
) -> None:
    """Judge FILES (YAML files, folders, folders with a kustomization) offline.

    First as the API server would: schema, defaults, CEL rules. Then for what it cannot see: classes that do
    not exist, selectors that no device satisfies, caches that are never staged where the model may land,
    weights too large for cache or GPUs, disks too small for the image, ranks of one stack only, no place in
    the fleet. An error cannot work; a warning may not, or rests on an estimate.

    Exit status 1: there are errors (with --strict: or warnings). 3: it could not look.
    """
    from modelplane.review.validate import validate as judge

    objects = out.fleet_objects("validate", context, kubeconfig) if live else []
    with out.working("judging"):
        findings, number = judge(files, required, objects)
    counts: Counter[str] = Counter(finding.severity for finding in findings)
    if output == "table":
        _print(findings, counts, number)
    else:
        found = [{k: v for k, v in asdict(x).items() if v not in ("", 0)} for x in findings]
        summary = {"objects": number, "errors": counts["error"], "warnings": counts["warning"]}
        out.emit({"findings": found, "summary": summary}, output)
    sys.exit(out.FOUND if counts["error"] or (strict and counts["warning"]) else 0)


def _print(findings: list[Finding], counts: Counter[str], number: int) -> None:
    for key, group in groupby(findings, key=lambda x: (x.file, x.line, x.severity, x.reason, x.step)):
        # One line of YAML may stand in several places of an object, by an alias.
        finding, *same = group
        file, _, severity, reason, step = key
        also = "".join(f" and {x.field}" for x in same if x.field)
        said = f": {reason}" if not file else ""
        out.say(f"{_place(finding)}{also}{said}", out.STYLES[severity])
        if file:
            out.say(f"  {reason}")
        if step:
            out.say(f"  -> {step}")
    if findings:
        click.echo()
    notes = f", {_some(counts['note'], 'note')}" if counts["note"] else ""
    said = f"{_some(counts['error'], 'error')}, {_some(counts['warning'], 'warning')}{notes}"
    judged = f"{_some(number, 'object')} judged: " if number else "not admitted: "
    click.echo(f"{judged}{said}")


def _place(finding: Finding) -> str:
    what = ": ".join(x for x in (finding.object, finding.field) if x)
    parts = (finding.where, finding.severity, what)
    return ": ".join(x for x in parts if x)


def _some(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
