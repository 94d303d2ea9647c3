"""Writes the checked-in files that follow from `schemas/`: the XRDs, their Compositions, their reference.

A missing `schemas/` folder or an include that names no file is an error; nothing is written then.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

import api_reference

ROOT = Path(__file__).resolve().parent.parent
INCLUDE = "$include"
FUNCTION = "modelplane-function"

# `spec.names.shortNames` and friends stay readable at this width; longer prose is folded.
WIDTH = 110


class SchemaError(Exception):
    """A source file that cannot be turned into an XRD; the message names the file and the next step."""


@dataclass(frozen=True)
class Generated:
    """One generated file: where it goes, relative to the root, and what it holds."""

    path: Path
    text: str


@dataclass(frozen=True)
class Generator:
    """One kind of generated file. `owns` are globs in which every file must come from this generator."""

    name: str
    produce: Callable[[Path], Iterator[Generated]]
    owns: tuple[str, ...]


class _Dumper(yaml.SafeDumper):
    """Dumps plainly: no anchors, prose in block style, lists indented below their key."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - the signature is PyYAML's
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002
        super().increase_indent(flow, False)


def _represent_str(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    # PyYAML silently falls back to double quotes for a block it cannot write, e.g. trailing spaces.
    if "\n" in value:
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|")
    if len(value) > 80 and " " in value:
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=">")
    return dumper.represent_scalar("tag:yaml.org,2002:str", value)


_Dumper.add_representer(str, _represent_str)


class _Loader(yaml.SafeLoader):
    """Refuses a repeated key: PyYAML keeps the last one in silence, which loses a field from a schema."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                line = key_node.start_mark.line + 1
                raise SchemaError(f"{key_node.start_mark.name}:{line}: key {key!r} is repeated; keep one")
            seen.add(key)
        return super().construct_mapping(node, deep)


def load(path: Path) -> Any:
    """Reads one YAML document; an empty file is an error, since a schema is never empty."""
    try:
        with path.open(encoding="utf-8") as handle:
            value = yaml.load(handle, _Loader)
    except FileNotFoundError:
        raise SchemaError(f"{path}: no such file; write it or correct the {INCLUDE}") from None
    except yaml.YAMLError as error:
        raise SchemaError(f"{path}: not valid YAML: {error}") from None
    if value is None:
        raise SchemaError(f"{path}: empty; give it content or delete it")
    return value


def resolve(value: Any, base: Path, trail: tuple[Path, ...] = ()) -> Any:
    """Replaces every include below `value`, with paths relative to `base`; without one it is a deep copy.

    A list included as an item of a list is spliced into it.
    """
    if isinstance(value, list):
        items: list[Any] = []
        for item in value:
            resolved = resolve(item, base, trail)
            spliced = isinstance(resolved, list) and isinstance(item, dict)
            items.extend(resolved if spliced else [resolved])
        return items
    if not isinstance(value, dict):
        return value
    beside = {key: resolve(item, base, trail) for key, item in value.items() if key != INCLUDE}
    if INCLUDE not in value:
        return beside
    path = (base / str(value[INCLUDE])).resolve()
    if path in trail:
        chain = " -> ".join(p.name for p in (*trail, path))
        raise SchemaError(f"{path}: includes itself ({chain}); break the circle")
    included = resolve(load(path), base, (*trail, path))
    if not isinstance(included, dict):
        if beside:
            raise SchemaError(f"{path}: not a mapping, so keys beside {INCLUDE} have nothing to override")
        return included
    return {**included, **beside}


def sources(root: Path) -> list[Path]:
    """The XRD sources in name order; a missing folder is an error."""
    folder = root / "schemas"
    if not folder.is_dir():
        raise SchemaError(f"{folder}: no such folder; run from a checkout of the repository")
    return sorted(folder.glob("*.yaml"))


def xrd(root: Path, source: Path) -> dict[str, Any]:
    """The resolved XRD of one source file; one whose names disagree is an error."""
    resolved = resolve(load(source), root / "schemas")
    try:
        name = resolved["metadata"]["name"]
        plural, group = resolved["spec"]["names"]["plural"], resolved["spec"]["group"]
        resolved["spec"]["names"]["kind"]
    except (KeyError, TypeError) as error:
        raise SchemaError(f"{source}: not an XRD: {error} is missing; see its neighbours") from None
    if name != f"{plural}.{group}" or source.stem != plural:
        raise SchemaError(
            f"{source}: metadata.name is {name}; name the XRD and the file after {plural}.{group}"
        )
    return dict(resolved)


def kebab(kind: str) -> str:
    """`ModelCacheReplica` -> `model-cache-replica`; a run of capitals is one word (`eks-node-pool`)."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", kind).lower()


