"""MetalLB: gives the front door's Service an address where no cloud does."""

from modelplane import contracts as c
from modelplane import names
from modelplane.core import Desired, Manifest, Ready, builders

RELEASE = "metallb"
NAMESPACE = "namespace-metallb"
POOL = "metallb-pool"
L2 = "metallb-l2"

# Modelplane v0.4's pin; the two kinds below are the same in the CRDs of v0.16.1.
CHART = builders.Chart("metallb", "https://metallb.github.io/metallb", "0.14.9", c.METALLB_NAMESPACE)
_NAME = "modelplane"


def resources(
    owner: str, target: builders.Target, addresses: str, *, after: str, outlives: str
) -> list[Desired]:
    """Return MetalLB with one pool, announced on the local network.

    Args:
        owner: name of the composite.
        target: where Releases go.
        addresses: CIDR or range that it hands out.
        after: key of the provider config.
        outlives: key of the Release whose Service has the address.
    """
    release = target.release(names.child(owner, RELEASE), CHART, {}, labels={c.RESOURCE_LABEL: RELEASE})
    # Its speakers use the host network, which a cluster that enforces pod security refuses otherwise
    # (metallb.universe.tf, Installation).
    space = {"name": c.METALLB_NAMESPACE, "labels": {"pod-security.kubernetes.io/enforce": "privileged"}}
    namespace: Manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": space}
    pool = _setting("IPAddressPool", {"addresses": [addresses]})
    l2 = _setting("L2Advertisement", {"ipAddressPools": [_NAME]})
    return [
        Desired(NAMESPACE, namespace, Ready.exists()),
        Desired(RELEASE, release, after=(after, NAMESPACE), outlives=(outlives,)),
        Desired(POOL, pool, Ready.exists(), after=(RELEASE,)),
        Desired(L2, l2, Ready.exists(), after=(RELEASE,)),
    ]


def _setting(kind: str, spec: Manifest) -> Manifest:
    metadata = {"name": _NAME, "namespace": c.METALLB_NAMESPACE}
    return {"apiVersion": c.METALLB_API, "kind": kind, "metadata": metadata, "spec": spec}
