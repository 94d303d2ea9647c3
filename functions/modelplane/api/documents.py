"""Read YAML documents as the API server's strict decoding does, keeping the line of every field."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from modelplane.api import schema_paths
from modelplane.api.schema_report import show

_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_INTEGER, _MERGE = "tag:yaml.org,2002:int", "tag:yaml.org,2002:merge"
_SUFFIXES = (".yaml", ".yml")
# Aliases of aliases grow a few lines into more than any memory ("billion laughs"); the largest real CRD has
# some 60,000 values.
_MOST_VALUES = 2_000_000


class DocumentError(ValueError):
    """A file that cannot be read as Kubernetes documents: where, and why."""

    def __init__(self, file: Path, reason: str, line: int = 0, column: int = 0) -> None:
        place = f"{file}:{line}:{column}" if line else str(file)
        super().__init__(f"{place}: {reason}")
        self.file, self.reason, self.line, self.column = file, reason, line, column


@dataclass(frozen=True)
class Document:
    """One document of a file; `index` counts the file's documents from 0, `line` its lines from 1."""

    file: Path
    index: int
    line: int
    body: dict[str, Any]
    _node: Any = field(repr=False, compare=False)

    def line_of(self, path: str) -> int:
        """Give the line of a field; where it is absent, of the nearest part of its path that is there."""
        node, line = self._node, self.line
        for step in schema_paths.parse(path):
            found = _step(node, step)
            if found is None:
                break
            line, node = found
        return line


def read(path: str | Path) -> list[Document]:
    """Read a file, or all *.yaml and *.yml below a folder in sorted order.

    Empty documents are dropped. Raises DocumentError where the path is absent, the YAML is broken, a document
    is no mapping, or a key stands twice in one.
    """
    root = Path(path)
    if root.is_dir():
        return [document for file in _files(root) for document in _read_file(file)]
    return _read_file(root)


def _files(root: Path) -> list[Path]:
    return sorted(file for file in root.rglob("*") if file.suffix in _SUFFIXES and file.is_file())


def _read_file(file: Path) -> list[Document]:
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise DocumentError(file, "no such file or folder") from None
    except UnicodeDecodeError as error:
        raise DocumentError(file, f"is no text in UTF-8 (at byte {error.start})") from None
    except OSError as error:
        raise DocumentError(file, f"cannot be read: {(error.strerror or str(error)).lower()}") from None
    return parse(text, file)


def parse(text: str, file: Path) -> list[Document]:
    """Read the documents of a text; `file` is what messages call it."""
    try:
        loader = _Loader(text)
        try:
            return list(_documents(loader, file))
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        reason = error.problem or error.context or "is no YAML"
        raise DocumentError(file, reason, *((mark.line + 1, mark.column + 1) if mark else ())) from None
    except yaml.YAMLError as error:
        raise DocumentError(file, str(error).splitlines()[0]) from None


def _documents(loader: Any, file: Path) -> Iterator[Document]:
    index = 0
    while loader.check_node():
        node = loader.get_node()
        body = _Builder(loader, file).value(node)
        if body is not None:
            if not isinstance(body, dict):
                raise _error(file, node, f"a document must be a mapping, this is {show(body)}")
            yield Document(file, index, node.start_mark.line + 1, body, node)
        index += 1


class _Loader(_Base):  # type: ignore[misc]
    """PyYAML's safe loader without what Kubernetes' YAML does not know: times, and 1:30 as base sixty."""


_Loader.yaml_implicit_resolvers = {
    first: [
        (tag, pattern) for tag, pattern in resolvers if tag.rpartition(":")[2] in ("null", "bool", "merge")
    ]
    for first, resolvers in _Base.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(
    _INTEGER,
    re.compile(r"^[-+]?(?:0b[01_]+|0o?[0-7_]+|0x[0-9a-fA-F_]+|0|[1-9][0-9_]*)$"),
    list("-+0123456789"),
)
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(
        r"^[-+]?(?:(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|\.(?:inf|Inf|INF))$|^\.(?:nan|NaN|NAN)$"
    ),
    list("-+0123456789."),
)


class _Builder:
    """Turns the nodes of one document into values."""

    def __init__(self, loader: Any, file: Path) -> None:
        self._loader, self._file = loader, file
        self._open: set[int] = set()
        self._flat: set[int] = set()
        self._values = 0

    def value(self, node: Any) -> Any:
        """Give the value of a node; an alias into its own parent is refused, for it has no end."""
        self._values += 1
        if self._values > _MOST_VALUES:
            raise _error(self._file, node, f"aliases make more than {_MOST_VALUES} values of this document")
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node)
        if id(node) in self._open:
            raise _error(self._file, node, "an alias refers to a part that holds it")
        self._open.add(id(node))
        try:
            if isinstance(node, yaml.SequenceNode):
                return [self.value(item) for item in node.value]
            return self._mapping(node)
        finally:
            self._open.discard(id(node))

    def _scalar(self, node: Any) -> Any:
        if node.tag == _INTEGER and "0o" in node.value:
            return int(node.value, 0)
        return self._loader.construct_object(node)

    def _mapping(self, node: Any) -> dict[str, Any]:
        if id(node) not in self._flat:
            self._refuse_duplicates(node)
            self._loader.flatten_mapping(node)
            self._flat.add(id(node))
        # Merged pairs come first, so a key of the mapping itself wins over a merged one.
        return {self._key(key): self.value(value) for key, value in node.value}

    def _refuse_duplicates(self, node: Any) -> None:
        seen: dict[str, int] = {}
        for key, _ in node.value:
            if key.tag == _MERGE:
                continue
            name = self._key(key)
            if name in seen:
                raise _error(self._file, key, f'the key "{name}" stands twice, first in line {seen[name]}')
            seen[name] = key.start_mark.line + 1

    def _key(self, node: Any) -> str:
        """Keys become text, as they do on the way from YAML to JSON."""
        if not isinstance(node, yaml.ScalarNode):
            raise _error(self._file, node, "a key must be text")
        key = self._scalar(node)
        return key if isinstance(key, str) else show(key)


def _error(file: Path, node: Any, reason: str) -> DocumentError:
    return DocumentError(file, reason, node.start_mark.line + 1, node.start_mark.column + 1)


def _step(node: Any, step: str | int) -> tuple[int, Any] | None:
    """Find the line and the node one step below; None where there is none."""
    if isinstance(step, int):
        if isinstance(node, yaml.SequenceNode) and step < len(node.value):
            item = node.value[step]
            return item.start_mark.line + 1, item
        return None
    if isinstance(node, yaml.MappingNode):
        for key, value in reversed(node.value):
            if key.value == step:
                return key.start_mark.line + 1, value
    return None
