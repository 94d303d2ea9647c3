"""The packages' metadata must fit what is in them: one wrong name and an installed fleet composes nothing."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import fleets
from contract.xrds import APIS, ROOT, closed, load
from modelplane.sim import rules

CONFIGURATION = load(ROOT / "package" / "crossplane.yaml")
FUNCTION = load(ROOT / "package" / "function" / "crossplane.yaml")
ACTIVATION = load(ROOT / "package" / "activation.yaml")
COMPOSITIONS = sorted((ROOT / "compositions").glob("*.yaml"))
DEPENDENCIES: list[dict[str, Any]] = CONFIGURATION["spec"]["dependsOn"]
ACTIVATED: list[str] = ACTIVATION["spec"]["activate"]

EVERY_DEPENDENCY = pytest.mark.parametrize("dependency", DEPENDENCIES, ids=lambda it: it["package"])
EVERY_ACTIVATION = pytest.mark.parametrize("entry", ACTIVATED)

Version = tuple[int, int, int]


def version(text: str) -> Version:
    """`v2.3.0` as numbers; what is no release number of three parts is an error."""
    found = re.fullmatch(r"v?([0-9]+)[.]([0-9]+)[.]([0-9]+)", text)
    assert found, f"{text!r} is not a version of three numbers"
    major, minor, patch = (int(part) for part in found.groups())
    return major, minor, patch


def bounds(constraint: str) -> dict[str, Version]:
    """`>=v1.4.0, <v2.0.0` by operator; any other form is an error."""
    parts = [re.fullmatch(r"(>=|<)(v[0-9.]+)", part) for part in constraint.split(", ")]
    assert all(parts), f"{constraint!r} is not made of >=vX.Y.Z and <vX.Y.Z"
    return {part[1]: version(part[2]) for part in parts if part}


def admits(constraint: str, text: str) -> bool:
    """Whether the release lies inside; a missing bound admits all on its side."""
    limits = bounds(constraint)
    return limits.get(">=", version(text)) <= version(text) and (
        "<" not in limits or version(text) < limits["<"]
    )


def installed_name(package: str) -> str:
    """The name Crossplane gives what it installs: the path without its registry, dashes for slashes."""
    return package.split("/", 1)[1].replace("/", "-")


def provider_of(group: str) -> str:
    """The provider that owns a managed resource's API group."""
    service = group.split(".", 1)[0]
    return f"provider-aws-{service}" if group.endswith(".aws.m.upbound.io") else f"provider-{service}"


@pytest.mark.parametrize(
    ("constraint", "release", "want", "reason"),
    [
        (">=v2.3.0", "v2.3.0", True, "the lower bound is inside"),
        (">=v2.3.0", "v2.2.9", False, "below the lower bound"),
        (">=v1.4.0, <v2.0.0", "v1.10.0", True, "parts compare as numbers"),
        (">=v1.4.0, <v2.0.0", "v2.0.0", False, "the upper bound is outside"),
    ],
)
def test_a_constraint_admits_what_lies_between_its_bounds(
    constraint: str, release: str, want: bool, reason: str
) -> None:
    assert admits(constraint, release) is want, reason


@pytest.mark.parametrize(
    ("metadata", "kind", "name"),
    [(CONFIGURATION, "Configuration", "modelplane"), (FUNCTION, "Function", "modelplane-function")],
    ids=["configuration", "function"],
)
def test_metadata_is_of_the_form_the_package_manager_reads(
    metadata: dict[str, Any], kind: str, name: str
) -> None:
    assert (metadata["apiVersion"], metadata["kind"]) == ("meta.pkg.crossplane.io/v1", kind)
    assert metadata["metadata"]["name"] == name
    assert set(metadata["spec"]) <= {"crossplane", "dependsOn", "capabilities"}


@pytest.mark.parametrize("metadata", [CONFIGURATION, FUNCTION], ids=["configuration", "function"])
def test_packages_ask_for_the_crossplane_that_knows_scale_on_composites(metadata: dict[str, Any]) -> None:
    constraint = metadata["spec"]["crossplane"]["version"]
    assert admits(constraint, "v2.3.0")
    assert not admits(constraint, "v2.2.99")


def test_the_function_says_that_it_composes() -> None:
    assert FUNCTION["spec"]["capabilities"] == ["composition"]


@EVERY_DEPENDENCY
def test_a_dependency_is_fully_qualified_and_bounded_on_both_sides(dependency: dict[str, Any]) -> None:
    assert set(dependency) == {"apiVersion", "kind", "package", "version"}
    assert dependency["apiVersion"] == "pkg.crossplane.io/v1"
    assert dependency["kind"] in {"Function", "Provider"}
    # Crossplane v2 has no default registry, and the version stands beside the package, not in it.
    assert re.fullmatch(r"[a-z0-9-]+([.][a-z0-9-]+)+(/[a-z0-9-]+)+", dependency["package"])
    limits = bounds(dependency["version"])
    assert set(limits) == {">=", "<"}
    assert limits[">="] < limits["<"]


