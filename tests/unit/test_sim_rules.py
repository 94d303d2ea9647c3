"""What leaves report, how they fail, and what keeps them from leaving."""

from __future__ import annotations

import pytest

from builders import core, worlds
from modelplane import contracts as c
from modelplane.core import Manifest, builders, paths
from modelplane.sim import deletion, queries, remote, rules
from modelplane.sim.remote import FAILED, REFUSED, UNAVAILABLE, UNBOUND, UNPROGRAMMED
from modelplane.sim.rules import UNSYNCED, UnknownModeError
from modelplane.sim.world import Ref, World, ref

CLAIM = worlds.remote("PersistentVolumeClaim")
JOB = worlds.remote("Job", api="batch/v1")
DEPLOYMENT = worlds.remote("Deployment", api="apps/v1", spec={"replicas": 2})
GROUPS = worlds.remote("LeaderWorkerSet", api=c.LWS_API, spec={"replicas": 2})
GANGS = worlds.remote("PodCliqueSet", api=c.GROVE_API, spec={"replicas": 2})
ROUTE = worlds.remote("HTTPRoute", api=c.GATEWAY_API, spec={"parentRefs": [{"name": "gateway"}]})
POOL = worlds.remote("InferencePool", api=c.INFERENCE_API)
ACCEPTED = (
    "has(object.status) && object.status.parents.all(p, "
    'p.conditions.exists(c, c.type == "Accepted" && c.status == "True"))'
)
GATEWAY = worlds.remote("Gateway", api=c.GATEWAY_API, spec={"gatewayClassName": "envoy"})


def play(world: World, passes: int = 1) -> None:
    for _ in range(passes):
        world.passes += 1
        for target in sorted(world.objects):
            rules.act(target, world)
        deletion.advance(world)


def cluster(*objects: Manifest) -> World:
    """A control plane that reaches one cluster."""
    return World.of([worlds.config(), worlds.helm(), *objects])


def state(world: World, manifest: Manifest, type_: str = "Ready") -> tuple[object, str]:
    found = paths.condition(world.objects[ref(manifest)], type_)
    return found.get("status"), paths.text(found, "message")


@pytest.mark.parametrize(
    ("inner", "query", "passes", "reason"),
    [
        (CLAIM, builders.CLAIM_BOUND, 1, "a claim is bound after a pass"),
        (JOB, builders.JOB_COMPLETE, 2, "a Job takes two"),
        (DEPLOYMENT, builders.ROLLED_OUT, 1, "pods start"),
        (GROUPS, builders.ROLLED_OUT, 1, "so do groups"),
        (GANGS, builders.GANGS_AVAILABLE, 1, "and gangs"),
        (GATEWAY, builders.HAS_ADDRESS, 2, "a load balancer takes two"),
    ],
)
def test_an_object_is_ready_when_its_query_holds_and_not_before(
    inner: Manifest, query: str, passes: int, reason: str
) -> None:
    obj = worlds.carrying("it", inner, query=query)
    world = cluster(obj)
    for _ in range(1, passes):
        play(world)
        assert state(world, obj)[0] == "False", reason
    play(world)
    assert state(world, obj)[0] == "True", reason
    assert state(world, obj, "Synced")[0] == "True", reason


def test_an_object_is_not_ready_in_the_pass_it_is_made() -> None:
    obj = worlds.carrying("it", CLAIM, query=builders.CLAIM_BOUND)
    world = cluster()
    world.passes += 1
    target = world.apply(obj)
    rules.act(target, world)
    assert state(world, obj)[0] == "False"
    play(world)
    assert state(world, obj)[0] == "True"


