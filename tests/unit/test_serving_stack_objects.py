"""ServingStack: the objects it composes, with images and values of the platform."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import judges
from builders import stacks
from modelplane import contracts as c
from modelplane.core import paths
from modelplane.facts import versions


@pytest.mark.parametrize(("stack", "provided", "cloud"), stacks.SHAPES)
def test_every_object_is_valid_for_the_real_api(stack: str, provided: str, cloud: str, crds: Path) -> None:
    answer, _ = stacks.settled(
        stacks.stack(
            stack=stack,
            provided=provided,
            cloud=cloud,
            images={"mirror": "registry.example.org", "pullSecretRef": {"name": "login"}},
        ),
        stacks.LOGIN,
    )
    faults = [
        f"{key}: {fault}"
        for key, composed in answer.resources.items()
        for manifest in judges.with_remote(composed.manifest)
        for fault in judges.problems(manifest, crds)
    ]
    assert faults == []


@pytest.mark.parametrize(("stack", "provided", "cloud"), stacks.SHAPES)
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
    for manifest in stacks.of_kind(answer, "Release").values():
        chart = manifest["spec"]["forProvider"]["chart"]["name"]
        wanted = "kai-scheduler" if chart == "kai-scheduler" else f"mp-{chart}"
        assert manifest["metadata"]["annotations"][c.EXTERNAL_NAME_ANNOTATION] == wanted
        assert manifest["spec"]["forProvider"]["wait"] is True, "Ready means that the pods run"


@pytest.mark.parametrize("stack", [c.STANDARD, c.DYNAMO])
def test_everything_says_which_cluster_and_component_it_is(stack: str) -> None:
    answer, _ = stacks.settled(stacks.stack(stack=stack, clusterName=None))
    for key, manifest in {**stacks.of_kind(answer, "Release"), **stacks.of_kind(answer, "Object")}.items():
        labels = manifest["metadata"]["labels"]
        assert labels[c.CLUSTER_LABEL] == "north-stack", "without a cluster, the stack's own name"
        assert labels[c.RESOURCE_LABEL] == key
    assert answer.resources["gateway"].manifest["metadata"]["labels"][c.ROLE_LABEL] == c.ROLE_GATEWAY
    assert answer.resources["envoy-gateway"].manifest["metadata"]["labels"][c.ROLE_LABEL] == c.ROLE_CONTROLLER


@pytest.mark.parametrize(
    ("ready", "revision", "limited", "reason"),
    [
        (None, None, True, "a first install that fails is uninstalled and tried again"),
        (False, 1, True, "it is still the first install"),
        (True, 1, False, "an upgrade that fails is not rolled back: the chart has no way back"),
        (False, 2.0, False, "nor is one that is failing now"),
        (False, "junk", True, "an unreadable revision is none"),
    ],
)
def test_kai_is_never_rolled_back(ready: bool | None, revision: Any, limited: bool, reason: str) -> None:
    composite = stacks.stack(stack=c.DYNAMO, cloud=c.EKS)
    settled, observed = stacks.settled(composite)
    if ready is None:
        del observed["kai-scheduler"]
    else:
        manifest = settled.resources["kai-scheduler"].manifest
        observed["kai-scheduler"] = stacks.reported(manifest, ready=ready)
        observed["kai-scheduler"]["status"]["atProvider"] = {"revision": revision}
    answer = stacks.compose(composite, observed)
    assert ("rollbackLimit" in answer.resources["kai-scheduler"].manifest["spec"]) == limited, reason
    assert "rollbackLimit" in answer.resources["grove"].manifest["spec"]


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
    service = stacks.remote(answer, "gateway-proxy")["spec"]["provider"]["kubernetes"]["envoyService"]
    assert service["externalTrafficPolicy"] == "Cluster"
    assert ("annotations" in service) == annotated, reason
    assert answer.resources["gateway-proxy"].ready, "it has no state that could hold the stack up"


def test_listeners_and_class_are_those_of_the_spec() -> None:
    listener = {"name": "plain", "port": 8080.0, "protocol": "TCP"}
    spec = {"gateway": {"className": "edge", "listeners": [listener]}}
    answer, _ = stacks.settled(stacks.stack(**spec))
    gateway = stacks.remote(answer, "gateway")["spec"]
    assert gateway["gatewayClassName"] == stacks.remote(answer, "gateway-class")["metadata"]["name"] == "edge"
    assert [(x["name"], x["port"], x["protocol"]) for x in gateway["listeners"]] == [("plain", 8080, "TCP")]
    assert [x["allowedRoutes"] for x in gateway["listeners"]] == [{"namespaces": {"from": "All"}}]
    default = stacks.remote(stacks.settled(stacks.stack(gateway={"listeners": []}))[0], "gateway")["spec"]
    assert [(x["name"], x["port"], x["protocol"]) for x in default["listeners"]] == [("http", 80, "HTTP")]


def test_only_engine_pods_of_teams_reach_modelexpress() -> None:
    answer, _ = stacks.settled(stacks.stack(stack=c.DYNAMO))
    policy = stacks.remote(answer, "modelexpress-network-policy")
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
    pod = stacks.remote(answer, "modelexpress-server-deployment")["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    env = {x["name"]: x["value"] for x in container["env"]}
    assert env["MX_METADATA_BACKEND"] == "kubernetes", "without a backend the server exits"
    assert env["MX_METADATA_NAMESPACE"] == c.MODELEXPRESS_NAMESPACE
    service = stacks.remote(answer, "modelexpress-server-service")
    assert service["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
    assert (service["metadata"]["name"], service["spec"]["ports"][0]["port"]) == (
        c.MODELEXPRESS_SERVER,
        c.MODELEXPRESS_PORT,
    )
    pin = versions.newest().pin("modelexpress-server")
    assert container["image"] == f"{pin.image}:{pin.version}"


def test_both_queues_let_everything_run() -> None:
    answer, _ = stacks.settled(stacks.stack(stack=c.DYNAMO))
    root, leaf = (stacks.remote(answer, key) for key in ("kai-queue-root", "kai-queue"))
    assert (root["metadata"]["name"], leaf["metadata"]["name"]) == (c.KAI_ROOT_QUEUE, c.KAI_QUEUE)
    assert "parentQueue" not in root["spec"]
    assert leaf["spec"]["parentQueue"] == c.KAI_ROOT_QUEUE
    share = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
    for queue in (root, leaf):
        assert queue["spec"]["resources"] == dict.fromkeys(("cpu", "memory", "gpu"), share)


@pytest.mark.parametrize("stack", [c.STANDARD, c.DYNAMO])
def test_a_crd_stays_when_the_stack_goes(stack: str) -> None:
    """Deleting one deletes every object of its kind, whoever made it; so does the platform's namespace."""
    answer, _ = stacks.settled(stacks.stack(stack=stack))
    for key, manifest in stacks.of_kind(answer, "Object").items():
        if manifest["spec"].get("managementPolicies") == ["Observe"]:
            continue
        stays = stacks.remote(answer, key)["kind"] == "CustomResourceDefinition" or key == "gateway-namespace"
        assert ("Delete" not in manifest["spec"].get("managementPolicies", ["Delete"])) == stays