def test_no_package_is_named_twice() -> None:
    names = [dependency["package"] for dependency in DEPENDENCIES]
    assert len(set(names)) == len(names)


def test_the_function_dependency_admits_this_release() -> None:
    with (ROOT / "pyproject.toml").open("rb") as handle:
        release = tomllib.load(handle)["project"]["version"]
    (constraint,) = (it["version"] for it in DEPENDENCIES if it["kind"] == "Function")
    assert admits(constraint, release)


@pytest.mark.parametrize("path", COMPOSITIONS, ids=lambda path: path.stem)
def test_every_step_calls_a_function_that_the_configuration_installs(path: Path) -> None:
    installed = {installed_name(it["package"]) for it in DEPENDENCIES if it["kind"] == "Function"}
    assert installed == {FUNCTION["metadata"]["name"]}
    steps = load(path)["spec"]["pipeline"]
    assert {step["functionRef"]["name"] for step in steps} <= installed


@pytest.mark.parametrize("path", APIS, ids=lambda path: path.stem)
def test_every_kind_has_a_composition_of_its_name_for_its_version(path: Path) -> None:
    xrd = load(path)
    composition = load(ROOT / "compositions" / path.name)
    assert composition["metadata"]["name"] == xrd["metadata"]["name"]
    assert composition["spec"]["compositeTypeRef"] == {
        "apiVersion": f"{xrd['spec']['group']}/{xrd['spec']['versions'][0]['name']}",
        "kind": xrd["spec"]["names"]["kind"],
    }


def test_activation_entries_are_sound_and_listed_once() -> None:
    assert ACTIVATION["metadata"]["name"] == "modelplane"
    assert len(set(ACTIVATED)) == len(ACTIVATED)
    assert {"releases.helm.m.crossplane.io", "objects.kubernetes.m.crossplane.io"} <= set(ACTIVATED)


@EVERY_ACTIVATION
def test_an_activation_entry_is_one_namespaced_kind_as_plural_and_group(entry: str) -> None:
    assert re.fullmatch(r"[a-z0-9]+[.]([a-z0-9]+[.])+(upbound|crossplane)[.]io", entry)
    assert ".m." in entry, "the namespaced kinds live in the .m. groups"


@EVERY_ACTIVATION
def test_an_activated_kind_belongs_to_a_provider_that_is_installed(entry: str) -> None:
    providers = {it["package"].rsplit("/", 1)[1] for it in DEPENDENCIES if it["kind"] == "Provider"}
    assert provider_of(entry.split(".", 1)[1]) in providers


def test_every_installed_provider_has_an_activated_kind() -> None:
    providers = {it["package"].rsplit("/", 1)[1] for it in DEPENDENCIES if it["kind"] == "Provider"}
    assert providers == {provider_of(entry.split(".", 1)[1]) for entry in ACTIVATED}


def test_the_activation_policy_is_valid_against_its_crd(crds: Path) -> None:
    name = "apiextensions.crossplane.io_managedresourceactivationpolicies.yaml"
    crd = load(next(crds.rglob(name)))
    (schema,) = (
        it["schema"]["openAPIV3Schema"] for it in crd["spec"]["versions"] if it["name"] == "v1alpha1"
    )
    body = {key: value for key, value in ACTIVATION.items() if key != "metadata"}
    spec_only = {**schema, "properties": {k: v for k, v in schema["properties"].items() if k != "metadata"}}
    faults = jsonschema.Draft202012Validator(closed(spec_only)).iter_errors(body)
    assert [fault.message for fault in faults] == []


def managed(crds: Path) -> dict[tuple[str, str], str]:
    """The managed kinds of the providers by group and kind, named as a policy names them.

    Core 2.3.4 serves CRDs of this category once a policy activates them, and all others at once (seen in
    tests/controlplane/test_package_install.py).
    """
    found = [load(path) for path in crds.glob("provider-*/*_*.yaml")]
    return {
        (crd["spec"]["group"], crd["spec"]["names"]["kind"]): crd["metadata"]["name"]
        for crd in found
        if "managed" in crd["spec"]["names"].get("categories", ())
    }


def test_the_managed_kinds_that_are_composed_are_activated_and_no_others(crds: Path) -> None:
    known = managed(crds)
    played = [target for folder in fleets.FOLDERS for target in fleets.played(folder).final.objects]
    composed = {(target.api_version.partition("/")[0], target.kind) for target in played}
    assert {known[one] for one in composed & known.keys()} == set(ACTIVATED)


def test_the_managed_kinds_that_are_played_are_the_ones_that_are_activated(crds: Path) -> None:
    """What no example composes the simulator could not play either."""
    known = managed(crds)
    kinds = {(api_version.partition("/")[0], kind) for api_version, kind in rules.RULES}
    assert {known[one] for one in kinds & known.keys()} == set(ACTIVATED)


@EVERY_ACTIVATION
def test_an_activated_kind_exists_in_the_provider_s_crds(crds: Path, entry: str) -> None:
    plural, group = entry.split(".", 1)
    assert list(crds.rglob(f"{group}_{plural}.yaml")), f"no CRD of {entry}"
