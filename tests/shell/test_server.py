"""The server as it is started: `modelplane serve` in a process of its own, called over loopback."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from crossplane.function.proto.v1 import run_function_pb2 as fnv1
from crossplane.function.proto.v1 import run_function_pb2_grpc as grpcv1
from crossplane.function.proto.v1beta1 import run_function_pb2 as fnv1beta1
from crossplane.function.proto.v1beta1 import run_function_pb2_grpc as grpcv1beta1

from builders.calls import request
from builders.core import widget

SECONDS = 120
COMMAND = [sys.executable, "-m", "modelplane", "serve"]
# What the SDK's flags read from the environment must not decide what is tested here.
FLAGS = ("INSECURE", "ADDRESS", "DEBUG", "TLS_SERVER_CERTS_DIR")
ENVIRONMENT = {k: v for k, v in os.environ.items() if k not in FLAGS and "MESSAGE_SIZE" not in k}


def free_address() -> str:
    """A loopback port that was free just now; the server does not say which one port 0 became."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


@pytest.fixture(scope="module")
def channel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[grpc.Channel]:
    address = free_address()
    log = tmp_path_factory.mktemp("serve") / "log"
    with log.open("w") as out:
        process = subprocess.Popen(
            [*COMMAND, "--insecure", "--address", address], stdout=out, stderr=out, env=ENVIRONMENT
        )
        try:
            with grpc.insecure_channel(address) as opened:
                try:
                    grpc.channel_ready_future(opened).result(timeout=SECONDS)
                except grpc.FutureTimeoutError:
                    pytest.fail(f"does not listen after {SECONDS} s: {log.read_text()}")
                yield opened
            process.terminate()
            assert process.wait(timeout=SECONDS) == 0, "SIGTERM drains and exits 0"
        finally:
            process.kill()
            process.wait()


def refused(rsp: Any) -> str:
    (result,) = rsp.results
    assert result.severity == fnv1.SEVERITY_FATAL
    return str(result.message)


def test_a_call_is_answered(channel: grpc.Channel) -> None:
    stub = grpcv1.FunctionRunnerServiceStub(channel)
    rsp = stub.RunFunction(request(widget()), timeout=SECONDS)
    assert rsp.meta.tag == "t1"
    assert refused(rsp).startswith("no composer for example.org/v1 Widget;")


def test_a_kind_of_ours_is_composed(channel: grpc.Channel) -> None:
    xr = {
        "apiVersion": "modelplane.ai/v1alpha1",
        "kind": "InferenceClass",
        "metadata": {"name": "big"},
        "spec": {},
    }
    rsp = grpcv1.FunctionRunnerServiceStub(channel).RunFunction(request(xr), timeout=SECONDS)
    assert [r.message for r in rsp.results if r.severity == fnv1.SEVERITY_FATAL] == []
    assert len(rsp.conditions) > 0


def test_an_older_core_is_answered_over_v1beta1(channel: grpc.Channel) -> None:
    req = fnv1beta1.RunFunctionRequest.FromString(request(widget()).SerializeToString())
    rsp = grpcv1beta1.FunctionRunnerServiceStub(channel).RunFunction(req, timeout=SECONDS)
    assert refused(rsp).startswith("no composer for example.org/v1 Widget;")


def test_a_request_beyond_grpc_s_own_limit_of_4_mib_is_read(channel: grpc.Channel) -> None:
    req = request(widget(), required={"fleet": [{"data": "x" * 6_000_000}]})
    assert req.ByteSize() > 6_000_000
    rsp = grpcv1.FunctionRunnerServiceStub(channel).RunFunction(req, timeout=SECONDS)
    assert refused(rsp).startswith("no composer for ")


def test_the_next_call_after_a_refused_one_is_answered(channel: grpc.Channel) -> None:
    stub = grpcv1.FunctionRunnerServiceStub(channel)
    answers = {refused(stub.RunFunction(request(widget()), timeout=SECONDS)) for _ in range(3)}
    assert len(answers) == 1


def serve(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [*COMMAND, "--address", "127.0.0.1:0", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=SECONDS, env=ENVIRONMENT, check=False
    )


@pytest.mark.parametrize(
    ("files", "message", "reason"),
    [
        (
            None,
            "no credentials: give --tls-server-certs-dir (tls.crt, tls.key, ca.crt) or --insecure",
            "none",
        ),
        ([], "has no tls.crt, tls.key, ca.crt", "an empty folder"),
        (["tls.crt", "tls.key"], "has no ca.crt", "callers could not be told from others"),
    ],
)
def test_without_credentials_it_does_not_start_and_says_what_is_missing(
    files: list[str] | None, message: str, reason: str, tmp_path: Path
) -> None:
    for name in files or []:
        (tmp_path / name).write_text("")
    done = serve(*([] if files is None else ["--tls-server-certs-dir", str(tmp_path)]))
    assert done.returncode == 2, reason
    assert message in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_the_receive_limit_holds_a_fleet_by_default() -> None:
    done = serve("--help")
    assert done.returncode == 0
    assert "received gRPC messages in MB. [default: 64]" in " ".join(done.stdout.split())
