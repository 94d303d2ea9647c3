"""Prefill and decode: the proxy before a decode engine, and the one port that requests come in by."""

from collections.abc import Mapping

from modelplane import contracts as c
from modelplane.api.model_replica import ModelReplicaSpec
from modelplane.core.paths import Manifest
from modelplane.gangs import env, flags, probes


class PortConflictError(ValueError):
    """Raised where the engines' ports cannot be served by one pool; says which engine to change and how."""

    def __init__(self, engine: int, message: str) -> None:
        super().__init__(message)
        self.engine = engine


def pool_port(spec: ModelReplicaSpec) -> int:
    """Return the port at which every serving pod takes requests.

    An InferencePool sends to the same ports on each of its pods, so all engines share one; a decode engine's
    is taken by its proxy.
    """
    found: int | None = None
    for i, engine in enumerate(spec.engines):
        if engine.phase == c.DECODE:
            continue
        port = flags.engine_port(engine)
        if found is not None and port != found:
            raise PortConflictError(
                i,
                f"engine {engine.name} listens on {port}, one before it on {found}: all engines of a replica "
                "are served at one port, set them alike",
            )
        found = port
    port = found if found is not None else c.ENGINE_PORT
    for i, engine in enumerate(spec.engines):
        if engine.phase == c.DECODE and flags.engine_port(engine) == port:
            raise PortConflictError(
                i,
                f"engine {engine.name} listens on {port}, where the proxy before it takes requests: give it "
                f"another port, such as {c.DECODE_PORT}",
            )
    return port


def proxies(spec: ModelReplicaSpec, image: str) -> Mapping[str, Manifest]:
    """Return the proxy of each decode engine, by engine name; none where requests are not split."""
    decode = spec.phase(c.DECODE)
    if decode is None:
        return {}
    # SGLang finds its peer through a bootstrap server, vLLM by what the prefill engine answers.
    connector = "sglang" if flags.engine_type(decode) == flags.SGLANG else "nixlv2"
    return {decode.name: _proxy(image, pool_port(spec), flags.engine_port(decode), connector)}


def _proxy(image: str, port: int, engine_port: int, connector: str) -> Manifest:
    """A native sidecar, up before the engine and gone after it (llm-d-router, docs/disaggregation.md)."""
    return {
        "name": c.PROXY_CONTAINER,
        "image": image,
        "restartPolicy": "Always",
        "args": [
            f"--port={port}",
            f"--model-server-port={engine_port}",
            f"--kv-connector={connector}",
            # On by default, and the gateway speaks plain HTTP to it (pkg/sidecar/proxy/options.go).
            "--secure-proxy=false",
        ],
        "env": [env.field("POD_IP", "status.podIP")],
        "ports": [{"name": "proxy", "containerPort": port, "protocol": "TCP"}],
        "readinessProbe": probes.health(port),
        "resources": {
            "requests": {"cpu": "250m", "memory": "256Mi"},
            "limits": {"memory": "1Gi"},
        },
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
