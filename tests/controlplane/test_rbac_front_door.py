"""The Helm provider installs a front door's charts on the control plane, and may do no more than that."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from controlplane.client import Client, Document, RefusedError, documents
from controlplane.installed import Installed
from modelplane import contracts as c

ACCOUNT = "modelplane-provider-helm"
RBAC = "rbac.authorization.k8s.io"
ROLES = documents(Path(__file__).resolve().parent / "front_door_roles.yaml")
SPACES = (c.TRAEFIK_NAMESPACE, c.ENVOY_NAMESPACE, c.METALLB_NAMESPACE)

# Group, resource and whether namespaced, of what the three charts hold beside roles.
IN_CHARTS = [
    ("", "serviceaccounts", True),
    ("", "services", True),
    ("", "configmaps", True),
    ("", "secrets", True),
    ("apps", "deployments", True),
    ("apps", "daemonsets", True),
    ("batch", "jobs", True),
    (RBAC, "roles", True),
    (RBAC, "rolebindings", True),
    (RBAC, "clusterroles", False),
    (RBAC, "clusterrolebindings", False),
    ("networking.k8s.io", "ingressclasses", False),
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations", False),
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations", False),
]
WRITES = ("create", "get", "list", "watch", "patch", "update", "delete")

FORBIDDEN = [
    ("create", "apps", "deployments", "ml-team", "", "a pod beside a team's"),
    ("create", "apps", "deployments", "crossplane-system", "", "a pod with core's account"),
    ("create", "", "pods", c.TRAEFIK_NAMESPACE, "", "charts make none by themselves"),
    ("create", "", "serviceaccounts", "crossplane-system", "", "an account of the control plane's"),
    ("escalate", RBAC, "clusterroles", "", "", "it would be the cluster's administrator"),
    ("bind", RBAC, "clusterroles", "", "cluster-admin", "so would this"),
    ("impersonate", "", "users", "", "", "and this"),
    ("delete", "", "namespaces", "", "ml-team", "no chart deletes one"),
    (
        "delete",
        "apiextensions.k8s.io",
        "customresourcedefinitions",
        "",
        f"modeldeployments.{c.GROUP}",
        "ours",
    ),
    (
        *(
            "delete",
            "apiextensions.k8s.io",
            "customresourcedefinitions",
            "",
            "httproutes.gateway.networking.k8s.io",
        ),
        "with it all routes",
    ),
    ("create", c.GROUP, "modeldeployments", "ml-team", "", "kinds of ours"),
]


@pytest.fixture(scope="module")
def helm(installed: Installed) -> Client:
    """The provider's own client."""
    return installed.as_account(ACCOUNT)


def granted(role: Document) -> Iterator[Document]:
    """A role of a chart's, and the binding that gives it to the chart's controller."""
    yield role
    meta = role["metadata"]
    account = {"kind": "ServiceAccount", "name": "controller", "namespace": meta.get("namespace", SPACES[0])}
    yield {
        "apiVersion": f"{RBAC}/v1",
        "kind": f"{role['kind']}Binding",
        "metadata": meta,
        "roleRef": {"apiGroup": RBAC, "kind": role["kind"], "name": meta["name"]},
        "subjects": [account],
    }


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role["metadata"]["name"])
def test_every_role_of_a_front_door_s_chart_can_be_made_and_bound(helm: Client, role: Document) -> None:
    made = [helm.create(one) for one in granted(role)]
    assert made[0].get("rules") == role.get("rules"), "all that it grants"
    for one in reversed(made):
        helm.delete(one)


@pytest.mark.parametrize(("group", "resource", "namespaced"), IN_CHARTS)
def test_what_else_the_charts_hold_can_be_written(
    helm: Client, group: str, resource: str, namespaced: bool
) -> None:
    spaces = SPACES if namespaced else ("",)
    refused = [
        f"{verb} in {space}"
        for space in spaces
        for verb in WRITES
        if not helm.may(verb, group, resource, space)
    ]
    assert refused == []


def test_definitions_are_installed_and_only_metallb_s_taken_away_again(helm: Client) -> None:
    definitions = ("apiextensions.k8s.io", "customresourcedefinitions", "")
    for verb in ("create", "get", "list", "watch", "patch", "update"):
        assert helm.may(verb, *definitions)
    assert helm.may("delete", *definitions, "ipaddresspools.metallb.io")


@pytest.mark.parametrize(("verb", "group", "resource", "namespace", "name", "reason"), FORBIDDEN)
def test_no_more_than_that(
    helm: Client, verb: str, group: str, resource: str, namespace: str, name: str, reason: str
) -> None:
    assert not helm.may(verb, group, resource, namespace, name), reason


def test_a_chart_that_grants_more_is_refused_and_told_what_is_missing(helm: Client) -> None:
    role = {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "greedy"},
        "rules": [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["delete"]}],
    }
    with pytest.raises(RefusedError, match=r"(?s)not currently held.*nodes.*delete") as refused:
        helm.create(role)
    assert refused.value.status == 403
