"""The replicas that reviewed data and a real API server are shown: one of each shape, a pool with EFA."""

from __future__ import annotations

from builders import replicas as r
from modelplane import names
from modelplane.core import Manifest

STACKS = ("Standard", "Dynamo")
_SERVE = (
    "exec vllm serve example-org/mid-14b --tensor-parallel-size=4 --nnodes=$(MODELPLANE_GANG_SIZE) "
    "--node-rank=$(MODELPLANE_RANK) --master-addr=$(MODELPLANE_LEADER_ADDRESS) --port=8000"
)
_ENGINE = r.container(image="vllm/vllm-openai:v0.23.0", command=["/bin/sh", "-c", _SERVE])
_ON_FABRIC = {"engine": _ENGINE, "requests": [r.device(count=8), {**r.NIC, "count": 32}]}
_PLAIN = {"engine": _ENGINE}
# Without a port: a decode engine's own is 8001, behind its proxy.
_PHASE = {"engine": r.container(image="vllm/vllm-openai:v0.23.0", command=["/bin/sh", "-c", _SERVE[:-12]])}
# 63 characters, the most a name may have; a dot, which no host name part may hold.
_LONG = "a-rather-long-name.that-is-used-by-the-platform-team-twice-2.5b"
_LONG_ENGINE = "0-a-rather-long-engine-name-of-sixty-three-characters-in-all-00"

CASES: dict[str, Manifest] = {
    "one-gpu": r.replica(r.engine("main", r.member(engine=r.container(args=["--port=8000"])))),
    "gang-of-2": r.replica(
        r.gang(leader=dict(_ON_FABRIC), worker=dict(_ON_FABRIC)), modelCacheRef={"name": "weights"}
    ),
    "gang-of-4-3-copies": r.replica(
        r.gang(workers=3, copies=3, leader=dict(_PLAIN), worker=dict(_PLAIN)),
        modelCacheRef={"name": "weights"},
        labels={"team.example.org/squad": "red"},
    ),
    "prefill-decode-gangs": r.split(gangs=True, copies=2, leader=dict(_PHASE), worker=dict(_PHASE)),
    "claimless-leader": r.replica(
        r.engine(
            "main",
            r.member("Leader", pool="gpu2", gpus=0, **_PLAIN),
            r.member("Worker", gpus=8, nodes=1, **_PLAIN),
        )
    ),
    "long-and-dotted-names": r.replica(
        r.gang(_LONG_ENGINE, leader=dict(_PLAIN), worker=dict(_PLAIN)),
        name=names.replica(_LONG, "north", 0),
        team="a-team-with-a-name-of-its-own-that-is-also-long",
    ),
}


def objects(case: str, stack: str) -> dict[str, Manifest]:
    """What the case puts on its cluster once all of it stands, by key."""
    composite = CASES[case]
    team = composite["metadata"]["namespace"]
    cluster = r.cluster(stack=stack, fabric="EFA", teams=[team])
    given, _ = r.settled(composite, cluster, r.cache())
    assert given.resources
    assert not given.held_back
    return r.manifests(given)
