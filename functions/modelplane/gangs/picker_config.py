"""The configuration of the endpoint picker (llm-d-router v0.10.0, apix/config/v1alpha1).

Three ways it fails in silence, hence all three are written out: `nonCachedTokens` 0 never disaggregates, a
scorer without a producer sees no prefixes, and with `autoTune` an engine without the metric has block size 0.
"""

import json
from typing import Any

from modelplane import contracts as c
from modelplane.api.model_replica import Engine, ModelReplicaSpec
from modelplane.core.paths import Manifest
from modelplane.gangs import flags

_PRODUCER = "approx-prefix-cache-producer"
_PREFIX = "prefix-cache-scorer"
_QUEUE = "queue-scorer"
_CACHE_USE = "kv-cache-utilization-scorer"
_PICKER = "max-score-picker"
_SINGLE = "single-profile-handler"
_DECIDER = "prefix-based-pd-decider"
_ALWAYS = "always-disagg-pd-decider"
_HANDLER = "disagg-profile-handler"


def text(spec: ModelReplicaSpec) -> str:
    """Return the configuration file."""
    plugins: list[Any]
    producer: Manifest = {
        "type": _PRODUCER,
        "parameters": {
            "autoTune": False,
            "blockSizeTokens": flags.block_size(spec),
            "lruCapacityPerServer": 31250,
        },
    }
    if decode := spec.phase(c.DECODE):
        decider = _decider(decode)
        plugins = [
            producer,
            *({"type": t} for t in (_PREFIX, _QUEUE, "prefill-filter", "decode-filter", _PICKER)),
            # Before the handler that names it.
            decider,
            {"type": _HANDLER, "parameters": {"deciders": {"prefill": decider["type"]}}},
        ]
        profiles = [
            _profile(phase, f"{phase}-filter", {_PREFIX: 2, _QUEUE: 1}) for phase in ("prefill", "decode")
        ]
    else:
        plugins = [producer, *({"type": t} for t in (_PREFIX, _QUEUE, _CACHE_USE, _PICKER, _SINGLE))]
        profiles = [_profile("default", "", {_PREFIX: 3, _QUEUE: 2, _CACHE_USE: 2})]
    document = {
        "apiVersion": c.EPP_CONFIG_API,
        "kind": "EndpointPickerConfig",
        "plugins": plugins,
        "schedulingProfiles": profiles,
    }
    # JSON is YAML too, and writing YAML was half of what composing a replica cost.
    return json.dumps(document, indent=2) + "\n"


def _decider(decode: Engine) -> Manifest:
    """Return what decides that a request is split; SGLang's decode engine answers none that is not."""
    if flags.engine_type(decode) == flags.SGLANG:
        return {"type": _ALWAYS}
    return {"type": _DECIDER, "parameters": {"nonCachedTokens": 16}}


def _profile(name: str, role_filter: str, weights: dict[str, int]) -> Manifest:
    refs: list[Manifest] = [{"pluginRef": role_filter}] if role_filter else []
    refs.append({"pluginRef": _PICKER})
    refs += [{"pluginRef": scorer, "weight": weight} for scorer, weight in weights.items()]
    return {"name": name, "plugins": refs}
