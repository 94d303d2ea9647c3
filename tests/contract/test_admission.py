"""What the model kinds' XRDs admit and refuse, and with which words."""

from __future__ import annotations

import copy
import re
from functools import cache
from typing import Any, NamedTuple

import pytest

from contract.xrds import ROOT, load, schema_of
from modelplane.api.schema import Schema

GONE = object()

TEMPLATE = {"spec": {"containers": [{"name": "engine", "image": "example.org/engine:1"}]}}
MAIN = TEMPLATE["spec"]["containers"][0]
READER = {
    "name": "reader",
    "image": "example.org/reader:1",
    "volumeMounts": [{"name": "model-cache", "mountPath": "/w"}],
}
DEVICES = {"devices": [{"name": "gpu", "selectors": [{"cel": 'device.driver == "gpu.nvidia.com"'}]}]}
CLAIMS = [{"name": "gpu", "deviceClassName": "gpu.nvidia.com"}]
STANDALONE = {"nodeSelector": DEVICES, "template": TEMPLATE}
GANG = [
    {"role": "Leader", "template": TEMPLATE},
    {"role": "Worker", "worker": {"nodes": 3}, "nodeSelector": DEVICES, "template": TEMPLATE},
]
PAIR = [
    {"name": "fill", "phase": "Prefill", "members": [STANDALONE]},
    {"name": "gen", "phase": "Decode", "members": [STANDALONE]},
]

BASE: dict[str, dict[str, Any]] = {
    "modeldeployments": {
        "replicas": 1,
        "template": {"spec": {"engines": [{"name": "main", "members": [STANDALONE]}]}},
    },
    "modelreplicas": {
        "clusterName": "north",
        "engines": [
            {
                "name": "main",
                "members": [{"nodePoolName": "gpu", "deviceRequests": CLAIMS, "template": TEMPLATE}],
            }
        ],
    },
    "modelservices": {"endpoints": [{"selector": {"matchLabels": {}}}]},
    "modelendpoints": {"url": "https://api.example.org"},
    "modelcaches": {"source": "HuggingFace", "huggingFace": {"repo": "example-org/mid-14b", "sizeGiB": 40}},
    "modelcachereplicas": {
        "cacheName": "weights",
        "clusterName": "north",
        "source": "HuggingFace",
        "huggingFace": {"repo": "example-org/mid-14b", "sizeGiB": 40},
        "storage": {"sizeGiB": 40},
    },
}


class Row(NamedTuple):
    """One change to a kind's base spec; `refused` is part of the message, empty where it is admitted."""

    reason: str
    plural: str
    change: dict[str, Any]
    refused: str = ""


MD, MR, MS, ME, MC, MCR = BASE

SPEC = "template.spec"
MEMBER = f"{SPEC}.engines.0.members.0"
POD = f"{MEMBER}.template"
ENGINE = f"{POD}.spec.containers.0"

