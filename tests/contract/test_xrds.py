"""What every shipped XRD must keep to, whoever wrote it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from cel_expr_python import cel

import generate
from contract.xrds import APIS, ROOT, closed, load, nodes, schema_of

EVERY_XRD = pytest.mark.parametrize("api", APIS, ids=lambda path: path.stem)


@dataclass(frozen=True)
class Kind:
    """How a kind must be offered; columns are name -> JSON path."""

    kind: str
    short: str
    category: str
    scope: str = "Namespaced"
    columns: dict[str, str] = field(default_factory=dict)
    scale: tuple[str, str] | None = None
    group: str = "modelplane.ai"


INFRASTRUCTURE = "infrastructure.modelplane.ai"

# The public v0.4 contract; ModelCacheReplica and EKSNodePool are additions. v0.4's SOURCE column of
# ModelCache read a path below a string and was always empty.
KINDS = {
    "inferenceclasses": Kind("InferenceClass", "icl", "platform", "Cluster"),
    "inferenceclusters": Kind(
        "InferenceCluster",
        "ic",
        "platform",
        "Cluster",
        {"SOURCE": ".spec.cluster.source", "GATEWAY": ".status.gateway.address"},
    ),
    "inferencegateways": Kind(
        "InferenceGateway",
        "ig",
        "platform",
        "Cluster",
        {"GATEWAY": ".spec.backend", "ADDRESS": ".status.address"},
    ),
    "modeldeployments": Kind(
        "ModelDeployment",
        "md",
        "models",
        columns={"REPLICAS": ".status.replicas.ready"},
        scale=(".spec.replicas", ".status.replicas.total"),
    ),
    "modelservices": Kind("ModelService", "ms", "models", columns={"ADDRESS": ".status.address"}),
    "modelcaches": Kind(
        "ModelCache", "mc", "models", columns={"SOURCE": ".spec.source", "READY": ".status.summary.ready"}
    ),
    "modelcachereplicas": Kind(
        "ModelCacheReplica",
        "mcr",
        "models",
        columns={"CLUSTER": ".spec.clusterName", "PHASE": ".status.phase"},
    ),
    "modelendpoints": Kind("ModelEndpoint", "me", "models", columns={"URL": ".spec.url"}),
    "modelreplicas": Kind("ModelReplica", "mr", "models", columns={"CLUSTER": ".spec.clusterName"}),
    "eksclusters": Kind(
        "EKSCluster", "eks", "infrastructure", columns={"REGION": ".spec.region"}, group=INFRASTRUCTURE
    ),
    "eksnetworks": Kind(
        "EKSNetwork",
        "eksnet",
        "infrastructure",
        columns={"REGION": ".spec.region", "VPC": ".status.vpcId"},
        group=INFRASTRUCTURE,
    ),
    "eksnodepools": Kind(
        "EKSNodePool",
        "eksnp",
        "infrastructure",
        columns={"POOL": ".spec.poolName", "INSTANCE": ".spec.instanceType"},
        group=INFRASTRUCTURE,
    ),
    "servingstacks": Kind(
        "ServingStack",
        "ss",
        "infrastructure",
        columns={"GATEWAY": ".status.gateway.address"},
        group=INFRASTRUCTURE,
    ),
}

# What an XRD's schema may say: the keywords of a structural schema. Crossplane decodes it leniently, so a
# misspelt keyword would be dropped without a word.
KEYWORDS = {
    "type", "description", "properties", "required", "items", "additionalProperties", "enum", "default",
    "format", "pattern", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems",
    "minProperties", "maxProperties", "nullable",
    "x-kubernetes-validations", "x-kubernetes-list-type", "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type", "x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields",
}  # fmt: skip
RULE_KEYWORDS = {"rule", "message", "messageExpression", "reason", "fieldPath", "optionalOldSelf"}

CEL = cel.NewEnv(variables={"self": cel.Type.DYN, "oldSelf": cel.Type.DYN})


def test_every_kind_is_shipped_and_no_other() -> None:
    assert {path.stem for path in APIS} == set(KINDS)


def test_generated_files_are_in_step_with_their_sources() -> None:
    found = generate.differences(ROOT, [g for g in generate.GENERATORS if g.name in {"xrds", "compositions"}])
    assert [f"{item.path}: {item.how}" for item in found] == []


@EVERY_XRD
def test_an_xrd_is_valid_against_crossplanes_own_crd(api: Path, crds: Path) -> None:
    name = "apiextensions.crossplane.io_compositeresourcedefinitions.yaml"
    (file,) = crds.rglob(name)
    crd = yaml.load(file.read_text(encoding="utf-8"), yaml.CSafeLoader)
    (schema,) = [v["schema"]["openAPIV3Schema"] for v in crd["spec"]["versions"] if v["name"] == "v2"]
    closed_schema = closed(schema)
    closed_schema["properties"]["metadata"] = {"type": "object", "required": ["name"]}
    problems = jsonschema.Draft202012Validator(closed_schema).iter_errors(load(api))
    assert [f"{error.json_path}: {error.message}" for error in problems] == []


@EVERY_XRD
def test_a_composition_is_valid_against_crossplanes_own_crd(api: Path, crds: Path) -> None:
    (file,) = crds.rglob("apiextensions.crossplane.io_compositions.yaml")
    crd = yaml.load(file.read_text(encoding="utf-8"), yaml.CSafeLoader)
    closed_schema = closed(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
    closed_schema["properties"]["metadata"] = {"type": "object", "required": ["name"]}
    composition = load(ROOT / "compositions" / api.name)
    problems = jsonschema.Draft202012Validator(closed_schema).iter_errors(composition)
    assert [f"{error.json_path}: {error.message}" for error in problems] == []


@EVERY_XRD
def test_names_categories_and_columns_follow_the_public_contract(api: Path) -> None:
    want, spec = KINDS[api.stem], load(api)["spec"]
    (version,) = spec["versions"]
    names = spec["names"]
    assert load(api)["apiVersion"] == "apiextensions.crossplane.io/v2"
    assert (spec["group"], names["plural"], names["kind"]) == (want.group, api.stem, want.kind)
    assert names["shortNames"] == [want.short]
    assert names["categories"] == ["crossplane", "modelplane", want.category]
    assert spec["scope"] == want.scope
    columns = version.get("additionalPrinterColumns", [])
    assert {column["name"]: column["jsonPath"] for column in columns} == want.columns
    scale = version.get("subresources", {}).get("scale")
    assert (scale and (scale["specReplicasPath"], scale["statusReplicasPath"])) == want.scale


@EVERY_XRD
def test_the_one_version_is_served_and_meets_its_composition(api: Path) -> None:
    xrd, composition = load(api), load(ROOT / "compositions" / api.name)
    (version,) = xrd["spec"]["versions"]
    name = f"{api.stem}.{xrd['spec']['group']}"
    assert xrd["metadata"]["name"] == composition["metadata"]["name"] == name
    assert xrd["spec"]["defaultCompositionRef"] == {"name": name}
    assert (version["name"], version["served"], version["referenceable"]) == ("v1alpha1", True, True)
    assert composition["spec"]["compositeTypeRef"] == {
        "apiVersion": f"{xrd['spec']['group']}/v1alpha1",
        "kind": xrd["spec"]["names"]["kind"],
    }
    (step,) = composition["spec"]["pipeline"]
    assert step == {"step": step["step"], "functionRef": {"name": "modelplane-function"}}
    assert re.fullmatch("compose-[a-z]+(-[a-z]+)*", step["step"])


@EVERY_XRD
def test_columns_and_scale_read_declared_fields(api: Path) -> None:
    (version,) = load(api)["spec"]["versions"]
    declared = {node.path for node in nodes(api)}
    read = [column["jsonPath"] for column in version.get("additionalPrinterColumns", [])]
    read += version.get("subresources", {}).get("scale", {}).values()
    assert [path for path in read if path not in declared] == []


@EVERY_XRD
def test_what_crossplane_adds_itself_is_not_declared(api: Path) -> None:
    reserved = {".spec.crossplane", ".status.conditions", ".metadata", ".apiVersion", ".kind"}
    assert [node.path for node in nodes(api) if node.path in reserved] == []
    assert set(schema_of(load(api))["properties"]) <= {"spec", "status"}


@EVERY_XRD
def test_every_field_has_a_description(api: Path) -> None:
    bare = [
        node.path
        for node in nodes(api)
        if not node.schema.get("description")
        and (node.kind in {"root", "property"} or node.schema.get("type") == "object")
    ]
    assert bare == []


@EVERY_XRD
def test_lists_and_maps_under_a_rule_are_bounded(api: Path) -> None:
    # The API server prices a rule over the largest object the schema allows, and refuses the CRD.
    unbounded = [
        node.path
        for node in nodes(api)
        if node.ruled
        and (
            ("items" in node.schema and "maxItems" not in node.schema)
            or ("additionalProperties" in node.schema and "maxProperties" not in node.schema)
        )
    ]
    assert unbounded == []


@EVERY_XRD
def test_schemas_are_structural(api: Path) -> None:
    faults: list[str] = []
    for node in nodes(api):
        schema = node.schema
        faults += [f"{node.path}: {key} is no keyword" for key in schema.keys() - KEYWORDS]
        if "type" not in schema and not schema.get("x-kubernetes-int-or-string"):
            faults.append(f"{node.path}: no type")
        if "properties" in schema and "additionalProperties" in schema:
            faults.append(f"{node.path}: properties beside additionalProperties")
        missing = set(schema.get("required", [])) - schema.get("properties", {}).keys()
        faults += [f"{node.path}: requires {name}, which it does not declare" for name in missing]
        if schema.get("type") == "array":
            faults += [f"{node.path}: {fault}" for fault in list_faults(schema)]
    assert faults == []


def list_faults(schema: dict[str, Any]) -> list[str]:
    """What is wrong with a list's merge keys; the API server refuses a key that may be absent."""
    if "items" not in schema:
        return ["no items"]
    keys = schema.get("x-kubernetes-list-map-keys", [])
    if (schema.get("x-kubernetes-list-type") == "map") != bool(keys):
        return ["list type map and its keys go together"]
    item = schema["items"]
    return [
        f"merge key {key} is neither required nor defaulted"
        for key in keys
        if key not in item.get("required", []) and "default" not in item["properties"][key]
    ]


