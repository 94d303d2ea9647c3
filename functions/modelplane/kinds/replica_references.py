"""Copies of the Secrets and ConfigMaps that a replica's members refer to, in the team's namespace over there.

One that the team does not have is taken to stand on the cluster. A copy outlives its source while a member
still refers to it: a Secret deleted by mistake must not stop what serves. No value ever enters a message.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from modelplane import contracts as c
from modelplane import names
from modelplane.core import (
    Condition,
    Desired,
    Inputs,
    InvalidSpecError,
    Manifest,
    Requirement,
    Waiting,
    paths,
)
from modelplane.gangs import references
from modelplane.gangs.references import Use

REASON_RESOLVED = "Resolved"
REASON_NONE = "NoReferences"
REASON_ON_CLUSTER = "TakenFromCluster"
REASON_SOURCE_MISSING = "SourceMissing"
REASON_KEY_MISSING = "KeyMissing"

_PREFIXES = {
    references.SECRET: "secret",
    references.PULL_SECRET: "pullsecret",
    references.CONFIG_MAP: "configmap",
}
# It stands in every team's namespace on a cluster with a mirror, and a pod that mounts it could read it.
_PLATFORMS = (
    f"Secret {c.PULL_SECRET} on a serving cluster is the platform's: refer to one of your own by another name"
)
KEY_PREFIXES = tuple(f"{p}-" for p in _PREFIXES.values())
_FIELDS = {
    references.SECRET: ("data",),
    references.PULL_SECRET: ("data",),
    references.CONFIG_MAP: ("data", "binaryData"),
}


@dataclass(frozen=True, slots=True)
class Reference:
    """One Secret or ConfigMap with all its uses in the replica.

    Attributes:
        kind: as in `Use`.
        name: in the team's namespace.
        keys: the keys that are needed; empty for all.
        required: the keys without which a pod does not start.
        optional: pods start without the whole object.
    """

    kind: str
    name: str
    keys: frozenset[str]
    required: frozenset[str]
    optional: bool

    @property
    def key(self) -> str:
        """Composition resource name of the copy."""
        return f"{_PREFIXES[self.kind]}-{self.name}"

    @property
    def requirement(self) -> str:
        """Name of the requirement that finds the source."""
        return f"{'configmap' if self.kind == references.CONFIG_MAP else 'secret'}-{self.name}"

    def __str__(self) -> str:
        kind = references.CONFIG_MAP if self.kind == references.CONFIG_MAP else references.SECRET
        return f"{kind} {self.name}"


@dataclass(frozen=True, slots=True)
class References:
    """What became of the references.

    Attributes:
        manifests: remote objects by composition resource name; None where it cannot be made now.
        needs: why, for those.
        copied: names on the cluster by (kind, name), for pods.
        keep: copies whose source is gone.
        condition: ReferencesResolved.
    """

    manifests: Mapping[str, Manifest]
    needs: Mapping[str, str]
    copied: Mapping[tuple[str, str], str]
    keep: frozenset[str]
    condition: Condition


def requirements(composite: Manifest) -> Iterator[Requirement]:
    """Yield one requirement per Secret and ConfigMap that members refer to."""
    seen = set()
    for use in references.uses(paths.mapping(composite, "spec")):
        kind = references.CONFIG_MAP if use.kind == references.CONFIG_MAP else references.SECRET
        if (kind, use.name) not in seen:
            seen.add((kind, use.name))
            name = f"{kind.lower()}-{use.name}"
            yield Requirement(name, "v1", kind, match_name=use.name, namespace=paths.namespace(composite))


def resolve(inputs: Inputs, cluster: str) -> References:
    """Return the copies, and which references are copied, left to the cluster or broken.

    Raises:
        InvalidSpecError: a pod would read a Secret on the cluster that is the platform's.
    """
    found = _references(references.uses(inputs.spec))
    manifests: dict[str, Manifest] = {}
    needs: dict[str, str] = {}
    copied: dict[tuple[str, str], str] = {}
    lost, left = [], []
    for ref in found:
        source = inputs.one(ref.requirement)
        if source is None:
            if ref.key in inputs.observed:
                copied[ref.kind, ref.name] = _copy_name(inputs, ref)
                lost.append(ref)
            elif (ref.kind, ref.name) == (references.SECRET, c.PULL_SECRET):
                raise InvalidSpecError(c.MODEL_ACCEPTED, "spec.engines", _PLATFORMS)
            elif not ref.optional:
                left.append(ref)
            continue
        copied[ref.kind, ref.name] = _copy_name(inputs, ref)
        data = _data(ref, source)
        if missing := sorted(ref.required - data.keys()):
            needs[ref.key] = f"{ref} in namespace {inputs.namespace} lacks key {', '.join(missing)}: add it"
        elif not data and ref.key in inputs.observed:
            needs[ref.key] = f"{ref} in namespace {inputs.namespace} has become empty: restore its data"
        else:
            manifests[ref.key] = _copy(inputs, ref, source)
    keep = frozenset(ref.key for ref in lost)
    return References(manifests, needs, copied, keep, _condition(inputs, cluster, found, needs, lost, left))


def resources(resolved: References, wrapped: Mapping[str, Desired]) -> list[Desired | Waiting]:
    """Return the plan's entries; one that cannot be made now stays as it is."""
    waiting = [Waiting(key, why) for key, why in resolved.needs.items()]
    return [*(wrapped[key] for key in resolved.manifests), *waiting]


