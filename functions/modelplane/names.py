"""Every derived name, in one place: legal wherever used, stable over releases, never shared by two objects.

All results are DNS-1035 labels (a letter first, then lower-case letters, digits and hyphens), since one
name may become a Service, a host name part and a label value at once. The digest covers the parts with a
separator no name can hold, so ("a", "b-c") and ("a-b", "c") differ. Golden vectors in the tests pin them:
a changed name deletes and re-creates what runs.
"""

import hashlib
import re

LABEL_LIMIT = 63
_DIGEST = 8
_ILLEGAL = re.compile(r"[^a-z0-9]+")
_LABEL_VALUE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")

# Grove joins set, group and clique names into pod host names and label values: 45 characters for the
# three, and set + group within 36 for its PodGang names (operator/internal/webhook, alpha.12 and later).
# With group "g" and cliques "leader" and "worker" 32 is inside both; copies and phases take no more.
POD_CLIQUE_SET_LIMIT = 32
# A LeaderWorkerSet's pods are <name>-<group>-<worker>: up to 64 copies and 63 workers add six characters,
# and the StatefulSet controller adds an 11-character revision label suffix.
LEADER_WORKER_SET_LIMIT = 45


def digest(*parts: str, length: int = _DIGEST) -> str:
    """Return `length` hex characters that identify the parts in their order."""
    return hashlib.sha256("\x00".join(parts).encode()).hexdigest()[:length]


def fold(text: str) -> str:
    """Return text as a DNS-1035 label body: lower case, every illegal run one hyphen, a letter first."""
    folded = _ILLEGAL.sub("-", text.lower()).strip("-")
    return folded if folded[:1].isalpha() else f"n{folded}"


def opaque(visible: str, *hidden: str, limit: int = LABEL_LIMIT) -> str:
    """Return `<visible>-<digest>`: the digest covers visible and hidden parts, only visible can be read."""
    head = fold(visible)[: limit - _DIGEST - 1].rstrip("-")
    return f"{head}-{digest(visible, *hidden)}"


def child(*parts: str, limit: int = LABEL_LIMIT) -> str:
    """Return `<part>-<part>-<digest>`, cut to `limit`; the digest is always there, also on short names."""
    head = fold("-".join(parts))[: limit - _DIGEST - 1].rstrip("-")
    return f"{head}-{digest(*parts)}"


def label_value(text: str) -> str:
    """Return text where it is a legal label value, else a folded form with a digest."""
    if len(text) <= LABEL_LIMIT and (not text or _LABEL_VALUE.fullmatch(text)):
        return text
    return opaque(text)


def team_namespace(namespace: str) -> str:
    """Return the serving-cluster namespace of a control-plane namespace's objects."""
    return child("mp", namespace)


def replica(deployment: str, cluster: str, index: int) -> str:
    """Return the name of a ModelReplica and its ModelEndpoint."""
    return opaque(deployment, cluster, str(index))


def cache_replica(cache: str, cluster: str) -> str:
    """Return the name of a ModelCacheReplica."""
    return opaque(cache, cluster)


def cache_claim(namespace: str, cache: str) -> str:
    """Return the PersistentVolumeClaim name of a cache."""
    return child("modelcache", namespace, cache)


def staging_job(namespace: str, cache: str, artifact: str) -> str:
    """Return the name of the Job that stages an artifact, and of its account, rights and report."""
    return child("modelcache", namespace, cache, "hydrate", artifact)


def staging_program(namespace: str, cache: str, artifact: str) -> str:
    """Return the name of the ConfigMap with what a staging Job runs."""
    return child("modelcache", namespace, cache, "program", artifact)


def cache_token(namespace: str, cache: str) -> str:
    """Return the name of the Secret with a cache's token, on the cluster while it stages."""
    return child("modelcache", namespace, cache, "auth")


def workload(replica_name: str, engine: str) -> str:
    """Return the name of an engine's Deployment; never the replica's own name."""
    return child(replica_name, engine)


def leader_worker_set(replica_name: str, engine: str) -> str:
    """Return the name of an engine's LeaderWorkerSet, short enough for its pods and revisions."""
    return child(replica_name, engine, limit=LEADER_WORKER_SET_LIMIT)


def pod_clique_set(replica_name: str, engine: str, shape: str = "") -> str:
    """Return the name of a PodCliqueSet; `shape` digests its immutable fields, so a change is a new set."""
    return child(replica_name, engine, shape, limit=POD_CLIQUE_SET_LIMIT)


def claim_template(replica_name: str, engine: str, role: str, shape: str) -> str:
    """Return the name of a member's ResourceClaimTemplate; `shape` digests its spec, which is immutable."""
    return child(replica_name, engine, role.lower(), "devices", shape)


def reference_copy(replica_name: str, kind: str, name: str) -> str:
    """Return the name of a replica's copy of a Secret or ConfigMap: replicas of a team share no copy."""
    return child(replica_name, kind.lower(), name)


def route(replica_name: str) -> str:
    """Return the name of a replica's HTTPRoute on its cluster."""
    # Three parts, as all that is fixed here: an engine that a user calls "route" has a workload of two.
    return child(replica_name, "path", "route")


def host_route(replica_name: str) -> str:
    """Return the name of a replica's HTTPRoute by host name on its cluster."""
    return child(replica_name, "host", "route")


def replica_host(namespace: str, replica_name: str) -> str:
    """Return the host name by which a cluster's gateway knows a replica; it is in no DNS.

    `.internal` is nobody's: ICANN keeps it for private use.
    """
    return f"{replica_name}.{namespace}.replicas.modelplane.internal"


def inference_pool(replica_name: str) -> str:
    """Return the name of a replica's InferencePool."""
    return child(replica_name, "inference", "pool")


def replica_policy(replica_name: str) -> str:
    """Return the name of a replica's NetworkPolicy."""
    return child(replica_name, "ingress", "policy")


def picker(replica_name: str) -> str:
    """Return the name of a replica's endpoint picker objects."""
    return child(replica_name, "epp", "picker")


def credential(endpoint: str) -> str:
    """Return the name of the Secret with an endpoint's credential, and of the filter that adds it."""
    return child(endpoint, "endpoint", "credential")


def serving_stack(cluster: str) -> str:
    """Return the name of a cluster's ServingStack."""
    return child(cluster, "serving-stack")


def cluster_config(cluster: str) -> str:
    """Return the name of the ClusterProviderConfig that reaches a serving cluster."""
    return child(cluster, "cluster-kubeconfig")


def release(chart: str) -> str:
    """Return the Helm release name of a chart: fixed, so no user's release and no long name can collide."""
    return f"mp-{chart}"


def eks_cluster(namespace: str, name: str) -> str:
    """Return the name at EKS of a composite's cluster, unique in the account and region."""
    return opaque(name, namespace, "eks")


def of_cluster(eks_name: str, *parts: str) -> str:
    """Return the name of one of a cluster's AWS resources: IAM roles share one account-wide space."""
    return child(eks_name, *parts)
