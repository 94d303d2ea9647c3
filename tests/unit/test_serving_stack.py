"""ServingStack: what it composes, in which order, what it keeps, and what it says."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import judges
from builders import stacks
from modelplane import contracts as c
from modelplane.core import Answer, paths
from modelplane.facts import versions
from modelplane.kinds import serving_stack
from modelplane.stacks import join

CONFIGS = ["provider-config-helm", "provider-config-kubernetes"]
SHAPES = list(itertools.product((c.STANDARD, c.DYNAMO), (c.MANAGED, c.PROVIDED), (c.EKS, c.EXISTING)))


def condition(answer: Answer, type_: str) -> Any:
    return next(x for x in answer.conditions if x.type == type_)


def says(answer: Answer, type_: str = c.COMPONENTS_READY) -> tuple[bool | None, str, str]:
    found = condition(answer, type_)
    return found.status, found.reason, found.message


def component(answer: Answer, name: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = next(x for x in answer.status["components"] if x["name"] == name)
    return found


def remote(answer: Answer, key: str) -> dict[str, Any]:
    found: dict[str, Any] = answer.resources[key].manifest["spec"]["forProvider"]["manifest"]
    return found


def of_kind(answer: Answer, kind: str) -> dict[str, Any]:
    return {k: r.manifest for k, r in answer.resources.items() if r.manifest["kind"] == kind}


def edges(answer: Answer) -> list[tuple[str, str]]:
    by_name = {
        (m["kind"], paths.name(m)): k for k, m in ((k, r.manifest) for k, r in answer.resources.items())
    }
    configs = {m["apiVersion"]: k for k, m in of_kind(answer, "ProviderConfig").items()}

    def key(ref: Mapping[str, Any]) -> str:
        if ref["kind"] == "ProviderConfig":
            return configs[ref["apiVersion"]]
        return by_name[(ref["kind"], ref["resourceRef"]["name"])]

    return [(key(m["spec"]["of"]), key(m["spec"]["by"])) for m in of_kind(answer, "Usage").values()]


def judged(manifest: Any) -> list[dict[str, Any]]:
    """The object and what it applies; what is only observed is never applied, so a name is enough there."""
    observes = "Observe" in manifest["spec"].get("managementPolicies", []) and (
        "Create" not in manifest["spec"]["managementPolicies"]
    )
    return [manifest] if observes else list(judges.with_remote(manifest))


# --- creation ------------------------------------------------------------------------------------


@pytest.mark.parametrize("stack", [c.STANDARD, c.DYNAMO])
def test_before_the_cluster_is_reached_there_are_only_the_provider_configs(stack: str) -> None:
    answer = stacks.compose(stacks.stack(stack=stack))
    assert list(answer.resources) == CONFIGS
    assert not any(r.ready for r in answer.resources.values())
    assert answer.ready is False
    assert says(answer)[:2] == (False, "Connecting")


@pytest.mark.parametrize(("stack", "provided", "cloud"), SHAPES)
def test_each_component_is_created_once_what_it_needs_works(stack: str, provided: str, cloud: str) -> None:
    composite = stacks.stack(stack=stack, provided=provided, cloud=cloud)
    components = {x.key: x for x in join.stack(stack)}
    observed: dict[str, Any] = {}
    for _ in range(30):
        answer = stacks.compose(composite, observed)
        for key in answer.resources.keys() - observed.keys():
            owner = next((x for k, x in components.items() if key == k or key.startswith(f"{k}-")), None)
            for need in (*owner.needs, *owner.after) if owner else ():
                needed = [k for k in answer.resources if k == need or k.startswith(f"{need}-")]
                assert all(observed.get(k) for k in needed if k in components), f"{key} came before {need}"
        observed = {k: stacks.reported(r.manifest) for k, r in answer.resources.items()}
    assert answer.held_back == {}
    assert answer.ready is None
    assert all(r.ready for r in answer.resources.values())
    assert says(answer) == (True, "ComponentsReady", "")
    assert stacks.compose(composite, observed) == answer, "it stays as it is"


def test_what_is_not_ready_holds_back_only_what_needs_it() -> None:
    composite = stacks.stack(stack=c.DYNAMO)
    _, settled = stacks.settled(composite)
    observed = {k: v for k, v in settled.items() if k in (*CONFIGS, "kai-scheduler")}
    observed["kai-scheduler"] = stacks.reported(settled["kai-scheduler"], ready=False)
    answer = stacks.compose(composite, observed)
    assert answer.held_back["grove"] == "waiting for kai-scheduler"
    assert answer.held_back["kai-queue-root"] == "waiting for kai-scheduler"
    assert "node-feature-discovery" in answer.resources


def test_a_component_that_breaks_later_takes_nothing_with_it() -> None:
    composite = stacks.stack(stack=c.DYNAMO)
    settled, observed = stacks.settled(composite)
    answer = stacks.compose(composite, stacks.failed(observed, "kai-scheduler", "cannot upgrade"))
    assert answer.resources.keys() == settled.resources.keys()


@pytest.mark.parametrize("stack", [c.STANDARD, c.DYNAMO])
def test_whatever_is_lost_or_unreadable_the_rest_stays(stack: str) -> None:
    composite = stacks.stack(stack=stack)
    _, settled = stacks.settled(composite)
    for key in settled:
        for junk in (None, {}, {"status": "junk", "metadata": None}, {"status": {"conditions": [None, 7]}}):
            observed = {k: v for k, v in settled.items() if k != key}
            if junk is not None:
                observed[key] = junk
            kept = stacks.compose(composite, observed).resources.keys()
            lost = {k for k in settled.keys() - kept if key not in k}
            assert lost == set(), f"{key} as {junk} lost {lost}"


def test_inputs_are_not_changed() -> None:
    composite = stacks.stack(stack=c.DYNAMO, components={"grove": {"values": {"replicaCount": 2}}})
    _, observed = stacks.settled(composite)
    before = copy.deepcopy((composite, observed))
    stacks.compose(composite, observed)
    assert (composite, observed) == before


# --- what is composed ------------------------------------------------------------------------------


@pytest.mark.parametrize(("stack", "provided", "cloud"), SHAPES)
def test_every_object_is_valid_for_the_real_api(stack: str, provided: str, cloud: str, crds: Path) -> None:
    answer, _ = stacks.settled(
        stacks.stack(
            stack=stack,
            provided=provided,
            cloud=cloud,
            images={"mirror": "registry.example.org", "pullSecretRef": {"name": "login"}},
        )
    )
    faults = [
        f"{key}: {fault}"
        for key, composed in answer.resources.items()
        for manifest in judged(composed.manifest)
        for fault in judges.problems(manifest, crds)
    ]
    assert faults == []


@pytest.mark.parametrize(("stack", "provided", "cloud"), SHAPES)
def test_spec_and_status_are_valid_for_our_own_api(stack: str, provided: str, cloud: str, crds: Path) -> None:
    composite = stacks.stack(stack=stack, provided=provided, cloud=cloud, poolTaints=["example.org/team"])
    answer, _ = stacks.settled(composite)
    assert judges.problems({**composite, "status": dict(answer.status)}, crds) == []


@pytest.mark.parametrize("stack", [c.STANDARD, c.DYNAMO])
def test_the_stack_stays_well_below_what_crossplane_applies_in_one_reconcile(stack: str) -> None:
    answer, _ = stacks.settled(stacks.stack(stack=stack))
    assert len(answer.resources) < 100


def test_names_of_two_stacks_in_one_namespace_never_meet() -> None:
    long = "north-with-a-cluster-name-that-is-quite-long-indeed-for-testing"
    seen: set[tuple[str, str, str]] = set()
    for name in (long[:62] + "a", long[:62] + "b", "n", "n-gateway"):
        answer, _ = stacks.settled(stacks.stack(name=name, stack=c.DYNAMO))
        names = {
            (m.manifest["apiVersion"], m.manifest["kind"], paths.name(m.manifest))
            for m in answer.resources.values()
        }
        assert len(names) == len(answer.resources)
        assert all(len(n[2]) <= 63 for n in names)
        assert not names & seen
        seen |= names


@pytest.mark.parametrize("stack", [c.STANDARD, c.DYNAMO])
def test_helm_releases_are_named_by_their_chart_alone(stack: str) -> None:
    """Case C82: a cluster's name in a release name pushes the chart's own names over 63 characters."""
    answer, _ = stacks.settled(stacks.stack(stack=stack))
    for manifest in of_kind(answer, "Release").values():
        chart = manifest["spec"]["forProvider"]["chart"]["name"]
        wanted = "kai-scheduler" if chart == "kai-scheduler" else f"mp-{chart}"
        assert manifest["metadata"]["annotations"][c.EXTERNAL_NAME_ANNOTATION] == wanted
        assert manifest["spec"]["forProvider"]["wait"] is True, "Ready means that the pods run"


@pytest.mark.parametrize("stack", [c.STANDARD, c.DYNAMO])
def test_everything_says_which_cluster_and_component_it_is(stack: str) -> None:
    answer, _ = stacks.settled(stacks.stack(stack=stack, clusterName=None))
    for key, manifest in {**of_kind(answer, "Release"), **of_kind(answer, "Object")}.items():
        labels = manifest["metadata"]["labels"]
        assert labels[c.CLUSTER_LABEL] == "north-stack", "without a cluster, the stack's own name"
        assert labels[c.RESOURCE_LABEL] == key
    assert answer.resources["gateway"].manifest["metadata"]["labels"][c.ROLE_LABEL] == c.ROLE_GATEWAY
    assert answer.resources["envoy-gateway"].manifest["metadata"]["labels"][c.ROLE_LABEL] == c.ROLE_CONTROLLER


CASES_OF_VALUES = [
    (
        "kai-scheduler",
        ("scheduler", "args", "default-staleness-grace-period"),
        "-1s",
        "a bare -1 does not parse",
    ),
    ("kai-scheduler", ("defaultQueue", "createDefaultQueue"), False, "its quota of 0 schedules nothing"),
    ("grove", ("crdInstaller", "enabled"), True, "Helm never upgrades CRDs in crds/"),
    ("grove", ("webhookServerSecret", "enabled"), False, "it overwrites the generated certificate"),
    ("nvidia-dra-driver", ("gpuResourcesEnabledOverride",), True, "the chart does not render without"),
    ("nvidia-dra-driver", ("nvidiaDriverRoot",), "/", "the image carries the driver"),
    (
        "envoy-gateway",
        ("config", "envoyGateway", "extensionApis", "enableBackend"),
        True,
        "the AI Gateway's need",
    ),
]


@pytest.mark.parametrize(("key", "path", "value", "reason"), CASES_OF_VALUES)
def test_charts_get_the_values_they_need(key: str, path: tuple[str, ...], value: Any, reason: str) -> None:
    answer, _ = stacks.settled(stacks.stack(stack=c.DYNAMO))
    values = answer.resources[key].manifest["spec"]["forProvider"]["values"]
    assert paths.at(values, *path) == value, reason


def test_an_inference_pool_is_a_backend_that_envoy_gateway_asks_the_ai_gateway_about() -> None:
    """Case C53: a route to a pool without this is admitted and never served."""
    answer, _ = stacks.settled(stacks.stack())
    values = answer.resources["envoy-gateway"].manifest["spec"]["forProvider"]["values"]
    manager = values["config"]["envoyGateway"]["extensionManager"]
    assert manager["backendResources"] == [
        {"group": "inference.networking.k8s.io", "kind": "InferencePool", "version": "v1"}
    ]
    assert manager["service"]["fqdn"] == {
        "hostname": "ai-gateway-controller.envoy-ai-gateway-system.svc.cluster.local",
        "port": 1063,
    }
    assert manager["hooks"]["xdsTranslator"]["post"] == ["Translation", "Cluster", "Route"]
    assert all(x == {"includeAll": True} for x in manager["hooks"]["xdsTranslator"]["translation"].values())


@pytest.mark.parametrize(
    ("cloud", "annotated", "reason"),
    [
        (c.EKS, True, "a Classic load balancer cuts a stream after 60 idle seconds"),
        (c.EXISTING, False, "elsewhere the annotation means nothing"),
    ],
)
def test_the_gateways_service_is_exposed_in_a_way_every_cloud_takes(
    cloud: str, annotated: bool, reason: str
) -> None:
    """Case C74: some clouds refuse Envoy Gateway's default of externalTrafficPolicy Local."""
    answer, _ = stacks.settled(stacks.stack(cloud=cloud))
    service = remote(answer, "gateway-proxy")["spec"]["provider"]["kubernetes"]["envoyService"]
    assert service["externalTrafficPolicy"] == "Cluster"
    assert ("annotations" in service) == annotated, reason
    assert answer.resources["gateway-proxy"].ready, "it has no state that could hold the stack up"


