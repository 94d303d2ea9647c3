"""What of somebody else's would fight with a component of ours, and how it is told from our own.

Helm refuses to take over what another release made, but only where names meet. A controller that was
installed by other means, or under another name, it does not see: both then reconcile the same objects.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from modelplane.core import paths

# helm.sh/docs/topics/charts_hooks and `helm install`: on every object of a release (pkg/action/validate.go).
_HELM_RELEASE = "meta.helm.sh/release-name"


def by_helm(manifest: Mapping[str, Any], release: str) -> bool:
    """Tell whether our Helm release made the object: left from an earlier stack, it is taken up again."""
    return paths.text(manifest, "metadata", "annotations", _HELM_RELEASE) == release


def never(_: Mapping[str, Any], __: str) -> bool:
    """Tell that nothing shows who made the object, so it counts as somebody else's."""
    return False


@dataclass(frozen=True, slots=True)
class Rival:
    """An object that shows that somebody else runs what a component would install.

    It is looked at once, before the component is first installed. It must be small, since the provider copies
    it whole, and it must go with what it stands for: a CRD does not.

    Attributes:
        api_version: of the object.
        kind: of it.
        name: of it.
        namespace: of it; empty for a cluster-scoped one.
        instead: what to do where it has to stay; empty: have all components Provided.
        ours: whether we made it, from the object and the name of the component's Helm release.
    """

    api_version: str
    kind: str
    name: str
    namespace: str = ""
    instead: str = ""
    ours: Callable[[Mapping[str, Any], str], bool] = by_helm

    def __str__(self) -> str:
        """Return what people find it by."""
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


def deployment(namespace: str, name: str, **over: Any) -> Rival:
    """Return a controller's Deployment as a rival."""
    return Rival("apps/v1", "Deployment", name, namespace, **over)
