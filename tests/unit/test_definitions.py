"""Finding the definition of a kind and judging a document by it."""

import pytest
import yaml

from modelplane.api import definitions
from modelplane.api.schema import Problem

CRD = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: shelves.example.org}
spec:
  group: example.org
  scope: Cluster
  names:
    kind: Shelf
    plural: shelves
    shortNames: [sh]
  versions:
    - name: v1
      served: true
      additionalPrinterColumns: [{name: Size, type: integer, jsonPath: .spec.size}]
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec: {type: object, properties: {size: {type: integer, default: 1}}}
    - name: v0
      served: false
      schema: {openAPIV3Schema: {type: object}}
"""

XRD = """\
apiVersion: apiextensions.crossplane.io/v2
kind: CompositeResourceDefinition
metadata: {name: racks.example.org}
spec:
  group: example.org
  names:
    kind: Rack
    plural: racks
  versions:
    - name: v1alpha1
      served: true
      referenceable: true
      schema:
        openAPIV3Schema:
          type: object
          minProperties: 9
          x-kubernetes-validations: [{rule: "self.metadata.name != 'no'", message: not this name}]
          properties:
            metadata: {type: object, properties: {name: {type: string, maxLength: 20, pattern: ^z}}}
            spec:
              type: object
              required: [size]
              minProperties: 9
              properties: {size: {type: integer,
     x-kubernetes-validations: [{rule: self >= oldSelf, message: grow}]}}
            status: {type: object, properties: {used: {type: integer}}}
"""


@pytest.fixture
def known(tmp_path):
    (tmp_path / "crds.yaml").write_text(CRD)
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "xrd.yml").write_text(XRD)
    (tmp_path / "other.yaml").write_text("kind: Shelf\ngroup: example.org\n")
    return definitions.Definitions(tmp_path)


def rack(name="r", namespace="team", **spec):
    return {
        "apiVersion": "example.org/v1alpha1",
        "kind": "Rack",
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }


def shelf(**metadata):
    return {
        "apiVersion": "example.org/v1",
        "kind": "Shelf",
        "metadata": {"name": "s", **metadata},
        "spec": {},
    }


def test_gives_what_a_definition_states(known):
    assert set(known) == {("example.org/v1", "Shelf"), ("example.org/v1alpha1", "Rack")}
    found = known[("example.org/v1", "Shelf")]
    assert (found.kind, found.group, found.plural, found.scope, found.version) == (
        "Shelf", "example.org", "shelves", "Cluster", "v1",
    )  # fmt: skip
    assert (found.short_names, [column["name"] for column in found.columns]) == (("sh",), ["Size"])
    assert not found.namespaced
    assert known[("example.org/v1alpha1", "Rack")].namespaced, "the default of Crossplane v2"


STATUS = {
    "conditions": [
        {"type": "Ready", "status": "True", "reason": "R", "lastTransitionTime": "2026-01-31T12:00:00Z"}
    ]
}
CROSSPLANE = {"compositionRef": {"name": "c"}, "resourceRefs": [{"apiVersion": "v1", "kind": "K"}]}

JUDGED = [
    ("a sound composite", rack(size=1), None, []),
    ("Crossplane adds spec.crossplane and conditions",
     {**rack(size=1, crossplane=CROSSPLANE), "status": STATUS}, None,
     []),
    ("conditions are a map by type", {**rack(size=1), "status": {"conditions": STATUS["conditions"] * 2}},
     None,
     [Problem("status.conditions[1]", "is a duplicate of item 0")]),
    ("Crossplane requires a spec", {key: value for key, value in rack().items() if key != "spec"}, None,
     [Problem("spec", "is required")]),
    ("a name of the XRD's own limit", rack("n" * 21, size=1), None,
     [Problem("metadata.name", "must have at most 20 characters, has 21")]),
    ("rules on the top level are carried over", rack("no", size=1), None, [Problem("", "not this name")]),
    ("spec's required is carried over", rack(), None, [Problem("spec.size", "is required")]),
    ("a transition rule of an update", rack(size=1), rack(size=2), [Problem("spec.size", "grow")]),
    ("no namespace is no fault", {**rack(size=1), "metadata": {"name": "r"}}, None, []),
    ("a cluster-scoped kind has no namespace", shelf(namespace="x"), None,
     [Problem("metadata.namespace", "must not be set: Shelf is cluster-scoped")]),
    ("a name is needed", {**shelf(), "metadata": {}}, None, [Problem("metadata.name", "is required")]),
    ("or a prefix of one", {**shelf(), "metadata": {"generateName": "s-"}}, None, []),
    ("defaults are applied before the check", shelf(), None, []),
    ("a version that is not served", {**shelf(), "apiVersion": "example.org/v0"}, None,
     [Problem("apiVersion", 'no Shelf in "example.org/v0": use example.org/v1')]),
    ("an unknown kind names near ones", {**shelf(), "kind": "Shelve"}, None,
     [Problem("kind", 'no kind "Shelve" is defined: did you mean Shelf?')]),
    ("an unknown kind without near ones", {**shelf(), "kind": "Zebra"}, None,
     [Problem("kind", 'no kind "Zebra" is defined')]),
    ("no kind at all", {"spec": {}}, None,
     [Problem("apiVersion", "is required"), Problem("kind", "is required")]),
    ("metadata that is no object", {**shelf(), "metadata": "x"}, None,
     [Problem("metadata", "must be an object")]),
]  # fmt: skip


@pytest.mark.parametrize(("reason", "document", "old", "problems"), JUDGED, ids=[row[0] for row in JUDGED])
def test_judges(reason, document, old, problems, known):
    assert known.judge(document, old) == problems, reason


def test_defaults_a_document_of_a_known_kind_and_copies_others(known):
    assert known.default(shelf())["spec"] == {"size": 1}
    other = {"apiVersion": "v1", "kind": "Secret"}
    assert known.default(other) == other


def test_a_composite_name_has_at_most_63_characters_unless_the_xrd_says_less():
    document = yaml.safe_load(XRD)
    del document["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["metadata"]
    (found,) = definitions.from_xrd(document)
    problems = found.schema.check(rack("n" * 64, size=1))
    assert problems == [Problem("metadata.name", "must have at most 63 characters, has 64")]


def test_parses_only_files_that_may_define_the_kind(known, monkeypatch):
    parsed = []
    parse = definitions.Definitions._parse
    monkeypatch.setattr(
        definitions.Definitions, "_parse", lambda self, file: parsed.append(file.name) or parse(self, file)
    )
    assert known.get(("example.org/v1", "Shelf"))
    assert parsed == ["crds.yaml"]


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no folder with definitions at .*/missing"):
        definitions.load(tmp_path / "missing")


def test_our_own_kinds_are_found_without_a_folder():
    assert ("modelplane.ai/v1alpha1", "ModelDeployment") in definitions.load()
    (problem,) = definitions.judge({"apiVersion": "modelplane.ai/v1alpha1", "kind": "ModelDeploymnt"})
    assert problem.message.startswith('no kind "ModelDeploymnt" is defined: did you mean ModelDeployment')
