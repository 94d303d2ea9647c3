"""Who uses a cluster: the teams' namespaces on it, and the guard against deleting it under them.

A team has a namespace here while it has a ModelReplica or a ModelCacheReplica on the cluster. One look that
finds nobody may be a lookup gone wrong, so it only marks; a second look takes away what is marked. Deleting a
Namespace deletes everything in it, the team's own Secrets and volumes too, so its Objects may not delete:
leaving the plan costs at most the upkeep of labels and policies (docs/adr/0003-team-namespaces.md).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from modelplane import contracts as c
from modelplane import names
from modelplane.core import Desired, Inputs, Manifest, Ready, Requirement, Waiting, builders, images, paths
from modelplane.kinds import looks

REPLICAS = "replicas"
CACHES = "caches"
GUARD = "usage-replicas"
_NAMESPACE = "namespace-"
_POLICY = "network-policy-"
_PULL = "pull-secret-"
PULL_SECRET = "pull-secret"

_GUARD_REASON = (
    "ModelReplicas or ModelCacheReplicas use this cluster. Delete the ModelDeployments and ModelCaches, or"
    " drain the cluster with a NoExecute taint. Mind that a refused delete is remembered: it is replayed as"
    " soon as the last of them has left."
)
# Whose pods may open connections into a team's namespace: the gateway's proxies (Envoy Gateway runs them in
# its own namespace, or in the Gateway's) and Prometheus. Each replica opens its pods to each other itself
# (gangs/wall.py). The API server sets kubernetes.io/metadata.name on every namespace.
_ADMITTED = (c.ENVOY_NAMESPACE, c.SYSTEM_NAMESPACE, c.MONITORING_NAMESPACE)
_NAMESPACE_NAME = "kubernetes.io/metadata.name"


@dataclass(frozen=True, slots=True)
class Census:
    """Who is on the cluster.

    Attributes:
        teams: control-plane namespaces with something on it, sorted.
        leaving: namespaces that were prepared and of which this is the first look to find nothing.
        busy: whether anything is on it.
    """

    teams: Sequence[str]
    leaving: Sequence[str]
    busy: bool

    @property
    def kept(self) -> list[str]:
        """The teams whose namespaces are kept, sorted."""
        return sorted({*self.teams, *self.leaving})


def requirements(cluster: Manifest) -> list[Requirement]:
    """Return the lookups of all that runs on the cluster, in every namespace, and of the mirror's Secret."""
    labels = {c.CLUSTER_LABEL: names.label_value(paths.name(cluster))}
    found = [
        Requirement(REPLICAS, c.API, "ModelReplica", match_labels=labels),
        Requirement(CACHES, c.API, "ModelCacheReplica", match_labels=labels),
    ]
    if secret := images.pull_secret(cluster):
        found.append(
            Requirement(PULL_SECRET, "v1", "Secret", match_name=secret, namespace=c.SYSTEM_NAMESPACE)
        )
    return found


def census(inputs: Inputs) -> Census:
    """Return who is on the cluster; on any doubt all who were there are still there.

    Doubt is a list that was not fetched, or an entry that does not say whose it is.
    """
    found: set[str] = set()
    certain = True
    busy = False
    for requirement in (REPLICAS, CACHES):
        certain = certain and requirement in inputs.required
        for item in inputs.all(requirement):
            busy = True
            team = paths.namespace(item)
            certain = certain and bool(team)
            found.add(team)
    prepared = _prepared(inputs)
    if not certain:
        found.update(prepared)
        busy = busy or GUARD in inputs.observed
    teams = sorted(found - {""})
    leaving = sorted(team for team, marked in prepared.items() if team not in found and not marked)
    return Census(teams, leaving, busy)


def _prepared(inputs: Inputs) -> dict[str, bool]:
    """Return the teams with anything observed, and whether all of it is marked as unused."""
    found: dict[str, bool] = {}
    for key, seen in inputs.observed.items():
        for prefix in (_NAMESPACE, _POLICY):
            if key.startswith(prefix):
                team = key.removeprefix(prefix)
                found[team] = found.get(team, True) and looks.marked(seen)
    return found


