"""Reading what a user points at: files, folders, and folders with a kustomization that names others."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from modelplane import contracts as c
from modelplane.api import definitions, documents
from modelplane.api.documents import Document, DocumentError
from modelplane.core import Manifest, paths
from modelplane.render import kustomization
from modelplane.sim import rules

# An API server takes a request of 3 MiB; a file of many documents may be more, but not a dump of a fleet.
_LIMIT = 16 * 1024 * 1024
_SUFFIXES = (".yaml", ".yml")


class InputError(Exception):
    """One or more faults in what was read; each line names file, document, object, field and reason."""

    def __init__(self, faults: Sequence[str]) -> None:
        super().__init__("\n".join(faults))
        self.faults = list(faults)


@dataclass(frozen=True, slots=True)
class Source:
    """One object and where it stands: a document, or an item of one that lists objects.

    Attributes:
        document: as read.
        body: the object.
        item: its place in the document's `items`; None where it is the document.
    """

    document: Document
    body: Manifest
    item: int | None = None

    @property
    def where(self) -> str:
        """The file and the line."""
        return f"{self.document.file}:{self._line('')}"

    def fault(self, path: str, reason: str) -> str:
        """Return `file:line: document N, Kind name: path: reason`."""
        space = paths.namespace(self.body)
        name = f"{space}/{paths.name(self.body)}" if space else paths.name(self.body)
        what = f"{paths.text(self.body, 'kind') or 'object'} {name}".rstrip()
        place = f"{self.document.file}:{self._line(path)}: document {self.document.index + 1}"
        return f"{place}, {what}: {f'{path}: ' if path else ''}{reason}"

    def _line(self, path: str) -> int:
        if self.item is not None:
            path = f"items[{self.item}].{path}".removesuffix(".")
        return self.document.line_of(path) if path else self.document.line


def read(roots: Iterable[Path]) -> list[Manifest]:
    """Return the objects below the roots, defaulted as an API server would, in the order read.

    Raises:
        InputError: for anything unreadable, unknown or refused, all faults at once.
    """
    return [source.body for source in sources(roots)]


def sources(roots: Iterable[Path]) -> list[Source]:
    """Return the same objects with where they stand."""
    roots = list(roots)
    found: list[Source] = []
    faults: list[str] = []
    for file in _files(roots, faults):
        try:
            found += [s for document in documents.read(_readable(file)) for s in _objects(document)]
        except DocumentError as error:
            faults.append(str(error))
    if not faults and not found:
        faults.append(f"{', '.join(map(str, roots))}: no documents: name a YAML file or a folder with some")
    faults += [fault for source in found for fault in _judge(source)]
    faults += _twice(found)
    if faults:
        raise InputError(faults)
    known = definitions.load()
    return [Source(s.document, _namespaced(known.default(s.body)), s.item) for s in found]


def _files(roots: Sequence[Path], faults: list[str]) -> list[Path]:
    """Return each file once: two roads to one (a class that two examples use) are one."""
    files: dict[Path, Path] = {}
    for root in roots:
        for file in _expand(root, (), faults):
            files.setdefault(file.resolve(), file)
    return list(files.values())


def _expand(root: Path, chain: tuple[Path, ...], faults: list[str]) -> list[Path]:
    """Return the files a root stands for; a folder with a kustomization stands for what that names."""
    try:
        # strict: a link to itself raises here, as it does wherever it is followed.
        real = root.resolve(strict=True)
        if not root.is_dir():
            return [_short(real, root)]
        if real in chain:
            faults.append(f"{root}: leads back to itself; leave it out")
            return []
        if listing := kustomization.of(root):
            entries = kustomization.resources(listing)
        else:
            entries = [(x, "") for x in sorted(root.iterdir()) if x.is_dir() or _is_yaml(x)]
            entries.sort(key=lambda entry: entry[0].is_dir())
    except DocumentError as error:
        faults.append(str(error))
        return []
    except (OSError, RuntimeError) as error:
        faults.append(f"{root}: {_reason(error)}")
        return []
    files = []
    for entry, where in entries:
        if where and not entry.exists():
            faults.append(f"{where}: {entry} is not there")
        else:
            files += _expand(entry, (*chain, real), faults)
    return files


def _is_yaml(file: Path) -> bool:
    """Tell whether a folder's entry is to be read: no pipe, which would never end; a dead link is told."""
    return file.suffix in _SUFFIXES and (file.is_file() or file.is_symlink())


def _short(real: Path, given: Path) -> Path:
    """Return the path without detours (`a/../b`), and as given where it leads out of the working folder."""
    here = Path.cwd()
    return real.relative_to(here) if real.is_relative_to(here) and ".." in given.parts else given


def _reason(error: OSError | RuntimeError) -> str:
    if isinstance(error, FileNotFoundError):
        return "no such file or folder"
    # Python 3.11 says a loop of links by a RuntimeError.
    return (
        (error.strerror or str(error)).lower()
        if isinstance(error, OSError)
        else "a link that leads to itself"
    )


def _readable(file: Path) -> Path:
    try:
        size = file.stat().st_size
    except OSError as error:
        raise DocumentError(file, _reason(error)) from None
    if size > _LIMIT:
        raise DocumentError(file, f"is {size >> 20} MiB, more than {_LIMIT >> 20}: split it")
    return file


def _objects(document: Document) -> list[Source]:
    """Return the document, or the items of a `kind: List` as kubectl writes it."""
    body = document.body
    if (body.get("apiVersion"), body.get("kind")) != ("v1", "List"):
        return [Source(document, body)]
    items = body.get("items")
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        line = document.line_of("items")
        raise DocumentError(document.file, "items: must be a list of objects", line, 1)
    return [Source(document, item, at) for at, item in enumerate(items)]


def _judge(source: Source) -> list[str]:
    if _is_foreign(paths.text(source.body, "apiVersion"), paths.text(source.body, "kind")):
        return [] if paths.name(source.body) else [source.fault("metadata.name", "is required")]
    return [source.fault(p.path, p.message) for p in definitions.judge(source.body)]


def _is_foreign(api_version: str, kind: str) -> bool:
    """Tell whether a kind is somebody else's: rendered as given. One that is nearly ours is a slip."""
    group = api_version.partition("/")[0]
    if not api_version or not kind or group == c.GROUP or group.endswith(f".{c.GROUP}"):
        return False
    if rules.is_leaf(api_version, kind):
        return True
    ours = {name for _, name in definitions.load()}
    return not get_close_matches(kind, ours, cutoff=0.85) and not get_close_matches(
        group, [c.GROUP, c.INFRA_GROUP], cutoff=0.85
    )


def _twice(found: Sequence[Source]) -> list[str]:
    seen: dict[tuple[str, ...], Source] = {}
    faults = []
    for source in found:
        body = source.body
        group = paths.text(body, "apiVersion").partition("/")[0]
        key = (group, paths.text(body, "kind"), paths.namespace(body) or "default", paths.name(body))
        first = seen.setdefault(key, source)
        if first is not source and key[-1]:
            faults.append(source.fault("metadata.name", f"stands twice, first at {first.where}"))
    return faults


def _namespaced(body: Mapping[str, Any]) -> Manifest:
    """Return the document in the namespace kubectl would apply it to where it names none."""
    key = (paths.text(body, "apiVersion"), paths.text(body, "kind"))
    metadata = dict(paths.mapping(body, "metadata"))
    if not rules.cluster_scoped(*key):
        metadata.setdefault("namespace", "default")
    return {**body, "metadata": metadata}
