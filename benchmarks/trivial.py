"""A function that answers at once with what it was asked: what a call costs before any of ours is run."""

import datetime
import sys

import grpc
from crossplane.function import response, runtime
from crossplane.function.proto.v1 import run_function_pb2 as fnv1
from crossplane.function.proto.v1 import run_function_pb2_grpc as grpcv1

from modelplane.shell.server import RECEIVE_LIMIT_MIB


class Trivial(grpcv1.FunctionRunnerServiceServicer):
    """Composes nothing."""

    async def RunFunction(  # noqa: N802  (gRPC's name)
        self,
        request: fnv1.RunFunctionRequest,
        context: grpc.aio.ServicerContext,  # noqa: ARG002
    ) -> fnv1.RunFunctionResponse:
        """Answer one request."""
        return response.to(request, datetime.timedelta(0))


if __name__ == "__main__":
    limit = [("grpc.max_receive_message_length", RECEIVE_LIMIT_MIB << 20)]
    runtime.serve(Trivial(), sys.argv[1], creds=None, insecure=True, options=limit)
