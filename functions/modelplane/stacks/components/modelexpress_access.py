"""What the ModelExpress server may do: its own records, and the ConfigMaps that hold their tensors."""

from modelplane import contracts as c
from modelplane.core.paths import Manifest
from modelplane.stacks.component import ON_APPLY, Context, Document, ObjectsComponent

_META = {"name": c.MODELEXPRESS_SERVER, "namespace": c.MODELEXPRESS_NAMESPACE}
_VERBS = ["get", "list", "watch", "create", "update", "patch", "delete"]
_RECORDS = ["modelmetadatas", "modelmetadatas/status", "modelcacheentries", "modelcacheentries/status"]


def _documents(_: Context) -> list[Document]:
    account: Manifest = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": dict(_META)}
    role: Manifest = {
        "apiVersion": c.RBAC_API,
        "kind": "Role",
        "metadata": dict(_META),
        "rules": [
            {"apiGroups": [c.MODELEXPRESS_GROUP], "resources": list(_RECORDS), "verbs": list(_VERBS)},
            {"apiGroups": [""], "resources": ["configmaps"], "verbs": list(_VERBS)},
        ],
    }
    binding: Manifest = {
        "apiVersion": c.RBAC_API,
        "kind": "RoleBinding",
        "metadata": dict(_META),
        "roleRef": {
            "apiGroup": c.RBAC_API.partition("/")[0],
            "kind": "Role",
            "name": c.MODELEXPRESS_SERVER,
        },
        "subjects": [
            {
                "kind": "ServiceAccount",
                "name": c.MODELEXPRESS_SERVER,
                "namespace": c.MODELEXPRESS_NAMESPACE,
            }
        ],
    }
    return [
        Document(account, ON_APPLY, "account"),
        Document(role, ON_APPLY, "role"),
        Document(binding, ON_APPLY, "binding"),
    ]


COMPONENT = ObjectsComponent(
    key="modelexpress-access",
    own=True,
    after=("modelexpress-namespace",),
    documents=_documents,
)