def test_a_mirror_serves_every_chart_and_image() -> None:
    images = {"mirror": "registry.example.org/mirror", "pullSecretRef": {"name": "login"}}
    answer, _ = stacks.settled(stacks.stack(stack=c.DYNAMO, images=images), stacks.LOGIN)
    for manifest in stacks.of_kind(answer, "Release").values():
        chart = manifest["spec"]["forProvider"]["chart"]
        assert chart["repository"].startswith("oci://registry.example.org/mirror/")
        assert chart["pullSecretRef"] == {"name": "login"}
    pod = stacks.remote(answer, "modelexpress-server-deployment")["spec"]["template"]["spec"]
    assert pod["containers"][0]["image"].startswith("registry.example.org/mirror/nvidia/ai-dynamo/")
    assert pod["imagePullSecrets"] == [{"name": c.PULL_SECRET}]


def test_credentials_go_to_the_mirror_only() -> None:
    answer, _ = stacks.settled(stacks.stack(stack=c.DYNAMO, images={"pullSecretRef": {"name": "login"}}))
    assert "login" not in str([r.manifest for r in answer.resources.values()])


def test_the_platforms_values_win_key_by_key() -> None:
    values = {"nvidiaDriverRoot": "/run/nvidia/driver", "resources": {"gpus": {"x": 1}}, "webhook": {}}
    components = {"nvidia-dra-driver": {"values": values}}
    answer, _ = stacks.settled(stacks.stack(stack=c.DYNAMO, components=components))
    found = answer.resources["nvidia-dra-driver"].manifest["spec"]["forProvider"]["values"]
    assert found["nvidiaDriverRoot"] == "/run/nvidia/driver"
    assert found["resources"] == {"gpus": {"enabled": True, "x": 1}, "computeDomains": {"enabled": False}}
    assert found["gpuResourcesEnabledOverride"] is True


def test_an_optional_component_can_be_left_out_and_is_removed() -> None:
    _, observed = stacks.settled(stacks.stack())
    assert "prometheus" in observed
    answer = stacks.compose(stacks.stack(components={"prometheus": {"enabled": False}}), observed)
    assert "prometheus" not in answer.resources
    assert stacks.says(answer) == (True, "ComponentsReady", "")
