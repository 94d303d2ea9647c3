"""How a staging run ends: the reasons people see, and which failures another run may mend."""

import errno
import sys

STAGED, RETRY, HOPELESS = 0, 1, 2

UNAUTHORIZED = "Unauthorized"
NOT_FOUND = "NotFound"
NO_SPACE = "NoSpace"
CORRUPT = "Corrupt"
INVALID = "Invalid"
UNREACHABLE = "Unreachable"
FAILED = "Failed"


class Failure(Exception):  # noqa: N818  (an outcome that is reported, not a defect)
    """Why nothing was staged.

    Args:
        reason: one of the words above.
        text: for people; never a credential, and no URL, which may carry one.
        hopeless: whether trying again without a change would fail again.
    """

    def __init__(self, reason: str, text: str, *, hopeless: bool = False) -> None:
        super().__init__(text)
        self.reason, self.text, self.hopeless = reason, text, hopeless


def of_os_error(error: OSError) -> Failure:
    """Return the failure behind a system error: of the volume, else of the network."""
    name = type(error).__name__
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return Failure(NO_SPACE, "the volume is full", hopeless=True)
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return Failure(FAILED, f"the volume cannot be written: {name}", hopeless=True)
    if error.errno in (errno.EISDIR, errno.ENOTDIR, errno.ENAMETOOLONG):
        # A store may hold `a` and `a/b`, or names longer than a file's. "Exists" may be another pod's doing.
        return Failure(INVALID, f"what a file is called can be no file's name here: {name}", hopeless=True)
    return Failure(UNREACHABLE, f"the source or the volume did not answer: {name}")


def say(text: str) -> None:
    """Write a line to the pod's log, which is also its termination message."""
    sys.stdout.write(f"{text}\n")
