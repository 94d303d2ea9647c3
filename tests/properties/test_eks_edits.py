"""No edit of a cluster on EKS, right or wrong, drops a node group that runs."""

from __future__ import annotations

import copy
import os
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fleets
from builders import eks
from modelplane import contracts as c
from modelplane.core import Manifest, paths
from modelplane.kinds.registry import KINDS
from modelplane.render.run import admit
from modelplane.sim import aws
from modelplane.sim.play import one_pass
from modelplane.sim.world import Failure, World, ref

EXAMPLES = int(os.environ.get("MODELPLANE_EXAMPLES", "25"))
RULES = settings(max_examples=EXAMPLES, derandomize=EXAMPLES == 25, suppress_health_check=list(HealthCheck))
BLOCK = {"capacityReservationId": "cr-0b"}
ZONES = ["us-west-2a", "us-west-2b", "us-west-2c"]
NETWORK = {"zones": ZONES}
GONE = object()
# What an owner may write into a pool, right or wrong, admitted or not.
VALUES: dict[str, list[Any]] = {
    "instanceType": ["p5en.48xlarge", "g6.xlarge", "p9.large", "g7.2xlarge", "", 7, None, GONE],
    "fabric": ["EFA", "None", "InfiniBand", [], GONE],
    "zones": [
        ["us-west-2a"],
        ["us-west-2b", "us-west-2a"],
        ["us-east-1a"],
        ["use1-az3"],
        [],
        ZONES,
        "x",
        GONE,
    ],
    "capacityBlock": [BLOCK, {"capacityReservationId": "cr-0c"}, {}, "x", GONE],
    "reservation": [{"id": "cr-0d"}, {}, 3, GONE],
    "purchase": ["Spot", "OnDemand", "Lease", GONE],
    "localStorage": ["RAID0", "None", 0],
    "diskSizeGb": [50, 500, -1, "big", GONE],
    "nodeCount": [1, 3, 9, -2, 10**6, "two", GONE],
    "minNodeCount": [1, 3, 50, -1, GONE],
    "maxNodeCount": [3, 9, -1, GONE],
    "labels": [{"a": "b"}, {"modelplane.ai/pool": "x"}, "x"],
    "taints": [[{"key": "a", "effect": "NoExecute"}], [{"key": ""}], [7]],
    "role": ["System", "Worker", GONE],
    "gpu": [{"acceleratorType": "nvidia-l4"}, {}, GONE],
}
OF_CLUSTER: dict[str, list[Any]] = {
    "region": ["eu-west-1", "", GONE],
    "kubernetesVersion": ["1.35", "1.37", "2", "latest", GONE],
    "network": [
        {**NETWORK, "secondaryCidr": "100.64.0.0/16", "podsInSecondary": True},
        {"zones": ZONES[:2]},
        {"existing": {"vpcId": "vpc-0a", "privateSubnetIds": ["subnet-0a", "subnet-0b"]}},
        {**NETWORK, "nat": "Single"},
        {"zones": ["us-west-2a"]},
        {"cidr": "10.9.0.0/16"},
        "x",
        GONE,
    ],
    "access": [{"publicCidrs": []}, {"adminPrincipals": ["arn:aws:iam::111122223333:role/a"]}, 7],
    "encryption": [{"kmsKey": "None"}, {"kmsKey": 3}],
    "tags": [{"team": "ml"}, ["x"]],
    "credentials": [{"type": "ProviderConfig", "name": "other"}, "x", GONE],
    "nodePools": [[], None, GONE, "x", [{}]],
}


def body() -> Manifest:
    return eks.cluster(
        eks.pool("block", capacityBlock=BLOCK, fabric="EFA", zones=["us-west-2a"]),
        eks.pool("efa", fabric="EFA", zones=["us-west-2b"], maxNodeCount=4),
        eks.pool(
            "spot", purchase="Spot", instanceType="g6.4xlarge", nodeCount=3, minNodeCount=3, maxNodeCount=6
        ),
        network=NETWORK,
    )


def _set(target: Manifest, field: str, value: Any) -> None:
    if value is GONE:
        target.pop(field, None)
    else:
        target[field] = copy.deepcopy(value)


@st.composite
def edits(draw: st.DrawFn) -> tuple[str, str, Any]:
    """Pool (empty for the cluster itself), field and value."""
    where = draw(st.sampled_from(["", "block", "efa", "spot"]))
    values = VALUES if where else OF_CLUSTER
    field = draw(st.sampled_from(sorted(values)))
    return where, field, draw(st.sampled_from(values[field]))


