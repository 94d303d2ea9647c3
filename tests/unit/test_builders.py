"""The envelopes of what goes through providers: valid, and only fields that we mean to own."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from cel_expr_python import cel

from builders.core import thing
from modelplane import contracts as c
from modelplane.api import definitions
from modelplane.core import builders
from modelplane.core.builders import Chart, Identity, SecretKey, Target, provider_config
from modelplane.core.paths import Manifest
from modelplane.core.usages import usage

TARGET = Target("north")
CHART = Chart("lws", "oci://registry.k8s.io/lws/charts", "0.10.0", "lws-system")
KUBECONFIG = SecretKey("modelplane-system", "north", "kubeconfig")
QUERIES = {name: value for name, value in vars(builders).items() if name.isupper() and isinstance(value, str)}


@pytest.mark.parametrize(
    ("target", "kwargs", "path", "want", "reason"),
    [
        (TARGET, {}, ("spec", "readiness"), {"policy": "SuccessfulCreate"}, "ready once it is created"),
        (
            TARGET,
            {"ready_when": "true"},
            ("spec", "readiness"),
            {"policy": "DeriveFromCelQuery", "celQuery": "true"},
            "ready by what the cluster reports",
        ),
        (TARGET, {}, ("spec", "managementPolicies"), None, "the provider's default stays the provider's"),
        (
            TARGET,
            {"policies": builders.OBSERVE_ONLY},
            ("spec", "managementPolicies"),
            ["Observe"],
            "a list, since a tuple cannot be sent",
        ),
        (
            TARGET,
            {},
            ("spec", "providerConfigRef"),
            {"kind": "ProviderConfig", "name": "north"},
            "a config beside it",
        ),
        (
            Target("north", "ClusterProviderConfig"),
            {},
            ("spec", "providerConfigRef", "kind"),
            "ClusterProviderConfig",
            "or the cluster's, for composites in team namespaces",
        ),
        (TARGET, {}, ("metadata",), {"name": "a"}, "the composite's namespace, and no labels"),
        (Target("north", namespace="infra"), {}, ("metadata", "namespace"), "infra", "a given namespace"),
        (
            Target("north", labels={"x": "1", "y": "1"}),
            {"labels": {"y": "2"}},
            ("metadata", "labels"),
            {"x": "1", "y": "2"},
            "an object's own label wins over its target's",
        ),
    ],
)
def test_an_object_says_where_it_goes_and_when_it_is_ready(
    target: Target, kwargs: dict[str, Any], path: tuple[str, ...], want: object, reason: str
) -> None:
    here: Any = target.object("a", thing("remote"), **kwargs)
    for step in path:
        here = here.get(step)
    assert here == want, reason


@pytest.mark.parametrize(
    ("chart", "want", "reason"),
    [
        (CHART, "mp-lws", "never the name of a user's own release"),
        (
            Chart("kai", "oci://x", "1", "kai", release_name="kai-scheduler"),
            "kai-scheduler",
            "the chart insists",
        ),
    ],
)
def test_a_release_s_name_on_the_cluster_is_fixed_by_its_chart(chart: Chart, want: str, reason: str) -> None:
    for name in ("short", "a-cluster-with-a-very-long-name-lws"):
        manifest = TARGET.release(name, chart, {})
        assert manifest["metadata"]["annotations"] == {c.EXTERNAL_NAME_ANNOTATION: want}, reason


def test_a_release_waits_and_retries() -> None:
    spec = TARGET.release("a", CHART, {"replicaCount": 2})["spec"]
    assert spec["rollbackLimit"] > 0, "a failed first install is else never tried again"
    assert spec["forProvider"]["wait"] is True, "Ready then means that the pods run"
    assert spec["forProvider"]["values"] == {"replicaCount": 2}
    assert "pullSecretRef" not in spec["forProvider"]["chart"]


def test_a_provider_config_reads_a_kubeconfig_and_an_identity_where_one_is_given() -> None:
    plain = provider_config(c.HELM_API, "ClusterProviderConfig", "north", KUBECONFIG, None, None)
    assert plain["metadata"] == {"name": "north"}
    assert "identity" not in plain["spec"]
    assert plain["spec"]["credentials"]["secretRef"]["namespace"] == "modelplane-system"


def test_building_writes_to_nothing_that_it_is_given() -> None:
    manifest, values, labels = thing("remote", spec={"a": [1]}), {"a": {"b": 1}}, {"x": "y"}
    before = copy.deepcopy((manifest, values, labels))
    target = Target("north", labels=labels)
    target.object("a", manifest, labels={"x": "z"})
    target.release("a", CHART, values, labels={"x": "z"})
    assert (manifest, values, labels) == before


def built() -> dict[str, Manifest]:
    identity = Identity("AWSWebIdentityCredentials", SecretKey("modelplane-system", "id", "key"))
    target = Target("north", namespace="infra", labels={"x": "y"})
    of, by = thing("a", "infra"), thing("b", "infra")
    chart = Chart("lws", "oci://x/lws", "0.10.0", "lws-system", pull_secret="pull")
    found = {
        "object": TARGET.object("a", thing("remote")),
        "object with all": target.object(
            "a", thing("remote"), ready_when=builders.ROLLED_OUT, policies=builders.WITHOUT_DELETE
        ),
        "release": TARGET.release("a", CHART, {}),
        "release with all": target.release("a", chart, {"a": 1}, policies=builders.WITHOUT_DELETE),
        "usage": usage("one", "infra", ("a", "b"), {"a": of, "b": by}).manifest,
        "cluster usage": usage("one", "", ("a", "b"), {"a": thing("a"), "b": thing("b")}).manifest,
    }
    for api in (c.HELM_API, "kubernetes.m.crossplane.io/v1alpha1"):
        for kind, namespace in (("ProviderConfig", "infra"), ("ClusterProviderConfig", None)):
            found[f"{kind} {api}"] = provider_config(api, kind, "north", KUBECONFIG, identity, namespace)
    return found


@pytest.mark.parametrize("which", built())
def test_what_is_built_is_valid_against_its_crd(which: str, crds: Path) -> None:
    assert definitions.load_crds(crds).judge(built()[which]) == []


AVAILABLE = {"conditions": [{"type": "Available", "status": "True"}]}


@pytest.mark.parametrize(
    ("query", "obj", "want", "reason"),
    [
        ("AVAILABLE", {"status": AVAILABLE}, True, "available"),
        ("AVAILABLE", {"status": {"conditions": [{"type": "Available", "status": "False"}]}}, False, "not"),
        ("ROLLED_OUT", {"status": {**AVAILABLE, "observedGeneration": 2}}, True, "of this generation"),
        ("ROLLED_OUT", {"status": {**AVAILABLE, "observedGeneration": 1}}, False, "of the one before"),
        ("JOB_COMPLETE", {"status": {"conditions": [{"type": "Complete", "status": "True"}]}}, True, "done"),
        ("JOB_COMPLETE", {"status": {"conditions": [{"type": "Failed", "status": "True"}]}}, False, "failed"),
        ("CLAIM_BOUND", {"status": {"phase": "Bound"}}, True, "bound"),
        ("CLAIM_BOUND", {"status": {"phase": "Pending"}}, False, "pending"),
        ("HAS_ADDRESS", {"status": {"addresses": [{"value": "10.0.0.1"}]}}, True, "an address"),
        ("HAS_ADDRESS", {"status": {"addresses": []}}, False, "none yet"),
        (
            "GANGS_AVAILABLE",
            {"status": {"observedGeneration": 2, "availableReplicas": 3}},
            True,
            "every copy",
        ),
        (
            "GANGS_AVAILABLE",
            {"status": {"observedGeneration": 2, "availableReplicas": 2}},
            False,
            "one missing",
        ),
        ("GANGS_AVAILABLE", {"status": {"observedGeneration": 1, "availableReplicas": 3}}, False, "stale"),
        *(
            (
                "GANGS_AVAILABLE",
                {"status": {"observedGeneration": 2, "availableReplicas": 3, "updateProgress": progress}},
                want,
                reason,
            )
            for progress, want, reason in [
                ({"updateStartedAt": "2026-12-01T00:00:00Z"}, False, "copies of before are available too"),
                ({"updateEndedAt": "2026-12-01T00:09:00Z"}, True, "the update is over"),
            ]
        ),
        *((name, {}, False, "no status yet must read as not ready, not as an error") for name in QUERIES),
        *((name, {"status": {}}, False, "an empty one too") for name in QUERIES),
    ],
)
def test_a_readiness_query_answers_for_the_remote_object(
    query: str, obj: dict[str, Any], want: bool, reason: str
) -> None:
    remote = {"metadata": {"name": "a", "generation": 2}, "spec": {"replicas": 3}, **obj}
    assert evaluate(QUERIES[query], remote) is want, reason


def evaluate(query: str, remote: Manifest) -> bool:
    """Not the simulator's reader, which takes an error for not ready: here an error is one."""
    result = cel.NewEnv(variables={"object": cel.Type.DYN}).compile(query).eval(data={"object": remote})
    assert result.type() == cel.Type.BOOL
    return bool(result.plain_value())
