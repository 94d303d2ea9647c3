"""Third-party CRDs load, and every rule in them is one that our CEL can run."""

import re

import pytest

from modelplane.api import definitions, schema_cel
from modelplane.api.schema_nodes import Node, walk

# Kinds this package composes, of each source one that a rename or a moved group would break first.
COMPOSED = [
    ("node groups", "eks.aws.m.upbound.io/v1beta1", "NodeGroup"),
    ("subnets", "ec2.aws.m.upbound.io/v1beta1", "Subnet"),
    ("remote objects", "kubernetes.m.crossplane.io/v1alpha1", "Object"),
    ("releases", "helm.m.crossplane.io/v1beta1", "Release"),
    ("deletion order", "protection.crossplane.io/v1beta1", "Usage"),
    ("gangs on Dynamo", "grove.io/v1alpha1", "PodCliqueSet"),
    ("gangs on the standard stack", "leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"),
    ("routes", "gateway.networking.k8s.io/v1", "HTTPRoute"),
    ("inference pools", "inference.networking.k8s.io/v1", "InferencePool"),
    ("queues", "scheduling.run.ai/v2", "Queue"),
]

# Path, rule and error of each that does not compile: none. A new one is either supported or listed here,
# since an object that breaks it would pass our check and be refused in a cluster.
UNSUPPORTED = {}


def test_every_crd_loads(crds):
    known = definitions.load_crds(crds)
    assert len(known) > 100
    for key in known:
        definition = known[key]
        assert (definition.api_version, definition.kind) == key
        assert definition.scope in ("Cluster", "Namespaced")
        assert definition.schema.openapi, f"{key} has no schema, so it would judge nothing"


def test_rules_that_our_cel_cannot_run_are_exactly_the_listed_ones(crds):
    known = definitions.load_crds(crds)
    found = {
        key: definition.schema.unsupported
        for key, definition in known.items()
        if definition.schema.unsupported
    }
    assert found == UNSUPPORTED


@pytest.mark.parametrize(("reason", "api_version", "kind"), COMPOSED, ids=[row[0] for row in COMPOSED])
def test_composed_kind_is_known(reason, api_version, kind, crds):
    assert (api_version, kind) in definitions.load_crds(crds), reason


def test_every_rule_of_our_own_kinds_runs():
    known = definitions.load()
    assert known
    assert {key: definition.schema.unsupported for key, definition in known.items()} == {
        key: [] for key in known
    }


CHAIN = re.compile(r"""(?<![\w.])(?:self|oldSelf)((?:\.[A-Za-z_]\w*)+)(\()?""")
TEXT = re.compile(r"""r?("[^"]*"|'[^']*')""")


def undeclared(definition):
    """Give the fields that rules read from `self` by name and the schema does not declare.

    An API server types `self` and refuses the whole definition for such a rule; ours has it untyped.
    """
    for path, node in walk(Node(definition.schema.openapi)):
        for rule in node.rules:
            for match in CHAIN.finditer(TEXT.sub("''", rule["rule"])):
                # A name before a bracket is a function, as in self.name.size().
                steps = match[1][1:].split(".")[: -1 if match[2] else None]
                if path or steps[:1] not in (["metadata"], ["apiVersion"], ["kind"]):
                    yield from ((path, step, rule["rule"]) for step in missing(node, steps))


def missing(node, steps):
    for step in steps:
        if not node.properties:
            return
        names = {schema_cel.escape(name): name for name in node.properties}
        if step not in names:
            yield step
            return
        node = node.child(names[step])


def test_rules_of_our_own_kinds_read_only_declared_fields():
    assert [found for definition in definitions.load().values() for found in undeclared(definition)] == []


def test_rules_of_third_parties_read_only_declared_fields_so_the_search_is_sound(crds):
    known = definitions.load_crds(crds)
    assert [found for definition in known.values() for found in undeclared(definition)] == []


def test_a_rule_that_reads_an_undeclared_field_is_found():
    (definition,) = definitions.from_xrd(
        {
            "spec": {
                "group": "example.org",
                "names": {"kind": "Rack", "plural": "racks"},
                "versions": [
                    {
                        "name": "v1",
                        "schema": {
                            "openAPIV3Schema": {
                                "properties": {
                                    "spec": {
                                        "properties": {"size": {"type": "integer"}},
                                        "x-kubernetes-validations": [
                                            {"rule": "self.size > 0 && self.sise.b < 9"}
                                        ],
                                    }
                                }
                            }
                        },
                    }
                ],
            }
        }
    )
    assert [(path, step) for path, step, _ in undeclared(definition)] == [("spec", "sise")]


def test_real_rules_judge_real_objects(crds):
    known = definitions.load_crds(crds)
    route = {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": {"name": "r", "namespace": "n"},
        "spec": {"rules": [{"matches": [{"path": {"type": "PathPrefix", "value": "/a//b"}}], "nmae": "x"}]},
    }
    assert [str(problem) for problem in known.judge(route)] == [
        'spec.rules[0].nmae: unknown field "nmae": did you mean "name"?',
        "spec.rules[0].matches[0].path: must not contain '//' when type one of ['Exact', 'PathPrefix']",
    ]
