"""The kinds as a user finds them once the real core has turned our XRDs into APIs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from contract.xrds import APIS, load
from controlplane.client import Client, condition
from controlplane.control_plane import ControlPlane
from controlplane.processes import wait_for

XRDS = {path.stem: load(path) for path in APIS}
# What core adds to every kind; the words are core's.
CORES_STATUS = ".status.conditions[?(@.type=='{}')].status"
CORES_OWN = ("spec.crossplane", "status.crossplane", "status.conditions")


def described(schema: dict[str, Any], path: str) -> Iterator[str]:
    """The path of every field that has no description."""
    for name, field in schema.get("properties", {}).items():
        here = f"{path}.{name}".lstrip(".")
        if here in CORES_OWN:
            continue
        # A reference to another schema stands alone in an allOf, the description beside it.
        if not field.get("description"):
            yield here
        yield from described(field, here)
    for below in ("items", "additionalProperties"):
        if isinstance(schema.get(below), dict):
            yield from described(schema[below], f"{path}[]")


def schemas(client: Client) -> dict[tuple[str, str], dict[str, Any]]:
    """The OpenAPI v3 schemas that the API server publishes of our groups, by group and kind."""
    groups = {xrd["spec"]["group"] for xrd in XRDS.values()}
    paths = [f"apis/{group}/v1alpha1" for group in groups]
    there = client.raw("/openapi/v3")["paths"]
    return {
        (kind["group"], kind["kind"]): schema
        for path in paths
        if path in there
        for schema in client.raw(f"/openapi/v3/{path}")["components"]["schemas"].values()
        for kind in schema.get("x-kubernetes-group-version-kind", ())
    }


def in_version_2(client: Client) -> set[tuple[str, str]]:
    """Group and kind of everything in the OpenAPI v2 document."""
    return {
        (kind["group"], kind["kind"])
        for schema in client.raw("/openapi/v2")["definitions"].values()
        for kind in schema.get("x-kubernetes-group-version-kind", ())
    }


@pytest.fixture(scope="module")
def published(control_plane: ControlPlane) -> Client:
    """A client, once both OpenAPI documents have every kind: they follow what the API server serves."""
    client = control_plane.client
    ours = {(xrd["spec"]["group"], xrd["spec"]["names"]["kind"]) for xrd in XRDS.values()}
    wait_for("OpenAPI v3 has every kind", lambda: ours <= schemas(client).keys())
    wait_for("OpenAPI v2 has every kind", lambda: ours <= in_version_2(client))
    return client


@pytest.mark.parametrize("plural", XRDS)
def test_core_derives_a_crd_that_the_api_server_establishes(client: Client, plural: str) -> None:
    xrd = XRDS[plural]
    name = xrd["metadata"]["name"]
    established = client.get("apiextensions.crossplane.io/v2", "CompositeResourceDefinition", name)
    assert condition(established, "Established") == "True"
    crd = client.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", name)
    assert crd is not None
    assert condition(crd, "Established") == "True"
    assert condition(crd, "NonStructuralSchema") == "Absent"
    assert crd["spec"]["scope"] == xrd["spec"]["scope"]
    asked, derived = xrd["spec"]["names"], crd["spec"]["names"]
    assert {key: derived[key] for key in asked if key != "categories"} == {
        key: value for key, value in asked.items() if key != "categories"
    }
    assert set(asked.get("categories", ())) <= set(derived["categories"])


@pytest.mark.parametrize("plural", XRDS)
def test_columns_and_scale_survive_core(client: Client, plural: str) -> None:
    (asked,) = XRDS[plural]["spec"]["versions"]
    crd = client.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", XRDS[plural]["metadata"]["name"])
    assert crd is not None
    (derived,) = crd["spec"]["versions"]
    columns = {(column["name"], column["jsonPath"]) for column in derived["additionalPrinterColumns"]}
    assert {
        (column["name"], column["jsonPath"]) for column in asked.get("additionalPrinterColumns", ())
    } <= columns
    assert {("SYNCED", CORES_STATUS.format("Synced")), ("READY", CORES_STATUS.format("Ready"))} <= columns
    assert derived["subresources"].get("scale") == asked.get("subresources", {}).get("scale")


@pytest.mark.parametrize("plural", XRDS)
def test_every_field_is_explained(published: Client, plural: str) -> None:
    spec = XRDS[plural]["spec"]
    schema = schemas(published)[spec["group"], spec["names"]["kind"]]
    below = {name: schema["properties"][name] for name in ("spec", "status")}
    assert list(described({"properties": below}, "")) == []


def test_the_openapi_v2_document_is_whole(published: Client) -> None:
    kinds = in_version_2(published)
    for xrd in XRDS.values():
        group, kind = xrd["spec"]["group"], xrd["spec"]["names"]["kind"]
        # Lists are kinds of their own there. A document that lost a part of itself has lost these.
        assert {(group, kind), (group, f"{kind}List"), ("", "Namespace")} <= kinds


@pytest.mark.usefixtures("published")
@pytest.mark.parametrize(
    ("field", "says", "reason"),
    [
        ("inferenceclusters.spec.stack", "serving stack", "a field of ours"),
        ("modeldeployments.spec.replicas", "DESCRIPTION", "the field that scale writes"),
        ("modeldeployments.spec.crossplane", "DESCRIPTION", "what core adds is beside ours"),
        ("md.spec.template.spec.engines", "engines", "by the short name"),
    ],
)
def test_kubectl_explains(control_plane: ControlPlane, field: str, says: str, reason: str) -> None:
    told = control_plane.shell(f"kubectl explain {field}")
    assert told.returncode == 0, told.stderr
    assert says in told.stdout, reason
