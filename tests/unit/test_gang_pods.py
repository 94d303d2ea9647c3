"""What all pods of engines share, whatever controller makes them."""

from __future__ import annotations

from typing import Any

import pytest

from builders import replicas as r
from modelplane import names
from modelplane.core import Manifest

STACKS = ("Standard", "Dynamo")


@pytest.mark.parametrize(("composite", "stack", "kinds", "reason"), r.SHAPES)
def test_pods_are_pinned_to_their_pool_and_tolerate_its_gpus(
    composite: Manifest, stack: str, kinds: list[str], reason: str
) -> None:
    """Case C40: a claim may fit on a pool the scheduler did not choose."""
    for pod in r.all_pods(composite, stack).values():
        assert pod["spec"]["nodeSelector"] == {"modelplane.ai/pool": "gpu"}, reason
        assert pod["spec"]["tolerations"] == [
            {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
        ], reason


@pytest.mark.parametrize("stack", STACKS)
def test_members_go_to_their_own_pools_and_a_claimless_leader_claims_nothing(stack: str) -> None:
    composite = r.replica(
        r.engine("main", r.member("Leader", pool="gpu2", gpus=0), r.member("Worker", gpus=8, nodes=1))
    )
    pods = r.pods(r.one(composite, stack))
    assert pods["leader"]["spec"]["nodeSelector"] == {"modelplane.ai/pool": "gpu2"}
    assert "resourceClaims" not in pods["leader"]["spec"]
    assert "resources" not in r.engine_container(pods["leader"])
    assert r.engine_container(pods["worker"])["resources"] == {"claims": [{"name": "devices"}]}


@pytest.mark.parametrize("stack", STACKS)
def test_each_claiming_member_has_a_template_of_its_own(stack: str) -> None:
    """Case C42: pods that share a claim do not schedule together."""
    given, _ = r.settled(r.replica(r.gang()), r.cluster(stack=stack))
    templates = {
        m["metadata"]["name"]: m for m in r.manifests(given).values() if m["kind"] == "ResourceClaimTemplate"
    }
    pods = r.pods(r.workload(given))
    used = {role: p["spec"]["resourceClaims"] for role, p in pods.items()}
    assert len({x["resourceClaimTemplateName"] for claims in used.values() for x in claims}) == 2
    for claims in used.values():
        assert [x["name"] for x in claims] == ["devices"]
        assert "resourceClaimName" not in claims[0]
        requests = templates[claims[0]["resourceClaimTemplateName"]]["spec"]["spec"]["devices"]["requests"]
        assert requests[0]["name"] == "gpu"
        assert requests[0]["exactly"]["deviceClassName"] == "gpu.nvidia.com"
        assert requests[0]["exactly"]["count"] == 4


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize(("engine", "reason"), [(r.engine(), "one pod"), (r.gang(), "case C36: a gang")])
def test_the_cache_is_mounted_alike_in_every_pod(engine: Manifest, stack: str, reason: str) -> None:
    composite = r.replica(engine, modelCacheRef={"name": "w"})
    claims = set()
    for pod in r.all_pods(composite, stack).values():
        engine = r.engine_container(pod)
        mounts = {m["name"]: m for m in engine["volumeMounts"]}
        assert mounts["model-cache"] == {"name": "model-cache", "mountPath": "/mnt/models"}, reason
        assert r.env_of(pod)["HF_HUB_CACHE"] == "/mnt/models", reason
        claims |= {
            v["persistentVolumeClaim"]["claimName"]
            for v in pod["spec"]["volumes"]
            if "persistentVolumeClaim" in v
        }
    assert claims == {names.cache_claim(r.TEAM, "w")}, reason


ASKING = [r.device(), r.NIC]
ASKING_GANG = r.gang(workers=2, leader={"requests": ASKING}, worker={"requests": ASKING})
MX = {"MX_SERVER_ADDRESS", "MODEL_EXPRESS_URL", "MX_MODEL_REVISION", "MX_P2P_METADATA", "POD_UID"}


@pytest.mark.parametrize(
    ("stack", "cache", "fabric", "there", "reason"),
    [
        ("Dynamo", True, "", True, "case C35: on Dynamo with a cache"),
        ("Dynamo", True, "EFA", True, "with a fabric too"),
        ("Dynamo", False, "", False, "nothing staged, nothing to share"),
        ("Standard", True, "EFA", False, "no server runs there"),
    ],
)
@pytest.mark.parametrize("engine", [r.engine("main", r.member(requests=ASKING)), ASKING_GANG])
def test_model_express_is_configured_only_where_a_server_runs(
    engine: Manifest, stack: str, cache: bool, fabric: str, there: bool, reason: str
) -> None:
    ref = {"modelCacheRef": {"name": "w"}} if cache else {}
    for pod in r.all_pods(r.replica(engine, **ref), stack, fabric=fabric).values():
        env = r.env_of(pod)
        assert (env.keys() >= MX) is there, reason
        assert not (MX & env.keys()) or there, reason
        assert (env.get("MX_NIXL_BACKEND") == "LIBFABRIC") is (there and fabric == "EFA"), reason
        if there:
            address = "modelexpress-server.modelexpress-system.svc:8001"
            assert env["MX_SERVER_ADDRESS"] == env["MODEL_EXPRESS_URL"] == address, reason
            assert env["MX_MODEL_REVISION"] == f"c0ffee-{names.cache_claim(r.TEAM, 'w')}", "decision 5"


@pytest.mark.parametrize("engine", ["single", "gang"])
def test_a_team_may_send_its_engines_to_the_volume_instead_of_to_peers(engine: str) -> None:
    """The client takes an empty address for no server (docs/adr/0012-peers-without-a-fabric.md)."""
    off = [{"name": n, "value": ""} for n in ("MX_SERVER_ADDRESS", "MODEL_EXPRESS_URL")]
    own = {"engine": r.container(env=off)}
    made = r.engine("main", r.member(**own)) if engine == "single" else r.gang(leader=own, worker=own)
    for pod in r.all_pods(r.replica(made, modelCacheRef={"name": "w"}), "Dynamo").values():
        env = r.env_of(pod)
        assert (env["MX_SERVER_ADDRESS"], env["MODEL_EXPRESS_URL"]) == ("", "")
        assert any(m["name"] == "model-cache" for m in r.engine_container(pod)["volumeMounts"])


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize(
    ("fabric", "lock", "libfabric"),
    [("", False, False), ("None", False, False), ("InfiniBand", True, False), ("EFA", True, True)],
)
def test_only_pools_with_a_fabric_get_capability_environment_and_affinity(
    stack: str, fabric: str, lock: bool, libfabric: bool
) -> None:
    """Decision 11; a single pod has nobody to be near to."""
    for pod in r.all_pods(r.replica(ASKING_GANG), stack, fabric=fabric).values():
        context = r.engine_container(pod).get("securityContext")
        assert context == ({"capabilities": {"add": ["IPC_LOCK"]}} if lock else None)
        assert (r.env_of(pod).get("FI_PROVIDER") == "efa") is libfabric
        assert ("affinity" in pod["spec"]) is lock
        assert "FI_EFA_USE_DEVICE_RDMA" not in r.env_of(pod), "it aborts devices without RDMA"
    for pod in r.all_pods(r.replica(), stack, fabric=fabric).values():
        assert "affinity" not in pod["spec"]


EFA_ASKED: list[tuple[dict[str, Any], bool, str]] = [
    ({"requests": [r.device()]}, False, "v0.4's manifests: libfabric without an interface fails"),
    ({"requests": [r.device(), r.NIC]}, True, "by the chart's class"),
    (
        {
            "requests": [
                {**r.device("nic", 4, "own-class"), "selectors": [{"cel": 'device.driver == "dra.net"'}]}
            ]
        },
        True,
        "by the driver, whatever the class",
    ),
    (
        {"requests": [{**r.device(), "selectors": [{"cel": "device.driver != 'dra.net.example'"}]}]},
        False,
        "another driver",
    ),
    (
        {"engine": r.container(resources={"limits": {"vpc.amazonaws.com/efa": "4"}})},
        True,
        "from a device plugin",
    ),
    (
        {"sidecars": [r.container("x", resources={"limits": {"vpc.amazonaws.com/efa": "4"}})]},
        False,
        "not for the engine",
    ),
]


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize(("member", "asked", "reason"), EFA_ASKED)
def test_efa_is_set_up_only_for_a_member_that_asks_for_it(
    member: dict[str, Any], asked: bool, reason: str, stack: str
) -> None:
    composite = r.replica(r.engine("main", r.member(**member)), modelCacheRef={"name": "w"})
    (pod,) = r.all_pods(composite, stack, fabric="EFA").values()
    env = r.env_of(pod)
    assert ("FI_PROVIDER" in env) is asked, reason
    assert ("securityContext" in r.engine_container(pod)) is asked, reason
    assert ("MX_NIXL_BACKEND" in env) is (asked and stack == "Dynamo"), reason


@pytest.mark.parametrize("stack", STACKS)
def test_the_copies_of_a_gang_are_drawn_together_one_by_one(stack: str) -> None:
    labels = {
        "Standard": "leaderworkerset.sigs.k8s.io/group-index",
        "Dynamo": "grove.io/podcliqueset-replica-index",
    }
    for pod in r.all_pods(r.replica(r.gang(copies=2)), stack, fabric="EFA").values():
        affinity = pod["spec"]["affinity"]["podAffinity"]
        (term,) = affinity["preferredDuringSchedulingIgnoredDuringExecution"]
        assert term["podAffinityTerm"]["matchLabelKeys"] == [labels[stack]]
        wanted = term["podAffinityTerm"]["labelSelector"]["matchLabels"].items()
        assert wanted <= pod["metadata"]["labels"].items()


ENV: list[tuple[list[Manifest], str]] = [
    ([], "the user's come last"),
    ([{"name": "HF_HUB_CACHE", "value": "/own"}], "the user's stands, ours is left out"),
    ([{"name": "MODELPLANE_RANK", "value": "7"}], "the contract stands"),
    ([{"name": "B", "value": "1"}, {"name": "B", "value": "2"}], "of two, the last, as in Kubernetes"),
]


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize(("extra", "reason"), ENV)
def test_managed_entries_stand_first_and_every_name_stands_once(
    stack: str, extra: list[Manifest], reason: str
) -> None:
    """Decision 7: Grove refuses two entries of one name."""
    own = [*extra, {"name": "A", "value": "$(MODELPLANE_LEADER_ADDRESS):$(HF_HUB_CACHE)"}]
    engine = {"engine": r.container(env=own)}
    composite = r.replica(r.gang(leader=engine, worker=engine), modelCacheRef={"name": "w"})
    for pod in r.all_pods(composite, stack).values():
        listed = [e["name"] for e in r.engine_container(pod)["env"]]
        env = r.env_of(pod)
        assert len(listed) == len(set(listed)), reason
        assert listed[0] == "MODELPLANE_LEADER_ADDRESS", reason
        assert listed[-1] == "A", reason
        own_cache = any(e["name"] == "HF_HUB_CACHE" for e in extra)
        assert env["HF_HUB_CACHE"] == ("/own" if own_cache else "/mnt/models"), reason
        assert env["MODELPLANE_RANK"] != "7", reason
        assert env.get("B", "2") == "2", reason


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("engine", ["single", "gang"])
def test_what_the_user_wrote_passes_through(stack: str, engine: str) -> None:
    """Case C38 among them: a field reference stays as written, without null keys beside it."""
    written = r.container(
        command=["serve", "$$(LITERAL)"],
        args=["--port=8000", "'; rm -rf /"],
        env=[{"name": "HOST_ADDR", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
        resources={"requests": {"cpu": 4.0, "memory": "16Gi"}},
        livenessProbe={"tcpSocket": {"port": 8000.0}, "periodSeconds": 30.0},
    )
    pod: dict[str, Any] = {
        "engine": written,
        "metadata": {
            "labels": {"team.example.org/squad": "red", "app": "mine"},
            "annotations": {"example.org/note": "n"},
        },
        "sidecars": [r.container("logs", "example.org/logs:1")],
        "initContainers": [r.container("prepare", "example.org/prepare:1")],
        "volumes": [{"name": "scratch", "emptyDir": {"sizeLimit": "1Gi"}}],
        "terminationGracePeriodSeconds": 120.0,
    }
    single = engine == "single"
    shape = r.engine("main", r.member(**pod)) if single else r.gang(leader=dict(pod), worker=dict(pod))
    for found in r.all_pods(r.replica(shape), stack).values():
        container = r.engine_container(found)
        assert container["command"] == written["command"]
        assert container["args"] == written["args"]
        assert written["env"][0] in container["env"]
        assert container["resources"]["requests"] == {"cpu": 4, "memory": "16Gi"}
        assert isinstance(container["livenessProbe"]["tcpSocket"]["port"], int), "Crossplane sends 8000.0"
        assert [x["name"] for x in found["spec"]["containers"]] == ["engine", "logs"]
        assert [x["name"] for x in found["spec"]["initContainers"]] == ["prepare"]
        assert {"name": "scratch", "emptyDir": {"sizeLimit": "1Gi"}} in found["spec"]["volumes"]
        assert found["spec"]["terminationGracePeriodSeconds"] == 120
        assert found["metadata"]["labels"]["team.example.org/squad"] == "red"
        assert found["metadata"]["annotations"] == {"example.org/note": "n"}


def test_a_volume_of_the_users_own_takes_the_place_of_ours() -> None:
    pod = {
        "engine": r.container(volumeMounts=[{"name": "shm", "mountPath": "/dev/shm/"}]),
        "volumes": [{"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "80Gi"}}],
    }
    found = r.pods(r.one(r.replica(r.engine("main", r.member(**pod)))))["standalone"]
    assert [m["mountPath"] for m in r.engine_container(found)["volumeMounts"]] == ["/dev/shm/"]
    assert [v["name"] for v in found["spec"]["volumes"]] == ["shm"]


@pytest.mark.parametrize("stack", STACKS)
def test_only_the_pod_that_serves_is_probed(stack: str) -> None:
    """Case C94: with time enough for a slow health answer, and for slow loads."""
    pods = r.pods(r.one(r.replica(r.gang()), stack))
    leader, worker = r.engine_container(pods["leader"]), r.engine_container(pods["worker"])
    assert leader["readinessProbe"]["httpGet"] == {"path": "/health", "port": 8000, "scheme": "HTTP"}
    assert leader["readinessProbe"]["timeoutSeconds"] == leader["startupProbe"]["timeoutSeconds"] == 5
    assert leader["startupProbe"]["failureThreshold"] * leader["startupProbe"]["periodSeconds"] >= 3600
    assert "livenessProbe" not in leader
    assert not {"readinessProbe", "startupProbe", "livenessProbe", "ports"} & worker.keys()


@pytest.mark.parametrize(
    ("own", "readiness", "startup", "reason"),
    [
        (
            {"readinessProbe": {"exec": {"command": ["ok"]}}},
            {"exec": {"command": ["ok"]}},
            {"exec": {"command": ["ok"]}},
            "the startup probe asks what the user's readiness asks",
        ),
        (
            {"startupProbe": {"tcpSocket": {"port": 9}}},
            {"httpGet": {"path": "/health", "port": 8000, "scheme": "HTTP"}},
            {"tcpSocket": {"port": 9}},
            "the user's startup probe stands",
        ),
    ],
)
def test_a_users_probe_stands(own: Manifest, readiness: Manifest, startup: Manifest, reason: str) -> None:
    pod = r.pods(r.one(r.replica(r.engine("main", r.member(engine=r.container(**own))))))["standalone"]
    container = r.engine_container(pod)
    assert readiness.items() <= container["readinessProbe"].items(), reason
    assert startup.items() <= container["startupProbe"].items(), reason
    for probe in ("readinessProbe", "startupProbe"):
        handlers = {"exec", "httpGet", "tcpSocket", "grpc"} & container[probe].keys()
        assert len(handlers) == 1, reason
