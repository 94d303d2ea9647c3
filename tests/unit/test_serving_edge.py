"""What takes requests for a replica: route, pool, picker, and the proxy before decode engines."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import replicas as r
from modelplane import contracts as c
from modelplane.api.model_replica import ModelReplicaSpec
from modelplane.core import Manifest
from modelplane.gangs import flags

STACKS = ("Standard", "Dynamo")
REPLICAS = [
    (r.replica(), "one pod"),
    (r.replica(r.engine(copies=3)), "three copies"),
    (r.replica(r.gang(copies=2)), "gangs"),
    (r.split(), "split"),
    (r.split(gangs=True), "split over gangs"),
]


def edge(composite: Manifest, stack: str = "Standard", **of_cluster: Any) -> dict[str, Manifest]:
    given, _ = r.settled(composite, r.cluster(stack=stack, **of_cluster), r.cache())
    return r.manifests(given)


def config(composite: Manifest) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(edge(composite)["epp-config"]["data"]["epp-config.yaml"])
    return found


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize(("composite", "reason"), REPLICAS)
def test_requests_come_by_one_route_that_never_cuts_a_stream(
    composite: Manifest, reason: str, stack: str
) -> None:
    """Case C66, unified and disaggregated alike."""
    found = edge(composite, stack)
    route = found["model-route"]["spec"]
    (rule,) = route["rules"]
    assert rule["timeouts"] == {"request": "0s"}, reason
    assert rule["matches"] == [{"path": {"type": "PathPrefix", "value": f"/{r.TEAM}/{r.NAME}/"}}], reason
    assert rule["filters"][0]["urlRewrite"]["path"]["replacePrefixMatch"] == "/", reason
    assert rule["backendRefs"][0]["name"] == found["inference-pool"]["metadata"]["name"], reason
    assert route["parentRefs"][0]["name"] == "inference-gateway", reason
    assert route["parentRefs"][0]["namespace"] == "modelplane-system", reason


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize(("composite", "reason"), REPLICAS)
def test_a_replica_has_a_host_name_that_no_path_leads_away_from(
    composite: Manifest, reason: str, stack: str
) -> None:
    """Behind a front door that rewrites no path per backend: a path of another replica is only text there."""
    found = edge(composite, stack)
    route = found["model-host-route"]["spec"]
    (rule,) = route["rules"]
    assert route["hostnames"] == [f"{r.NAME}.{r.TEAM}.replicas.modelplane.internal"], reason
    assert rule["matches"] == [{"path": {"type": "PathPrefix", "value": "/"}}], reason
    assert "filters" not in rule, reason
    assert rule["timeouts"] == {"request": "0s"}, reason
    assert [x["name"] for x in rule["backendRefs"]] == [found["inference-pool"]["metadata"]["name"]]
    assert "hostnames" not in found["model-route"]["spec"], reason


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize(("composite", "reason"), REPLICAS)
def test_the_pool_selects_serving_pods_and_no_worker(composite: Manifest, reason: str, stack: str) -> None:
    """Case C75: a worker without a role label would be taken for a decode endpoint."""
    found = edge(composite, stack)
    wanted = found["inference-pool"]["spec"]["selector"]["matchLabels"].items()
    for key, manifest in found.items():
        if not key.startswith("model-serving"):
            continue
        for role, pod in r.pods(manifest).items():
            selected = wanted <= pod["metadata"]["labels"].items()
            assert selected is not role.endswith("worker"), reason


def test_the_front_is_the_same_for_one_copy_and_for_many() -> None:
    """Case C75: changing copies changes only the workload."""
    one, three = edge(r.replica()), edge(r.replica(r.engine(copies=3)))
    assert {k for k in one if one[k] != three[k]} == {"model-serving-main"}


def test_the_picker_runs_twice_with_probes_that_leader_election_knows() -> None:
    found = edge(r.replica())
    spec = found["epp"]["spec"]
    (container,) = spec["template"]["spec"]["containers"]
    assert spec["replicas"] == 2
    assert spec["strategy"] == {"type": "Recreate"}, (
        "a rolling update waits for standbys to be ready, for ever"
    )
    assert "--ha-enable-leader-election=true" in container["args"]
    assert container["livenessProbe"]["grpc"]["service"] == "liveness"
    assert container["readinessProbe"]["grpc"]["service"] == "readiness"
    assert container["resources"]["requests"].keys() == {"cpu", "memory"}
    assert all("=" in a for a in container["args"]), "a boolean after a space is not parsed"
    verbs = {x: q["verbs"] for q in found["epp-role"]["rules"] for x in q["resources"]}
    assert "update" in verbs["leases"], "the election needs its lease"
    assert verbs["pods"] == verbs["inferencepools"] == ["get", "list", "watch"]


def test_a_changed_configuration_makes_new_picker_pods() -> None:
    def checksum(composite: Manifest) -> str:
        metadata = edge(composite)["epp"]["spec"]["template"]["metadata"]
        return str(metadata["annotations"][c.EPP_CHECKSUM_ANNOTATION])

    assert checksum(r.replica()) == checksum(r.replica(r.engine(copies=3)))
    assert checksum(r.replica()) != checksum(r.replica(serving={"kvBlockSize": 64}))


@pytest.mark.parametrize(("composite", "reason"), REPLICAS)
def test_a_configuration_declares_all_it_refers_to(composite: Manifest, reason: str) -> None:
    """An undeclared plugin, a duplicate or a handler missing over two profiles fails the picker's start."""
    found = config(composite)
    declared = [p.get("name", p["type"]) for p in found["plugins"]]
    assert len(declared) == len(set(declared)), reason
    for profile in found["schedulingProfiles"]:
        assert {x["pluginRef"] for x in profile["plugins"]} <= set(declared), reason
    parameters = {p["type"]: p.get("parameters", {}) for p in found["plugins"]}
    assert parameters["approx-prefix-cache-producer"]["autoTune"] is False, reason
    assert "disagg-headers-handler" not in parameters, "deprecated in v0.10"
    if len(found["schedulingProfiles"]) == 2:
        decider = parameters["disagg-profile-handler"]["deciders"]["prefill"]
        assert declared.index(decider) < declared.index("disagg-profile-handler"), reason
        assert parameters[decider]["nonCachedTokens"] > 0, "0 never disaggregates"
    else:
        assert "single-profile-handler" in declared, reason


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("gangs", [False, True])
def test_phases_are_told_apart_by_phase_and_only_decode_has_a_proxy(stack: str, gangs: bool) -> None:
    composite = r.split(gangs=gangs)
    composite["spec"]["engines"].reverse()
    roles = {}
    for pod in r.all_pods(composite, stack).values():
        labels = pod["metadata"]["labels"]
        proxies = [x for x in pod["spec"].get("initContainers", []) if x["name"] == "pd-sidecar"]
        if c.SERVING_LABEL not in labels:
            assert proxies == []
            assert c.LLMD_ROLE_LABEL not in labels
            continue
        roles[labels[c.ENGINE_LABEL]] = labels[c.LLMD_ROLE_LABEL]
        assert labels[c.LLMD_SERVING_LABEL] == "true"
        assert r.env_of(pod)["VLLM_NIXL_SIDE_CHANNEL_PORT"] == "5557"
        assert r.env_of(pod)["VLLM_NIXL_SIDE_CHANNEL_HOST"]["fieldRef"]["fieldPath"] == "status.podIP"
        assert len(proxies) == (1 if labels[c.LLMD_ROLE_LABEL] == "decode" else 0)
        for proxy in proxies:
            assert proxy["restartPolicy"] == "Always", "a native sidecar: up before the engine"
            assert {"--port=8000", "--model-server-port=8001", "--secure-proxy=false"} <= set(proxy["args"])
            assert proxy["readinessProbe"]["timeoutSeconds"] == 5, "case C94"
            assert r.engine_container(pod)["readinessProbe"]["httpGet"]["port"] == 8001
    assert roles == {"fill": "prefill", "gen": "decode"}


