"""The endpoint picker: which of a replica's pods answers a request (llm-d-router v0.10.0)."""

import hashlib

from modelplane import contracts as c
from modelplane import names
from modelplane.core.paths import Manifest
from modelplane.gangs import env
from modelplane.gangs.site import Site

KEY = "epp"
_CONFIG_FILE = "epp-config.yaml"
_CONFIG_VOLUME = "config"
_REPLICAS = 2
# The chart's figure: as long as the longest grace period among the pool's pods.
_GRACE_SECONDS = 130

# Only the replica that holds the lease is ever ready, so condition Available never comes; one is enough.
READY_WHEN = (
    "has(object.status) && has(object.status.observedGeneration) && "
    "object.status.observedGeneration >= object.metadata.generation && "
    "has(object.status.updatedReplicas) && object.status.updatedReplicas >= object.spec.replicas && "
    "has(object.status.availableReplicas) && object.status.availableReplicas > 0"
)


def support(site: Site, config: str) -> dict[str, Manifest]:
    """Return what the picker needs, by composition resource name: identity, rights, config and Service."""
    name = names.picker(site.replica)
    return {
        f"{KEY}-serviceaccount": {**_head("v1", "ServiceAccount", site, name)},
        f"{KEY}-role": {**_head(c.RBAC_API, "Role", site, name), "rules": _rules()},
        f"{KEY}-rolebinding": {
            **_head(c.RBAC_API, "RoleBinding", site, name),
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": site.namespace}],
        },
        f"{KEY}-config": {**_head("v1", "ConfigMap", site, name), "data": {_CONFIG_FILE: config}},
        f"{KEY}-service": {
            **_head("v1", "Service", site, name),
            "spec": {
                "selector": _labels(site),
                "ports": [
                    {
                        "name": "grpc",
                        "port": c.EPP_PORT,
                        "targetPort": c.EPP_PORT,
                        "protocol": "TCP",
                        "appProtocol": "kubernetes.io/h2c",
                    },
                    {
                        "name": "metrics",
                        "port": c.EPP_METRICS_PORT,
                        "targetPort": c.EPP_METRICS_PORT,
                        "protocol": "TCP",
                    },
                ],
            },
        },
    }


def deployment(site: Site, config: str, image: str) -> Manifest:
    """Return the picker's Deployment: two replicas, of which one works and one stands by."""
    name = names.picker(site.replica)
    checksum = hashlib.sha256(config.encode()).hexdigest()
    pull = {"imagePullSecrets": list(site.pull_secrets)} if site.pull_secrets else {}
    return {
        **_head("apps/v1", "Deployment", site, name),
        "spec": {
            "replicas": _REPLICAS,
            # A rolling update would wait for ever for the new pods to be ready beside the lease's holder.
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": _labels(site)},
            "template": {
                # It reads its config at start only, so a changed one has to make new pods.
                "metadata": {
                    "labels": {"app": name, **_labels(site)},
                    "annotations": {c.EPP_CHECKSUM_ANNOTATION: checksum},
                },
                "spec": {
                    "serviceAccountName": name,
                    "terminationGracePeriodSeconds": _GRACE_SECONDS,
                    "affinity": _apart(site),
                    **pull,
                    "containers": [_container(site, image)],
                    "volumes": [{"name": _CONFIG_VOLUME, "configMap": {"name": name}}],
                },
            },
        },
    }


def _labels(site: Site) -> Manifest:
    """Select by labels that members cannot carry: `app` is any team's to set."""
    return {c.ROLE_LABEL: c.ROLE_PICKER, c.REPLICA_LABEL: names.label_value(site.replica)}


def _head(api_version: str, kind: str, site: Site, name: str) -> Manifest:
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": name, "namespace": site.namespace},
    }


def _rules() -> list[Manifest]:
    read = ["get", "list", "watch"]
    llmd = ["inferenceobjectives", "inferencemodelrewrites"]
    return [
        {"apiGroups": [""], "resources": ["pods"], "verbs": read},
        {"apiGroups": ["inference.networking.k8s.io"], "resources": ["inferencepools"], "verbs": read},
        {"apiGroups": ["llm-d.ai"], "resources": llmd, "verbs": read},
        {"apiGroups": ["inference.networking.x-k8s.io"], "resources": llmd, "verbs": read},
        {
            "apiGroups": ["coordination.k8s.io"],
            "resources": ["leases"],
            "verbs": [*read, "create", "update", "patch", "delete"],
        },
        {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]},
    ]


def _container(site: Site, image: str) -> Manifest:
    return {
        "name": KEY,
        "image": image,
        # `--flag=value` throughout: a boolean after a space is not parsed (pkg/epp/server/options.go).
        "args": [
            f"--pool-name={names.inference_pool(site.replica)}",
            f"--pool-namespace={site.namespace}",
            "--pool-group=inference.networking.k8s.io",
            f"--config-file=/config/{_CONFIG_FILE}",
            f"--grpc-port={c.EPP_PORT}",
            f"--grpc-health-port={c.EPP_HEALTH_PORT}",
            f"--metrics-port={c.EPP_METRICS_PORT}",
            "--ha-enable-leader-election=true",
            # Else scraping takes cluster-wide rights to review tokens.
            "--metrics-endpoint-auth=false",
            "--tracing=false",
            "--enable-pprof=false",
            "--zap-encoder=json",
        ],
        "env": [env.field("NAMESPACE", "metadata.namespace"), env.field("POD_NAME", "metadata.name")],
        "ports": [
            {"name": "grpc", "containerPort": c.EPP_PORT, "protocol": "TCP"},
            {"name": "grpc-health", "containerPort": c.EPP_HEALTH_PORT, "protocol": "TCP"},
            {"name": "metrics", "containerPort": c.EPP_METRICS_PORT, "protocol": "TCP"},
        ],
        # With leader election these two names are known, any other is refused (cmd/epp/runner/health.go).
        "livenessProbe": _probe("liveness", 5, 10),
        "readinessProbe": _probe("readiness", 0, 2),
        "resources": {"requests": {"cpu": "500m", "memory": "512Mi"}, "limits": {"memory": "2Gi"}},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "volumeMounts": [{"name": _CONFIG_VOLUME, "mountPath": "/config", "readOnly": True}],
    }


def _probe(service: str, delay: int, period: int) -> Manifest:
    return {
        "grpc": {"port": c.EPP_HEALTH_PORT, "service": service},
        "initialDelaySeconds": delay,
        "periodSeconds": period,
        "timeoutSeconds": 5,
    }


def _apart(site: Site) -> Manifest:
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": _labels(site)}}
    preferred = [{"weight": 100, "podAffinityTerm": term}]
    return {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
