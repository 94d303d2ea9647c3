"""What judging a manifest against its schema offline costs, beside the jsonschema library."""

import statistics
from typing import Any

import jsonschema

from benchmarks.drive import Times, table
from modelplane.api.schema import Schema

_CALLS = 31
_FIELDS = (20, 200, 2000)
_EACH = 20


def checks() -> None:
    """Print both for documents of ever more fields; the ratio is of one run."""
    rows = []
    for fields in _FIELDS:
        openapi, document = _of(fields)
        ours, theirs = Times(), Times()
        schema, validator = Schema(openapi), jsonschema.Draft202012Validator(openapi)
        for _ in range(_CALLS):
            assert ours.run(lambda: schema.check(document)) == []  # noqa: B023
            assert theirs.run(lambda: validator.is_valid(document))  # noqa: B023
        mine, other = statistics.median(ours.cpu), statistics.median(theirs.cpu)
        rows.append((fields, f"{mine:.2f}", f"{other:.2f}", f"{mine / other:.2f}"))
    table("A manifest against its schema, CPU ms", ["fields", "ours", "jsonschema", "ratio (1)"], rows)


def _of(fields: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a schema with a list of small objects, and a document with that many fields in all."""
    field = {"type": "string", "pattern": "^[a-z]+$"}
    item = {"type": "object", "properties": {f"field{number}": field for number in range(_EACH)}}
    document = {"items": [{f"field{number}": "value" for number in range(_EACH)}] * (fields // _EACH)}
    return {"type": "object", "properties": {"items": {"type": "array", "items": item}}}, document