ROWS = [
    *[Row("a plain one is admitted", plural, {}) for plural in BASE],
    Row("v0.4 admitted one to ten replicas", MD, {"replicas": 10}),
    Row("0 parks", MD, {"replicas": 0}),
    Row("64 is the most", MD, {"replicas": 65}, "64"),
    Row("an unknown field is refused, not dropped", MD, {f"{SPEC}.nodePool": "gpu"}, "unknown field"),
    # Labels and annotations.
    Row(
        "a prefixed label is a qualified name",
        MD,
        {"template.metadata": {"labels": {"team.example.org/squad": "red"}}},
    ),
    Row(
        "a prefix starts with a letter or digit",
        MD,
        {"template.metadata": {"labels": {"-bad-/squad": "red"}}},
        "qualified name",
    ),
    Row(
        "a name ends with a letter or digit",
        MD,
        {"template.metadata": {"labels": {"a-": ""}}},
        "qualified name",
    ),
    Row("a name has at most 63", MD, {"template.metadata": {"labels": {"a" * 64: ""}}}, "qualified name"),
    Row("an empty value is a label value", MD, {"template.metadata": {"labels": {"squad": ""}}}),
    Row(
        "a value ends with a letter or digit",
        MD,
        {"template.metadata": {"labels": {"squad": "red-"}}},
        "label value",
    ),
    Row("a prefix has at most 253", MD, {"template.metadata": {"labels": {f"{'a' * 254}/b": "x"}}}, "253"),
    Row("253 are still a prefix", MD, {"template.metadata": {"labels": {f"{'a' * 253}/b": "x"}}}),
    Row(
        "the reserved prefix on the deployment's labels",
        MD,
        {"template.metadata": {"labels": {"modelplane.ai/serving": "mine"}}},
        "Modelplane's own",
    ),
    Row(
        "the reserved prefix on a member's labels, which v0.4 dropped without a word",
        MD,
        {f"{POD}.metadata": {"labels": {"modelplane.ai/serving": "mine"}}},
        "Modelplane's own",
    ),
    Row(
        "v0.4 admits the reserved prefix on annotations",
        MD,
        {f"{POD}.metadata": {"annotations": {"modelplane.ai/note": "free text, any\nlength"}}},
    ),
    Row(
        "an annotation's key is a qualified name too",
        MD,
        {f"{POD}.metadata": {"annotations": {"no spaces": ""}}},
        "qualified name",
    ),
    # Engines and members.
    Row(
        "the name becomes part of DNS names", MD, {f"{SPEC}.engines.0.name": "Main.v2"}, "lower-case letters"
    ),
    Row(
        "an engine without devices gets no GPU", MD, {f"{MEMBER}.nodeSelector": GONE}, "must ask for devices"
    ),
    Row("a gang may claim on its worker alone", MD, {f"{SPEC}.engines.0.members": GANG}),
    Row("a leader needs a worker", MD, {f"{SPEC}.engines.0.members": GANG[:1]}, "Leader and one Worker"),
    Row(
        "two of a kind are no gang",
        MD,
        {f"{SPEC}.engines.0.members": [STANDALONE, STANDALONE]},
        "Leader and one Worker",
    ),
    Row("worker is for workers", MD, {f"{MEMBER}.worker": {"nodes": 1}}, "role is Worker"),
    Row(
        "a replica claims what was resolved",
        MR,
        {"engines.0.members.0.deviceRequests": GONE},
        "claim devices",
    ),
    Row(
        "prefill and decode make a pair",
        MD,
        {f"{SPEC}.serving": {"mode": "PrefillDecode"}, f"{SPEC}.engines": PAIR},
    ),
    Row(
        "half a pair",
        MD,
        {f"{SPEC}.serving": {"mode": "PrefillDecode"}, f"{SPEC}.engines": PAIR[:1]},
        "two engines",
    ),
    Row(
        "two halves of one phase",
        MD,
        {
            f"{SPEC}.serving": {"mode": "PrefillDecode"},
            f"{SPEC}.engines": [PAIR[0], {**PAIR[1], "phase": "Prefill"}],
        },
        "two engines",
    ),
    Row("a phase without the mode", MD, {f"{SPEC}.engines": PAIR}, "only for serving.mode PrefillDecode"),
    Row("serving may be empty: its mode is defaulted", MD, {f"{SPEC}.serving": {}}),
    Row("the replica carries the pair as placed", MR, {"serving": {"mode": "PrefillDecode"}}, "two engines"),
    # Pods.
    Row("no pod, no engine", MD, {POD: {}}, "template.spec is required"),
    Row("sidecars do not replace the engine", MD, {f"{ENGINE}.name": "proxy"}, "must be named engine"),
    Row(
        "a sidecar beside the engine",
        MD,
        {
            f"{POD}.spec.containers": [
                *TEMPLATE["spec"]["containers"],
                {"name": "log", "image": "example.org/log:1"},
            ]
        },
    ),
    Row(
        "GPUs are claimed, not counted",
        MD,
        {f"{ENGINE}.resources": {"limits": {"nvidia.com/gpu": 1}}},
        "nodeSelector.devices",
    ),
    Row("AMD's too", MD, {f"{ENGINE}.resources": {"requests": {"amd.com/gpu": "1"}}}, "nodeSelector.devices"),
    Row(
        "other resources pass, as numbers or quantities",
        MD,
        {
            f"{ENGINE}.resources": {
                "requests": {"cpu": 8, "memory": "64Gi"},
                "limits": {"hugepages-2Mi": "5Gi"},
            }
        },
    ),
    Row(
        "a Kubernetes volume passes whole",
        MD,
        {f"{POD}.spec.volumes": [{"name": "tmp", "emptyDir": {"medium": "Memory"}}]},
    ),
    *[
        Row(
            f"{source} reads or runs on the node, which other teams share",
            plural,
            {f"{pod}.spec.volumes": [{"name": "host", source: block}]},
            "reach into the node",
        )
        for plural, pod in ((MD, POD), (MR, "engines.0.members.0.template"))
        for source, block in (
            ("hostPath", {"path": "/etc"}),
            ("hostPath", {}),
            ("flexVolume", {"driver": "example.org/own"}),
            ("gitRepo", {"repository": "https://example.org/r.git"}),
        )
    ],
    *[
        Row(
            f"{source} stays inside the pod's own world",
            MD,
            {f"{POD}.spec.volumes": [{"name": "v", source: block}]},
        )
        for source, block in (
            ("image", {"reference": "example.org/weights:1"}),
            ("csi", {"driver": "secrets-store.csi.k8s.io"}),
            ("ephemeral", {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"]}}}),
            ("projected", {"sources": [{"configMap": {"name": "a"}}]}),
        )
    ],
    *[
        Row(
            f"{what}: a DNS label, or no pod is made",
            plural,
            {where.format(pod): value},
            "lower-case letters",
        )
        for plural, pod in ((MD, POD), (MR, "engines.0.members.0.template"))
        for what, where, value in (
            ("a sidecar", "{}.spec.containers", [MAIN, {"name": "Log_Shipper", "image": "x"}]),
            ("an init container", "{}.spec.initContainers", [{"name": "a.b", "image": "x"}]),
            ("a volume", "{}.spec.volumes", [{"name": "-v", "emptyDir": {}}]),
        )
    ],
    Row(
        "init containers and containers share one set of names",
        MD,
        {f"{POD}.spec.initContainers": [{"name": "engine", "image": "x"}]},
        "a name of its own",
    ),
    Row(
        "the proxy's name is taken",
        MD,
        {f"{POD}.spec.initContainers": [{"name": "pd-sidecar", "image": "x"}]},
        "choose another name",
    ),
    *[
        Row(
            f"{where} mounts weights that nobody stages",
            MD,
            {f"{POD}.spec.{where}": [*before, READER]},
            "set modelCacheRef",
        )
        for where, before in (("containers", [MAIN]), ("initContainers", []))
    ],
    Row(
        "a sidecar may mount the weights that are staged",
        MD,
        {
            f"{SPEC}.modelCacheRef": {"name": "w"},
            f"{POD}.spec.containers": [MAIN, READER],
        },
    ),
    Row(
        "our volumes keep their names",
        MD,
        {f"{POD}.spec.volumes": [{"name": "dshm", "emptyDir": {}}]},
        "another name",
    ),
    Row("a probe has one action", MD, {f"{ENGINE}.startupProbe": {"periodSeconds": 5}}, "exactly one of"),
    Row(
        "a probe as Kubernetes writes it",
        MD,
        {f"{ENGINE}.startupProbe": {"httpGet": {"path": "/health", "port": "http"}, "failureThreshold": 120}},
    ),
    Row(
        "one env name twice, as v0.4 admits",
        MD,
        {f"{ENGINE}.env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]},
    ),
    # Tolerations and strategy.
    Row("Exists without a key tolerates all", MD, {f"{SPEC}.tolerations": [{"operator": "Exists"}]}),
    Row(
        "Equal, the default, needs a key", MD, {f"{SPEC}.tolerations": [{"value": "x"}]}, "Equal needs a key"
    ),
    Row(
        "an empty key is none", MD, {f"{SPEC}.tolerations": [{"key": "", "value": "x"}]}, "Equal needs a key"
    ),
    Row(
        "Exists compares no value",
        MD,
        {f"{SPEC}.tolerations": [{"operator": "Exists", "key": "k", "value": "x"}]},
        "takes no value",
    ),
    Row("Rolling moves by default", MD, {"strategy": {"type": "Rolling"}}),
    Row("Rolling that cannot move", MD, {"strategy": {"type": "Rolling", "maxSurge": 0}}, "maxUnavailable 0"),
    # Services and endpoints.
    Row("a priority up to 7", MS, {"endpoints.0.priority": 8}, "7"),
    Row("a selector may be empty, but not absent", MS, {"endpoints.0.selector": {}}, "matchLabels"),
    Row("tls over plain http", ME, {"url": "http://api.example.org", "tls": {}}, "only for an https URL"),
    Row(
        "a bare key in a header of its own",
        ME,
        {"auth": {"secretRef": {"name": "k", "key": "k"}, "header": "x-api-key", "scheme": ""}},
    ),
    # Caches.
    *[
        Row(
            f"{source} without its block",
            plural,
            {"source": source, "huggingFace": GONE},
            f"spec.{block} is required",
        )
        for plural in (MC, MCR)
        for source, block in [
            ("HuggingFace", "huggingFace"),
            ("Bucket", "bucket"),
            ("OCI", "oci"),
            ("PersistentVolumeClaim", "persistentVolumeClaim"),
        ]
    ],
    Row("a bucket needs no size", MC, {"source": "Bucket", "bucket": {"uri": "s3://weights/mid"}}),
    Row("a bucket is a URI", MC, {"source": "Bucket", "bucket": {"uri": "weights; rm -rf /"}}, "bucket.uri"),
    Row("staging needs a volume", MCR, {"storage": GONE}, "spec.storage is required"),
    Row(
        "a claim that is there needs none",
        MCR,
        {"source": "PersistentVolumeClaim", "persistentVolumeClaim": {"claimName": "w"}, "storage": GONE},
    ),
]


@cache
def schema(plural: str) -> Schema:
    """The schema of a kind, compiled once."""
    return Schema(schema_of(load(ROOT / "apis" / f"{plural}.yaml")))


def changed(plural: str, change: dict[str, Any]) -> dict[str, Any]:
    """The kind's base object with the fields at the dotted paths set, or removed where the value is GONE."""
    document = {"spec": copy.deepcopy(BASE[plural])}
    for path, value in change.items():
        *parents, last = ["spec", *path.split(".")]
        place: Any = document
        for step in parents:
            place = place[int(step) if isinstance(place, list) else step]
        if value is GONE:
            del place[last]
        else:
            place[last] = value
    return document


@pytest.mark.parametrize("row", ROWS, ids=lambda row: re.sub(r"\W+", "-", f"{row.plural} {row.reason}"))
def test_a_document_is_admitted_or_refused_with_the_next_step(row: Row) -> None:
    judge = schema(row.plural)
    document = judge.default(changed(row.plural, row.change))
    problems = [str(problem) for problem in judge.check(document)]
    if not row.refused:
        assert problems == [], row.reason
    else:
        assert any(row.refused in problem for problem in problems), f"{row.reason}: {problems}"


def test_no_rule_of_ours_is_left_out_when_judging_offline() -> None:
    assert {plural: schema(plural).unsupported for plural in BASE} == {plural: [] for plural in BASE}


DEFAULTS = [
    ("replica count of an engine", MD, {}, f"{SPEC}.engines.0.copies", 1),
    ("role of the only member", MD, {}, f"{MEMBER}.role", "Standalone"),
    ("devices on a node", MD, {}, f"{MEMBER}.nodeSelector.devices.0.count", 1),
    ("mode of an empty serving", MD, {f"{SPEC}.serving": {}}, f"{SPEC}.serving.mode", "Unified"),
    (
        "operator of a toleration",
        MD,
        {f"{SPEC}.tolerations": [{"key": "k"}]},
        f"{SPEC}.tolerations.0.operator",
        "Equal",
    ),
    ("claimed devices of a replica", MR, {}, "engines.0.members.0.deviceRequests.0.count", 1),
    ("share of a group", MS, {}, "endpoints.0.weight", 1),
    ("order of a group", MS, {}, "endpoints.0.priority", 0),
    (
        "key of a token",
        MC,
        {"huggingFace.authSecret": {"name": "hf"}},
        "huggingFace.authSecret.key",
        "HF_TOKEN",
    ),
    (
        "header of a credential",
        ME,
        {"auth": {"secretRef": {"name": "k", "key": "k"}}},
        "auth.header",
        "Authorization",
    ),
    (
        "scheme of a credential",
        ME,
        {"auth": {"secretRef": {"name": "k", "key": "k"}}},
        "auth.scheme",
        "Bearer",
    ),
]


@pytest.mark.parametrize(("reason", "plural", "change", "path", "want"), DEFAULTS, ids=lambda v: str(v)[:40])
def test_an_absent_field_reads_back_as_v04_defaults_it(
    reason: str, plural: str, change: dict[str, Any], path: str, want: object
) -> None:
    value: Any = schema(plural).default(changed(plural, change))["spec"]
    for step in path.split("."):
        value = value[int(step) if isinstance(value, list) else step]
    assert value == want, reason
