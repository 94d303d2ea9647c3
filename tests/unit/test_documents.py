"""Reading YAML as the API server's strict decoding does."""

from pathlib import Path

import pytest

from modelplane.api import documents
from modelplane.api.documents import DocumentError

FILE = Path("file.yaml")

VALUES = [
    (
        "integers, also octal and hexadecimal",
        "a: [10, 0o17, 017, 0x1F, -1, 1_000]",
        [10, 15, 15, 31, -1, 1000],
    ),
    ("floats need no dot before an exponent", "a: [1e3, 1.5, .5, 08]", [1000.0, 1.5, 0.5, 8.0]),
    (
        "1:30 is text: base sixty is not Kubernetes' YAML",
        "a: ['x', 1:30, 12:30:45]",
        ["x", "1:30", "12:30:45"],
    ),
    ("a time is text", "a: [2026-01-31, 2026-01-31T12:00:00Z]", ["2026-01-31", "2026-01-31T12:00:00Z"]),
    ("yes and off are booleans, as in YAML 1.1", "a: [yes, off, true]", [True, False, True]),
    ("quoted, all is text", "a: ['1', \"true\"]", ["1", "true"]),
    ("null in its spellings", "a: [null, ~, ]", [None, None]),
    ("an anchor is repeated", "a: [&x {b: 1}, *x]", [{"b": 1}, {"b": 1}]),
    ("own keys win over merged ones", "x: &x {b: 1, c: 2}\na: {b: 3, <<: *x}", {"b": 3, "c": 2}),
    ("merged mappings may be used twice", "x: &x {b: 1}\na: [&y {<<: *x, b: 2}, *y]", [{"b": 2}, {"b": 2}]),
    ("keys become text", "a: {1: x, true: y}", {"1": "x", "true": "y"}),
]


@pytest.mark.parametrize(("reason", "text", "value"), VALUES, ids=[row[0] for row in VALUES])
def test_values(reason, text, value):
    (document,) = documents.parse(text, FILE)
    assert document.body["a"] == value, reason


BROKEN = [
    ("broken YAML names line and column", "a: 1\nb: [1\nc: 2\n", "file.yaml:3:2: "),
    ("a tab", "a:\n\tb: 1\n", "file.yaml:2:1: "),
    ("a key that stands twice", "a: 1\nb:\n  c: 1\n  d: 2\n  c: 3\n",
     "file.yaml:5:3: the key \"c\" stands twice, "
     "first in line 3"),
    ("a key that stands twice within a list", "a:\n- {b: 1, b: 2}\n",
     'file.yaml:2:10: the key "b" stands twice'),
    ("a list as document", "- a\n", "file.yaml:1:1: a document must be a mapping, this is ['a']"),
    ("a text as second document", "a: 1\n---\nword\n",
     'file.yaml:3:1: a document must be a mapping, this is "word"'),
    ("a key that is a list", "? [a]\n: 1\n", "file.yaml:1:3: a key must be text"),
    ("an alias without end", "a: &x\n  b: *x\n", "file.yaml:1:4: an alias refers to a part that holds it"),
    ("an alias without anchor", "a: *x\n", "file.yaml:1:4: found undefined alias"),
    ("a tag of another language", "a: !!python/name:os.system x\n",
     "file.yaml:1:4: could not determine a constructor"),
]  # fmt: skip


@pytest.mark.parametrize(("reason", "text", "message"), BROKEN, ids=[row[0] for row in BROKEN])
def test_refuses(reason, text, message):
    with pytest.raises(DocumentError) as caught:
        documents.parse(text, FILE)
    assert str(caught.value).startswith(message), reason


def test_several_documents_keep_place_and_empty_ones_are_dropped():
    found = documents.parse("# note\n---\na: 1\n---\n---\n\n\nb: 2\n", FILE)
    assert [(item.index, item.line, item.body) for item in found] == [(0, 3, {"a": 1}), (2, 8, {"b": 2})]


TEXT = """\
kind: K
spec:
  pools:
    - name: a
      labels:
        a.b/c: x
    - name: b
  base: &base
    size: 1
  other:
    <<: *base
    size: 2
"""

LINES = [
    ("a field", "kind", 1),
    ("a field below a list", "spec.pools[1].name", 7),
    ("an item of a list", "spec.pools[1]", 7),
    ("a quoted key", 'spec.pools[0].labels["a.b/c"]', 6),
    ("an absent field is where its parent is", "spec.pools[0].labels.missing", 5),
    ("an absent item too", "spec.pools[7].name", 3),
    ("the document itself", "", 1),
    ("a field of its own, not the merged one", "spec.other.size", 12),
]


@pytest.mark.parametrize(("reason", "path", "line"), LINES, ids=[row[0] for row in LINES])
def test_line_of_a_field(reason, path, line):
    (document,) = documents.parse(TEXT, FILE)
    assert document.line_of(path) == line, reason


def test_reads_a_folder_in_order_with_its_folders(tmp_path):
    for name in ("b.yaml", "a/z.yml", "c/a.yaml", "note.md"):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"name: {name}\n")
    assert [document.body["name"] for document in documents.read(tmp_path)] == [
        "a/z.yml",
        "b.yaml",
        "c/a.yaml",
    ]


ABSENT = [
    ("no such file", None, "no such file or folder"),
    ("no text", b"a: \xff\n", r"is no text in UTF-8 \(at byte 3\)"),
    ("a character that YAML does not know", b"a: \x01\n", "control characters are not allowed"),
]


@pytest.mark.parametrize(("reason", "content", "message"), ABSENT, ids=[row[0] for row in ABSENT])
def test_a_file_that_cannot_be_read(reason, content, message, tmp_path):
    file = tmp_path / "file.yaml"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(DocumentError, match=message) as caught:
        documents.read(file)
    assert str(file) in str(caught.value), reason
