"""Stages what the environment names into the mounted volume.

What a user wrote arrives in the environment and stays data. The marker is written last: without it a next run
resumes. It exits with 2 where trying again would change nothing, and the Job then fails at once.
"""

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from modelplane.staging import bucket, hub, oci, outcome
from modelplane.staging.outcome import HOPELESS, RETRY, STAGED, Failure, say
from modelplane.staging.report import BROKEN, DONE, Report, Watch, numbers
from modelplane.staging.volume import Volume


class Source(Protocol):
    """What every source can do."""

    def progress(self) -> tuple[int, int]:
        """Return the bytes that are there and those that are wanted; 0 while that is unknown."""
        ...

    def fetch(self) -> tuple[Path, str]:
        """Stage the artifact; return where it is and what identifies its content."""
        ...


SOURCES: Mapping[str, Callable[[Mapping[str, str], Volume], Source]] = {
    "HuggingFace": hub.Hub,
    "Bucket": bucket.Bucket,
    "OCI": oci.Image,
}


def main(env: Mapping[str, str], report: Report) -> int:
    """Stage what the environment names, report it, and return the exit code."""
    try:
        facts = _stage(env, report)
    except Failure as failure:
        say(f"{failure.reason}: {failure.text}")
        report.write(BROKEN, reason=failure.reason, message=failure.text)
        return HOPELESS if failure.hopeless else RETRY
    say(f"staged at {facts['revision']}")
    if not report.write(DONE, **facts):
        # Nobody would learn of it: the next run finds the marker and only reports.
        say("the report was not taken")
        return RETRY
    return STAGED


def _stage(env: Mapping[str, str], report: Report) -> dict[str, str]:
    volume = Volume(Path(env["STAGING_ROOT"]), env["STAGING_ID"])
    if facts := volume.staged():
        say("it is there already")
        volume.point(facts.pop("path"))
        return facts
    source = SOURCES[env["STAGING_SOURCE"]](env, volume)
    try:
        volume.prune()
        with Watch(report, source.progress, _leave):
            path, revision = source.fetch()
        done, total = source.progress()
        facts = {"revision": revision, **numbers(done, total)}
        volume.finish(path, facts)
    except Failure:
        raise
    except OSError as error:
        raise outcome.of_os_error(error) from None
    except Exception as error:  # noqa: BLE001  (a client's own errors: their text may hold a URL or a key)
        raise Failure(outcome.FAILED, f"the client failed: {type(error).__name__}") from None
    return facts


def _leave() -> None:
    """End the process from whatever thread: what was fetched so far lies where another run finds it."""
    say("nobody waits for this any more")
    sys.stdout.flush()
    os._exit(HOPELESS)


if __name__ == "__main__":
    sys.exit(main(os.environ, Report.of(os.environ)))