def test_listeners_and_class_are_those_of_the_spec() -> None:
    listener = {"name": "plain", "port": 8080.0, "protocol": "TCP"}
    spec = {"gateway": {"className": "edge", "listeners": [listener]}}
    answer, _ = stacks.settled(stacks.stack(**spec))
    gateway = remote(answer, "gateway")["spec"]
    assert gateway["gatewayClassName"] == remote(answer, "gateway-class")["metadata"]["name"] == "edge"
    assert [(x["name"], x["port"], x["protocol"]) for x in gateway["listeners"]] == [("plain", 8080, "TCP")]
    assert [x["allowedRoutes"] for x in gateway["listeners"]] == [{"namespaces": {"from": "All"}}]
    default = remote(stacks.settled(stacks.stack(gateway={"listeners": []}))[0], "gateway")["spec"]
    assert [(x["name"], x["port"], x["protocol"]) for x in default["listeners"]] == [("http", 80, "HTTP")]


def test_only_engine_pods_of_teams_reach_modelexpress() -> None:
    answer, _ = stacks.settled(stacks.stack(stack=c.DYNAMO))
    policy = remote(answer, "modelexpress-network-policy")
    assert policy["metadata"]["namespace"] == c.MODELEXPRESS_NAMESPACE
    assert policy["spec"]["podSelector"] == {}
    (rule,) = policy["spec"]["ingress"]
    (peer,) = rule["from"]
    assert peer["namespaceSelector"] == {
        "matchExpressions": [{"key": c.NAMESPACE_LABEL, "operator": "Exists"}]
    }
    assert peer["podSelector"] == {"matchExpressions": [{"key": c.ENGINE_LABEL, "operator": "Exists"}]}
    assert rule["ports"] == [{"protocol": "TCP", "port": c.MODELEXPRESS_PORT}]