@pytest.mark.parametrize(
    ("inner", "query", "mode", "message", "where", "reason"),
    [
        (CLAIM, builders.CLAIM_BOUND, UNBOUND, "", ("phase",), "no volume is made"),
        (JOB, builders.JOB_COMPLETE, FAILED, "disk full", ("conditions", 0, "message"), "its pods fail"),
        (
            DEPLOYMENT,
            builders.ROLLED_OUT,
            UNAVAILABLE,
            "no image",
            ("conditions", 0, "message"),
            "its pods are away",
        ),
        (
            GROUPS,
            builders.ROLLED_OUT,
            UNAVAILABLE,
            "no node",
            ("conditions", 0, "message"),
            "a group is away",
        ),
        (
            GANGS,
            builders.GANGS_AVAILABLE,
            UNAVAILABLE,
            "no GPU",
            ("lastErrors", 0, "description"),
            "a gang is",
        ),
        (
            GATEWAY,
            builders.HAS_ADDRESS,
            UNPROGRAMMED,
            "quota",
            ("conditions", 1, "message"),
            "no load balancer",
        ),
        (
            ROUTE,
            ACCEPTED,
            REFUSED,
            "no",
            ("parents", 0, "conditions", 0, "message"),
            "no listener takes it",
        ),
        (POOL, ACCEPTED, REFUSED, "no", ("parents", 0, "conditions", 0, "message"), "nobody knows the kind"),
    ],
)
def test_a_failed_remote_object_is_never_ready_and_recovers(
    inner: Manifest, query: str, mode: str, message: str, where: tuple[str | int, ...], reason: str
) -> None:
    obj = worlds.carrying("it", inner, query=query)
    world = cluster(obj)
    world.fail(ref(obj), mode, message)
    play(world, 4)
    assert state(world, obj)[0] == "False", reason
    assert state(world, obj, "Synced")[0] == "True", reason
    found = paths.text(world.objects[ref(obj)], "status", "atProvider", "manifest", "status", *where)
    assert found == (message or "Pending"), reason
    world.recover()
    play(world, 3)
    assert state(world, obj)[0] == "True", reason


@pytest.mark.parametrize(
    ("mode", "ready", "synced", "said", "reason"),
    [
        (FAILED, "False", "False", "failed to install release: no such chart", "Helm could not install it"),
        (
            UNSYNCED,
            "True",
            "False",
            "no such chart",
            "only the change could not be made: what ran still runs",
        ),
    ],
)
def test_a_release_fails_in_its_providers_words(
    mode: str, ready: str, synced: str, said: str, reason: str
) -> None:
    release = worlds.release("it", "grove-charts")
    world = cluster(release)
    play(world, 2)
    assert state(world, release)[0] == "True"
    world.fail(worlds.installs("grove-charts"), mode, "no such chart")
    play(world)
    assert state(world, release)[0] == ready, reason
    assert state(world, release, "Synced") == (synced, said), reason
    world.recover()
    play(world)
    assert state(world, release) == ("True", "")
    assert state(world, release, "Synced")[0] == "True"


@pytest.mark.parametrize(
    ("obj", "mode", "known"),
    [
        (worlds.carrying("it", CLAIM), FAILED, "Unbound, Unsynced"),
        (worlds.carrying("it", worlds.remote("ConfigMap")), FAILED, "Unsynced"),
        (worlds.release("it", "x"), UNBOUND, "Failed, Unsynced"),
        (worlds.config(), FAILED, "no way to fail"),
    ],
)
def test_a_mode_that_the_kind_does_not_know_is_an_error_that_names_those_it_does(
    obj: Manifest, mode: str, known: str
) -> None:
    world = cluster(obj)
    world.fail(ref(obj), mode)
    with pytest.raises(UnknownModeError, match=f"knows {known}, not {mode}"):
        play(world)


NEEDS = worlds.carrying("it", {**CLAIM, "metadata": {"name": "it", "namespace": "space"}})
SPACE = worlds.carrying("space", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "space"}})