def _references(uses: Sequence[Use]) -> list[Reference]:
    grouped: dict[tuple[str, str], list[Use]] = {}
    for use in uses:
        grouped.setdefault((use.kind, use.name), []).append(use)
    return [
        Reference(
            kind,
            name,
            frozenset() if any(not u.key for u in group) else frozenset(u.key for u in group),
            frozenset(u.key for u in group if u.key and not u.optional),
            all(u.optional for u in group),
        )
        for (kind, name), group in sorted(grouped.items())
    ]


def _copy_name(inputs: Inputs, ref: Reference) -> str:
    return names.reference_copy(inputs.name, _PREFIXES[ref.kind], ref.name)


def _data(ref: Reference, source: Manifest) -> Manifest:
    found: Manifest = {}
    for field in _FIELDS[ref.kind]:
        found.update(paths.mapping(source, field))
    return found


def _copy(inputs: Inputs, ref: Reference, source: Manifest) -> Manifest:
    is_map = ref.kind == references.CONFIG_MAP
    manifest: Manifest = {
        "apiVersion": "v1",
        "kind": references.CONFIG_MAP if is_map else references.SECRET,
        "metadata": {"name": _copy_name(inputs, ref), "namespace": names.team_namespace(inputs.namespace)},
    }
    if not is_map:
        # Kubelet pulls with two types only, so a pull Secret keeps its own; others have to promise nothing.
        own = paths.text(source, "type")
        manifest["type"] = own if ref.kind == references.PULL_SECRET and own else "Opaque"
    for field in _FIELDS[ref.kind]:
        values = paths.mapping(source, field)
        if chosen := {k: v for k, v in values.items() if not ref.keys or k in ref.keys}:
            manifest[field] = chosen
    return manifest


def _condition(
    inputs: Inputs,
    cluster: str,
    found: Sequence[Reference],
    needs: Mapping[str, str],
    lost: Sequence[Reference],
    left: Sequence[Reference],
) -> Condition:
    type_ = c.REFERENCES_RESOLVED
    if needs:
        return Condition(type_, False, REASON_KEY_MISSING, "; ".join(needs.values()))
    if lost:
        gone = ", ".join(str(x) for x in lost)
        message = f"{gone} is gone from namespace {inputs.namespace}; its copy stays: restore it"
        return Condition(type_, False, REASON_SOURCE_MISSING, message)
    if left:
        there = names.team_namespace(inputs.namespace)
        message = (
            f"{', '.join(str(x) for x in left)} is not in namespace {inputs.namespace} and is taken to stand "
            f"in namespace {there} of cluster {cluster}: where pods wait for it, create it in either"
        )
        return Condition(type_, True, REASON_ON_CLUSTER, message)
    if not found:
        return Condition(type_, True, REASON_NONE)
    return Condition(type_, True, REASON_RESOLVED, f"copied: {', '.join(str(x) for x in found)}")