def _edit(spec: Manifest, where: str, field: str, value: Any) -> None:
    pools = spec.get("nodePools")
    if not where:
        _set(spec, field, value)
    elif isinstance(pools, list):
        for found in pools:
            if isinstance(found, dict) and found.get("name") == where:
                _set(found, field, value)


def serving(world: World) -> dict[str, set[str]]:
    """The zones in which each pool has a group that is active and that nobody deletes."""
    found: dict[str, set[str]] = {}
    for target, group in world.objects.items():
        state = paths.text(group, "status", "atProvider", "status")
        if target.kind == "NodeGroup" and target not in world.deleting and state in ("ACTIVE", "UPDATING"):
            labels = paths.labels(group)
            found.setdefault(str(labels[c.POOL_LABEL]), set()).add(str(labels[c.ZONE_LABEL]))
    return found


def desired(world: World) -> dict[str, int]:
    """The nodes that the active groups of each pool ask for."""
    found: dict[str, int] = {}
    for target, group in world.objects.items():
        if target.kind == "NodeGroup" and target not in world.deleting:
            name = str(paths.labels(group)[c.POOL_LABEL])
            found[name] = found.get(name, 0) + aws.desired_size(group)
    return found


@RULES
@given(st.lists(st.tuples(edits(), st.integers(1, 6)), min_size=1, max_size=3), st.booleans())
def test_no_edit_drops_a_running_group_before_another_serves(
    steps: list[tuple[tuple[str, str, Any], int]], no_capacity: bool
) -> None:
    composite = body()
    world = eks.at_rest(composite)
    before = serving(world)
    assert set(before) == {"system", "block", "efa", "spot"}
    if no_capacity:
        old = {r.name for r in world.objects}
        world.failures.append(
            Failure(lambda x: x["kind"] == "NodeGroup" and paths.name(x) not in old, aws.CREATE_FAILED)
        )
    for (where, field, value), passes in steps:
        _edit(composite["spec"], where, field, value)
        stands = world.objects[ref(composite)]
        world.apply({**stands, "spec": copy.deepcopy(composite["spec"])})
        for _ in range(passes):
            one_pass(world, set(KINDS), fleets.real_function(), admit)
            now = serving(world)
            assert set(now) >= set(before), f"lost {set(before) - set(now)}"
            assert all(count > 0 for name, count in desired(world).items() if name in before)
            assert "system" in now
    # A gateway that no route goes through any more may go while nodes run: an edit of nat.
    assert [x for x in world.leaks if "(edge nat)" not in x] == []


@RULES
@given(
    st.lists(st.tuples(st.sampled_from(sorted(VALUES)), st.integers(0, 7)), min_size=1, max_size=4),
    st.sampled_from(["status", "spec", "vanished", "none"]),
)
def test_one_answer_keeps_every_group_of_a_zone_that_is_still_named(
    changes: list[tuple[str, int]], damage: str
) -> None:
    pool = eks.node_pool(subnets=list(eks.SUBNETS), nodeCount=3, minNodeCount=3, maxNodeCount=6)
    found, answer = eks.running(pool)
    groups = {k for k in answer.resources if k.startswith("node-group-")}
    spec = copy.deepcopy(pool["spec"])
    for field, index in changes:
        # A pool is told its zones as subnets.
        if field != "zones":
            _set(spec, field, VALUES[field][index % len(VALUES[field])])
    observed = {k: copy.deepcopy(x) for k, x in found.items()}
    for key in [k for k in observed if not k.startswith("node-group-")]:
        if damage == "vanished":
            del observed[key]
        elif damage != "none":
            observed[key][damage] = {}
    kept = eks.ask({**pool, "spec": spec}, observed).resources
    assert groups <= kept.keys()


@pytest.mark.parametrize("lost", [[], None, GONE])
def test_a_lost_list_of_pools_takes_none_along(lost: Any) -> None:
    world = eks.at_rest(body())
    composite = eks.one(world, c.EKS_CLUSTER)
    spec = copy.deepcopy(composite["spec"])
    _set(spec, "nodePools", lost)
    answer = eks.ask({**composite, "spec": spec}, eks.children(world, c.EKS_CLUSTER))
    assert answer.resources.keys() == eks.children(world, c.EKS_CLUSTER).keys()
    assert eks.condition(answer, c.CLUSTER_READY)[1] == c.REASON_INVALID_SPEC
