"""Which engine a member runs: what its metrics are called, and how a split pair hands over."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from builders import replicas as r
from modelplane import contracts as c
from modelplane.core import Manifest

LABEL = c.LLMD_ENGINE_LABEL
SHELL = ["/bin/sh", "-c"]
KINDS: list[tuple[dict[str, Any], str | None, str]] = [
    ({"image": "vllm/vllm-openai:v0.23.0"}, None, "what the picker takes a pod without a label for"),
    ({"image": "example.org/own:1"}, None, "nothing tells"),
    ({"image": "lmsysorg/sglang:v0.5.5"}, "sglang", "by the image"),
    ({"image": "r.example.org:5000/team/sglang-cu13@sha256:abc"}, "sglang", "by the image, under a mirror"),
    ({"image": "example.org/sglang/tools:1"}, None, "a folder says nothing of the image"),
    ({"command": ["python3", "-m", "sglang.launch_server"]}, "sglang", "by the module"),
    ({"command": [*SHELL, "exec python3 -m sglang.launch_server --model-path=m"]}, "sglang", "in a shell"),
    ({"command": [*SHELL, "exec /opt/bin/sglang serve --model-path m"]}, "sglang", "by the program"),
    ({"args": ["trtllm-serve", "m"]}, "trtllm-serve", "TensorRT-LLM's server"),
    (
        {"image": "lmsysorg/sglang:v0.5.5", "command": ["vllm", "serve", "m"]},
        None,
        "the command counts before the image",
    ),
    ({"command": ["serve", "--model", "/models/sglang"]}, None, "a path is no program"),
    ({"command": [*SHELL, "pip install sglang && exec vllm serve m"]}, None, "installed is not run"),
    ({"command": ['"sglang"', "", "'", "$("]}, "sglang", "quoted, beside junk"),
]


def pod_of(container: dict[str, Any], labels: dict[str, str] | None = None) -> Manifest:
    metadata = {"labels": labels} if labels else None
    member = r.member(engine=r.container(**container), metadata=metadata)
    return r.pods(r.one(r.replica(r.engine("main", member))))["standalone"]


@pytest.mark.parametrize(("container", "label", "reason"), KINDS)
def test_the_picker_is_told_which_engine_a_pod_runs(
    container: dict[str, Any], label: str | None, reason: str
) -> None:
    assert pod_of(container)["metadata"]["labels"].get(LABEL) == label, reason


def test_a_label_of_the_users_own_is_believed() -> None:
    pod = pod_of({"image": "lmsysorg/sglang:v0.5.5"}, {LABEL: "trtllm-serve"})
    assert pod["metadata"]["labels"][LABEL] == "trtllm-serve"


@pytest.mark.parametrize("stack", ["Standard", "Dynamo"])
@pytest.mark.parametrize(
    ("image", "connector", "decider"),
    [
        ("vllm/vllm-openai:v0.23.0", "nixlv2", "prefix-based-pd-decider"),
        ("lmsysorg/sglang:v0.5.5", "sglang", "always-disagg-pd-decider"),
    ],
)
def test_a_pair_is_connected_as_its_engine_does_it(
    image: str, connector: str, decider: str, stack: str
) -> None:
    """SGLang's decode engine takes no request that came without a prefill, and knows no nixlv2."""
    engine = r.container(image=image)
    composite = r.replica(
        r.engine("fill", r.member(engine=engine), phase="Prefill"),
        r.engine("gen", r.member(engine=engine), phase="Decode"),
        serving={"mode": "PrefillDecode"},
    )
    given, _ = r.settled(composite, r.cluster(stack=stack))
    found = r.manifests(given)
    proxies = [
        x
        for m in r.workloads(given).values()
        for pod in r.pods(m).values()
        for x in pod["spec"].get("initContainers", [])
    ]
    (proxy,) = proxies
    assert f"--kv-connector={connector}" in proxy["args"]
    config = yaml.safe_load(found["epp-config"]["data"]["epp-config.yaml"])
    (handler,) = [p for p in config["plugins"] if p["type"] == "disagg-profile-handler"]
    assert handler["parameters"]["deciders"]["prefill"] == decider
    assert decider in [p["type"] for p in config["plugins"]]
