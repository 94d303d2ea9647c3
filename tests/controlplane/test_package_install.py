"""Our packages through the real package manager, core with no more rights than package/install gives it."""

from __future__ import annotations

import pytest

from contract.test_package import ACTIVATED, COMPOSITIONS, DEPENDENCIES, installed_name
from contract.xrds import APIS, load
from controlplane.client import Client, Document, RefusedError, condition
from controlplane.core import NAMESPACE
from controlplane.function import NAME
from controlplane.installed import PKG, Installed
from controlplane.processes import wait_for

EXTENSIONS = "apiextensions.crossplane.io"


def _may_list(client: Client, api_version: str, kind: str) -> bool:
    try:
        return client.list(api_version, kind) == []
    except RefusedError:
        return False


def test_every_package_is_installed_once_and_under_the_name_that_core_gives_dependencies(
    installed: Installed,
) -> None:
    found = [one for kind in ("Function", "Provider") for one in installed.client.list(PKG, kind)]
    names = [one["metadata"]["name"] for one in found]
    # The family comes with the providers of AWS.
    wanted = [installed_name(entry["package"]) for entry in DEPENDENCIES]
    assert sorted(names) == sorted([*wanted, "crossplane-contrib-provider-family-aws"])
    assert installed.unhealthy() == []


@pytest.mark.parametrize("path", APIS, ids=lambda path: path.stem)
def test_every_kind_is_served_with_a_composition_that_calls_the_installed_function(
    installed: Installed, path: object
) -> None:
    (name,) = [load(one)["metadata"]["name"] for one in APIS if one == path]
    xrd = installed.client.get(f"{EXTENSIONS}/v2", "CompositeResourceDefinition", name)
    assert condition(xrd, "Established") == "True"
    labels = f"crossplane.io/composition-name={name}"

    def revisions() -> list[Document]:
        return installed.client.list(f"{EXTENSIONS}/v1", "CompositionRevision", labels)

    # Core judges a pipeline after the package that brought it is healthy.
    wait_for(
        "its pipeline is valid", lambda: [condition(r, "ValidPipeline") for r in revisions()] == ["True"]
    )
    (revision,) = revisions()
    assert {step["functionRef"]["name"] for step in revision["spec"]["pipeline"]} == {NAME}
    assert len(COMPOSITIONS) == len(APIS)


def test_of_the_managed_kinds_of_all_providers_those_of_the_policy_are_served_and_no_other(
    installed: Installed,
) -> None:
    found = installed.client.list(f"{EXTENSIONS}/v1alpha1", "ManagedResourceDefinition")
    active = {one["metadata"]["name"] for one in found if one["spec"]["state"] == "Active"}
    assert active == set(ACTIVATED)
    # Without any that is not, nothing would have been shown.
    assert len(found) > len(ACTIVATED)
    # Core activates these after it has called their packages healthy, which is why docs/install.md waits.
    for name in ACTIVATED:
        crd = installed.client.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", name)
        assert condition(crd, "Established") == "True", name


def test_core_works_with_its_service_account_and_may_not_do_what_nobody_granted(installed: Installed) -> None:
    core = installed.as_account("crossplane")
    with pytest.raises(RefusedError, match=f"system:serviceaccount:{NAMESPACE}:crossplane.* cannot list"):
        core.list("v1", "Node")


@pytest.mark.parametrize("name", ["crossplane-contrib-provider-helm", "crossplane-contrib-provider-aws-ec2"])
def test_providers_run_as_an_account_that_may_write_their_own_kinds(installed: Installed, name: str) -> None:
    deployments = [
        one
        for one in installed.client.list("apps/v1", "Deployment", namespace=NAMESPACE)
        if one["spec"]["selector"]["matchLabels"].get("pkg.crossplane.io/provider") == name
    ]
    (account,) = {one["spec"]["template"]["spec"]["serviceAccountName"] for one in deployments}
    kinds = {
        "crossplane-contrib-provider-helm": ("helm.m.crossplane.io/v1beta1", "Release"),
        "crossplane-contrib-provider-aws-ec2": ("ec2.aws.m.upbound.io/v1beta1", "VPC"),
    }
    client = installed.as_account(account)
    # The RBAC manager hears of a revision's kinds later than core calls it healthy.
    wait_for(f"{account} may list {kinds[name][1]}", lambda: _may_list(client, *kinds[name]))
    # Its own name is new with each version, and what we grant by name would then be nobody's.
    assert (account == "modelplane-provider-helm") == (name == "crossplane-contrib-provider-helm")
