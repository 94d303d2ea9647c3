"""The contract tests' tables again, judged by the API server: it must say what judging offline says."""

from __future__ import annotations

import re
from typing import Any

import pytest

from builders import largest
from contract import test_eks_admission as eks
from contract.test_admission import BASE, DEFAULTS, ROWS, Row, changed
from contract.test_platform_admission import ADMITTED, REFUSED, VALID, Case, named, schema, with_spec
from contract.xrds import APIS, load
from controlplane.client import Client, Document, RefusedError

XRDS = {path.stem: load(path)["spec"] for path in APIS}
NAMESPACE = "default"


def document(plural: str, spec: dict[str, Any]) -> Document:
    """The whole document around a spec."""
    xrd = XRDS[plural]
    metadata = {"name": "it"} | ({"namespace": NAMESPACE} if xrd["scope"] == "Namespaced" else {})
    return {
        "apiVersion": f"{xrd['group']}/v1alpha1",
        "kind": xrd["names"]["kind"],
        "metadata": metadata,
        "spec": spec,
    }


def refusal(client: Client, asked: Document) -> str:
    """What the API server says against creating it, empty where it would."""
    try:
        client.create(asked, dry_run="All")
    except RefusedError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("row", ROWS, ids=lambda row: re.sub(r"\W+", "-", f"{row.plural} {row.reason}"))
def test_a_model_document_is_judged_as_offline(client: Client, row: Row) -> None:
    said = refusal(client, document(row.plural, changed(row.plural, row.change)["spec"]))
    if row.refused:
        assert row.refused in said, row.reason
    else:
        assert said == "", row.reason


@pytest.mark.parametrize("case", [*REFUSED, *ADMITTED, *eks.REFUSED, *eks.ADMITTED], ids=named)
def test_a_platform_document_is_judged_as_offline(client: Client, case: Case) -> None:
    said = refusal(client, document(case.kind, with_spec(case.kind, case.where, case.value)["spec"]))
    if "unknown field" in said:
        # Judging offline adds which field was meant; the API server only names the one it does not know.
        assert f'unknown field "spec.{case.where}"' in said, case.reason
    elif case in (*REFUSED, *eks.REFUSED):
        assert case.says in said, case.reason
        assert said, case.reason
    else:
        assert said == "", case.reason


@pytest.mark.parametrize("plural", VALID)
def test_the_smallest_platform_document_is_admitted(client: Client, plural: str) -> None:
    assert refusal(client, document(plural, with_spec(plural)["spec"])) == ""


@pytest.mark.parametrize(("reason", "plural", "change", "path", "want"), DEFAULTS, ids=lambda v: str(v)[:40])
def test_a_default_reads_back(
    client: Client, reason: str, plural: str, change: dict[str, Any], path: str, want: object
) -> None:
    value: Any = client.create(document(plural, changed(plural, change)["spec"]), dry_run="All")["spec"]
    for step in path.split("."):
        value = value[int(step) if isinstance(value, list) else step]
    assert value == want, reason


# Not all that a pod may have fits into one object.
TOO_MUCH = ("modeldeployments", "modelreplicas")


@pytest.mark.parametrize("deep", [True, False], ids=["inner lists first", "outer lists first"])
@pytest.mark.parametrize("plural", [*VALID, *BASE])
def test_the_largest_document_is_admitted(client: Client, plural: str, deep: bool) -> None:
    """What the schema allows must not cost its rules more than an API server spends on one object."""
    judge = schema(plural)
    (version,) = XRDS[plural]["versions"]
    below = version["schema"]["openAPIV3Schema"]["properties"]["spec"]

    def accepts(spec: Any) -> bool:
        return not judge.check(judge.default({"metadata": {"name": "it"}, "spec": spec}))

    grown = largest.largest(below, {**VALID, **BASE}[plural], accepts, deep=deep)
    short = [".".join(path) for path, length, most in largest.limits(below, grown) if length < most]
    assert plural in TOO_MUCH or short == []
    assert refusal(client, document(plural, grown)) == ""
