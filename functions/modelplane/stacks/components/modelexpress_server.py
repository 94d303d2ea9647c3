"""The ModelExpress server: knows which engine has which weights in memory, so another may fetch them there.

It holds records only; the weights stay in GPU memory or on the cache's volume.
"""

from modelplane import contracts as c
from modelplane.core.builders import ROLLED_OUT
from modelplane.core.paths import Manifest
from modelplane.stacks.component import ON_APPLY, Context, Document, ObjectsComponent, pull_secrets

PIN = "modelexpress-server"

_META = {"name": c.MODELEXPRESS_SERVER, "namespace": c.MODELEXPRESS_NAMESPACE}
_LABELS = {c.MODELEXPRESS_LABEL: c.MODELEXPRESS_SERVER}
_PORT_NAME = "grpc"
_CACHE = "/app/cache"


def _probe(delay: int) -> Manifest:
    return {"tcpSocket": {"port": _PORT_NAME}, "initialDelaySeconds": delay, "periodSeconds": 10}


def _container(context: Context) -> Manifest:
    pin = context.release.pin(PIN)
    return {
        "name": "server",
        "image": f"{context.images.image(pin.image)}:{pin.version}",
        "ports": [{"name": _PORT_NAME, "containerPort": c.MODELEXPRESS_PORT, "protocol": "TCP"}],
        "env": [
            {"name": "MX_METADATA_BACKEND", "value": "kubernetes"},
            {"name": "MX_METADATA_NAMESPACE", "value": c.MODELEXPRESS_NAMESPACE},
            {"name": "MODEL_EXPRESS_SERVER_PORT", "value": str(c.MODELEXPRESS_PORT)},
            {"name": "MODEL_EXPRESS_CACHE_DIRECTORY", "value": _CACHE},
        ],
        "readinessProbe": _probe(10),
        "livenessProbe": _probe(20),
        "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"memory": "8Gi"}},
        # The image runs as root (components of its example do too), so only what root may do is cut down.
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "volumeMounts": [{"name": "cache", "mountPath": _CACHE}],
    }


def _documents(context: Context) -> list[Document]:
    pod: Manifest = {
        "serviceAccountName": c.MODELEXPRESS_SERVER,
        "containers": [_container(context)],
        "volumes": [{"name": "cache", "emptyDir": {"sizeLimit": "10Gi"}}],
    }
    if secrets := pull_secrets(context.images):
        pod["imagePullSecrets"] = secrets
    deployment: Manifest = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": dict(_META),
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": dict(_LABELS)},
            "template": {"metadata": {"labels": dict(_LABELS)}, "spec": pod},
        },
    }
    service: Manifest = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": dict(_META),
        "spec": {
            "selector": dict(_LABELS),
            "ports": [
                {
                    "name": _PORT_NAME,
                    "port": c.MODELEXPRESS_PORT,
                    "protocol": "TCP",
                    "targetPort": _PORT_NAME,
                }
            ],
        },
    }
    return [Document(deployment, ROLLED_OUT, "deployment"), Document(service, ON_APPLY, "service")]


COMPONENT = ObjectsComponent(
    key="modelexpress-server",
    pin=PIN,
    own=True,
    namespace=c.MODELEXPRESS_NAMESPACE,
    # The fence stands before there is anything behind it, and until nothing is.
    needs=("modelexpress-network-policy",),
    after=("modelexpress-crds", "modelexpress-access"),
    documents=_documents,
)
