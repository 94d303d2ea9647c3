"""`make controlplane`: bring everything up, say where it is, and take it down at Ctrl-C."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from controlplane.binaries import UnavailableError, find_or_build
from controlplane.control_plane import ControlPlane
from controlplane.processes import StartError, say


def main() -> int:
    """Run until interrupted; exit status 1 and the part's name where one cannot be had or does not start."""
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    begun = time.monotonic()
    try:
        with ControlPlane(find_or_build()) as running:
            if crds := os.environ.get("CRDS_DIR"):
                running.install_providers(Path(crds))
            else:
                say("CRDS_DIR names no folder: what is composed of providers' kinds is refused")
            say(f"up after {time.monotonic() - begun:.0f} s; logs below {running.server.logs}")
            say(f"export KUBECONFIG={running.server.kubeconfig}")
            signal.pause()
    except KeyboardInterrupt:
        return 0
    except (UnavailableError, StartError, TimeoutError) as error:
        say(f"no control plane: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
