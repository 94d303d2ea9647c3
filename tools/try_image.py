"""Start what is in the runtime image as a kubelet would, call it, and hold its size and start to limits.

Usage, as root on Linux: python tools/try_image.py LAYOUT

The image is unpacked and run by chroot in a mount namespace: as a user who owns nothing, the root read-only,
with /dev but no /proc and no /tmp, certificates where core mounts them, TLS on both sides. There is no
container runtime in it: what that adds (cgroup limits, seccomp) is not tried.
"""

from __future__ import annotations

import contextlib
import io
import shlex
import shutil
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

import grpc
from crossplane.function import resource
from crossplane.function.proto.v1 import run_function_pb2 as fnv1
from crossplane.function.proto.v1 import run_function_pb2_grpc as grpcv1

import oci

# What Crossplane runs functions as is 2000; any other number must do as well.
USER = 65532
CERTIFICATES = "tls/server"
MEGABYTE = 1_000_000
UNPACKED_LIMIT = 120 * MEGABYTE
START_LIMIT = 1.0
STARTS = 5
_DEADLINE = 20
_XR = {
    "apiVersion": "modelplane.ai/v1alpha1",
    "kind": "InferenceClass",
    "metadata": {"name": "big"},
    "spec": {},
}


def main(layout: Path) -> int:
    """Print what was measured; return the exit status."""
    (image,) = oci.read(layout)
    with tempfile.TemporaryDirectory(prefix="modelplane-image-") as name:
        root = Path(name) / "root"
        unpack(image, root)
        # Before the certificates come, which are no part of the image.
        unpacked = sum(path.lstat().st_size for path in root.rglob("*") if path.is_file())
        certificates(Path(name), root / CERTIFICATES)
        before = cpu_of_children()
        starts = sorted(seconds_to_first_answer(image, Path(name)) for _ in range(STARTS))
        cpu = (cpu_of_children() - before) / STARTS
    compressed = sum(len(layer.blob) for layer in image.layers)
    print(f"size: {compressed / MEGABYTE:.1f} MB compressed, {unpacked / MEGABYTE:.1f} MB unpacked")
    print(
        f"start to first answer over mTLS: {starts[0]:.2f} to {starts[-1]:.2f} s in {STARTS} starts,"
        f" {cpu:.2f} s of CPU each"
    )
    faults = []
    if unpacked > UNPACKED_LIMIT:
        faults.append(f"it unpacks to more than {UNPACKED_LIMIT / MEGABYTE:.0f} MB")
    # The quickest: what else runs on the machine can only add.
    if starts[0] > START_LIMIT:
        busy = ": it waits for a processor, so try again on an idle machine" if cpu < START_LIMIT else ""
        faults.append(f"it starts in more than {START_LIMIT} s{busy}")
    for fault in faults:
        print(f"{layout}: {fault}", file=sys.stderr)
    return 1 if faults else 0


def cpu_of_children() -> float:
    """Seconds of CPU, user and system, of every process that was started here and has ended."""
    used = getrusage(RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def unpack(image: oci.Image, root: Path) -> None:
    """Lay the image's layers over each other, owners as they are in it."""
    for layer in image.layers:
        with tarfile.open(fileobj=io.BytesIO(layer.blob)) as tar:
            tar.extractall(root, filter="fully_trusted", numeric_owner=True)


def certificates(client: Path, server: Path) -> None:
    """An authority, and a certificate for each side, in the form and under the names that core uses."""
    server.mkdir(parents=True)
    ca, key = str(client / "ca.crt"), str(client / "ca.key")
    _openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", ca, "-subj", "/CN=ca")
    for folder in (server, client):
        request, names = str(folder / "csr"), folder / "names"
        names.write_text("subjectAltName=DNS:localhost\n")
        made = ["-keyout", str(folder / "tls.key"), "-out", request, "-subj", "/CN=localhost"]
        _openssl("req", "-new", "-newkey", "rsa:2048", "-nodes", *made)
        signed = ["-CA", ca, "-CAkey", key, "-CAcreateserial", "-out", str(folder / "tls.crt")]
        _openssl("x509", "-req", "-in", request, *signed, "-days", "1", "-extfile", str(names))
        (folder / "tls.key").chmod(0o644)
    shutil.copy(ca, server)


def seconds_to_first_answer(image: oci.Image, home: Path) -> float:
    """Start it once and call it; raises where it does not answer as a function, or not end at SIGTERM."""
    settings = image.config["config"]
    port = _free_port()
    command = [*settings["Entrypoint"], *(settings.get("Cmd") or []), "--address", f"127.0.0.1:{port}"]
    started = time.monotonic()
    with _running([*command, "--tls-server-certs-dir", f"/{CERTIFICATES}"], home) as process:
        files = (home / name for name in ("ca.crt", "tls.key", "tls.crt"))
        identity = grpc.ssl_channel_credentials(*(path.read_bytes() for path in files))
        eager = [("grpc.initial_reconnect_backoff_ms", 20), ("grpc.min_reconnect_backoff_ms", 20)]
        with grpc.secure_channel(f"localhost:{port}", identity, eager) as channel:
            request = fnv1.RunFunctionRequest()
            resource.update(request.observed.composite, _XR)
            stub = grpcv1.FunctionRunnerServiceStub(channel)
            response = stub.RunFunction(request, timeout=_DEADLINE, wait_for_ready=True)
        took = time.monotonic() - started
        faults = [one.message for one in response.results if one.severity == fnv1.SEVERITY_FATAL]
        if faults or not response.conditions:
            raise RuntimeError(f"it answered, but not as the function does: {faults or response}")
        process.terminate()
        if process.wait(_DEADLINE) != 0:
            raise RuntimeError(f"SIGTERM ended it with {process.returncode}, not with 0")
    return took


@contextlib.contextmanager
def _running(command: list[str], home: Path) -> Iterator[subprocess.Popen[bytes]]:
    root = shlex.quote(str(home / "root"))
    steps = (
        f"mount --bind {root} {root}",
        # Without /dev/urandom CEL's library does not load, and says so before anybody hears it.
        f"mkdir -p {root}/dev",
        f"mount --rbind /dev {root}/dev",
        f"mount -o remount,bind,ro {root}",
        f"exec chroot --userspec={USER}:{USER} --groups={USER} {root} {shlex.join(command)}",
    )
    script = " && ".join(steps)
    log = home / "log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            ["unshare", "--mount", "--", "sh", "-c", script], stdout=out, stderr=out, env={}
        )
        try:
            yield process
        except Exception as error:
            raise RuntimeError(f"{error}\n{log.read_text()}") from error
        finally:
            process.kill()
            process.wait()


def _openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1])))
