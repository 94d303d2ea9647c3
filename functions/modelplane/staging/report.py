"""What a staging run tells about itself: fields of one ConfigMap, which the control plane reads.

A Job's status has no place for a value, and nobody reads a pod's log through a provider. The run may patch
this one ConfigMap and nothing else.
"""

import json
import ssl
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
RUNNING, DONE, BROKEN = "Running", "Staged", "Failed"
_SECONDS = 15.0
_TIMEOUT = 20.0
# What the server answers once the account, its rights or the ConfigMap are gone.
_GONE = {401, 403, 404}
_GONE_FOR_GOOD = 3


class Report:
    """The ConfigMap of one run.

    Args:
        url: of the ConfigMap at the cluster's API server.
        artifact: id of what is staged, so that no other run's words are taken for this one's.
        account: folder with the pod's token and the server's certificate.
    """

    def __init__(self, url: str, artifact: str, account: Path = ACCOUNT) -> None:
        self._url, self._artifact, self._account = url, artifact, account
        self._refusals = 0

    @property
    def unwanted(self) -> bool:
        """Whether nobody waits for this run any more: what it may write to has been gone for a while."""
        return self._refusals >= _GONE_FOR_GOOD

    @classmethod
    def of(cls, env: Mapping[str, str], account: Path = ACCOUNT) -> "Report":
        """Return the report that the environment names."""
        host, port = env["KUBERNETES_SERVICE_HOST"], env["KUBERNETES_SERVICE_PORT"]
        host = f"[{host}]" if ":" in host else host
        namespace = (account / "namespace").read_text(encoding="utf-8").strip()
        url = f"https://{host}:{port}/api/v1/namespaces/{namespace}/configmaps/{env['STAGING_REPORT']}"
        return cls(url, env["STAGING_ID"], account)

    def write(self, state: str, **fields: str) -> bool:
        """Replace the report; tell whether the server took it."""
        data = {"id": self._artifact, "state": state, "reason": None, "message": None, **fields}
        try:
            # Read each time: kubelet renews the token in place.
            token = (self._account / "token").read_text(encoding="utf-8").strip()
            request = urllib.request.Request(
                self._url,
                data=json.dumps({"data": data}).encode(),
                method="PATCH",
                headers={
                    "Authorization": f"Bearer {token}",
                    "Content-Type": "application/merge-patch+json",
                },
            )
            with urllib.request.urlopen(request, timeout=_TIMEOUT, context=self._context()):
                self._refusals = 0
                return True
        except urllib.error.HTTPError as error:
            with error:
                self._refusals = self._refusals + 1 if error.code in _GONE else 0
            return False
        except OSError:
            return False

    def _context(self) -> ssl.SSLContext | None:
        if not self._url.startswith("https:"):
            return None
        return ssl.create_default_context(cafile=str(self._account / "ca.crt"))


class Watch:
    """Reports how far a run is, every few seconds, until the block ends; a lost report stops nothing.

    Args:
        report: where to.
        progress: bytes done and wanted.
        stop: called once nobody waits for the run: its cache was deleted, or asks for something else. Nothing
            else ends it, and its pod would keep the volume for as long as the download takes.
        seconds: between two reports.
    """

    def __init__(
        self,
        report: Report,
        progress: Callable[[], tuple[int, int]],
        stop: Callable[[], None],
        seconds: float = _SECONDS,
    ) -> None:
        self._report, self._progress, self._stop, self._seconds = report, progress, stop, seconds
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _run(self) -> None:
        while True:
            self._report.write(RUNNING, **numbers(*self._progress()))
            if self._report.unwanted:
                self._stop()
                return
            if self._end.wait(self._seconds):
                return


def numbers(done: int, total: int) -> dict[str, str]:
    """Return the fields of a progress; a total that nobody knows is left as it was."""
    return {"bytesDone": str(done), **({"bytesTotal": str(total)} if total else {})}
