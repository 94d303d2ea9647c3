"""The part of kustomize that needs no kustomize: a folder that names files and other folders."""

from pathlib import Path

from modelplane.api import documents
from modelplane.api.documents import DocumentError

# In the order kustomize looks for them.
NAMES = ("kustomization.yaml", "kustomization.yml", "Kustomization")
_HINT = "render the output of `kustomize build` instead"
_READ = {"apiVersion", "kind", "metadata", "resources"}
# How kustomize tells a URL or a remote repository from a path.
_REMOTE = ("://", "github.com/", "git@", "git::")


def of(folder: Path) -> Path | None:
    """Return the folder's kustomization, or None where it has none."""
    return next((folder / name for name in NAMES if (folder / name).is_file()), None)


def resources(listing: Path) -> list[tuple[Path, str]]:
    """Return what a kustomization names, each with the place that names it.

    Raises:
        DocumentError: where it is none, or asks for more than to read files and folders.
    """
    found = documents.read(listing)
    if len(found) != 1:
        raise DocumentError(listing, f"must hold one document, not {len(found)}", 1, 1)
    (document,) = found
    body = document.body
    if body.get("kind", "Kustomization") != "Kustomization":
        raise DocumentError(
            listing, f"kind {body['kind']} cannot be read here; {_HINT}", document.line_of("kind"), 1
        )
    for field in body:
        if field not in _READ:
            reason = f"{field}: only resources can be read here; {_HINT}"
            raise DocumentError(listing, reason, document.line_of(field), 1)
    entries = body.get("resources") or []
    if not isinstance(entries, list):
        raise DocumentError(listing, "resources: must be a list of paths", document.line_of("resources"), 1)
    paths = []
    for at, entry in enumerate(entries):
        line = document.line_of(f"resources[{at}]")
        if not isinstance(entry, str) or not entry:
            raise DocumentError(listing, f"resources[{at}]: must be a path", line, 1)
        if any(mark in entry for mark in _REMOTE):
            raise DocumentError(
                listing, f"resources[{at}]: {entry} is remote and not fetched; {_HINT}", line, 1
            )
        paths.append((listing.parent / entry, f"{listing}:{line}: resources[{at}]"))
    return paths
