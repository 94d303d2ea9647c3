"""From a stack's components to what is composed, with every order that follows from what they need."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from modelplane import contracts as c
from modelplane import names
from modelplane.core.builders import OBSERVE_ONLY, Chart, Target
from modelplane.core.paths import Manifest
from modelplane.core.plan import Desired, Ready
from modelplane.stacks.component import (
    ChartComponent,
    Component,
    Context,
    Crds,
    ObjectsComponent,
    pin_of,
)
from modelplane.stacks.components import chart_crds
from modelplane.stacks.rival import Rival

_DELETE = {"Delete", "*"}
_GATEWAY = {"gateway", "gateway-service"}


@dataclass(frozen=True, slots=True)
class Rendered:
    """A component with what it composes.

    Attributes:
        component: the component.
        desired: its resources; none where a Provided cluster has nothing to check for it.
        checks: whether they only look at what the cluster must have itself.
    """

    component: Component
    desired: tuple[Desired, ...]
    checks: bool = False


@dataclass(frozen=True, slots=True)
class Renderer:
    """What all of a stack's components are rendered with.

    Attributes:
        owner: name of the ServingStack.
        target: the cluster.
        configs: keys of the provider configs.
        context: pins and settings.
        overrides: Helm values of the platform, by component.
        provided: the cluster has the components itself.
        installed: keys of the Releases whose first install is over.
    """

    owner: str
    target: Target
    configs: tuple[str, ...]
    context: Context
    overrides: Mapping[str, Mapping[str, Any]]
    provided: bool = False
    installed: frozenset[str] = frozenset()

    def render(self, components: Sequence[Component]) -> list[Rendered]:
        """Return each component with its resources, in the stack's order.

        What only looks waits for nothing: a cluster that lacks three components is told of all three.
        """
        manifests = {x.key: self._manifests(x) for x in components}
        return [
            Rendered(
                component,
                tuple(
                    Desired(
                        key,
                        manifest,
                        after=(*self.configs, *self._before(component, manifests)),
                        outlives=self._users(component, manifest, components, manifests),
                    )
                    for key, manifest in manifests[component.key].items()
                ),
                checks=self._checks_only(component),
            )
            for component in components
        ]

    def _checks_only(self, component: Component) -> bool:
        return self.provided and not component.own

    def _before(self, component: Component, manifests: Mapping[str, Mapping[str, Manifest]]) -> list[str]:
        if self._checks_only(component):
            return []
        # What was left out is taken to be there: only what is optional can be.
        return [key for need in before(component) for key in manifests.get(need, ())]

    def _users(
        self,
        component: Component,
        manifest: Manifest,
        components: Sequence[Component],
        manifests: Mapping[str, Mapping[str, Manifest]],
    ) -> tuple[str, ...]:
        # What is not deleted on the cluster may leave the control plane in any order: no Usage for it.
        policies = manifest["spec"].get("managementPolicies", ["*"])
        if not _DELETE.intersection(policies):
            return ()
        users = [x.key for x in components if component.key in x.needs]
        return tuple(key for user in (*users, *component.outlives) for key in manifests.get(user, ()))

    def _manifests(self, component: Component) -> dict[str, Manifest]:
        if self._checks_only(component):
            return self._checks(component)
        if isinstance(component, ChartComponent):
            return {component.key: self._release(component)}
        if isinstance(component, ObjectsComponent):
            return self._objects(component)
        raise TypeError(f"{component.key} is neither a chart nor objects")

    def _release(self, component: ChartComponent) -> Manifest:
        pin, images = self.context.release.pin(component.pin), self.context.images
        chart = Chart(
            name=pin.chart,
            repository=images.repository(pin.repository),
            version=pin.version,
            namespace=component.namespace,
            release_name=component.release_name,
            pull_secret=images.pull_secret,
        )
        values = component.merged(self.context, self.overrides.get(component.key, {}))
        release = self.target.release(
            names.child(self.owner, component.key), chart, values, labels=_labels(component)
        )
        if not component.rolls_back and component.key in self.installed:
            # A first install that failed is uninstalled and tried again within the limit. After it the same
            # limit means `helm rollback`.
            del release["spec"]["rollbackLimit"]
        return release

    def _objects(self, component: ObjectsComponent) -> dict[str, Manifest]:
        found: dict[str, Manifest] = {}
        for document in component.documents(self.context):
            key = f"{component.key}-{document.name}" if document.name else component.key
            found[key] = self.target.object(
                names.child(self.owner, key),
                document.manifest,
                ready_when=document.ready,
                policies=document.policies or None,
                labels=_labels(component, key),
            )
        return found

    def _checks(self, component: Component) -> dict[str, Manifest]:
        several = len(component.provides) > 1
        found: dict[str, Manifest] = {}
        for index, check in enumerate(component.provides):
            key = f"check-{component.key}-{index}" if several else f"check-{component.key}"
            sought = _sought(check.api_version, check.kind, check.name)
            found[key] = self._watch(key, sought, _labels(component, key), check.ready)
        return found

    def look(self, key: str, rival: Rival) -> Desired:
        """Return the Object that only looks for a rival."""
        sought = _sought(rival.api_version, rival.kind, rival.name, rival.namespace)
        labels = {c.RESOURCE_LABEL: key, c.ROLE_LABEL: c.ROLE_RIVAL}
        return Desired(key, self._watch(key, sought, labels), Ready.exists(), after=self.configs)

    def _watch(self, key: str, sought: Manifest, labels: Mapping[str, str], ready: str = "") -> Manifest:
        name = names.child(self.owner, key)
        return self.target.object(name, sought, ready_when=ready, policies=OBSERVE_ONLY, labels=labels)


def before(component: Component) -> tuple[str, ...]:
    """Return the components that must work before this one is created or moved to another release."""
    jobs = component.crds is Crds.FOLDER if isinstance(component, ChartComponent) else False
    return (*component.needs, *component.after, *((chart_crds.COMPONENT.key,) if jobs else ()))


def _sought(api_version: str, kind: str, name: str, namespace: str = "") -> Manifest:
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}


def version(component: Component, context: Context) -> str:
    """Return the version a component is pinned at, or an empty string for objects of our own."""
    pin = pin_of(component, context)
    return pin.version if pin else ""


def _labels(component: Component, key: str = "") -> dict[str, str]:
    labels = {c.RESOURCE_LABEL: key or component.key}
    if isinstance(component, ChartComponent):
        labels[c.ROLE_LABEL] = c.ROLE_CONTROLLER
    elif component.key in _GATEWAY:
        labels[c.ROLE_LABEL] = c.ROLE_GATEWAY
    return labels
