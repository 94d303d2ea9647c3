"""Two looks before something goes: an empty list may be a lookup gone wrong, so the first look only marks.

What is marked and still not wanted at the next look leaves the plan (docs/adr/0003-team-namespaces.md).
"""

from modelplane import contracts as c
from modelplane.core import Desired, Manifest, Ready, paths


def marked(seen: Manifest) -> bool:
    """Tell whether an earlier look found nobody who needs this."""
    return c.UNUSED_ANNOTATION in paths.mapping(seen, "metadata", "annotations")


def mark(manifest: Manifest) -> Manifest:
    """Return the manifest with the mark."""
    metadata = dict(manifest["metadata"])
    metadata["annotations"] = {**metadata.get("annotations", {}), c.UNUSED_ANNOTATION: "true"}
    return {**manifest, "metadata": metadata}


def guard(key: str, manifest: Manifest, seen: Manifest | None, *, busy: bool) -> list[Desired]:
    """Return the usage that refuses a deletion; it goes at the second look that finds nobody.

    Args:
        key: its composition resource name.
        manifest: the usage.
        seen: the usage as observed; None where there is none.
        busy: whether anybody needs what it protects.
    """
    if busy:
        return [Desired(key, manifest, Ready.exists())]
    if seen is None or marked(seen):
        return []
    return [Desired(key, mark(manifest), Ready.exists())]
