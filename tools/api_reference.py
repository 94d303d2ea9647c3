"""One reference page per XRD: every field with its type, default, limits and rules, from the schema alone.

Shared shapes are written where they are used: a reader looks for a path, not for a type.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

Schema = Mapping[str, Any]
FOLDER = "docs/reference/api"
_LIMITS = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "minLength": "{} or more characters",
    "maxLength": "up to {} characters",
    "minItems": "{} or more items",
    "maxItems": "up to {} items",
    "maxProperties": "up to {} keys",
    "pattern": "matches `{}`",
    "format": "format {}",
}
_OBVIOUS = [("minLength", 1), ("format", "int32"), ("format", "int64")]
# Below these a page would repeat Kubernetes' own documentation.
_DEPTH = 14


def page(definition: Schema, source: str) -> str:
    """The Markdown page of one XRD."""
    spec = definition["spec"]
    names, version = spec["names"], spec["versions"][0]
    schema = _openapi(definition)
    scoped = "cluster-scoped" if spec.get("scope") == "Cluster" else "namespaced"
    short = ", ".join(f"`{x}`" for x in names.get("shortNames", ())) or "none"
    lines = [
        f"<!-- Generated from schemas/{source}; edit there, then run `make generate`. -->",
        f"# {names['kind']}",
        "",
        schema.get("description", ""),
        "",
        f"`apiVersion: {spec['group']}/{version['name']}`, {scoped}, "
        f"short names: {short}. Crossplane's own fields below `spec.crossplane` and the conditions below "
        "`status` are not listed.",
        "",
    ]
    for part in ("spec", "status"):
        fields = schema.get("properties", {}).get(part)
        if fields is None or not fields.get("properties"):
            continue
        lines += [f"## {part}", "", "| field | type | default | meaning |", "|---|---|---|---|"]
        lines += [_row(*x) for x in _fields(fields, part)]
        lines.append("")
        if rules := list(_rules(fields, part)):
            lines += ["What the API server refuses besides:", "", *rules, ""]
    if columns := version.get("additionalPrinterColumns"):
        listed = ", ".join(f"{x['name']} (`{x['jsonPath'].lstrip('.')}`)" for x in columns)
        lines += [f"`kubectl get` shows: {listed}.", ""]
    return "\n".join(lines)


def index(definitions: list[tuple[Schema, str]]) -> str:
    """The page that lists all kinds."""
    lines = [
        "<!-- Generated from schemas/; edit there, then run `make generate`. -->",
        "# API reference",
        "",
        "One page per kind, generated from the same schema that the API server enforces. A field that is not",
        "here is refused.",
        "",
        "| kind | scope | what it is |",
        "|---|---|---|",
    ]
    for definition, source in definitions:
        spec = definition["spec"]
        text = _openapi(definition).get("description", "")
        link = f"[{spec['names']['kind']}]({source.removesuffix('.yaml')}.md)"
        lines.append(f"| {link} | {spec.get('scope', 'Namespaced')} | {_cell(text)} |")
    return "\n".join([*lines, ""])


def _openapi(definition: Schema) -> Schema:
    found: Schema = definition["spec"]["versions"][0].get("schema", {}).get("openAPIV3Schema", {})
    return found


def _fields(schema: Schema, path: str, depth: int = 0) -> Iterator[tuple[str, Schema, bool]]:
    required = set(schema.get("required", ()))
    for name, field in schema.get("properties", {}).items():
        here = f"{path}.{name}"
        yield here, field, name in required
        if depth < _DEPTH:
            yield from _below(field, here, depth + 1)


def _below(field: Schema, path: str, depth: int) -> Iterator[tuple[str, Schema, bool]]:
    yield from _fields(field, path, depth)
    if isinstance(items := field.get("items"), Mapping):
        yield from _below(items, f"{path}[]", depth)
    if isinstance(values := field.get("additionalProperties"), Mapping):
        yield from _below(values, f"{path}.*", depth)


def _row(path: str, field: Schema, required: bool) -> str:
    said = [field.get("description", "")]
    if values := field.get("enum"):
        said.append(f"One of {', '.join(f'`{x}`' for x in values)}.")
    limits = _limits(field)
    if items := field.get("items"):
        limits += [f"each {text}" for text in _limits(items)]
        if values := items.get("enum"):
            said.append(f"Each one of {', '.join(f'`{x}`' for x in values)}.")
    if limits:
        # Not capitalize(): it writes the rest in lower case, patterns too.
        said.append(f"{limits[0][0].upper()}{', '.join(limits)[1:]}.")
    default = f"`{_literal(field['default'])}`" if "default" in field else "required" if required else ""
    return f"| `{path}` | {_type(field)} | {_cell(default)} | {_cell(' '.join(filter(None, said)))} |"


def _limits(field: Schema) -> list[str]:
    found = [(key, field[key]) for key in _LIMITS if key in field]
    return [_LIMITS[key].format(value) for key, value in found if (key, value) not in _OBVIOUS]


def _type(field: Schema) -> str:
    if field.get("x-kubernetes-int-or-string"):
        return "integer or string"
    kind = field.get("type", "any")
    if kind == "array":
        return f"list of {_type(field.get('items', {}))}"
    if kind == "object" and isinstance(values := field.get("additionalProperties"), Mapping):
        return f"map of {_type(values)}"
    return str(kind)


def _rules(schema: Schema, path: str, depth: int = 0) -> Iterator[str]:
    for rule in schema.get("x-kubernetes-validations", ()):
        yield f"- `{path}`: {_cell(rule.get('message') or rule['rule'])}"
    if depth >= _DEPTH:
        return
    for name, field in schema.get("properties", {}).items():
        yield from _rules(field, f"{path}.{name}", depth + 1)
    if isinstance(items := schema.get("items"), Mapping):
        yield from _rules(items, f"{path}[]", depth + 1)
    if isinstance(values := schema.get("additionalProperties"), Mapping):
        yield from _rules(values, f"{path}.*", depth + 1)


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "{}" if value == {} else str(value)


def _cell(text: str) -> str:
    """Text that stays within its cell: a bar ends one, a line break ends the table."""
    return re.sub(r"\s+", " ", str(text)).strip().replace("|", "\\|")
