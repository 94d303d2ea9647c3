"""What the server and the renderer cost before the first call."""

import os
import signal
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
from crossplane.function.proto.v1 import run_function_pb2_grpc as grpcv1

from benchmarks import drive

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
SERVE = ("-m", "modelplane", "serve", "--insecure", "--address")
TRIVIAL = ("-m", "benchmarks.trivial")
_ROUNDS = 3
_UNLIMITED = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]


@contextmanager
def serving(*command: str) -> Iterator[tuple[int, grpcv1.FunctionRunnerServiceStub]]:
    """Run a server on loopback; gives its process id and a stub."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    process = subprocess.Popen(
        [sys.executable, *command, address], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        with grpc.insecure_channel(address, options=_UNLIMITED) as channel:
            grpc.channel_ready_future(channel).result(timeout=60)
            yield process.pid, grpcv1.FunctionRunnerServiceStub(channel)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=30)


def footprint() -> None:
    """Print memory at rest, the time to import the server, and whole cold renders."""
    with serving(*SERVE) as (pid, _):
        time.sleep(1)
        idle = drive.resident(pid)
    drive.table("Memory at rest", ["what", "MiB", "to hold"], [("server", idle, 80)])
    libraries = "import crossplane.function.cli, grpc_reflection.v1alpha.reflection"
    rows = [
        ("an empty interpreter", *_fresh("-c", ""), ""),
        ("import of the SDK alone", *_fresh("-c", libraries), ""),
        ("import of the server", *_fresh("-c", "import modelplane.shell.server"), 600),
    ]
    for name in sorted(f.parent.name for f in EXAMPLES.glob("*/cluster.yaml")):
        command = ("-m", "modelplane", "render", str(EXAMPLES / name), "--recurse")
        rows.append((f"render of {name} until nothing changes", *_fresh(*command), 1000))
    drive.table("Fresh processes", ["what", "wall ms", "CPU ms", "to hold"], rows)


def _fresh(*command: str) -> tuple[float, float]:
    """Return the medians of running it from nothing: wall and CPU."""
    wall, cpu = [], []
    for _ in range(_ROUNDS):
        before, started = os.times(), time.perf_counter()
        subprocess.run([sys.executable, *command], check=True, capture_output=True)
        after = os.times()
        wall.append((time.perf_counter() - started) * 1000)
        used = after.children_user + after.children_system - before.children_user - before.children_system
        cpu.append(used * 1000)
    return statistics.median(wall), statistics.median(cpu)
