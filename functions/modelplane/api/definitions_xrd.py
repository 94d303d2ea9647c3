"""What Crossplane makes of an XRD's schema when it writes the CRD.

Taken from `genCrdVersion` in `internal/xcrd/crd.go` of crossplane/crossplane: of the schema's top level only
`spec`, `status`, the length of the name and, from v2.2.0 on (crossplane#7018), the rules are carried over; of
`spec` and `status` themselves only the keywords below. What is not carried over is not enforced in a cluster.
"""

from collections.abc import Mapping
from typing import Any

# A composite's name becomes a label value on all it composes.
_NAME_LENGTH = 63
_CARRIED = ("required", "x-kubernetes-validations", "oneOf", "description")
_CARRIED_SPEC = (*_CARRIED, "x-kubernetes-preserve-unknown-fields")

_CONDITIONS = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["type"],
    "items": {
        "type": "object",
        "required": ["lastTransitionTime", "reason", "status", "type"],
        "properties": {
            "lastTransitionTime": {"type": "string", "format": "date-time"},
            "message": {"type": "string"},
            "observedGeneration": {"type": "integer", "format": "int64"},
            "reason": {"type": "string"},
            "status": {"type": "string"},
            "type": {"type": "string"},
        },
    },
}


def composite_openapi(openapi: Mapping[str, Any]) -> dict[str, Any]:
    """Give the schema of the CRD for an XRD's version; a schema without spec or status gets empty ones."""
    properties = openapi.get("properties") or {}
    machinery = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    result: dict[str, Any] = {
        "type": "object",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object", "properties": {"name": _name(properties.get("metadata") or {})}},
            "spec": _part(properties.get("spec") or {}, _CARRIED_SPEC, {"crossplane": machinery}),
            "status": _part(properties.get("status") or {}, _CARRIED, {"conditions": _CONDITIONS}),
        },
    }
    if openapi.get("x-kubernetes-validations"):
        result["x-kubernetes-validations"] = openapi["x-kubernetes-validations"]
    return result


def _part(declared: Mapping[str, Any], carried: tuple[str, ...], added: Mapping[str, Any]) -> dict[str, Any]:
    part = {key: declared[key] for key in carried if key in declared}
    return {**part, "type": "object", "properties": {**(declared.get("properties") or {}), **added}}


def _name(metadata: Mapping[str, Any]) -> dict[str, Any]:
    declared = (metadata.get("properties") or {}).get("name") or {}
    return {"type": "string", "maxLength": min(declared.get("maxLength", _NAME_LENGTH), _NAME_LENGTH)}