def guard(inputs: Inputs, who: Census) -> list[Desired]:
    """Return the usage that refuses deletion of a busy cluster; a free one gets none.

    It has no `by`: what uses the cluster is namespaced, and a ClusterUsage names cluster-scoped things only.
    """
    manifest: Manifest = {
        "apiVersion": c.PROTECTION_API,
        "kind": "ClusterUsage",
        "metadata": {"name": names.child(inputs.name, GUARD)},
        "spec": {
            "of": {"apiVersion": c.API, "kind": "InferenceCluster", "resourceRef": {"name": inputs.name}},
            "reason": _GUARD_REASON,
            "replayDeletion": True,
        },
    }
    return looks.guard(GUARD, manifest, inputs.observed.get(GUARD), busy=who.busy)


def objects(inputs: Inputs, who: Census, config_key: str) -> list[Desired | Waiting]:
    """Return each team's namespace, network policy and pull Secret on the cluster.

    They count as ready once they exist: a team that arrives must not make the whole cluster unready.
    """
    target = builders.Target(
        names.cluster_config(inputs.name),
        "ClusterProviderConfig",
        c.SYSTEM_NAMESPACE,
        {c.CLUSTER_LABEL: names.label_value(inputs.name)},
    )
    found: list[Desired | Waiting] = []
    for team in who.kept:
        for key, manifest in _remote(team):
            labels = {c.NAMESPACE_LABEL: names.label_value(team), c.RESOURCE_LABEL: names.label_value(key)}
            wrapped = target.object(
                names.child(inputs.name, key), manifest, policies=builders.WITHOUT_DELETE, labels=labels
            )
            if team in who.leaving:
                wrapped = looks.mark(wrapped)
            found.append(Desired(key, wrapped, Ready.exists(), after=(config_key,)))
    return [*found, *_pull_secrets(inputs, who, target, config_key)]


def _pull_secrets(
    inputs: Inputs, who: Census, target: builders.Target, config_key: str
) -> list[Desired | Waiting]:
    """Return a copy of the mirror's pull Secret for each team: what we run there comes from the mirror too.

    Only the key that kubelet reads is copied. A copy outlasts a source that is not found.
    """
    if not (secret := images.pull_secret(inputs.composite)):
        return []
    encoded = paths.text(inputs.one(PULL_SECRET), "data", images.DOCKER_CONFIG)
    found: list[Desired | Waiting] = []
    for team in who.kept:
        key = f"{_PULL}{team}"
        if not encoded:
            found.append(
                Waiting(key, f"Secret {c.SYSTEM_NAMESPACE}/{secret} has no key {images.DOCKER_CONFIG}")
            )
            continue
        labels = {c.NAMESPACE_LABEL: names.label_value(team)}
        wrapped = target.object(
            names.child(inputs.name, key),
            images.copied(names.team_namespace(team), encoded, labels),
            labels={**labels, c.RESOURCE_LABEL: names.label_value(key)},
        )
        found.append(Desired(key, wrapped, Ready.exists(), after=(config_key, f"{_NAMESPACE}{team}")))
    return found


def prepared(inputs: Inputs, who: Census) -> list[str]:
    """Return the teams whose namespace is there and closed to others; one listed before stays listed."""
    before = paths.items(inputs.composite, "status", "namespaces")
    return [
        team
        for team in who.kept
        if team in before or all(inputs.is_ready(f"{prefix}{team}") for prefix in (_NAMESPACE, _POLICY))
    ]


def _remote(team: str) -> list[tuple[str, Manifest]]:
    namespace = names.team_namespace(team)
    labels = {c.NAMESPACE_LABEL: names.label_value(team)}
    return [
        (
            f"{_NAMESPACE}{team}",
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": labels}},
        ),
        (
            f"{_POLICY}{team}",
            {
                "apiVersion": "networking.k8s.io/v1",
                "kind": "NetworkPolicy",
                "metadata": {"name": c.TEAM_POLICY, "namespace": namespace, "labels": labels},
                "spec": {"podSelector": {}, "policyTypes": ["Ingress"], "ingress": [{"from": _sources()}]},
            },
        ),
    ]


def _sources() -> list[Manifest]:
    return [{"namespaceSelector": {"matchLabels": {_NAMESPACE_NAME: space}}} for space in _ADMITTED]