def composition(definition: dict[str, Any]) -> dict[str, Any]:
    """The one Composition of an XRD: a single step that calls our function, which goes by the XR's kind."""
    spec = definition["spec"]
    return {
        "apiVersion": "apiextensions.crossplane.io/v1",
        "kind": "Composition",
        "metadata": {"name": definition["metadata"]["name"]},
        "spec": {
            "compositeTypeRef": {
                "apiVersion": f"{spec['group']}/{spec['versions'][0]['name']}",
                "kind": spec["names"]["kind"],
            },
            "mode": "Pipeline",
            "pipeline": [
                {
                    "step": f"compose-{kebab(spec['names']['kind'])}",
                    "functionRef": {"name": FUNCTION},
                }
            ],
        },
    }


def render(document: dict[str, Any], source: Path) -> str:
    """One YAML document below a header that names its source."""
    body = yaml.dump(document, Dumper=_Dumper, sort_keys=False, width=WIDTH, allow_unicode=True)
    return f"# Generated from schemas/{source.name}; edit there, then run `make generate`.\n---\n{body}"


def generate_xrds(root: Path) -> Iterator[Generated]:
    """`apis/<plural>.yaml` for every source."""
    for source in sources(root):
        yield Generated(Path("apis") / source.name, render(xrd(root, source), source))


def generate_compositions(root: Path) -> Iterator[Generated]:
    """`compositions/<plural>.yaml` for every source."""
    for source in sources(root):
        text = render(composition(xrd(root, source)), source)
        yield Generated(Path("compositions") / source.name, text)


def generate_reference(root: Path) -> Iterator[Generated]:
    """A page of documentation for every source, and one that lists them."""
    known = [(xrd(root, source), source.name) for source in sources(root)]
    folder = Path(api_reference.FOLDER)
    for definition, name in known:
        yield Generated(folder / f"{Path(name).stem}.md", api_reference.page(definition, name))
    yield Generated(folder / "index.md", api_reference.index(known))


GENERATORS: list[Generator] = [
    Generator("xrds", generate_xrds, owns=("apis/*.yaml",)),
    Generator("compositions", generate_compositions, owns=("compositions/*.yaml",)),
    Generator("reference", generate_reference, owns=(f"{api_reference.FOLDER}/*.md",)),
]


@dataclass(frozen=True)
class Difference:
    """A file that is not what its generator says, and how."""

    path: Path
    how: str
    text: str | None


def differences(root: Path, generators: list[Generator] | None = None) -> list[Difference]:
    """What differs from the sources, in path order; empty when the tree is in step."""
    found: list[Difference] = []
    for generator in GENERATORS if generators is None else generators:
        wanted = {item.path: item.text for item in generator.produce(root)}
        for path, text in wanted.items():
            target = root / path
            if not target.is_file():
                found.append(Difference(path, "missing", text))
            elif target.read_text(encoding="utf-8") != text:
                found.append(Difference(path, "out of date", text))
        present = {item.relative_to(root) for glob in generator.owns for item in root.glob(glob)}
        found.extend(Difference(path, "without a source", None) for path in present - wanted.keys())
    return sorted(found, key=lambda difference: difference.path)


def write(root: Path, difference: Difference) -> None:
    """Puts one file right: writes it, or deletes it when nothing produces it."""
    target = root / difference.path
    if difference.text is None:
        target.unlink()
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(difference.text, encoding="utf-8")


def main(argv: list[str] | None = None, root: Path = ROOT) -> int:
    """Writes what differs, or with `--check` only names it: 1 when anything does, 2 on a broken source."""
    parser = argparse.ArgumentParser(description="Write the files that follow from schemas/.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a file would change")
    check = parser.parse_args(argv).check
    try:
        found = differences(root)
    except SchemaError as error:
        print(error, file=sys.stderr)
        return 2
    for difference in found:
        print(f"{difference.path}: {difference.how}")
        if not check:
            write(root, difference)
    return 1 if check and found else 0


if __name__ == "__main__":
    sys.exit(main())
