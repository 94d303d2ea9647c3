"""A structural schema as nodes that are read once and built only where a document goes."""

from collections.abc import Iterator, Mapping
from typing import Any

Raw = Mapping[str, Any]

_EMPTY: Raw = {}
_CHILD_LISTS = ("allOf", "anyOf", "oneOf")
_ABSENT = object()


class Node:
    """One schema with its keywords as attributes; children are built when first asked for.

    Third-party CRDs reach 20,000 schemas, of which one document touches a few hundred.
    """

    __slots__ = (
        "_additional", "_children", "_items", "_logic", "_ruled", "additional_any", "default", "embedded",
        "has_default", "int_or_string", "list_keys", "list_type", "nullable", "preserve", "properties", "raw",
        "required", "rules", "type",
    )  # fmt: skip

    def __init__(self, raw: Raw) -> None:
        self.raw = raw
        self.type: str | None = raw.get("type")
        self.nullable = bool(raw.get("nullable"))
        self.int_or_string = bool(raw.get("x-kubernetes-int-or-string"))
        self.embedded = bool(raw.get("x-kubernetes-embedded-resource"))
        additional = raw.get("additionalProperties")
        self.additional_any = additional is True
        self.preserve = bool(raw.get("x-kubernetes-preserve-unknown-fields")) or self.additional_any
        self.properties: Raw = raw.get("properties") or _EMPTY
        self.required: tuple[str, ...] = tuple(raw.get("required") or ())
        self.list_type: str | None = raw.get("x-kubernetes-list-type")
        self.list_keys: tuple[str, ...] = tuple(raw.get("x-kubernetes-list-map-keys") or ())
        self.rules: tuple[Raw, ...] = tuple(raw.get("x-kubernetes-validations") or ())
        self.default = raw.get("default")
        self.has_default = self.default is not None
        self._children: dict[str, Node] = {}
        self._additional: Any = _ABSENT
        self._items: Any = _ABSENT
        self._logic: dict[str, tuple[Node, ...]] | None = None
        self._ruled: bool | None = None

    def child(self, name: str) -> "Node | None":
        """Give the node of a declared property; None for a name the schema does not declare."""
        node = self._children.get(name)
        if node is None and name in self.properties:
            node = self._children[name] = Node(self.properties[name])
        return node

    def value_of(self, name: str) -> "Node | None":
        """Give the node of a key: the declared property, else the map's value schema, else None."""
        node = self.child(name)
        return self.additional if node is None else node

    @property
    def additional(self) -> "Node | None":
        """The schema of a map's values; None where the object is no map."""
        if self._additional is _ABSENT:
            raw = self.raw.get("additionalProperties")
            self._additional = Node(raw) if isinstance(raw, Mapping) else None
        node: Node | None = self._additional
        return node

    @property
    def items(self) -> "Node | None":
        """The schema of a list's items; None where the schema says nothing about them."""
        if self._items is _ABSENT:
            raw = self.raw.get("items")
            self._items = Node(raw) if isinstance(raw, Mapping) else None
        node: Node | None = self._items
        return node

    @property
    def logic(self) -> Mapping[str, "tuple[Node, ...]"]:
        """The branches of allOf, anyOf, oneOf and not, of those that are present."""
        if self._logic is None:
            self._logic = {
                key: tuple(Node(raw) for raw in self.raw[key]) for key in _CHILD_LISTS if self.raw.get(key)
            }
            if isinstance(self.raw.get("not"), Mapping):
                self._logic["not"] = (Node(self.raw["not"]),)
        return self._logic

    @property
    def ruled(self) -> bool:
        """Whether this node or one below it carries a CEL rule: where not, no rule walk is needed."""
        if self._ruled is None:
            self._ruled = bool(self.rules) or any(node.ruled for _, node in self.children())
        return self._ruled

    def children(self) -> "Iterator[tuple[str, Node]]":
        """Give every child with the step that leads to it, `[*]` standing for all items or values."""
        for name in self.properties:
            node = self.child(name)
            if node is not None:
                yield name, node
        for node in (self.additional, self.items):
            if node is not None:
                yield "[*]", node


def walk(node: Node, path: str = "") -> Iterator[tuple[str, Node]]:
    """Give every node below and including this one with its path."""
    yield path, node
    for step, child in node.children():
        yield from walk(child, path + step if step == "[*]" else f"{path}.{step}" if path else step)
