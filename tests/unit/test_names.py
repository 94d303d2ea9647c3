"""Names: a changed one deletes and re-creates what runs, an illegal or shared one never runs at all."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelplane import names

LABEL = re.compile(r"[a-z]([a-z0-9-]*[a-z0-9])?")
LABEL_VALUE = re.compile(r"([A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?)?")
LONG = "a-model-with-a-name-as-long-as-a-label-may-be-0123456789-abcdef"

# What the API server admits: object names are DNS subdomains, engine names any text of 1..63 characters.
SEGMENT = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,40}[a-z0-9])?", fullmatch=True)
OBJECT = st.lists(SEGMENT, min_size=1, max_size=5).map(".".join)
ENGINE = st.text(min_size=1, max_size=63).filter(lambda text: "\x00" not in text)
PARTS = st.lists(OBJECT | ENGINE, min_size=1, max_size=4)

# What the names of a replica's other objects hold, which a user may also call an engine.
FIXED = (
    "route",
    "path",
    "host",
    "pool",
    "inference",
    "ingress",
    "policy",
    "epp",
    "picker",
    "credential",
)

GOLDEN: list[tuple[Callable[..., str], tuple[object, ...], str, str]] = [
    (names.digest, ("chat", "north"), "f77575df", "two parts in their order"),
    (names.fold, ("Qwen3.5_Coder",), "qwen3-5-coder", "dots, case and underscores"),
    (names.opaque, ("chat", "north"), "chat-f77575df", "the hidden part is not readable"),
    (names.opaque, ("70b.chat",), "n70b-chat-375ba63c", "digits first, and a dot"),
    (names.child, ("chat", "engine"), "chat-engine-9e90be34", "a digest also on short names"),
    (names.child, ("a", "b-c"), "a-b-c-02654a5c", "the parts, not the joined text"),
    (names.child, ("a-b", "c"), "a-b-c-695274f6", "the same text, other parts"),
    (
        names.child,
        (LONG, "engine"),
        "a-model-with-a-name-as-long-as-a-label-may-be-01234567-00d99adc",
        "63 characters are cut, and the digest is not",
    ),
    (names.label_value, ("chat.v1",), "chat.v1", "legal text stands"),
    (names.label_value, ("-chat/v1",), "chat-v1-d739686c", "illegal text is folded"),
    (names.team_namespace, ("team-a",), "mp-team-a-2b5e787e", "additions, decision 4"),
    (names.replica, ("chat", "north", 0), "chat-03b652f8", "the deployment can be read"),
    (
        names.replica,
        (LONG, "north", 63),
        "a-model-with-a-name-as-long-as-a-label-may-be-01234567-4c3c4957",
        "a long deployment, the last index",
    ),
    (names.cache_replica, ("weights", "north"), "weights-48d8b7b3", "one per cluster"),
    (names.cache_claim, ("team-a", "weights"), "modelcache-team-a-weights-4a79fb17", "a volume of the cache"),
    (names.host_route, ("qwen-1a2b",), "qwen-1a2b-host-route-cf3bc041", "beside the route by path"),
    (
        names.replica_host,
        ("team-a", "qwen-1a2b"),
        "qwen-1a2b.team-a.replicas.modelplane.internal",
        "a whole host name, not a label",
    ),
    (
        names.credential,
        ("groq-1",),
        "groq-1-endpoint-credential-754def74",
        "the Secret and the filter of an endpoint",
    ),
    (
        names.staging_program,
        ("team-a", "weights", "r1"),
        "modelcache-team-a-weights-program-r1-b99a326b",
        "beside the Job that runs it",
    ),
    (
        names.staging_job,
        ("team-a", "weights", "r1"),
        "modelcache-team-a-weights-hydrate-r1-8ba15c08",
        "one Job per artifact",
    ),
    (
        names.cache_token,
        ("team-a", "weights"),
        "modelcache-team-a-weights-auth-4fe1e4b0",
        "a Secret of the cache, not of a revision",
    ),
    (
        names.workload,
        ("chat-1a2b3c4d", "engine"),
        "chat-1a2b3c4d-engine-d9056c43",
        "two parts, the replica's name readable",
    ),
    (
        names.leader_worker_set,
        ("chat-1a2b3c4d", "engine"),
        "chat-1a2b3c4d-engine-d9056c43",
        "as a workload where it is short",
    ),
    (names.leader_worker_set, (LONG, "engine"), "a-model-with-a-name-as-long-as-a-lab-00d99adc", "cut to 45"),
    (names.pod_clique_set, ("chat-1a2b3c4d", "engine"), "chat-1a2b3c4d-engine-9faee2bc", "without a shape"),
    (
        names.pod_clique_set,
        ("chat-1a2b3c4d", "engine", "0a1b2c3d"),
        "chat-1a2b3c4d-engine-0a-56f1088b",
        "cut to 32",
    ),
    (
        names.claim_template,
        ("chat-1a2b3c4d", "engine", "Leader", "0a1b"),
        "chat-1a2b3c4d-engine-leader-devices-0a1b-4b0ee458",
        "a role is lower case",
    ),
    (
        names.reference_copy,
        ("chat-1a2b3c4d", "Secret", "hf.token"),
        "chat-1a2b3c4d-secret-hf-token-a60c1d71",
        "each replica copies what it refers to",
    ),
    (names.replica_policy, ("chat-1a2b3c4d",), "chat-1a2b3c4d-ingress-policy-681c9d30", "one a replica"),
    (names.route, ("chat-1a2b3c4d",), "chat-1a2b3c4d-path-route-bc47ec37", "one a replica"),
    (names.inference_pool, ("chat-1a2b3c4d",), "chat-1a2b3c4d-inference-pool-1b4b9594", "one a replica"),
    (
        names.picker,
        ("chat-1a2b3c4d",),
        "chat-1a2b3c4d-epp-picker-59377ef1",
        "three parts, as no workload has",
    ),
    (names.serving_stack, ("north",), "north-serving-stack-d2d4364c", "one a cluster"),
    (names.cluster_config, ("north",), "north-cluster-kubeconfig-9f7004e6", "cluster-scoped: one a cluster"),
    (names.eks_cluster, ("modelplane-system", "north"), "north-0ed1ea21", "the namespace is not readable"),
    (
        names.of_cluster,
        ("north-1a2b3c4d", "role-node"),
        "north-1a2b3c4d-role-node-0d90c566",
        "a role of one cluster, in a name space that is the account's",
    ),
    (names.release, ("lws",), "mp-lws", "no digest: fixed per chart"),
]


@pytest.mark.parametrize(("make", "args", "want", "reason"), GOLDEN)
def test_a_name_is_what_earlier_releases_made(
    make: Callable[..., str], args: tuple[object, ...], want: str, reason: str
) -> None:
    assert make(*args) == want, reason


def test_every_public_function_has_a_golden_vector() -> None:
    public = {
        function
        for name, function in inspect.getmembers(names, inspect.isfunction)
        if not name.startswith("_") and function.__module__ == names.__name__
    }
    assert public == {make for make, *_ in GOLDEN}


@pytest.mark.parametrize(
    ("one", "other", "reason"),
    [
        (names.child("a", "b-c"), names.child("a-b", "c"), "parts are not their joined text"),
        (names.child("a", "b"), names.child("a", "b", ""), "an empty part counts"),
        (names.child("a.b", "c"), names.child("a-b", "c"), "folding a dot does not merge two objects"),
        (names.child("Chat", "x"), names.child("chat", "x"), "nor does folding case"),
        (names.child(LONG, "one"), names.child(LONG, "two"), "what differs beyond the cut still counts"),
        (names.opaque("a", "b"), names.opaque("a", "c"), "a hidden part counts"),
        (names.replica("chat", "north", 1), names.replica("chat", "north", 11), "index 1 is not index 11"),
        (
            names.replica("chat", "a-b", 1),
            names.replica("chat-a", "b", 1),
            "deployment and cluster stay apart",
        ),
        (names.cache_claim("a-b", "c"), names.cache_claim("a", "b-c"), "two teams never share a volume"),
        (names.team_namespace("a.b"), names.team_namespace("a-b"), "nor a namespace"),
        (names.picker("chat"), names.workload("chat", "epp"), "an engine may be called epp"),
        (names.picker("chat"), names.leader_worker_set("chat", "epp"), "also one that is a gang"),
        (names.workload("chat", "x"), "chat", "a workload never has its replica's own name"),
    ],
)
def test_two_objects_never_share_a_name(one: str, other: str, reason: str) -> None:
    assert one != other, reason


@pytest.mark.parametrize(
    ("text", "want", "reason"),
    [
        ("chat", "chat", "legal text is left alone"),
        ("qwen3.5-coder", "qwen3-5-coder", "dots are legal in object names, not in host name parts"),
        ("70b", "n70b", "a DNS-1035 label starts with a letter"),
        ("Llama_3", "llama-3", "upper case and underscores of engine names"),
        ("--a--b--", "a-b", "no hyphen at either end, none twice"),
        ("größe", "gr-e", "letters beyond ASCII"),
        ("", "n", "nothing left is still a label"),
    ],
)
def test_text_folds_to_a_label(text: str, want: str, reason: str) -> None:
    assert names.fold(text) == want, reason


@given(PARTS, st.integers(16, 63))
def test_a_derived_name_is_a_dns_1035_label_within_its_limit(parts: list[str], limit: int) -> None:
    for name in (names.child(*parts, limit=limit), names.opaque(*parts, limit=limit)):
        assert LABEL.fullmatch(name)
        assert len(name) <= limit


@given(PARTS, PARTS)
def test_different_parts_have_different_names(one: list[str], other: list[str]) -> None:
    assert (names.child(*one) == names.child(*other)) == (one == other)
    assert (names.digest(*one) == names.digest(*other)) == (one == other)


@given(OBJECT, OBJECT, OBJECT, ENGINE | st.sampled_from(FIXED), st.integers(0, 63))
def test_every_name_of_a_model_is_legal_and_its_own(
    namespace: str, deployment: str, cluster: str, engine: str, index: int
) -> None:
    replica = names.replica(deployment, cluster, index)
    found = [
        replica,
        names.team_namespace(namespace),
        names.cache_replica(deployment, cluster),
        names.cache_claim(namespace, deployment),
        names.staging_job(namespace, deployment, "r1"),
        names.staging_program(namespace, deployment, "r1"),
        names.cache_token(namespace, deployment),
        names.workload(replica, engine),
        names.pod_clique_set(replica, engine, "0a"),
        names.claim_template(replica, engine, "Leader", "0a"),
        names.reference_copy(replica, "Secret", engine),
        names.route(replica),
        names.host_route(replica),
        names.replica_policy(replica),
        names.credential(replica),
        names.inference_pool(replica),
        names.picker(replica),
        names.serving_stack(cluster),
        names.cluster_config(cluster),
    ]
    assert all(LABEL.fullmatch(name) and len(name) <= 63 for name in found)
    assert len(set(found)) == len(found)


@given(ENGINE | OBJECT | st.text(max_size=80))
def test_a_label_value_is_legal_and_legal_text_is_kept(text: str) -> None:
    value = names.label_value(text)
    assert LABEL_VALUE.fullmatch(value)
    assert len(value) <= 63
    if len(text) <= 63 and LABEL_VALUE.fullmatch(text):
        assert value == text


@given(OBJECT, OBJECT, st.integers(0, 63), ENGINE, ENGINE)
def test_a_pod_clique_set_leaves_room_for_what_grove_appends(
    deployment: str, cluster: str, index: int, engine: str, shape: str
) -> None:
    """Grove adds up set, group and clique (45), set and group (36), and a PodGang's name is a label value."""
    name = names.pod_clique_set(names.replica(deployment, cluster, index), engine, shape)
    group, clique = "g", "leader"
    assert LABEL.fullmatch(name)
    assert len(name) + len(group) + len(clique) <= 45
    assert len(name) + len(group) <= 36
    assert len(f"{name}-0-{'9' * 19}-{group}-63") <= 63, (
        "PodGang: set, index, epoch in nanoseconds, group, copy"
    )
    assert len(f"{name}-63-{group}-63-{clique}-63-abcde") <= 63, "pod: and its host name"


@given(OBJECT, OBJECT, st.integers(0, 63), ENGINE)
def test_a_leader_worker_set_leaves_room_for_its_pods_and_revisions(
    deployment: str, cluster: str, index: int, engine: str
) -> None:
    """Pods are <name>-<group>-<worker>; a StatefulSet's revision, <name>-<group>-<hash>, is a label value."""
    name = names.leader_worker_set(names.replica(deployment, cluster, index), engine)
    assert LABEL.fullmatch(name)
    assert len(name) <= 50
    assert len(f"{name}-63-63") <= 63
    assert len(f"{name}-63-{'f' * 10}") <= 63


@pytest.mark.parametrize(
    ("chart", "reason"),
    [
        ("kube-prometheus-stack", "the longest chart name a stack installs"),
        ("lws", "the shortest"),
    ],
)
def test_a_release_name_depends_on_the_chart_alone_and_leaves_room_for_its_objects(
    chart: str, reason: str
) -> None:
    name = names.release(chart)
    assert name == f"mp-{chart}", reason
    assert LABEL.fullmatch(name)
    # Helm's own limit; charts append some twenty characters for their service accounts.
    assert len(name) <= 53 - 20
