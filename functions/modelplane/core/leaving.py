"""What a plan no longer wants leaves in the order of its Usages: the user first, then the used.

Core deletes all that is not desired any more in no order, and one refused deletion ends the whole reconcile:
nothing is applied (crossplane, internal/controller/apiextensions/composite, GarbageCollectComposedResources).
A Usage refuses as long as its user is there, and its own deletion waits for that user too, even where the
user is to stay (internal/controller/protection/usage, Reconcile): then nothing would ever be applied again.

So what a user that stays still holds stays with it, unless the plan says that it is not needed: an EKS
cluster for one uses the key that it was made with for good, whatever its spec says later.
"""

from collections.abc import Collection, Container, Mapping

from modelplane import contracts as c
from modelplane.core import keep, paths
from modelplane.core.paths import Manifest

_End = tuple[str, str, str]
# Stands in place of a user that stays: a Usage without one is deleted at once.
_LET_GO = "it is being let go, since what used it does so no longer"


def leaving(
    observed: Mapping[str, Manifest], emitted: Container[str], unused: Collection[str] = ()
) -> dict[str, Manifest]:
    """Return by key what must be sent once more, though the plan does not want it.

    Args:
        observed: the composed resources.
        emitted: the keys that the plan sends.
        unused: the keys that may go although what used them stays.
    """
    by_end = {_end(m): key for key, m in observed.items() if all(_end(m))}
    found: dict[str, Manifest] = {}
    for key, usage in observed.items():
        if key in emitted or paths.text(usage, "apiVersion") != c.PROTECTION_API:
            continue
        used, user = by_end.get(_ref(usage, "of")), by_end.get(_ref(usage, "by"))
        goes = used is not None and used not in emitted
        if user is not None and user in emitted and (not goes or used in unused):
            found[key] = _let_go(usage)
        elif goes and (user is not None or _owned(usage)):
            found[key] = keep.kept(usage)
        if goes and used is not None:
            found[used] = keep.kept(observed[used])
    return found


def _let_go(usage: Manifest) -> Manifest:
    kept = keep.kept(usage)
    spec = {k: v for k, v in kept["spec"].items() if k != "by"}
    return {**kept, "spec": {**spec, "reason": _LET_GO}}


def _owned(usage: Manifest) -> bool:
    """Tell whether the user of a Usage still stands, though core has lost sight of it with its deletion.

    A Usage is owned by its user, and the garbage collector removes that reference once the user is gone.
    """
    api, kind, name = _ref(usage, "by")
    return any(
        (paths.text(x, "apiVersion"), paths.text(x, "kind"), paths.text(x, "name")) == (api, kind, name)
        for x in paths.mappings(usage, "metadata", "ownerReferences")
    )


def _end(manifest: Manifest) -> _End:
    return paths.text(manifest, "apiVersion"), paths.text(manifest, "kind"), paths.name(manifest)


def _ref(usage: Manifest, end: str) -> _End:
    ref = paths.mapping(usage, "spec", end)
    return (
        paths.text(ref, "apiVersion"),
        paths.text(ref, "kind"),
        paths.text(ref, "resourceRef", "name"),
    )