SHELL = ["/bin/sh", "-c"]
COMMANDS: list[tuple[Manifest, int | None, int | None, str]] = [
    ({}, None, None, "nothing said"),
    ({"args": ["--port=9000"]}, 9000, None, "one word"),
    ({"args": ["--port", "9000", "--block-size", "32"]}, 9000, 32, "two words"),
    ({"command": ["serve", "--port=9000"]}, 9000, None, "in the command"),
    ({"args": ["--port=1", "--port=2"]}, 2, None, "the last wins, as an argument parser takes it"),
    ({"command": [*SHELL, "exec vllm serve m --port 9000 --block-size=64"]}, 9000, 64, "a shell command"),
    ({"command": SHELL, "args": ["vllm serve m \\\n --port=9000"]}, 9000, None, "over two lines"),
    ({"command": [*SHELL, "vllm serve m --port='9000' &"]}, 9000, None, "quoted"),
    ({"command": [*SHELL, "ray start --head --port=6379 && vllm serve m"]}, None, None, "Ray's own port"),
    ({"command": [*SHELL, "ray start --port 6379; serve --port 9000"]}, 9000, None, "and the engine's"),
    ({"args": ["--page-size", "128"]}, None, 128, "SGLang's word for it"),
    ({"args": ["--port=abc"]}, None, None, "v0.4 raised here"),
    ({"args": ["--port"]}, None, None, "no value"),
    ({"args": ["--port=$(PORT)"]}, None, None, "a variable says nothing"),
    ({"args": ["--port=0", "--block-size=-1"]}, None, None, "out of range"),
    ({"args": ["--port=99999"]}, None, None, "out of range"),
    ({"args": ["--port=²"]}, None, None, "a digit to Unicode only"),
    ({"args": ["--port-range=9000"]}, None, None, "another flag"),
    ({"command": [*SHELL, "serve --port 'unbalanced"]}, None, None, "an open quote"),
]


