"""The gRPC server: the SDK's runtime around one `Responder`."""

import gc
from pathlib import Path
from typing import Any

import click
import grpc
from crossplane.function import cli as sdk
from crossplane.function.proto.v1 import run_function_pb2 as fnv1
from crossplane.function.proto.v1 import run_function_pb2_grpc as grpcv1

from modelplane.kinds.registry import KINDS
from modelplane.shell.respond import Responder

# A request carries every required object: a fleet of 5,000 clusters is 18 MB.
RECEIVE_LIMIT_MIB = 64
_CREDENTIALS = ("tls.crt", "tls.key", "ca.crt")
# Python's default looks for cycles every 700 new containers, and walks all that is kept again and again: a
# first call over 5,000 clusters took 0.71 s of CPU with it and 0.49 s so. What we make has no cycles.
_GC = (100_000, 50, 100)


def relax_gc() -> None:
    """Look for cycles seldom: what stays in memory is large, acyclic and meant to stay."""
    gc.set_threshold(*_GC)


class FunctionRunner(grpcv1.FunctionRunnerServiceServicer):
    """The function as the SDK serves it."""

    def __init__(self) -> None:
        self._responder = Responder(KINDS)

    async def RunFunction(  # noqa: N802  (gRPC's name)
        self,
        request: fnv1.RunFunctionRequest,
        context: grpc.aio.ServicerContext,  # noqa: ARG002
    ) -> fnv1.RunFunctionResponse:
        """Answer one request."""
        return self._responder.respond(request)


@click.command(help="Serve the composition function that Crossplane calls.")
@sdk.standard_options
def serve(**options: Any) -> None:
    """Run the server until SIGTERM; credentials or --insecure are required."""
    relax_gc()
    if not options["insecure"] and not options["tls_certs_dir"]:
        raise click.UsageError(
            f"no credentials: give --tls-server-certs-dir ({', '.join(_CREDENTIALS)}) or --insecure"
        )
    if options["insecure"]:
        # The SDK reads the certificates even so, and would serve both on the one address.
        options["tls_certs_dir"] = None
    else:
        folder = Path(options["tls_certs_dir"])
        if missing := [name for name in _CREDENTIALS if not (folder / name).is_file()]:
            raise click.UsageError(f"no credentials: {folder} has no {', '.join(missing)}")
    sdk.run(FunctionRunner(), **options)


for _option in serve.params:
    if _option.name == "max_recv_message_size":
        _option.default = RECEIVE_LIMIT_MIB
