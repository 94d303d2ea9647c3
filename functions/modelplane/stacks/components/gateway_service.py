"""A hold on the gateway's load balancer, so that nothing it needs goes before it is gone.

Envoy Gateway makes the Service and deletes it some time after its Gateway. Left to itself, a removal could
take Envoy Gateway, the credentials and the network first, and leave a load balancer that keeps the network
from being deleted. This Object only observes the Service and deletes it with itself: it is gone when the
cloud has released the load balancer (the Service's finalizer), and Envoy Gateway waits for that.
"""

from modelplane import contracts as c
from modelplane.stacks.component import ON_APPLY, Context, Document, ObjectsComponent

# A set that crossplane-runtime supports: "like ObserveOnly, but deleted with the managed resource"
# (pkg/reconciler/managed/policies.go).
_POLICIES = ("Observe", "Delete")


def _documents(_: Context) -> list[Document]:
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": c.CLUSTER_GATEWAY, "namespace": c.ENVOY_NAMESPACE},
    }
    return [Document(service, ON_APPLY, policies=_POLICIES)]


# Not on a Provided cluster: Envoy Gateway stays there, and may make its Services in another namespace.
COMPONENT = ObjectsComponent(
    key="gateway-service",
    needs=("envoy-gateway",),
    after=("gateway",),
    # While the Gateway stands, Envoy Gateway would make the Service again.
    outlives=("gateway",),
    documents=_documents,
)
