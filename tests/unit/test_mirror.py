"""spec.images.mirror: what is no registry is refused, and what is taken is the registry of every image."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import eks, stacks
from builders import platform as p
from contract.xrds import ROOT, load, schema_of
from modelplane import contracts as c
from modelplane.api.eks import EKSClusterSpec
from modelplane.api.inference_cluster import InferenceClusterSpec
from modelplane.api.schema import Schema
from modelplane.api.serving_stack import ServingStackSpec
from modelplane.core import InvalidSpecError, paths, specs
from modelplane.facts import versions
from modelplane.stacks.component import Images

SCHEME, HUB = "leave out scheme, trailing slash, tag and digest", "images would come from Docker Hub"
KINDS = ["servingstacks", "inferenceclusters", "eksclusters"]

TAKEN = [
    ("registry.example.org", "a host"),
    ("registry.example.org/mirror", "with a path"),
    ("registry.example.org:5000/a/b-c/d_e/f__g/h.i", "with a port and a deep path"),
    ("registry:5000", "a port tells a host from a path"),
    ("localhost/mirror", "the one name without a dot that is a host"),
    ("10.0.0.7:65535", "an address"),
    ("123456789012.dkr.ecr.eu-north-1.amazonaws.com/mp", "ECR"),
    ("r.example.org/" + "m" * 176, "as long as may be"),
]
REFUSED = [
    ("https://registry.example.org", SCHEME, "a scheme: image names are no URLs"),
    ("oci://registry.example.org/m", SCHEME, "nor is a chart's written twice"),
    ("registry.example.org/", SCHEME, "a trailing slash: an empty path component"),
    ("registry.example.org//m", SCHEME, "the same inside"),
    ("/registry.example.org", SCHEME, "a path alone"),
    ("registry.example.org:0", SCHEME, "no port"),
    ("registry.example.org:65536", SCHEME, "nor is that"),
    ("registry.example.org:http", SCHEME, "or a name"),
    ("registry.example.org:", SCHEME, "or nothing"),
    ("registry.example.org/m:v1", SCHEME, "a tag: images have their own"),
    ("registry.example.org/m@sha256:" + "0" * 64, SCHEME, "a digest names one image"),
    ("Registry.example.org", SCHEME, "kubelet looks credentials up by the name as written"),
    ("registry.example.org/Mirror", SCHEME, "no registry takes upper case in a path"),
    (" registry.example.org", SCHEME, "a space before"),
    ("registry.example.org ", SCHEME, "and after"),
    ("registry.example.org\n", SCHEME, "the newline of a pasted line"),
    ("registry example.org", SCHEME, "and between"),
    (" ", SCHEME, "nothing but a space"),
    ("registry..example.org", SCHEME, "an empty label"),
    ("-registry.example.org", SCHEME, "a dash first"),
    ("registry.example.org/a..b", SCHEME, "two separators in a path"),
    ("registry.example.org/a-", SCHEME, "a separator last"),
    ("user:pw@registry.example.org", SCHEME, "credentials belong into the Secret"),
    ("$(id).example.org", SCHEME, "nothing of a shell"),
    ("mirror", HUB, "docker.io/mirror/..., which somebody else may own"),
    ("mirror/registry.example.org", HUB, "the dot has to be in the host"),
    ("localhosts/m", HUB, "a name that only begins like one"),
]
BASES: dict[str, dict[str, Any]] = {
    "servingstacks": stacks.stack()["spec"],
    "inferenceclusters": p.cluster(source=c.EXISTING)["spec"],
    "eksclusters": eks.cluster()["spec"],
}


@cache
def schema(kind: str) -> Schema:
    return Schema(schema_of(load(ROOT / "apis" / f"{kind}.yaml")))


def admitted(kind: str, mirror: str) -> list[str]:
    body = {"metadata": {"name": "it"}, "spec": {**BASES[kind], "images": {"mirror": mirror}}}
    found = [f"{x.path}: {x.message}" for x in schema(kind).check(schema(kind).default(body), None)]
    return [x for x in found if "mirror" in x]


def read(kind: str, mirror: str) -> str:
    """What the function says where no XRD of ours has seen the spec; empty where it takes it."""
    model = {
        "servingstacks": ServingStackSpec,
        "inferenceclusters": InferenceClusterSpec,
        "eksclusters": EKSClusterSpec,
    }[kind]
    try:
        specs.parse(model, {**BASES[kind], "images": {"mirror": mirror}}, "Ready")
    except InvalidSpecError as error:
        return error.message
    return ""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("mirror", "reason"), TAKEN)
def test_a_registry_is_taken_by_admission_and_function(kind: str, mirror: str, reason: str) -> None:
    assert (admitted(kind, mirror), read(kind, mirror)) == ([], ""), reason


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("mirror", "says", "reason"), REFUSED)
def test_what_is_no_registry_is_refused_by_both_with_the_next_step(
    kind: str, mirror: str, says: str, reason: str
) -> None:
    assert says in " ".join(admitted(kind, mirror)), reason
    said = read(kind, mirror)
    assert said.startswith("spec.images"), reason
    assert says in said, reason


@pytest.mark.parametrize("kind", KINDS)
def test_an_empty_mirror_is_refused_rather_than_read_as_none(kind: str) -> None:
    assert admitted(kind, "") != []
    assert admitted(kind, "r.example.org/" + "m" * 177) != [], "the image's name would be too long"


def test_a_bad_mirror_of_a_running_stack_changes_nothing_of_it() -> None:
    settled, observed = stacks.settled(stacks.stack())
    for mirror, says, reason in REFUSED:
        composite = stacks.stack(images={"mirror": mirror}, status=settled.status)
        answer = stacks.compose(composite, observed)
        status, code, message = stacks.says(answer)
        assert (status, code) == (False, "InvalidSpec"), reason
        assert message.startswith("spec.images.mirror: "), reason
        assert says in message, reason
        sent = {k: r.manifest["spec"] for k, r in answer.resources.items()}
        assert sent == {k: r.manifest["spec"] for k, r in settled.resources.items()}, reason


# How kubelet reads an image's name (github.com/distribution/reference: regexp.go, normalize.go).
_PART = "(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_DOMAIN = re.compile(rf"{_PART}(?:[.]{_PART})*(?::[0-9]+)?")
_PATH = re.compile(r"[a-z0-9]+(?:(?:[.]|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:[.]|_|__|-+)[a-z0-9]+)*)*")


def registry_of(image: str) -> str:
    """The registry an image is pulled from; empty where the name is none."""
    name = image.rpartition(":")[0]
    domain, _, rest = name.partition("/")
    if "." not in domain and ":" not in domain and domain != "localhost" and domain == domain.lower():
        domain, rest = "docker.io", name
    if len(name) > 255 or not _DOMAIN.fullmatch(domain) or not _PATH.fullmatch(rest):
        return ""
    return domain


MIRRORS = st.one_of(
    st.sampled_from([x[0] for x in TAKEN]),
    st.text(alphabet="ab1.-_:/@A \n", max_size=24),
    st.from_regex(r"[a-z]{1,3}(\.[a-z]{1,3}){0,2}(:[0-9]{1,6})?(/[a-z0-9._-]{1,5}){0,3}", fullmatch=True),
)


@given(MIRRORS)
def test_every_image_of_a_mirror_that_is_taken_comes_from_that_registry(mirror: str) -> None:
    refused = bool(admitted("servingstacks", mirror)) if mirror else True
    assert bool(read("servingstacks", mirror)) == (refused and bool(mirror)), "both judge alike"
    if refused:
        return
    for pin in versions.newest().pins.values():
        if pin.image:
            image = f"{Images(mirror).image(pin.image)}:{pin.version}"
            assert registry_of(image) == mirror.partition("/")[0]


def test_the_longest_name_that_the_stacks_make_fits_behind_the_longest_mirror() -> None:
    images = {"mirror": TAKEN[-1][0]}
    longest = 0
    for stack in (c.STANDARD, c.DYNAMO):
        answer, _ = stacks.settled(stacks.stack(stack=stack, images=images))
        found = re.findall(r"r\.example\.org/m{176}(/[a-z0-9/._-]+)", str(answer.resources))
        longest = max(longest, *(len(x) for x in found))
        for manifest in stacks.of_kind(answer, "Release").values():
            chart = paths.mapping(manifest, "spec", "forProvider", "chart")
            longest = max(longest, len(f"{chart['repository']}/{chart['name']}") - len("oci://") - 190)
    assert 0 < longest <= 255 - 190
