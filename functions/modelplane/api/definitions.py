"""Find the definitions of kinds, in XRDs and CRDs, and judge documents against them."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from modelplane.api.definitions_xrd import composite_openapi
from modelplane.api.schema import Problem, Schema

Key = tuple[str, str]

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DEFINITION_KINDS = ("CustomResourceDefinition", "CompositeResourceDefinition")
# The widest of the indentations that generators write, and quotes as some do.
_GROUP = re.compile(r"""^\s{2,6}["']?group["']?:\s*["']?([\w.-]+)""", re.MULTILINE)
_KIND = re.compile(r"""^\s{2,12}["']?kind["']?:\s*["']?(\w+)""", re.MULTILINE)
_PACKAGE = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Definition:
    """One served version of one kind."""

    kind: str
    group: str
    plural: str
    scope: str
    version: str
    schema: Schema
    columns: tuple[Mapping[str, Any], ...] = ()
    short_names: tuple[str, ...] = ()

    @property
    def api_version(self) -> str:
        """The apiVersion that documents of this kind state."""
        return f"{self.group}/{self.version}"

    @property
    def namespaced(self) -> bool:
        """Whether its objects live in a namespace."""
        return self.scope == "Namespaced"


def from_crd(document: Mapping[str, Any]) -> list[Definition]:
    """Give the served versions that a CustomResourceDefinition declares."""
    return [_definition(document, version, _openapi(version)) for version in _served(document)]


def from_xrd(document: Mapping[str, Any]) -> list[Definition]:
    """Give the served versions of a CompositeResourceDefinition, with what Crossplane adds to its schema."""
    return [
        _definition(document, version, composite_openapi(_openapi(version))) for version in _served(document)
    ]


def _served(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [version for version in document["spec"]["versions"] if version.get("served", True)]


def _openapi(version: Mapping[str, Any]) -> Mapping[str, Any]:
    openapi: Mapping[str, Any] = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    return openapi


def _definition(
    document: Mapping[str, Any], version: Mapping[str, Any], openapi: Mapping[str, Any]
) -> Definition:
    spec = document["spec"]
    names = spec["names"]
    return Definition(
        kind=names["kind"],
        group=spec["group"],
        plural=names["plural"],
        # Crossplane v2's default; a CRD always states its own.
        scope=spec.get("scope", "Namespaced"),
        version=version["name"],
        schema=Schema(openapi),
        columns=tuple(version.get("additionalPrinterColumns") or ()),
        short_names=tuple(names.get("shortNames") or ()),
    )


class Definitions(Mapping[Key, Definition]):
    """The kinds that a folder's YAML files define, by (apiVersion, kind).

    Files are searched for group and kind as text and parsed only when one of their kinds is asked for:
    third-party CRDs reach 1.4 MB each. Iterating parses them all.
    """

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise FileNotFoundError(f"no folder with definitions at {folder}")
        self.folder = folder
        self._candidates: dict[tuple[str, str], list[Path]] = {}
        self._files: list[Path] = []
        self._parsed: dict[Path, dict[Key, Definition]] = {}
        for file in sorted([*folder.rglob("*.yaml"), *folder.rglob("*.yml")]):
            self._scan(file)

    def _scan(self, file: Path) -> None:
        text = file.read_text(encoding="utf-8")
        if not any(kind in text for kind in _DEFINITION_KINDS):
            return
        self._files.append(file)
        groups = set(_GROUP.findall(text))
        for kind in set(_KIND.findall(text)):
            for group in groups:
                self._candidates.setdefault((group, kind), []).append(file)

    def _parse(self, file: Path) -> dict[Key, Definition]:
        if file not in self._parsed:
            found: dict[Key, Definition] = {}
            with file.open(encoding="utf-8") as stream:
                for document in yaml.load_all(stream, _LOADER):
                    found.update({(item.api_version, item.kind): item for item in _read(document)})
            self._parsed[file] = found
        return self._parsed[file]

    def __getitem__(self, key: Key) -> Definition:
        api_version, kind = key
        for file in self._candidates.get((api_version.partition("/")[0], kind), ()):
            definition = self._parse(file).get(key)
            if definition is not None:
                return definition
        raise KeyError(key)

    def __iter__(self) -> Iterator[Key]:
        found: dict[Key, Definition] = {}
        for file in self._files:
            found.update(self._parse(file))
        return iter(found)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def of(self, document: Mapping[str, Any]) -> Definition | None:
        """Give the definition of a document's kind; None where no file here defines it."""
        return self.get((str(document.get("apiVersion")), str(document.get("kind"))))

    def default(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Give the document with its kind's defaults; a kind not known here comes back as it is."""
        definition = self.of(document)
        return dict(document) if definition is None else definition.schema.default(document)

    def judge(self, document: Mapping[str, Any], old: Mapping[str, Any] | None = None) -> list[Problem]:
        """List why an API server with these definitions would refuse the document, new or as an update.

        Defaults are applied first, to the old object too. An unknown kind is one problem and ends it.
        """
        missing = [
            Problem(field, "is required") for field in ("apiVersion", "kind") if not document.get(field)
        ]
        if missing:
            return missing
        definition = self.of(document)
        if definition is None:
            return [self._unknown(str(document["apiVersion"]), str(document["kind"]))]
        schema = definition.schema
        before = None if old is None else schema.default(old)
        return [*_identity(definition, document), *schema.check(schema.default(document), before)]

    def _unknown(self, api_version: str, kind: str) -> Problem:
        elsewhere = sorted(known for known, name in self if name == kind)
        if elsewhere:
            return Problem("apiVersion", f'no {kind} in "{api_version}": use {" or ".join(elsewhere)}')
        near = get_close_matches(kind, sorted({name for _, name in self}), n=3, cutoff=0.6)
        hint = f": did you mean {' or '.join(near)}?" if near else ""
        return Problem("kind", f'no kind "{kind}" is defined{hint}')


def _read(document: Any) -> list[Definition]:
    kind = document.get("kind") if isinstance(document, dict) else None
    if kind == "CustomResourceDefinition":
        return from_crd(document)
    return from_xrd(document) if kind == "CompositeResourceDefinition" else []


def _identity(definition: Definition, document: Mapping[str, Any]) -> list[Problem]:
    """Check the name and the scope; a missing namespace is no fault, as the client's default fills it in."""
    metadata = document.get("metadata") or {}
    if not isinstance(metadata, Mapping):
        return []
    problems = []
    if not metadata.get("name") and not metadata.get("generateName"):
        problems.append(Problem("metadata.name", "is required"))
    if metadata.get("namespace") and not definition.namespaced:
        problems.append(
            Problem("metadata.namespace", f"must not be set: {definition.kind} is cluster-scoped")
        )
    return problems


@cache
def load_crds(folder: str | Path) -> Definitions:
    """Read the definitions below a folder, once per folder and process."""
    return Definitions(Path(folder))


def load(folder: str | Path | None = None) -> Definitions:
    """Read our own XRDs: of the folder, else of the installed wheel, else of the checkout."""
    if folder is None:
        installed = _PACKAGE / "_apis"
        folder = installed if installed.is_dir() else _PACKAGE.parent.parent / "apis"
    return load_crds(folder)


def judge(document: Mapping[str, Any], old: Mapping[str, Any] | None = None) -> list[Problem]:
    """Judge a document of one of our own kinds; an unknown kind is a problem that names near ones."""
    return load().judge(document, old)
