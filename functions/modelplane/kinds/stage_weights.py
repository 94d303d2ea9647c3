"""Runs in the staging Job on a serving cluster, not here: copies one repository into a cache volume.

What a user wrote arrives in the environment and stays data. The layout is the Hugging Face hub's own cache,
so an engine finds the model by its repository id. The marker is written last: without it a next run resumes.
It exits with 2 where trying again would change nothing, and the Job then fails at once.
"""

import errno
import importlib
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

STAGED, RETRY, PERMANENT = 0, 1, 2


def main(env: Mapping[str, str]) -> int:
    """Stage what the environment names; return the exit code."""
    root = Path(env["HF_HUB_CACHE"])
    repo, revision = env["STAGING_REPO"], env.get("STAGING_REVISION", "")
    marker = root / ".modelplane" / f"{env['STAGING_ID']}.json"
    if staged(root, marker):
        say(f"{repo} is there already")
        return STAGED
    if revision.startswith("/") or ".." in revision.split("/"):
        # The hub's cache makes a file of the revision's name below refs/.
        say("the revision is no branch, tag or commit")
        return PERMANENT
    hub = importlib.import_module("huggingface_hub")
    errors = importlib.import_module("huggingface_hub.errors")
    hopeless = (errors.RepositoryNotFoundError, errors.RevisionNotFoundError, errors.HFValidationError)
    try:
        snapshot = Path(
            hub.snapshot_download(
                repo_id=repo,
                revision=revision or None,
                cache_dir=str(root),
                token=env.get("HF_TOKEN") or False,
            )
        )
    except hopeless as error:
        say(f"{type(error).__name__}: check repo, revision and token of {repo}")
        return PERMANENT
    except OSError as error:
        say(f"{type(error).__name__}: {error.strerror or 'the hub or the volume did not answer'}")
        return PERMANENT if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EACCES) else RETRY
    finish(root, marker, snapshot, {"repo": repo, "revision": revision, "commit": snapshot.name})
    say(f"{repo} staged at {snapshot.name}")
    return STAGED


def say(text: str) -> None:
    """Write a line to the pod's log, which is also its termination message."""
    sys.stdout.write(f"{text}\n")


def staged(root: Path, marker: Path) -> bool:
    """Tell whether the marker stands and what it names is still there."""
    try:
        found = json.loads(marker.read_text(encoding="utf-8"))
        return (root / str(found["path"])).is_dir()
    except (OSError, ValueError, KeyError, TypeError):
        return False


def finish(root: Path, marker: Path, snapshot: Path, facts: Mapping[str, str]) -> None:
    """Write the marker in one step, so that nobody reads half of it."""
    marker.parent.mkdir(exist_ok=True)
    draft = marker.with_suffix(f".{os.getpid()}")
    draft.write_text(json.dumps({**facts, "path": os.path.relpath(snapshot, root)}), encoding="utf-8")
    draft.replace(marker)


if __name__ == "__main__":
    sys.exit(main(os.environ))
