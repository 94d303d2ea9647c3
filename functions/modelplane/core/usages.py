"""Teardown order, as a generic pass over a Plan.

Crossplane orders nothing on deletion and no function runs then, so every order must already stand in a
Usage: `of` cannot go while `by` exists. One Usage per pair, both by name: a selector in `by` binds only its
first match and guards nothing else (crossplane docs, Usages; seen as symptom C58).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from modelplane import contracts as c
from modelplane import names
from modelplane.core import paths
from modelplane.core.paths import Manifest
from modelplane.core.plan import Desired, PlanError, Ready

_CONSUMERS = {(c.KUBERNETES_API, "Object"), (c.HELM_API, "Release")}
_CONFIG_KIND = "ProviderConfig"
_DELETES = {"Delete", "*"}

Edge = tuple[str, str]


def edges(resources: Sequence[Desired], manifests: Mapping[str, Manifest], namespace: str) -> list[Edge]:
    """Return the (of, by) pairs: declared ones, and each consumer of a provider config of this plan.

    Args:
        resources: what the plan builds; an edge has at least one of them at its ends.
        manifests: by key, these and what is kept: a kept config still has new consumers.
        namespace: the composite's.
    """
    found = {(r.key, by) for r in resources for by in r.outlives if by in manifests}
    built = {r.key for r in resources}
    found.update(edge for edge in config_edges(manifests, namespace) if built.intersection(edge))
    return sorted(found)


def config_edges(manifests: Mapping[str, Manifest], namespace: str) -> Iterable[Edge]:
    """Yield (config key, consumer key) for each Release and Object that names a config among the manifests.

    Only namespaced ProviderConfigs: a ClusterProviderConfig has consumers in composites this one cannot see.
    A consumer means the config of its own namespace; a manifest without one is in the composite's. One that
    leaves its object behind needs no config to go: it is let go before anybody connects
    (crossplane-runtime, pkg/reconciler/managed/reconciler.go, ShouldDelete).
    """
    configs = {
        (_group(m), paths.namespace(m) or namespace, paths.name(m)): key
        for key, m in manifests.items()
        if m.get("kind") == _CONFIG_KIND
    }
    for key, manifest in manifests.items():
        if (paths.text(manifest, "apiVersion"), paths.text(manifest, "kind")) not in _CONSUMERS:
            continue
        policies = paths.items(manifest, "spec", "managementPolicies")
        if policies and not _DELETES.intersection(map(str, policies)):
            continue
        ref = paths.mapping(manifest, "spec", "providerConfigRef")
        space = paths.namespace(manifest) or namespace
        config = configs.get((_group(manifest), space, paths.text(ref, "name")))
        if ref.get("kind") == _CONFIG_KIND and config:
            yield config, key


def usage(owner: str, namespace: str, edge: Edge, manifests: Mapping[str, Manifest]) -> Desired:
    """Return the Usage of one edge.

    Args:
        owner: the composite's name; the Usage's name derives from it.
        namespace: the composite's namespace, which a manifest without one lands in.
        edge: keys of the protected resource and of its user.
        manifests: the manifests by key.
    """
    of, by = (manifests[key] for key in edge)
    spaces = {paths.namespace(m) or namespace for m in (of, by)}
    if len(spaces) > 1:
        raise PlanError(f"{edge[0]} and {edge[1]} are in different namespaces: a Usage cannot span them")
    space = spaces.pop()
    metadata: dict[str, Any] = {"name": names.child(owner, "usage", *edge)}
    if space:
        metadata["namespace"] = space
    manifest = {
        "apiVersion": c.PROTECTION_API,
        "kind": "Usage" if space else "ClusterUsage",
        "metadata": metadata,
        "spec": {"of": _ref(of), "by": _ref(by), "replayDeletion": True},
    }
    return Desired(usage_key(edge), manifest, Ready.exists())


def standing(
    observed: Mapping[str, Manifest], kept: Iterable[Manifest], stays: Iterable[Manifest]
) -> list[str]:
    """Return the keys of observed Usages that hold on although no edge of the plan asks for them.

    What is kept is known as an object only, without its declared edges. So its Usages stay as long as both of
    their ends do: else whatever is kept would have no teardown order for just as long.
    """
    held = {_end(m) for m in kept}
    if not held:
        return []
    there = {_end(m) for m in stays}
    return [
        key
        for key, manifest in observed.items()
        if manifest.get("apiVersion") == c.PROTECTION_API
        and (ends := _ends(manifest)) <= there
        and ends & held
    ]


def identified(manifest: Mapping[str, Any]) -> bool:
    """Tell whether a Usage can name the object; one that is only kept may be unreadable."""
    return all(_end(manifest))


def _end(manifest: Mapping[str, Any]) -> tuple[str, str, str]:
    return paths.text(manifest, "apiVersion"), paths.text(manifest, "kind"), paths.name(manifest)


def _ends(usage_manifest: Manifest) -> set[tuple[str, str, str]]:
    refs = [paths.mapping(usage_manifest, "spec", end) for end in ("of", "by")]
    return {
        (paths.text(r, "apiVersion"), paths.text(r, "kind"), paths.text(r, "resourceRef", "name"))
        for r in refs
    }


def usage_key(edge: Edge) -> str:
    """Return the composition resource name of an edge's Usage."""
    return f"usage-{edge[0]}-by-{edge[1]}"


def _ref(manifest: Manifest) -> Manifest:
    return {
        "apiVersion": manifest["apiVersion"],
        "kind": manifest["kind"],
        "resourceRef": {"name": paths.name(manifest)},
    }


def _group(manifest: Manifest) -> str:
    return str(manifest.get("apiVersion", "")).partition("/")[0]
