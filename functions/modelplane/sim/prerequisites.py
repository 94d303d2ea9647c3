"""What an installation has before anything of ours is applied: taken as met in every played world."""

from modelplane import contracts as c
from modelplane.core import Manifest

# By name only: composers ask whether a kind is served, never what its schema says.
_CRDS = ("gatewayclasses.gateway.networking.k8s.io", "certificates.cert-manager.io")


def objects() -> list[Manifest]:
    """Return the objects of others that the install instructions ask for (Gateway API, cert-manager)."""
    return [
        {"apiVersion": c.CRD_API, "kind": "CustomResourceDefinition", "metadata": {"name": name}}
        for name in _CRDS
    ]
