"""Judging any composed object: by our XRDs, by the real third-party CRDs, or by Kubernetes' own schemas."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
from kubernetes_validate import utils
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT7

from modelplane import contracts as c
from modelplane.api import definitions
from modelplane.core import Manifest, paths

# The oldest and the newest Kubernetes a serving cluster may run (DRA is GA from 1.34).
VERSIONS = ("1.34", "1.36")


def problems(manifest: Manifest, crds: Path) -> list[str]:
    """Why an API server would refuse the object; unknown fields and unknown kinds count.

    A kind nobody here has a schema for is a problem: nothing composed goes unjudged.
    """
    for known in (definitions.load(), definitions.load_crds(crds)):
        if known.of(manifest) is not None:
            return [str(p) for p in known.judge(manifest)]
    return [f"{version}: {p}" for version in VERSIONS for p in _kubernetes(manifest, version)]


def with_remote(manifest: Manifest) -> Iterator[Manifest]:
    """The object, and the one it carries to a serving cluster where it is a provider-kubernetes Object.

    What is only observed is never applied: there a name is enough.
    """
    yield manifest
    policies = paths.items(manifest, "spec", "managementPolicies") or ["*"]
    applies = {"*", "Create", "Update"}.intersection(policies)
    if manifest.get("kind") == "Object" and manifest.get("apiVersion") == c.KUBERNETES_API and applies:
        yield dict(paths.mapping(manifest, "spec", "forProvider", "manifest"))


@cache
def _definitions(version: str) -> Any:
    return utils.schema_contents(
        f"kubernetes-json-schema/v{version}.0-local-strict/_definitions.json", version
    )


@cache
def _validator(api_version: str, kind: str, version: str) -> jsonschema.protocols.Validator | None:
    name = re.sub(r"^([^./]*)(?:\.[^/]*)?/", r"\1-", api_version)
    folder = f"kubernetes-json-schema/v{version}.0-local-strict"
    try:
        schema = utils.schema_contents(f"{folder}/{kind.lower()}-{name}.json", version)
    except FileNotFoundError:
        return None
    resource = Resource.from_contents(_definitions(version), default_specification=DRAFT7)
    registry: Any = Registry().with_resource("_definitions.json", resource)
    return jsonschema.Draft7Validator(schema, registry=registry)


def _kubernetes(manifest: Manifest, version: str) -> list[str]:
    api_version, kind = paths.text(manifest, "apiVersion"), paths.text(manifest, "kind")
    validator = _validator(api_version, kind, version)
    if validator is None:
        return [f"no schema for {api_version} {kind}: add its CRD, or the object goes unjudged"]
    return [f"{'.'.join(map(str, e.path))}: {e.message}" for e in validator.iter_errors(manifest)]
