"""How Objects and Releases reach a cluster, and what else of theirs stands on it."""

from collections.abc import Iterator

from modelplane import contracts as c
from modelplane.core import Manifest, paths
from modelplane.sim.world import Ref, World

# The Secret with a cluster's kubeconfig: several provider configs reach one cluster through it.
Kubeconfig = tuple[str, str]

_CONSUMERS = ((c.KUBERNETES_API, "Object"), (c.HELM_API, "Release"))
_ALWAYS_THERE = {"default", "kube-system"}


def config_of(obj: Manifest) -> Ref:
    """Return the provider config that an Object or Release names; the namespaced kind is in its namespace."""
    found = paths.mapping(obj, "spec", "providerConfigRef")
    kind = paths.text(found, "kind")
    space = paths.namespace(obj) if kind == "ProviderConfig" else ""
    return Ref(paths.text(obj, "apiVersion"), kind, space, paths.text(found, "name"))


def kubeconfig(obj: Manifest, world: World) -> Kubeconfig:
    """Return the Secret the object reaches its cluster by, also after its provider config has left."""
    config = config_of(obj)
    found = world.objects.get(config) or world.gone.get(config, {})
    secret = paths.mapping(found, "spec", "credentials", "secretRef")
    return paths.text(secret, "namespace"), paths.text(secret, "name")


def unreachable(obj: Manifest, world: World) -> str:
    """Return why the provider cannot reach the object's cluster; empty where it can.

    A Secret nobody has shown us is taken to be there: users do not render their kubeconfigs. One that was
    there and has left took the cluster with it.
    """
    config = config_of(obj)
    if config not in world.objects:
        return f'cannot get provider config: {config.kind} "{config.name}" not found'
    space, name = kubeconfig(obj, world)
    if Ref("v1", "Secret", space, name) in world.gone:
        return f'cannot get credentials: Secret "{name}" not found'
    return ""


def consumers(world: World, cluster: Kubeconfig) -> Iterator[Manifest]:
    """Yield the Objects and Releases that reach a cluster by that Secret."""
    for kind in _CONSUMERS:
        for obj in world.of_kind(*kind):
            if kubeconfig(obj, world) == cluster:
                yield obj


def carried(obj: Manifest) -> Manifest:
    """Return what an Object carries to its cluster; empty for anything else."""
    return dict(paths.mapping(obj, "spec", "forProvider", "manifest"))


def charts(world: World, cluster: Kubeconfig) -> dict[str, bool]:
    """Return the charts that stand on the cluster (True) or have left it (False), by name."""
    left = [o for r, o in world.gone.items() if r.kind == "Release" and kubeconfig(o, world) == cluster]
    standing = [o for o in consumers(world, cluster) if o["kind"] == "Release"]
    found = {_chart(o): False for o in left}
    return {**found, **{_chart(o): True for o in standing}}


def _chart(release: Manifest) -> str:
    return paths.text(release, "spec", "forProvider", "chart", "name")


def namespace_exists(obj: Manifest, space: str, world: World) -> bool:
    """Tell whether a namespace is on the cluster the object goes to.

    Charts make their own namespace; others come from Objects.
    """
    if space in _ALWAYS_THERE:
        return True
    cluster = kubeconfig(obj, world)
    for kind in _CONSUMERS:
        for found in world.of_kind(*kind):
            # What it makes first: to ask each where it goes is what costs.
            if _makes(found, space) and kubeconfig(found, world) == cluster:
                return True
    return False


def _makes(obj: Manifest, space: str) -> bool:
    manifest = paths.mapping(obj, "spec", "forProvider", "manifest")
    if manifest.get("kind") == "Namespace" and paths.name(manifest) == space:
        return paths.is_true(obj, "Synced")
    return paths.text(obj, "spec", "forProvider", "namespace") == space and paths.is_true(obj, "Ready")
