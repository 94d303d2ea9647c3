"""A platform's own composition function, as small as it can be: what its Compositions do beside Modelplane.

It is an ordinary function on Crossplane's SDK for Python and shares no code with Modelplane. `main` serves it
as the SDK does; the image around it is the platform's own.
"""

from collections.abc import Callable
from typing import Any

import click
import grpc
from crossplane.function import cli, resource, response
from crossplane.function.proto.v1 import run_function_pb2 as fnv1
from crossplane.function.proto.v1 import run_function_pb2_grpc as grpcv1

Manifest = dict[str, Any]
# What a team writes becomes this many GPU devices of this size.
SIZES = {"Small": ("1", "20Gi"), "Large": ("8", "130Gi")}
AWS = "eks.aws.m.upbound.io/v1beta1"


class Call:
    """One request and the response that is being written."""

    def __init__(self, request: fnv1.RunFunctionRequest) -> None:
        self.response = response.to(request)
        self.xr: Manifest = resource.struct_to_dict(request.observed.composite.resource)
        self.input: Manifest = resource.struct_to_dict(request.input)
        self._observed = request.observed.resources

    @property
    def name(self) -> str:
        """The composite's name."""
        return str(self.xr["metadata"]["name"])

    def observed(self, key: str) -> Manifest:
        """What became of a composed resource; empty before it is there."""
        return resource.struct_to_dict(self._observed[key].resource) if key in self._observed else {}

    def ready(self, key: str) -> bool:
        """Whether a composed resource says that it is ready."""
        found = self._observed[key].resource if key in self._observed else None
        return found is not None and resource.get_condition(found, "Ready").status == "True"

    def compose(self, key: str, api_version: str, kind: str, name: str, spec: Manifest) -> None:
        """Ask for a resource in the composite's own namespace."""
        manifest = {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec}
        resource.update(self.response.desired.resources[key], manifest)
        self.response.desired.resources[key].ready = fnv1.READY_TRUE if self.ready(key) else fnv1.READY_FALSE

    def report(self, status: Manifest) -> None:
        """Write into the composite's status."""
        resource.update(self.response.desired.composite, {"status": status})


def model(call: Call) -> None:
    """A team's Model becomes a ModelDeployment and the ModelService in front of it."""
    spec = call.xr["spec"]
    count, memory = SIZES[spec["size"]]
    selector = f'device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("{memory}")) >= 0'
    member = {
        "role": "Standalone",
        "nodeSelector": {"devices": [{"name": "gpu", "count": int(count), "selectors": [{"cel": selector}]}]},
        "template": {
            "spec": {
                "containers": [
                    {
                        "name": "engine",
                        # The platform chooses the engine; a team chooses a model.
                        "image": call.input["image"],
                        "args": [f"--model={spec['model']}", f"--tensor-parallel-size={count}"],
                    }
                ]
            }
        },
    }
    template = {"spec": {"engines": [{"name": "engine", "members": [member]}]}}
    asked = {"replicas": int(spec["replicas"]), "template": template}
    call.compose("deployment", "modelplane.ai/v1alpha1", "ModelDeployment", call.name, asked)
    labels = {"matchLabels": {"modelplane.ai/deployment": call.name}}
    call.compose(
        "service", "modelplane.ai/v1alpha1", "ModelService", call.name, {"endpoints": [{"selector": labels}]}
    )
    url = call.observed("service").get("status", {}).get("url", "")
    call.report({"url": url} if url else {})


def cluster(call: Call) -> None:
    """An EKSCluster in subnets of the network team's, with roles that security made.

    Modelplane reads of it: the condition Ready, `status.secrets`, `status.nodePools` and, where there are
    volumes for caches, `status.cache`.
    """
    spec, site = call.xr["spec"], call.input
    region, secret = {"region": spec["region"]}, f"{call.name}-kubeconfig"
    control = {**region, "version": spec["kubernetesVersion"], "roleArn": site["clusterRoleArn"]}
    control["vpcConfig"] = {"subnetIds": site["subnetIds"], "endpointPrivateAccess": True}
    call.compose("cluster", AWS, "Cluster", call.name, {"forProvider": control})
    auth = {
        "forProvider": {**region, "clusterName": call.name},
        "writeConnectionSecretToRef": {"name": secret},
    }
    call.compose("cluster-auth", AWS, "ClusterAuth", f"{call.name}-auth", auth)
    pools = []
    for pool in spec["nodePools"]:
        key = f"pool-{pool['name']}"
        asked = {**region, "clusterName": call.name, "nodeRoleArn": site["nodeRoleArn"]}
        asked |= {"subnetIds": site["subnetIds"], "instanceTypes": [pool["instanceType"]]}
        asked["scalingConfig"] = {
            "desiredSize": int(pool["nodeCount"]),
            "minSize": int(pool["nodeCount"]),
            "maxSize": int(pool["nodeCount"]),
        }
        asked["labels"] = {"modelplane.ai/pool": pool["name"]}
        if pool["role"] == "GPU":
            asked["amiType"] = "AL2023_x86_64_NVIDIA"
            asked["taint"] = [{"key": "nvidia.com/gpu", "value": "true", "effect": "NO_SCHEDULE"}]
        call.compose(key, AWS, "NodeGroup", f"{call.name}-{pool['name']}", {"forProvider": asked})
        nodes = int(pool["nodeCount"]) if call.ready(key) else 0
        pools.append({"name": pool["name"], "readyNodes": nodes})
    status: Manifest = {"nodePools": pools}
    if call.ready("cluster-auth"):
        status["secrets"] = [{"type": "Kubeconfig", "name": secret, "key": "kubeconfig"}]
    call.report(status)


def choose(call: Call) -> None:
    """After another step: name the Composition of what it composes, and mark it as the platform's."""
    key, name = call.input["resource"], call.input["composition"]
    if key not in call.response.desired.resources:
        response.normal(call.response, f"no step before this one composes {key}")
        return
    desired = call.response.desired.resources[key]
    manifest = resource.struct_to_dict(desired.resource)
    manifest["metadata"].setdefault("labels", {}).update(call.input.get("labels", {}))
    manifest["spec"]["crossplane"] = {"compositionRef": {"name": name}}
    resource.update(desired, manifest)


PARTS: dict[str, Callable[[Call], None]] = {"Model": model, "Cluster": cluster, "Choose": choose}


class Platform(grpcv1.FunctionRunnerServiceServicer):
    """Answers by the kind of the step's input."""

    async def RunFunction(  # noqa: N802  (gRPC's name)
        self,
        request: fnv1.RunFunctionRequest,
        context: grpc.aio.ServicerContext,  # noqa: ARG002
    ) -> fnv1.RunFunctionResponse:
        """Answer one request."""
        call = Call(request)
        if (part := PARTS.get(call.input.get("kind", ""))) is None:
            response.fatal(call.response, f"input.kind: want one of {', '.join(PARTS)}")
        else:
            part(call)
        return call.response


@click.command()
@cli.standard_options
def main(**options: Any) -> None:
    """Serve until SIGTERM."""
    cli.run(Platform(), **options)


if __name__ == "__main__":
    main()
