"""The only fence around ModelExpress, which authenticates nobody: it lets in engine pods of teams."""

from modelplane import contracts as c
from modelplane.core.paths import Manifest
from modelplane.stacks.component import ON_APPLY, Context, Document, ObjectsComponent


def _documents(_: Context) -> list[Document]:
    def carries(label: str) -> Manifest:
        return {"matchExpressions": [{"key": label, "operator": "Exists"}]}

    policy = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": c.MODELEXPRESS_SERVER, "namespace": c.MODELEXPRESS_NAMESPACE},
        "spec": {
            # Every pod of the namespace, so that nothing else put there is open either.
            "podSelector": {},
            "policyTypes": ["Ingress"],
            "ingress": [
                {
                    # Both selectors in one entry: the pod must match both.
                    "from": [
                        {
                            "namespaceSelector": carries(c.NAMESPACE_LABEL),
                            "podSelector": carries(c.ENGINE_LABEL),
                        }
                    ],
                    "ports": [{"protocol": "TCP", "port": c.MODELEXPRESS_PORT}],
                }
            ],
        },
    }
    return [Document(policy, ON_APPLY)]


COMPONENT = ObjectsComponent(
    key="modelexpress-network-policy",
    own=True,
    needs=("modelexpress-namespace",),
    documents=_documents,
)
