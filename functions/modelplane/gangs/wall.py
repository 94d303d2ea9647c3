"""Which pods may open connections to a replica's: its own, and those that share its weights.

The namespace's own policy closes every pod of the team and lets in the gateway and monitoring
(kinds/cluster_teams.py); policies add up, so this one only opens.
"""

from modelplane import contracts as c
from modelplane import names
from modelplane.core.paths import Manifest
from modelplane.gangs.site import Site

KEY = "network-policy"


def policy(site: Site) -> Manifest:
    """Return the NetworkPolicy of the replica's pods.

    Ray, torch and NIXL listen without asking who calls, so a replica is open to its gangs, phases and picker
    and not to its team's other replicas. Engines that hand weights to each other have to reach each other.
    """
    own = {c.REPLICA_LABEL: names.label_value(site.replica)}
    peers: list[Manifest] = [{"podSelector": {"matchLabels": own}}]
    if site.shared_cache:
        engines = [{"key": c.ENGINE_LABEL, "operator": "Exists"}]
        shared = {c.CACHE_LABEL: site.shared_cache}
        peers.append({"podSelector": {"matchLabels": shared, "matchExpressions": engines}})
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": names.replica_policy(site.replica), "namespace": site.namespace},
        "spec": {
            "podSelector": {"matchLabels": own},
            "policyTypes": ["Ingress"],
            "ingress": [{"from": peers}],
        },
    }
