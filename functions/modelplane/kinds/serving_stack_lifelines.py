"""What of a cloud must stand until the last thing that reaches the cluster is gone.

On deletion Crossplane orders nothing, and a Usage by the stack itself ends with the stack, before what the
stack composed (`kubectl delete` takes owners first). So a cloud marks a leaf, such as the object that writes
the kubeconfig, and the stack holds it by its provider configs. Those go last of all it has: each Object and
Release holds its config.
"""

from collections.abc import Sequence

from modelplane import contracts as c
from modelplane import names
from modelplane.clouds.registry import CLOUDS
from modelplane.core import Desired, Inputs, Manifest, Ready, Requirement, keep, paths, usages
from modelplane.kinds import looks

LOOKUP = "lifelines"
_KEY = "lifeline-"
_USAGES = f"usage-{_KEY}"


def requirements(composite: Manifest) -> list[Requirement]:
    """Return the lookup of the cluster's lifelines; none on a cloud that has none."""
    cloud = CLOUDS.get(paths.text(composite, "spec", "cloud"))
    kind = cloud.lifeline if cloud else None
    space = paths.namespace(composite)
    if kind is None or not space:
        return []
    cluster = paths.text(composite, "spec", "clusterName") or paths.name(composite)
    labels = {c.CLUSTER_LABEL: names.label_value(cluster), c.ROLE_LABEL: c.ROLE_LIFELINE}
    return [Requirement(LOOKUP, *kind, match_labels=labels, namespace=space)]


def held(inputs: Inputs, configs: Sequence[Desired]) -> list[Desired]:
    """Return a Usage of each lifeline by each provider config.

    One whose lifeline is not found is sent once more with a mark, and goes at the next look.
    """
    by = {config.key: config.manifest for config in configs}
    found = [
        usages.usage(inputs.name, inputs.namespace, edge, {**by, edge[0]: leaf})
        for leaf in inputs.all(LOOKUP)
        if usages.identified(leaf) and paths.namespace(leaf) == inputs.namespace
        for edge in [(f"{_KEY}{paths.name(leaf)}", config) for config in by]
    ]
    known = {usage.key for usage in found}
    missing = [
        Desired(key, looks.mark(keep.kept(seen)), Ready.exists())
        for key, seen in inputs.observed.items()
        if key.startswith(_USAGES) and key not in known and usages.identified(seen) and not looks.marked(seen)
    ]
    return [*found, *missing]
