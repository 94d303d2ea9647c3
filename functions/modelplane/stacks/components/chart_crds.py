"""A Job that applies the CRDs of charts that bring them once and never again, in a move between releases.

Helm installs what is in a chart's `crds/` folder at the first install and never looks at it afterwards
(helm.sh/docs/chart_best_practices/custom_resource_definitions), so a new version would run on old CRDs. They
are too large to be composed (EnvoyProxy alone is 1.4 MB). The Job does what the charts' own upgrade guides
have people do: take the CRDs out of the new chart and apply them server-side. It runs in a move only, before
any chart of the stack is upgraded, and goes with the move.
"""

from collections.abc import Sequence

from modelplane import contracts as c
from modelplane import names
from modelplane.core.builders import JOB_COMPLETE
from modelplane.core.paths import Manifest
from modelplane.facts.versions import Pin
from modelplane.stacks.component import ON_APPLY, Context, Document, ObjectsComponent, pull_secrets

PIN = "chart-crds"
JOB = "job"

_NAME = "modelplane-chart-crds"
_META = {"name": _NAME, "namespace": c.SYSTEM_NAMESPACE}
_HOME = "/tmp"
_LOGIN = "/registry"
# Charts and versions are arguments, never part of the text. `helm show crds` reads subcharts too (Helm,
# pkg/chart, CRDObjects). A file between the two, so that a failed pull applies nothing.
_SCRIPT = """\
set -eu
while [ "$#" -gt 1 ]; do
  echo "CRDs of $1 $2"
  helm show crds "$1" --version "$2" > "$HOME/crds.yaml"
  kubectl apply --server-side --force-conflicts --field-manager=modelplane-chart-crds -f "$HOME/crds.yaml"
  shift 2
done
"""
# Nobody restarts a Job that has given up: with a delay of five minutes at most between tries this is days.
_TRIES = 1000


def _arguments(charts: Sequence[Pin], context: Context) -> list[str]:
    return [
        word
        for pin in charts
        for word in (f"{context.images.repository(pin.repository)}/{pin.chart}", pin.version)
    ]


def _job(context: Context) -> Manifest:
    pin = context.release.pin(PIN)
    container: Manifest = {
        "name": "apply",
        "image": f"{context.images.image(pin.image)}:{pin.version}",
        "command": ["sh", "-c", _SCRIPT, "crds"],
        "args": _arguments(context.crd_charts, context),
        # Helm and kubectl keep caches at home; nothing else is written.
        "env": [{"name": "HOME", "value": _HOME}],
        "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "1Gi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": "home", "mountPath": _HOME}],
    }
    pod: Manifest = {
        "serviceAccountName": _NAME,
        "restartPolicy": "OnFailure",
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 65532,
            "runAsGroup": 65532,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
        "volumes": [{"name": "home", "emptyDir": {"sizeLimit": "512Mi"}}],
    }
    if secrets := pull_secrets(context.images):
        # The same login pulls the image and the charts: Helm reads it where Docker would.
        login = {"key": ".dockerconfigjson", "path": "config.json"}
        pod["imagePullSecrets"] = secrets
        pod["volumes"].append(
            {"name": "login", "secret": {"secretName": c.PULL_SECRET, "items": [login]}},
        )
        container["volumeMounts"].append({"name": "login", "mountPath": _LOGIN, "readOnly": True})
        container["env"].append({"name": "HELM_REGISTRY_CONFIG", "value": f"{_LOGIN}/config.json"})
    return {"backoffLimit": _TRIES, "template": {"spec": pod}}


def _documents(context: Context) -> list[Document]:
    if not context.crd_charts:
        return []
    account: Manifest = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": dict(_META)}
    role: Manifest = {
        "apiVersion": c.RBAC_API,
        "kind": "ClusterRole",
        "metadata": {"name": _NAME},
        "rules": [
            {
                "apiGroups": [c.CRD_API.partition("/")[0]],
                "resources": ["customresourcedefinitions"],
                "verbs": ["get", "create", "patch"],
            }
        ],
    }
    binding: Manifest = {
        "apiVersion": c.RBAC_API,
        "kind": "ClusterRoleBinding",
        "metadata": {"name": _NAME},
        "roleRef": {"apiGroup": c.RBAC_API.partition("/")[0], "kind": "ClusterRole", "name": _NAME},
        "subjects": [{"kind": "ServiceAccount", **_META}],
    }
    spec = _job(context)
    # A Job's pod cannot change, so each is one of its own.
    mark = names.digest(str(spec))
    job: Manifest = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": f"{_NAME}-{mark}", "namespace": c.SYSTEM_NAMESPACE},
        "spec": spec,
    }
    return [
        Document(account, ON_APPLY, "account"),
        Document(role, ON_APPLY, "role"),
        Document(binding, ON_APPLY, "binding"),
        Document(job, JOB_COMPLETE, f"{JOB}-{mark}"),
    ]


COMPONENT = ObjectsComponent(
    key="chart-crds",
    pin=PIN,
    after=("gateway-namespace",),
    namespace=c.SYSTEM_NAMESPACE,
    documents=_documents,
)