def test_modelexpress_finds_its_backend_and_its_clients_find_it() -> None:
    answer, _ = stacks.settled(stacks.stack(stack=c.DYNAMO))
    pod = remote(answer, "modelexpress-server-deployment")["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    env = {x["name"]: x["value"] for x in container["env"]}
    assert env["MX_METADATA_BACKEND"] == "kubernetes", "without a backend the server exits"
    assert env["MX_METADATA_NAMESPACE"] == c.MODELEXPRESS_NAMESPACE
    service = remote(answer, "modelexpress-server-service")
    assert service["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
    assert (service["metadata"]["name"], service["spec"]["ports"][0]["port"]) == (
        c.MODELEXPRESS_SERVER,
        c.MODELEXPRESS_PORT,
    )
    pin = versions.newest().pin("modelexpress-server")
    assert container["image"] == f"{pin.image}:{pin.version}"


def test_both_queues_let_everything_run() -> None:
    answer, _ = stacks.settled(stacks.stack(stack=c.DYNAMO))
    root, leaf = (remote(answer, key) for key in ("kai-queue-root", "kai-queue"))
    assert (root["metadata"]["name"], leaf["metadata"]["name"]) == (c.KAI_ROOT_QUEUE, c.KAI_QUEUE)
    assert "parentQueue" not in root["spec"]
    assert leaf["spec"]["parentQueue"] == c.KAI_ROOT_QUEUE
    share = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
    for queue in (root, leaf):
        assert queue["spec"]["resources"] == dict.fromkeys(("cpu", "memory", "gpu"), share)


@pytest.mark.parametrize("stack", [c.STANDARD, c.DYNAMO])
def test_a_crd_stays_when_the_stack_goes(stack: str) -> None:
    """Deleting one deletes every object of its kind, whoever made it."""
    answer, _ = stacks.settled(stacks.stack(stack=stack))
    for key, manifest in of_kind(answer, "Object").items():
        is_crd = remote(answer, key)["kind"] == "CustomResourceDefinition"
        assert ("Delete" not in manifest["spec"].get("managementPolicies", ["Delete"])) == is_crd


# --- images and values -----------------------------------------------------------------------------


def test_a_mirror_serves_every_chart_and_image() -> None:
    images = {"mirror": "registry.example.org/mirror", "pullSecretRef": {"name": "login"}}
    answer, _ = stacks.settled(stacks.stack(stack=c.DYNAMO, images=images))
    for manifest in of_kind(answer, "Release").values():
        chart = manifest["spec"]["forProvider"]["chart"]
        assert chart["repository"].startswith("oci://registry.example.org/mirror/")
        assert chart["pullSecretRef"] == {"name": "login"}
    pod = remote(answer, "modelexpress-server-deployment")["spec"]["template"]["spec"]
    assert pod["containers"][0]["image"].startswith("registry.example.org/mirror/nvidia/ai-dynamo/")
    assert pod["imagePullSecrets"] == [{"name": "login"}]


def test_credentials_go_to_the_mirror_only() -> None:
    answer, _ = stacks.settled(stacks.stack(stack=c.DYNAMO, images={"pullSecretRef": {"name": "login"}}))
    assert "login" not in str([r.manifest for r in answer.resources.values()])


def test_the_platforms_values_win_key_by_key() -> None:
    values = {"crdInstaller": {"enabled": False}, "replicaCount": 2}
    answer, _ = stacks.settled(stacks.stack(stack=c.DYNAMO, components={"grove": {"values": values}}))
    found = answer.resources["grove"].manifest["spec"]["forProvider"]["values"]
    assert found == {**values, "webhookServerSecret": {"enabled": False}}


def test_an_optional_component_can_be_left_out_and_is_removed() -> None:
    _, observed = stacks.settled(stacks.stack())
    assert "prometheus" in observed
    answer = stacks.compose(stacks.stack(components={"prometheus": {"enabled": False}}), observed)
    assert "prometheus" not in answer.resources
    assert says(answer) == (True, "ComponentsReady", "")


# --- bad input ---------------------------------------------------------------------------------------

BAD_SPECS = [
    ({"stackRelease": "1999.01"}, "spec.stackRelease: stack release 1999.01 is not known here", "a typo"),
    (
        {"components": {"grove": {}}},
        "spec.components.grove: stack Standard has no such component",
        "other stack",
    ),
    (
        {"components": {"prom": {}}},
        "it has ai-gateway, ai-gateway-crds, envoy-gateway, leader-worker-set",
        "typo",
    ),
    (
        {"components": {"gateway": {"values": {"a": 1}}}},
        "spec.components.gateway.values: gateway is no chart",
        "",
    ),
    (
        {"components": {"envoy-gateway": {"enabled": False}}},
        "only prometheus can be left out",
        "it is needed",
    ),
    ({"components": {"prometheus": {"values": "big"}}}, "spec.components.prometheus.values: ", "mistyped"),
    ({"stack": "Volcano"}, "spec.stack: Volcano is not one of Standard, Dynamo", "an older package"),
    ({"secrets": []}, "spec.secrets: no entry has type Kubeconfig", "nothing reaches the cluster"),
    (
        {"secrets": [{"type": "AWSWebIdentityCredentials", "name": "x", "key": "y"}]},
        "spec.secrets: no entry has type Kubeconfig",
        "an identity alone reaches nothing",
    ),
    ({"secrets": None}, "spec.secrets: ", "absent"),
    ({"cloud": 7}, "spec.cloud: ", "mistyped"),
    ({"gateway": {"listeners": [{"name": "x"}]}}, "spec.gateway.listeners[0].port: ", "incomplete"),
]


@pytest.mark.parametrize(("spec", "message", "reason"), BAD_SPECS)
def test_a_spec_that_is_not_understood_is_named_and_keeps_all_that_runs(
    spec: dict[str, Any], message: str, reason: str
) -> None:
    settled, observed = stacks.settled(stacks.stack())
    answer = stacks.compose(stacks.stack(status=settled.status, **spec), observed)
    status, code, text = says(answer)
    assert (status, code) == (False, "InvalidSpec"), reason
    assert message in text
    assert answer.resources.keys() == settled.resources.keys()
    assert answer.status == settled.status
    assert answer.ready is False
    assert {x.type for x in answer.conditions} == set(serving_stack.KIND.conditions)


@pytest.mark.parametrize(
    ("spec", "recorded", "installed", "reason"),
    [
        ({}, None, "2026.12", "a new cluster gets the newest"),
        ({}, "2026.12", "2026.12", "an old one keeps what it has"),
        ({"stackRelease": "2026.12"}, "1999.01", "2026.12", "what is asked for wins over what is recorded"),
    ],
)
def test_a_cluster_moves_to_another_release_only_when_asked(
    spec: dict[str, Any], recorded: str | None, installed: str, reason: str
) -> None:
    status = {"stackRelease": recorded} if recorded else None
    answer = stacks.compose(stacks.stack(status=status, **spec))
    assert answer.status["stackRelease"] == installed, reason


def test_a_newer_release_reaches_only_clusters_without_one(monkeypatch: pytest.MonkeyPatch) -> None:
    old = versions.newest()
    newer = versions.Release("2999.01", "2999-01-01", "1.34", "1.40", old.pins)
    monkeypatch.setattr(versions, "releases", lambda: {old.name: old, newer.name: newer})
    assert stacks.compose(stacks.stack()).status["stackRelease"] == "2999.01"
    kept = stacks.compose(stacks.stack(status={"stackRelease": old.name}))
    assert kept.status["stackRelease"] == old.name


def test_an_older_package_leaves_a_newer_stack_alone() -> None:
    settled, observed = stacks.settled(stacks.stack())
    recorded = {**settled.status, "stackRelease": "2999.01"}
    answer = stacks.compose(stacks.stack(status=recorded), observed)
    status, code, text = says(answer)
    assert (status, code) == (False, "UnknownRelease")
    assert "update the package" in text
    assert answer.resources.keys() == settled.resources.keys()
    assert answer.status["stackRelease"] == "2999.01"


# --- how the cluster is reached ----------------------------------------------------------------------

IDENTITY = {
    "type": "AWSWebIdentityCredentials",
    "name": "role",
    "key": "credentials",
    "namespace": "elsewhere",
}


@pytest.mark.parametrize(
    ("secrets", "kubeconfig", "identity", "reason"),
    [
        ([stacks.KUBECONFIG], "modelplane-system/north-kubeconfig/kubeconfig", None, "its own namespace"),
        (
            [{**stacks.KUBECONFIG, "namespace": "other"}],
            "other/north-kubeconfig/kubeconfig",
            None,
            "or the one it names",
        ),
        (
            [IDENTITY, stacks.KUBECONFIG],
            "modelplane-system/north-kubeconfig/kubeconfig",
            "AWSWebIdentityCredentials elsewhere/role/credentials",
            "whatever the order, the other one is the identity",
        ),
        (
            [stacks.KUBECONFIG, IDENTITY, {**IDENTITY, "name": "second"}],
            "modelplane-system/north-kubeconfig/kubeconfig",
            "AWSWebIdentityCredentials elsewhere/role/credentials",
            "the first of several",
        ),
    ],
)
def test_both_configs_read_the_secrets_of_the_spec(
    secrets: list[dict[str, Any]], kubeconfig: str, identity: str | None, reason: str
) -> None:
    answer = stacks.compose(stacks.stack(secrets=secrets))

    def told(ref: Mapping[str, Any]) -> str:
        return f"{ref['namespace']}/{ref['name']}/{ref['key']}"

    for key in CONFIGS:
        spec = answer.resources[key].manifest["spec"]
        assert told(spec["credentials"]["secretRef"]) == kubeconfig, reason
        found = spec.get("identity")
        assert (f"{found['type']} {told(found['secretRef'])}" if found else None) == identity


# --- status --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("addresses", "recorded", "published", "reason"),
    [
        (None, None, None, "case C88: none until the load balancer has one"),
        ([], None, None, "an empty list is none"),
        ([{"type": "IPAddress", "value": "192.0.2.1"}], None, "192.0.2.1", "an IP address"),
        ([{"type": "Hostname", "value": "lb.example.org"}], None, "lb.example.org", "or a host name"),
        ([{"value": ""}, {"value": "192.0.2.2"}], None, "192.0.2.2", "the first that says something"),
        ([None, 7], None, None, "junk is none"),
        ([], "192.0.2.9", "192.0.2.9", "what is not reported now is not gone: routes stand on it"),
    ],
)
def test_the_gateways_address(
    addresses: Any, recorded: str | None, published: str | None, reason: str
) -> None:
    status = {"gateway": {"address": recorded}} if recorded else None
    composite = stacks.stack(status=status)
    _, observed = stacks.settled(composite)
    observed["gateway"]["status"]["atProvider"]["manifest"]["status"] = {"addresses": addresses}
    answer = stacks.compose(composite, observed)
    assert paths.at(answer.status, "gateway", "address") == published, reason


def test_the_gateway_is_ready_when_it_has_an_address() -> None:
    answer, _ = stacks.settled(stacks.stack())
    readiness = answer.resources["gateway"].manifest["spec"]["readiness"]
    assert readiness["policy"] == "DeriveFromCelQuery"
    assert "object.status.addresses" in readiness["celQuery"]


def test_each_component_says_its_version_state_and_why() -> None:
    composite = stacks.stack(stack=c.DYNAMO)
    settled, observed = stacks.settled(composite)
    assert component(settled, "grove") == {
        "name": "grove",
        "version": versions.newest().pin("grove").version,
        "state": "Ready",
    }
    broken = stacks.failed(observed, "kai-scheduler", "cannot pull the chart: 401")
    del broken["grove"]
    broken["envoy-gateway"] = stacks.reported(observed["envoy-gateway"], ready=False)
    answer = stacks.compose(composite, broken)
    told = {
        k: (component(answer, k)["state"], component(answer, k).get("message"))
        for k in ("kai-scheduler", "grove", "envoy-gateway", "kai-queue")
    }
    assert told == {
        "kai-scheduler": ("Failed", "cannot pull the chart: 401"),
        "grove": ("Waiting", "waits for kai-scheduler"),
        "envoy-gateway": ("Installing", None),
        "kai-queue": ("Ready", None),
    }
    status, code, message = says(answer)
    assert (status, code) == (False, "ComponentFailed")
    assert message == "kai-scheduler: cannot pull the chart: 401; 20 of 23 components are ready"


def test_a_failed_helm_release_is_told_in_helms_words() -> None:
    composite = stacks.stack()
    _, observed = stacks.settled(composite)
    release = observed["prometheus"] = stacks.reported(observed["prometheus"], ready=False)
    release["status"]["atProvider"] = {
        "state": "failed",
        "releaseDescription": "timed out waiting: " + "x" * 999,
    }
    found = component(stacks.compose(composite, observed), "prometheus")
    assert found["state"] == "Failed"
    assert found["message"].startswith("timed out waiting: ")
    assert len(found["message"]) <= 512, "a provider's error may quote a whole manifest"


def test_a_bad_kubeconfig_is_what_the_condition_says() -> None:
    composite = stacks.stack()
    _, settled = stacks.settled(composite)
    observed = {k: settled[k] for k in (*CONFIGS, "node-feature-discovery", "inference-pool-crd")}
    why = 'cannot get kubeconfig: secrets "north-kubeconfig" not found'
    for key in ("node-feature-discovery", "inference-pool-crd"):
        observed = stacks.failed(observed, key, why)
    status, code, message = says(stacks.compose(composite, observed))
    assert (status, code) == (False, "ComponentFailed")
    assert message.startswith(f"node-feature-discovery: {why}; 0 of ")


# --- Provided ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stack", [c.STANDARD, c.DYNAMO])
def test_on_a_provided_cluster_nothing_is_installed(stack: str) -> None:
    answer, _ = stacks.settled(stacks.stack(stack=stack, provided=c.PROVIDED))
    assert of_kind(answer, "Release") == {}
    owned = {
        remote(answer, key)["kind"]
        for key, m in of_kind(answer, "Object").items()
        if m["spec"].get("managementPolicies") != ["Observe"]
    }
    assert {"Gateway", "GatewayClass", "EnvoyProxy", "Namespace"} <= owned
    assert ({"Queue", "Deployment"} <= owned) == (stack == c.DYNAMO)
    assert says(answer, c.REQUIREMENTS_MET) == (True, "ComponentsFound", "")


def test_a_provided_cluster_is_told_all_that_it_lacks() -> None:
    composite = stacks.stack(stack=c.DYNAMO, provided=c.PROVIDED)
    _, observed = stacks.settled(composite)
    absent = "observe failed: external resource does not exist"
    for key in ("check-grove", "check-nvidia-dra-driver"):
        observed = stacks.failed(observed, key, absent)
    answer = stacks.compose(composite, observed)
    status, code, message = says(answer, c.REQUIREMENTS_MET)
    assert (status, code) == (False, "ComponentMissing")
    assert "nvidia-dra-driver (DeviceClass gpu.nvidia.com is not there)" in message
    assert "grove (APIService v1alpha1.grove.io is not there)" in message
    assert component(answer, "grove")["state"] == "Missing"
    assert component(answer, "kai-scheduler")["state"] == "Found"
    assert says(answer)[:2] == (False, "ComponentMissing")


def test_a_check_that_cannot_be_made_is_not_a_component_that_is_missing() -> None:
    composite = stacks.stack(provided=c.PROVIDED)
    _, settled = stacks.settled(composite)
    observed = {k: settled[k] for k in (*CONFIGS, "check-leader-worker-set")}
    observed = stacks.failed(observed, "check-leader-worker-set", "connect failed: no route to host")
    status, code, message = says(stacks.compose(composite, observed), c.REQUIREMENTS_MET)
    assert (status, code) == (None, "CheckFailed")
    assert message == "leader-worker-set: connect failed: no route to host"


def test_before_a_provided_cluster_answers_nothing_is_known() -> None:
    composite = stacks.stack(provided=c.PROVIDED)
    _, settled = stacks.settled(composite)
    answer = stacks.compose(composite, {k: settled[k] for k in CONFIGS})
    assert says(answer, c.REQUIREMENTS_MET)[:2] == (None, "Checking")
    assert "gateway-class" in answer.held_back, "ours wait for what the cluster must have"


def test_a_managed_cluster_has_no_requirements() -> None:
    answer = stacks.compose(stacks.stack())
    assert says(answer, c.REQUIREMENTS_MET) == (True, "ComponentsManaged", "")


# --- removal -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("stack", "provided", "cloud"), SHAPES)
def test_each_consumer_of_a_config_holds_it_alone(stack: str, provided: str, cloud: str) -> None:
    """Case C58: a Usage with a bare selector guards the first consumer only."""
    answer, _ = stacks.settled(stacks.stack(stack=stack, provided=provided, cloud=cloud))
    wanted = [("provider-config-helm", k) for k in of_kind(answer, "Release")]
    wanted += [("provider-config-kubernetes", k) for k in of_kind(answer, "Object")]
    assert sorted(e for e in edges(answer) if e[0] in CONFIGS) == sorted(wanted)


@pytest.mark.parametrize(
    ("of", "by", "reason"),
    [
        ("gateway-class", "gateway", "the class's finalizer waits for its gateways"),
        ("envoy-gateway", "gateway-class", "only the controller takes that finalizer off"),
        ("gateway-service", "gateway", "while it stands, the controller makes the Service again"),
        ("envoy-gateway", "gateway-service", "the load balancer is gone before its controller"),
        ("ai-gateway", "gateway", "with its hook dead, Envoy Gateway changes nothing any more"),
        ("kai-scheduler", "kai-queue-root", "its webhook fails closed"),
        ("kai-queue-root", "kai-queue", "a parent goes last"),
        ("kai-scheduler", "grove", "Grove's PodGroups need it"),
        ("nvidia-dra-driver-namespace", "nvidia-dra-driver-quota", "a namespace takes all in it along"),
        ("modelexpress-network-policy", "modelexpress-server-deployment", "the fence goes last"),
    ],
)
def test_nothing_goes_before_what_needs_it(of: str, by: str, reason: str) -> None:
    answer, _ = stacks.settled(stacks.stack(stack=c.DYNAMO))
    assert (of, by) in edges(answer), reason


@pytest.mark.parametrize(("stack", "provided", "cloud"), SHAPES)
def test_removal_never_goes_in_a_circle(stack: str, provided: str, cloud: str) -> None:
    answer, _ = stacks.settled(stacks.stack(stack=stack, provided=provided, cloud=cloud))
    left = {k for k, r in answer.resources.items() if r.manifest["kind"] != "Usage"}
    held = edges(answer)
    while left:
        free = {k for k in left if not any(of == k and by in left for of, by in held)}
        assert free, f"nothing of {sorted(left)} can ever be deleted"
        left -= free


def test_the_load_balancer_is_watched_until_the_cloud_has_released_it() -> None:
    answer, _ = stacks.settled(stacks.stack(cloud=c.EKS))
    service = answer.resources["gateway-service"].manifest
    assert service["spec"]["managementPolicies"] == ["Observe", "Delete"]
    proxy = remote(answer, "gateway-proxy")["spec"]["provider"]["kubernetes"]["envoyService"]
    assert remote(answer, "gateway-service")["metadata"] == {
        "name": proxy["name"],
        "namespace": c.ENVOY_NAMESPACE,
    }
