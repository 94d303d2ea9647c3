"""Reading what a user points at: files, folders, and folders with a kustomization that names others."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from modelplane import contracts as c
from modelplane.api import definitions, documents
from modelplane.api.documents import Document, DocumentError
from modelplane.core import Manifest, paths
from modelplane.sim import rules

KUSTOMIZATION = "kustomization.yaml"
# What users and platforms apply beside our own kinds; rendered as given, never judged here.
_PLAIN = {("v1", "Secret"), ("v1", "ConfigMap"), ("v1", "Namespace"), ("v1", "Service")}


class InputError(Exception):
    """One or more faults in what was read; each line names file, document, object, field and reason."""

    def __init__(self, faults: Sequence[str]) -> None:
        super().__init__("\n".join(faults))
        self.faults = list(faults)


@dataclass(frozen=True, slots=True)
class Source:
    """One document and where it stands."""

    document: Document

    @property
    def body(self) -> Manifest:
        """The document."""
        return self.document.body

    def fault(self, path: str, reason: str) -> str:
        """Return `file:line: document N, Kind name: path: reason`."""
        doc = self.document
        space = paths.namespace(doc.body)
        name = f"{space}/{paths.name(doc.body)}" if space else paths.name(doc.body)
        what = f"{paths.text(doc.body, 'kind') or 'object'} {name}".rstrip()
        line = doc.line_of(path) if path else doc.line
        return f"{doc.file}:{line}: document {doc.index + 1}, {what}: {f'{path}: ' if path else ''}{reason}"


def read(roots: Iterable[Path]) -> list[Manifest]:
    """Return the documents below the roots, defaulted as an API server would, in the order read.

    Raises:
        InputError: for anything unreadable, unknown or refused, all faults at once.
    """
    sources: list[Source] = []
    faults: list[str] = []
    for root in roots:
        try:
            sources += [Source(d) for file in _expand(root, ()) for d in documents.read(file)]
        except DocumentError as error:
            faults.append(str(error))
    if not faults and not sources:
        faults.append(f"{', '.join(map(str, roots))}: no documents")
    faults += [fault for source in sources for fault in _judge(source)]
    faults += _twice(sources)
    if faults:
        raise InputError(faults)
    known = definitions.load()
    return [_namespaced(known.default(source.body)) for source in sources]


def _expand(root: Path, chain: tuple[Path, ...]) -> list[Path]:
    """Return the files a root stands for; a folder with a kustomization stands for what that names."""
    if root.resolve() in chain:
        raise DocumentError(root, "names itself through its kustomization")
    if not root.is_dir():
        return [root]
    listing = root / KUSTOMIZATION
    if not listing.is_file():
        files = sorted(f for f in root.iterdir() if f.suffix in (".yaml", ".yml") and f.is_file())
        folders = sorted(f for f in root.iterdir() if f.is_dir())
        return files + [f for folder in folders for f in _expand(folder, (*chain, root.resolve()))]
    files = []
    for entry in _resources(listing):
        files += _expand(root / entry, (*chain, root.resolve()))
    # Two roads to one file (a class that two examples use) are one file.
    return list(dict.fromkeys(f.resolve().relative_to(Path.cwd()) if _below(f) else f for f in files))


def _below(file: Path) -> bool:
    return file.resolve().is_relative_to(Path.cwd())


def _resources(listing: Path) -> list[str]:
    body = next(iter(documents.read(listing))).body
    unknown = body.keys() - {"apiVersion", "kind", "resources"}
    if unknown:
        raise DocumentError(listing, f"only resources can be read here, not {', '.join(sorted(unknown))}")
    return [str(entry) for entry in paths.items(body, "resources")]


def _judge(source: Source) -> list[str]:
    key = (paths.text(source.body, "apiVersion"), paths.text(source.body, "kind"))
    group = key[0].partition("/")[0]
    ours = group == c.GROUP or group.endswith(f".{c.GROUP}")
    if not ours and (key in _PLAIN or rules.is_leaf(*key) or "ProviderConfig" in key[1]):
        return [] if paths.name(source.body) else [source.fault("metadata.name", "is required")]
    return [source.fault(p.path, p.message) for p in definitions.judge(source.body)]


def _twice(sources: Sequence[Source]) -> list[str]:
    seen: dict[tuple[str, ...], Source] = {}
    faults = []
    for source in sources:
        body = source.body
        key = (paths.text(body, "kind"), paths.namespace(body), paths.name(body))
        first = seen.setdefault(key, source)
        if first is not source:
            where = f"{first.document.file}:{first.document.line}"
            faults.append(source.fault("metadata.name", f"stands twice, first at {where}"))
    return faults


def _namespaced(body: Mapping[str, Any]) -> Manifest:
    """Return the document in the namespace kubectl would apply it to where it names none."""
    definition = definitions.load().of(body)
    key = (paths.text(body, "apiVersion"), paths.text(body, "kind"))
    scoped = not definition.namespaced if definition else rules.cluster_scoped(*key)
    metadata = dict(paths.mapping(body, "metadata"))
    if not scoped:
        metadata.setdefault("namespace", "default")
    return {**body, "metadata": metadata}