@pytest.mark.parametrize(
    ("others", "said", "reason"),
    [
        ([worlds.config()], 'namespaces "space" not found', "nobody makes its namespace"),
        ([worlds.config(), SPACE], "", "an Object makes it"),
        ([worlds.config(), worlds.helm(), worlds.release("x", "space")], "", "a chart makes its own"),
        ([], 'cannot get provider config: ProviderConfig "config" not found', "no way to the cluster"),
    ],
)
def test_an_object_waits_for_its_cluster_and_its_namespace(
    others: list[Manifest], said: str, reason: str
) -> None:
    world = World.of([NEEDS, *others])
    play(world, 3)
    assert state(world, NEEDS, "Synced") == ("False" if said else "True", said), reason


def test_a_cluster_whose_kubeconfig_has_left_is_out_of_reach_but_one_never_shown_is_not() -> None:
    obj = worlds.carrying("it", CLAIM)
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "kubeconfig", "namespace": "team"}}
    world = cluster(obj)
    play(world)
    assert state(world, obj, "Synced")[0] == "True"
    world.apply(secret)
    world.remove(ref(secret))
    play(world)
    assert state(world, obj, "Synced") == ("False", 'cannot get credentials: Secret "kubeconfig" not found')
    assert state(world, obj)[0] == "True", "a failed reconcile leaves Ready as it was"


@pytest.mark.parametrize(
    ("query", "status", "holds", "reason"),
    [
        (builders.CLAIM_BOUND, {"phase": "Bound"}, True, "true"),
        (builders.CLAIM_BOUND, {"phase": "Pending"}, False, "false"),
        ("object.status.phase == 'Bound'", {}, False, "an error is false"),
        ("object.status.phase", {"phase": "Bound"}, False, "no boolean is false"),
    ],
)
def test_a_query_is_evaluated_as_the_provider_does(
    query: str, status: Manifest, holds: bool, reason: str
) -> None:
    assert queries.holds(query, {"status": status}) is holds, reason


def test_a_query_that_does_not_compile_is_an_error_of_its_composer() -> None:
    with pytest.raises(queries.QueryError, match="object"):
        queries.holds("object.status ==", {})


MOUNTS = {"spec": {"replicas": 1, "template": {"volumes": [{"persistentVolumeClaim": {"claimName": "it"}}]}}}
CLASS = {"apiVersion": c.GATEWAY_API, "kind": "GatewayClass", "metadata": {"name": "envoy"}}
QUEUE = {"apiVersion": c.KAI_API, "kind": "Queue", "metadata": {"name": "root"}}
CHILD = {**QUEUE, "metadata": {"name": "leaf"}, "spec": {"parentQueue": "root"}}
KEEPS = {"managementPolicies": list(builders.WITHOUT_DELETE)}


@pytest.mark.parametrize(
    ("inner", "spec", "others", "gone", "held", "reason"),
    [
        (CLAIM, {}, [], [], "", "nothing holds it"),
        (CLAIM, {}, [worlds.remote("Deployment", api="apps/v1", **MOUNTS)], [], "mount it", "pods mount it"),
        (CLAIM, {}, [worlds.remote("Job", api="batch/v1", **MOUNTS)], [], "", "finished pods do not"),
        (CLASS, {}, [GATEWAY], [], "Gateway it uses it", "a Gateway uses it"),
        (CLASS, {}, [], ["gateway-helm"], "gateway-exists-finalizer", "nobody is left to take the finalizer"),
        (QUEUE, {}, [CHILD], [], "child queue leaf", "KAI refuses"),
        (CHILD, {}, [QUEUE], [], "", "a leaf may go"),
        (GANGS, {}, [], ["grove-charts"], "grove.io/podcliqueset.grove.io", "Grove has left"),
        (GANGS, {}, [], [], "", "Grove was never ours: it is taken to be there"),
        (GANGS, KEEPS, [], ["grove-charts"], "", "an Object that may not delete lets go"),
    ],
)
def test_an_object_leaves_when_nothing_on_its_cluster_holds_it(
    inner: Manifest, spec: Manifest, others: list[Manifest], gone: list[str], held: str, reason: str
) -> None:
    obj = worlds.carrying("it", inner, **spec)
    world = cluster(obj, *(worlds.carrying(f"other-{n}", o) for n, o in enumerate(others)))
    for chart in gone:
        world.remove(world.apply(worlds.release("gone", chart)))
    play(world)
    assert world.delete(ref(obj)) == []
    play(world)
    assert (ref(obj) in world.objects) is bool(held), reason
    assert all(held in line for line in deletion.blocked(world)), reason
    assert len(deletion.blocked(world)) == bool(held), reason


