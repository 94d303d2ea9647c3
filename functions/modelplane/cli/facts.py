"""`modelplane facts`: entries of the instance table from what AWS says of instance types."""

from __future__ import annotations

import json
import sys
from typing import IO

import click

from modelplane.cli import output as out


@click.command()
@click.argument("described", type=click.File("rb"), default="-")
def facts(described: IO[bytes]) -> None:
    """Turn DESCRIBED, the JSON of `aws ec2 describe-instance-types`, into entries of the instance table.

    They are printed; add them to functions/modelplane/facts/aws_instances.yaml with source and date. What AWS
    does not say is named on standard error, and exit status 1 says that something is left to add by hand.
    """
    import yaml

    from modelplane.facts import aws
    from modelplane.facts.describe import DescriptionError, convert

    try:
        found = convert(json.load(described))
    except DescriptionError as error:
        out.cannot("facts", f"{described.name} {error}")
    except ValueError as error:
        out.cannot("facts", f"{described.name} is not JSON: {error}")
    if not found.entries:
        out.cannot("facts", f"{described.name} describes no instance type with NVIDIA GPUs")
    text = yaml.safe_dump({"instanceTypes": found.entries}, sort_keys=False, default_flow_style=None)
    click.echo(text, nl=False)
    for name in sorted(found.entries.keys() & aws.instance_types().keys()):
        click.echo(f"{name}: is in the table already; compare before you replace it", err=True)
    for line in found.open:
        click.echo(line, err=True)
    sys.exit(out.FOUND if found.open else 0)
