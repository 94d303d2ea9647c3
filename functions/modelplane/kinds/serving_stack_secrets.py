"""The Secrets a ServingStack needs: to reach its cluster, and to pull what it installs from a mirror.

They are only told of here, or copied; no value reaches a message.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from modelplane import contracts as c
from modelplane import names
from modelplane.api.serving_stack import ServingStackSpec
from modelplane.core import Desired, Inputs, Manifest, Requirement, Waiting, images, paths
from modelplane.stacks.component import ChartComponent, Component, Images
from modelplane.stacks.render import Rendered, Renderer

_PULL = "pull-secret-"
# What the Helm provider reads of a repository's Secret (provider-helm, spec.forProvider.chart.pullSecretRef).
_LOGIN = ("username", "password")
# A chart that has nothing to set for a mirror has no image.
_ANY = Images("mirror", "secret")


def requirements(composite: Manifest) -> list[Requirement]:
    """Return the lookup of each Secret that the spec names."""
    space = paths.namespace(composite)
    wanted = {
        (paths.text(entry, "namespace") or space, paths.text(entry, "name"))
        for entry in paths.mappings(composite, "spec", "secrets")
    }
    if pull := images.pull_secret(composite):
        wanted.add((space, pull))
    return [
        Requirement(_lookup(space, name), "v1", "Secret", match_name=name, namespace=space)
        for space, name in sorted(wanted)
        if space and name
    ]


def _lookup(namespace: str, name: str) -> str:
    return f"secret-{namespace}-{name}"


def problems(spec: ServingStackSpec, inputs: Inputs) -> list[str]:
    """Return what is wrong with the Secrets that reach the cluster, each with the next step."""
    return [
        why
        for entry in spec.secrets
        if (why := _lacks(inputs, entry.namespace or inputs.namespace, entry.name, [entry.key]))
    ]


def pull_problem(inputs: Inputs) -> str:
    """Return what is wrong with the mirror's Secret; empty without one."""
    if not (name := images.pull_secret(inputs.composite)):
        return ""
    return _lacks(inputs, inputs.namespace, name, [images.DOCKER_CONFIG, *_LOGIN])


def _lacks(inputs: Inputs, namespace: str, name: str, keys: Sequence[str]) -> str:
    found = inputs.one(_lookup(namespace, name))
    if found is None:
        return f"Secret {namespace}/{name} does not exist: create it with key {', '.join(keys)}"
    missing = [key for key in keys if not paths.text(found, "data", key)]
    return f"Secret {namespace}/{name} has no key {', '.join(missing)}: add it" if missing else ""


def copies(rendered: Sequence[Rendered], renderer: Renderer, inputs: Inputs) -> list[Desired | Waiting]:
    """Return a copy of the mirror's Secret for each namespace in which a component's pods run.

    It outlives the pods: a chart that is removed runs hooks, which are pulled too. A namespace that its chart
    makes is there a moment later, and kubelet tries again; so nothing waits for a copy. One whose source is
    not found stays as it is.
    """
    if not (name := images.pull_secret(inputs.composite)):
        return []
    encoded = paths.text(inputs.one(_lookup(inputs.namespace, name)), "data", images.DOCKER_CONFIG)
    return [
        _copy(renderer, space, encoded, users)
        if encoded
        else Waiting(_key(space), f"Secret {inputs.namespace}/{name} with key {images.DOCKER_CONFIG}")
        for space, users in _namespaces(rendered).items()
    ]


def _copy(renderer: Renderer, space: str, encoded: str, users: Sequence[str]) -> Desired:
    key = _key(space)
    manifest = renderer.target.object(
        names.child(renderer.owner, key),
        images.copied(space, encoded, {}),
        labels={c.RESOURCE_LABEL: names.label_value(key)},
    )
    return Desired(key, manifest, after=renderer.configs, outlives=tuple(users))


def unused(inputs: Inputs) -> frozenset[str]:
    """Return the keys of all copies: one that nothing names any more goes, though the charts stay."""
    return frozenset(key for key in inputs.observed if key.startswith(_PULL))


def _key(namespace: str) -> str:
    return f"{_PULL}{namespace}"


def _namespaces(rendered: Sequence[Rendered]) -> Mapping[str, list[str]]:
    """Return the namespaces that components run pods in, with the keys of what runs them."""
    found: dict[str, list[str]] = {}
    for each in rendered:
        if not each.checks and (pulling := [d.key for d in each.desired if _pulls(each.component, d)]):
            found.setdefault(each.component.namespace, []).extend(pulling)
    return found


def _pulls(component: Component, desired: Desired) -> bool:
    if isinstance(component, ChartComponent):
        return bool(component.mirrored(_ANY))
    kind = paths.text(desired.manifest, "spec", "forProvider", "manifest", "kind")
    return kind in ("Deployment", "Job")


def withheld(found: Sequence[Desired | Waiting], observed: Mapping[str, Any]) -> bool:
    """Tell whether a copy cannot be made and is not there."""
    return any(isinstance(x, Waiting) and x.key not in observed for x in found)