@pytest.mark.parametrize(("chart", "leaks"), [("gateway-helm", 1), ("grove-charts", 0)])
def test_a_gateway_without_its_controller_leaves_a_load_balancer_behind(chart: str, leaks: int) -> None:
    obj = worlds.carrying("it", GATEWAY)
    world = cluster(obj)
    world.remove(world.apply(worlds.release("gone", chart)))
    world.delete(ref(obj))
    play(world)
    assert ref(obj) not in world.objects
    assert len(world.leaks) == leaks
    assert all("load balancer" in leak and "gateway-helm had left" in leak for leak in world.leaks)


def test_a_provider_config_stays_while_it_is_named() -> None:
    obj = worlds.carrying("it", CLAIM)
    world = cluster(obj)
    config = ref(worlds.config())
    world.delete(config)
    play(world)
    assert deletion.blocked(world) == ["ProviderConfig team/config: in use by Object team/it"]
    world.delete(ref(obj))
    play(world, 2)
    assert config not in world.objects
    assert ref(obj) not in world.objects


def test_without_a_way_to_the_cluster_a_deletion_never_ends() -> None:
    obj = worlds.carrying("it", CLAIM)
    world = cluster(obj)
    world.remove(ref(worlds.config()))
    world.delete(ref(obj))
    play(world, 5)
    assert deletion.blocked(world) == [
        'Object team/it: cannot get provider config: ProviderConfig "config" not found'
    ]


@pytest.mark.parametrize(("composed", "stays"), [(True, True), (False, False)])
def test_a_composed_usage_waits_for_its_user(composed: bool, stays: bool) -> None:
    of, by = core.thing("of", "team"), core.thing("by", "team")
    usage = core.usage(of, by)
    if composed:
        usage["metadata"]["labels"] = {c.COMPOSITE_LABEL: "one"}
    world = World.of([of, by, usage])
    world.delete(ref(usage))
    play(world)
    assert (ref(usage) in world.objects) is stays
    world.delete(ref(by))
    play(world, 2)
    assert ref(usage) not in world.objects


def test_a_usage_is_collected_after_its_user_and_replays_the_refused_deletion() -> None:
    of, by = core.thing("of", "team"), core.thing("by", "team")
    usage = core.usage(of, by)
    usage["spec"]["replayDeletion"] = True
    world = World.of([of, by, usage])
    assert world.delete(ref(of)) != []
    world.delete(ref(by))
    play(world, 3)
    assert world.objects == {}


@pytest.mark.parametrize("cascade", ["background", "foreground"])
def test_what_a_composite_composed_goes_with_it_in_the_asked_order(cascade: str) -> None:
    child = worlds.carrying("it", CLAIM)
    world = worlds.world(worlds.config(), child)
    world.adopt(worlds.OWNER, "a", ref(child))
    world.delete(worlds.OWNER, cascade)  # type: ignore[arg-type]
    gone: list[Ref] = []
    for _ in range(4):
        before = set(world.objects)
        play(world)
        gone += sorted(before - set(world.objects))
    order = [worlds.OWNER, ref(child)]
    assert gone == (order if cascade == "background" else order[::-1])


def test_every_rule_names_its_source() -> None:
    for kind, rule in {**remote.RULES, **rules.RULES}.items():
        assert len(rule.source) > 8, kind