@EVERY_XRD
def test_defaults_are_values_their_own_schema_admits(api: Path) -> None:
    faults = [
        f"{node.path}: {error.message}"
        for node in nodes(api)
        if "default" in node.schema
        for error in jsonschema.Draft202012Validator(closed(node.schema)).iter_errors(node.schema["default"])
    ]
    assert faults == []


@EVERY_XRD
def test_enums_of_strings_hold_strings(api: Path) -> None:
    # YAML 1.1 reads On, Yes and No as booleans.
    faults = [
        f"{node.path}: {value!r}"
        for node in nodes(api)
        if node.schema.get("type") == "string"
        for value in node.schema.get("enum", [])
        if not isinstance(value, str)
    ]
    assert faults == []


@EVERY_XRD
def test_every_rule_compiles_and_says_what_to_do(api: Path) -> None:
    faults: list[str] = []
    for node in nodes(api):
        for rule in node.schema.get("x-kubernetes-validations", []):
            faults += [f"{node.path}: {key} is no part of a rule" for key in rule.keys() - RULE_KEYWORDS]
            message = rule.get("message", "")
            if not message or "\n" in message.strip():
                faults.append(f"{node.path}: a rule needs a message of one line: {rule['rule']}")
            try:
                CEL.compile(rule["rule"])
            except Exception as error:  # noqa: BLE001 - the binding raises its own types
                faults.append(f"{node.path}: {rule['rule']}: {error}")
    assert faults == []


@EVERY_XRD
def test_patterns_are_regular_expressions_without_escapes(api: Path) -> None:
    # A backslash that YAML swallows makes a pattern that no longer compiles, or matches something else.
    texts = [
        (node.path, text)
        for node in nodes(api)
        for text in [
            node.schema.get("pattern", ""),
            *[rule["rule"] for rule in node.schema.get("x-kubernetes-validations", [])],
        ]
    ]
    assert [f"{path}: {text}" for path, text in texts if "\\" in text] == []
    for node in nodes(api):
        re.compile(node.schema.get("pattern", ""))