def _spec(*engines: Manifest, **spec: Any) -> ModelReplicaSpec:
    return ModelReplicaSpec.model_validate(r.replica(*engines, **spec)["spec"])


@pytest.mark.parametrize(("command", "port", "block", "reason"), COMMANDS)
def test_port_and_block_size_are_read_from_flags_where_the_spec_is_silent(
    command: Manifest, port: int | None, block: int | None, reason: str
) -> None:
    engine = r.engine("main", r.member(engine=r.container(**command)))
    spec = _spec(engine)
    assert flags.engine_port(spec.engines[0]) == (port or 8000), reason
    assert flags.block_size(spec) == (block or 16), reason
    typed = _spec({**engine, "port": 7000}, serving={"kvBlockSize": 8})
    assert (flags.engine_port(typed.engines[0]), flags.block_size(typed)) == (7000, 8), "typed first"


@settings(max_examples=200)
@given(command=st.lists(st.text(max_size=40)), args=st.lists(st.text(max_size=40)))
def test_no_command_line_ever_raises(command: list[str], args: list[str]) -> None:
    spec = _spec(r.engine("main", r.member(engine=r.container(command=command, args=args))))
    assert 1 <= flags.engine_port(spec.engines[0]) <= 65535
    assert flags.block_size(spec) >= 1
    assert flags.engine_type(spec.engines[0]) in ("vllm", "sglang", "trtllm-serve")


def test_block_size_of_a_split_replica_is_the_decode_engines() -> None:
    def engine(name: str, phase: str, size: int) -> Manifest:
        args = [f"--block-size={size}"]
        return r.engine(name, r.member(engine=r.container(args=args)), phase=phase)

    composite = r.replica(
        engine("fill", "Prefill", 32), engine("gen", "Decode", 64), serving={"mode": "PrefillDecode"}
    )
    (producer,) = [p for p in config(composite)["plugins"] if p["type"] == "approx-prefix-cache-producer"]
    assert producer["parameters"]["blockSizeTokens"] == 64


def test_the_pool_follows_the_port_all_engines_listen_on() -> None:
    found = edge(r.replica(r.engine("a", port=9000), r.engine("b", port=9000)))
    assert found["inference-pool"]["spec"]["targetPorts"] == [{"number": 9000}]
    for key in ("model-serving-a", "model-serving-b"):
        container = r.engine_container(found[key]["spec"]["template"])
        assert container["ports"][0]["containerPort"] == 9000
        assert container["readinessProbe"]["httpGet"]["port"] == 9000


@pytest.mark.parametrize(
    ("composite", "field", "reason"),
    [
        (r.replica(r.engine("a"), r.engine("b", port=9000)), "spec.engines[1].port", "one pool, one port"),
        (
            r.replica(
                r.engine("fill", phase="Prefill"),
                r.engine("gen", phase="Decode", port=8000),
                serving={"mode": "PrefillDecode"},
            ),
            "spec.engines[1].port",
            "the proxy takes it",
        ),
    ],
)
def test_ports_that_cannot_be_served_are_refused_by_field(
    composite: Manifest, field: str, reason: str
) -> None:
    given = r.answer(composite)
    (condition,) = [x for x in given.conditions if x.type == c.MODEL_ACCEPTED]
    assert (condition.status, condition.reason) == (False, "InvalidSpec"), reason
    assert condition.message.startswith(field), reason
    assert given.resources == {}


def test_images_come_from_the_clusters_mirror() -> None:
    cluster = r.cluster()
    cluster["spec"]["images"] = {"mirror": "registry.example.org/mirror"}
    given, _ = r.settled(r.split(), cluster)
    found = r.manifests(given)
    image = found["epp"]["spec"]["template"]["spec"]["containers"][0]["image"]
    assert image == "registry.example.org/mirror/llm-d/llm-d-router-endpoint-picker:v0.10.0"
    (proxy,) = found["model-serving-gen"]["spec"]["template"]["spec"]["initContainers"]
    assert proxy["image"].startswith("registry.example.org/mirror/llm-d/")
