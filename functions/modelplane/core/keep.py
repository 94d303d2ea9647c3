"""Re-applying an observed object so that it stays exactly as it is.

Crossplane deletes what a function leaves out, and removes every field it stops sending. So a resource that
must be kept without knowing how to build it is sent back whole: its spec as observed, and all metadata but
what the server and Crossplane own. Sending a value another manager also owns is harmless: dropping it later
leaves the other manager's copy (Kubernetes, server-side apply, "Transferring ownership").
"""

import copy
from collections.abc import Mapping
from typing import Any

from modelplane import contracts as c
from modelplane.core import paths
from modelplane.core.paths import Manifest

# Composed objects: Crossplane writes the mark of their composite itself, and its Usages mark what is in use
# and which deletion they refused. Sent back, that last one would replay a deletion nobody asks for any more
# (crossplane, internal/protection/usage, AnnotationKeyDeletionAttempt).
_CROSSPLANE_LABELS = {c.COMPOSITE_LABEL, c.IN_USE_LABEL}
_CROSSPLANE_ANNOTATIONS = {c.RESOURCE_NAME_ANNOTATION, c.USAGE_DETAILS_ANNOTATION}
_CROSSPLANE_PREFIXES = (c.EXTERNAL_CREATE_PREFIX, c.USAGE_ANNOTATION_PREFIX)
# Composites: what Crossplane keeps in them beside our own status.
_NOT_OUR_STATUS = {"conditions", "crossplane"}


def kept(observed: Mapping[str, Any]) -> Manifest:
    """Return the manifest that re-applies what is observed."""
    metadata: Manifest = {k: paths.at(observed, "metadata", k) for k in ("name", "namespace")}
    metadata["labels"] = {k: v for k, v in paths.labels(observed).items() if k not in _CROSSPLANE_LABELS}
    metadata["annotations"] = {
        k: v
        for k, v in paths.mapping(observed, "metadata", "annotations").items()
        if k not in _CROSSPLANE_ANNOTATIONS and not k.startswith(_CROSSPLANE_PREFIXES)
    }
    body = {k: copy.deepcopy(v) for k, v in observed.items() if k not in ("metadata", "status")}
    return {**body, "metadata": {k: v for k, v in metadata.items() if v}}


def kept_status(composite: Mapping[str, Any]) -> Manifest:
    """Return the composite's own status fields as observed, to be sent again."""
    status = paths.mapping(composite, "status")
    return {k: copy.deepcopy(v) for k, v in status.items() if k not in _NOT_OUR_STATUS}
