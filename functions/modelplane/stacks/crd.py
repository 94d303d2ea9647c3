"""CRDs that no chart carries, as documents of a component."""

from modelplane.core import paths
from modelplane.core.builders import WITHOUT_DELETE
from modelplane.facts import versions
from modelplane.facts.versions import Pin
from modelplane.stacks.component import Document, condition_true

_ESTABLISHED = condition_true("Established")


def documents(pin: Pin) -> list[Document]:
    """Return one document per CRD of the pin, named by its plural where there are several.

    A CRD stays on the cluster when the stack goes, as one from a chart's `crds/` folder does: deleting it
    deletes every object of its kind, also those that are not ours.
    """
    found = versions.crds(pin)
    return [
        Document(
            manifest=manifest,
            ready=_ESTABLISHED,
            name=paths.text(manifest, "spec", "names", "plural") if len(found) > 1 else "",
            policies=WITHOUT_DELETE,
        )
        for manifest in found
    ]
