"""Stages what the environment names into the mounted volume.

What a user wrote arrives in the environment and stays data. The marker is written last: without it a next run
resumes. It exits with 2 where trying again would change nothing, and the Job then fails at once.
"""

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
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


# Seconds between tries in one pod: a Job has few pods, and terabytes take a day in which a line breaks often.
PAUSES = (5.0, 30.0, 120.0)


def main(env: Mapping[str, str], report: Report, pauses: Sequence[float] = PAUSES) -> int:
    """Stage what the environment names, report it, and return the exit code.

    Args:
        env: of the run.
        report: where to.
        pauses: seconds to wait after each failure that may pass, before the run gives up.
    """
    try:
        facts = _stage(env, report, pauses)
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


def _stage(env: Mapping[str, str], report: Report, pauses: Sequence[float]) -> dict[str, str]:
    volume = Volume(Path(env["STAGING_ROOT"]), env["STAGING_ID"])
    if facts := volume.staged():
        say("it is there already")
        volume.point(facts.pop("path"))
        return facts
    source = SOURCES[env["STAGING_SOURCE"]](env, volume)
    try:
        volume.prune()
        with Watch(report, source.progress, _leave):
            path, revision = _patiently(source, pauses)
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


def _patiently(source: Source, pauses: Sequence[float]) -> tuple[Path, str]:
    """Fetch; where a source did not answer go on after a pause, anew patient with every byte that came."""
    most, left = 0, list(pauses)
    while True:
        try:
            return source.fetch()
        except (Failure, OSError) as error:
            failure = error if isinstance(error, Failure) else outcome.of_os_error(error)
        if (done := source.progress()[0]) > most:
            most, left = done, list(pauses)
        if failure.reason != outcome.UNREACHABLE or not left:
            raise failure
        say(f"{failure.reason}: {failure.text}; it goes on in {left[0]:.0f} s")
        time.sleep(left.pop(0))


def _leave() -> None:
    """End the process from whatever thread: what was fetched so far lies where another run finds it."""
    say("nobody waits for this any more")
    sys.stdout.flush()
    os._exit(HOPELESS)


if __name__ == "__main__":
    sys.exit(main(os.environ, Report.of(os.environ)))
