"""Long-running programs of a control plane: a log each, ready or dead within a deadline, gone at exit."""

from __future__ import annotations

import atexit
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

STOP_SECONDS = 10
# Until something that is waited for counts as a failure. Seconds do on an idle machine; CI's may be shared.
PATIENCE_SECONDS = 300
TAIL_LINES = 25
LOOPBACK = "127.0.0.1"
# Below those for connections out (32768 by Linux's default), above those with a name; a thousand for each
# worker of pytest-xdist, of which no two may take the same between looking and listening.
WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % 10
PORTS = range(20000 + WORKER * 1000, 21000 + WORKER * 1000)
_given: set[int] = set()


class StartError(Exception):
    """A program did not become ready; the message ends with the last lines of its log."""


class Process:
    """One program, its command line and its log; it can be stopped and started again."""

    def __init__(
        self, name: str, command: Sequence[str], logs: Path, env: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self.log = logs / f"{name}.log"
        self._command = [*_ends_with_us(), *(str(part) for part in command)]
        self._env = {**os.environ, **(env or {})}
        self._running: subprocess.Popen[bytes] | None = None
        atexit.register(self.kill)

    @property
    def pid(self) -> int | None:
        """The process id, None while it does not run."""
        return self._running.pid if self._running and self._running.poll() is None else None

    def start(self, ready: Callable[[], bool], seconds: float = PATIENCE_SECONDS) -> None:
        """Start and wait until `ready`; raises `StartError` when it exits first or the time is over."""
        with self.log.open("ab") as log:
            # A session of its own, so that Ctrl-C reaches us first and things stop in order.
            self._running = subprocess.Popen(
                self._command,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env=self._env,
                start_new_session=True,
            )
        deadline = time.monotonic() + seconds
        while not ready():
            if self.pid is None:
                raise StartError(f"{self.name} exited with {self._running.returncode}:\n{self.tail()}")
            if time.monotonic() > deadline:
                self.kill()
                raise StartError(f"{self.name} was not ready after {seconds:.0f} s:\n{self.tail()}")
            time.sleep(0.1)

    def stop(self) -> None:
        """Ask it to end, and make it after ten seconds."""
        if self._running is None or self.pid is None:
            return
        self._running.send_signal(signal.SIGTERM)
        try:
            self._running.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """End it at once, as a lost machine would."""
        if self._running is not None and self.pid is not None:
            self._running.kill()
            self._running.wait()

    def tail(self) -> str:
        """The last lines it logged."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-TAIL_LINES:])


def _ends_with_us() -> list[str]:
    """What to put before a command so that it ends when we do, however we end; nothing where it is not had.

    A test run that was killed left API servers behind. Linux only (util-linux); elsewhere `atexit` has to do.
    """
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "KILL"] if setpriv else []


def free_ports(count: int) -> list[int]:
    """That many ports that nothing listens on, each another, none of them given before.

    Not those that the system gives away: until we listen on one, any connection out could take it.
    """
    found: list[int] = []
    for port in random.sample(sorted({*PORTS} - _given), len(PORTS) - len(_given)):
        with socket.socket() as one:
            # As servers do; else a port is taken for a minute after its last connection.
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                one.bind((LOOPBACK, port))
            except OSError:
                continue
        found.append(port)
        if len(found) == count:
            _given.update(found)
            return found
    raise StartError(f"no {count} free ports between {PORTS.start} and {PORTS.stop}")


def listens(port: int, host: str = LOOPBACK) -> bool:
    """Whether something accepts connections there."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((host, port)) == 0


def wait_for(
    what: str,
    holds: Callable[[], bool],
    seconds: float = PATIENCE_SECONDS,
    seen: Callable[[], object] = lambda: "",
) -> None:
    """Return once it holds; raises `TimeoutError` saying what never did, and what was seen last."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(f"after {seconds:.0f} s still not: {what} {seen()}".rstrip())
        time.sleep(0.1)


def say(line: str) -> None:
    """Tell whoever waits, at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
