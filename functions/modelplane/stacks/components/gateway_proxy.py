"""How Envoy runs behind the gateway, and how its Service is exposed."""

from modelplane import contracts as c
from modelplane.core.paths import Manifest
from modelplane.stacks.component import ON_APPLY, Context, Document, ObjectsComponent, pull_secrets

_ENVOY_IMAGE = "docker.io/envoyproxy/envoy"
# Without it EKS makes a Classic load balancer, whose idle limit of 60 s cuts a long prefill.
_EKS_ANNOTATIONS = {"service.beta.kubernetes.io/aws-load-balancer-type": "nlb"}


def _documents(context: Context) -> list[Document]:
    # A name of our own: the default one holds a hash, and removal has to find the Service again. Cluster,
    # since some clouds refuse Envoy Gateway's default of Local and never give an address.
    service: Manifest = {"name": c.CLUSTER_GATEWAY, "externalTrafficPolicy": "Cluster"}
    if context.cloud == c.EKS:
        service["annotations"] = dict(_EKS_ANNOTATIONS)
    kubernetes: Manifest = {"envoyService": service}
    deployment: Manifest = {}
    if context.images.mirror:
        deployment["container"] = {"imageRepository": context.images.image(_ENVOY_IMAGE)}
    if secrets := pull_secrets(context.images):
        deployment["pod"] = {"imagePullSecrets": secrets}
    if deployment:
        kubernetes["envoyDeployment"] = deployment
    proxy = {
        "apiVersion": c.ENVOY_API,
        "kind": "EnvoyProxy",
        "metadata": {"name": c.CLUSTER_GATEWAY, "namespace": c.SYSTEM_NAMESPACE},
        "spec": {"provider": {"type": "Kubernetes", "kubernetes": kubernetes}},
    }
    return [Document(proxy, ON_APPLY)]


COMPONENT = ObjectsComponent(
    key="gateway-proxy",
    own=True,
    after=("gateway-namespace", "envoy-gateway"),
    documents=_documents,
)
