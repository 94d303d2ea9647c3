"""Reading a control plane: our own kinds and what they compose. No Secret is ever asked for."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import urllib3
import yaml
from kubernetes import client, config

from modelplane import contracts as c
from modelplane.api import definitions
from modelplane.core import Manifest, paths
from modelplane.kinds.registry import KINDS
from modelplane.sim import rules
from modelplane.sim.world import Ref, World, ref

# What our kinds compose on the control plane itself; plurals, since nothing else here defines these kinds.
_COMPOSED = {
    (c.KUBERNETES_API, "Object"): "objects",
    (c.HELM_API, "Release"): "releases",
}
_PAGE = 500
_SECONDS = 30


class UnreachableError(Exception):
    """The control plane cannot be asked; says what was asked, what came back, and what to check."""


@dataclass
class Live:
    """What was read.

    Attributes:
        objects: everything, by kind, namespace and name.
        absent: kinds that the control plane does not serve.
        refused: kinds that this user may not list, with what was said.
    """

    objects: list[Manifest] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)

    def world(self) -> World:
        """Return the objects with who composed whom, as Crossplane records it."""
        world = World()
        for obj in self.objects:
            world.objects[ref(obj)] = obj
        for owner, obj in list(world.objects.items()):
            for key, child in _children(owner, obj, world):
                world.adopt(owner, key, child)
        return world


def _children(owner: Ref, obj: Manifest, world: World) -> list[tuple[str, Ref]]:
    """Return what a composite says it composed; what was not read, or is not there yet, is left out."""
    found = []
    for entry in paths.mappings(obj, "spec", "crossplane", "resourceRefs"):
        api, kind, name = (paths.text(entry, part) for part in ("apiVersion", "kind", "name"))
        space = "" if rules.cluster_scoped(api, kind) else paths.text(entry, "namespace") or owner.namespace
        child = Ref(api, kind, space, name)
        if child in world.objects:
            metadata = world.objects[child].get("metadata")
            key = paths.text(metadata, "annotations", c.RESOURCE_NAME_ANNOTATION) or f"{kind}-{name}"
            found.append((key, child))
    return found


def connect(context: str | None = None, kubeconfig: Path | None = None) -> client.ApiClient:
    """Return a client for the context, as kubectl finds it.

    Raises:
        UnreachableError: there is no usable kubeconfig.
    """
    where = f"kubeconfig {kubeconfig}" if kubeconfig else "the kubeconfig"
    try:
        with _logged() as logged:
            found = config.new_client_from_config(str(kubeconfig) if kubeconfig else None, context)
    except (config.ConfigException, OSError, yaml.YAMLError, ValueError, TypeError, AttributeError) as error:
        said = (
            str(error).splitlines()[0].rstrip(".")
            if isinstance(error, config.ConfigException)
            else "cannot be read"
        )
        raise UnreachableError(f"{where}: {said}; check --kubeconfig, --context and KUBECONFIG") from None
    if logged:
        # The client goes on without credentials, and would be refused for a reason that leads astray.
        said = logged[0].splitlines()[0]
        raise UnreachableError(f"{where}: its credential plugin failed: {said}; run it by itself")
    if urlsplit(found.configuration.host).scheme not in ("http", "https"):
        raise UnreachableError(f"{where}: server {_shown(found)} is no URL; it begins with https://")
    return found


@contextmanager
def _logged() -> Iterator[list[str]]:
    """Collect what the client says through the root logger, which would print it and all that follows."""
    said: list[str] = []
    handler = logging.Handler(logging.ERROR)
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        yield said
    finally:
        root.removeHandler(handler)


def _shown(api: client.ApiClient) -> str:
    """Return the server's address without what may be a password in it."""
    host = str(api.configuration.host)
    return host.rpartition("@")[2] if "@" in host else host


def read(api: client.ApiClient, *, composed: bool = False, namespace: str = "") -> Live:
    """Return our objects, with `composed` also Releases and Objects, of one namespace where one is named.

    Raises:
        UnreachableError: the control plane does not answer, or there is nothing that may be read.
    """
    live = Live()
    wanted = {**_ours(), **(_COMPOSED if composed else {})}
    for (api_version, kind), plural in sorted(wanted.items()):
        space = (
            f"namespaces/{namespace}/" if namespace and not rules.cluster_scoped(api_version, kind) else ""
        )
        try:
            items = _list(api, f"/apis/{api_version}/{space}{plural}")
        except _RefusedError as error:
            live.refused[kind] = str(error)
            continue
        if items is None:
            live.absent.append(kind)
        # A list's items leave out what the list says once.
        live.objects += [{"apiVersion": api_version, "kind": kind, **item} for item in items or ()]
    host = _shown(api)
    if len(live.absent) == len(wanted):
        raise UnreachableError(f"{host} serves none of Modelplane's kinds: is it the right context?")
    if len(live.refused) + len(live.absent) == len(wanted):
        said = next(iter(live.refused.values()))
        raise UnreachableError(f"{host} lets this user list nothing of Modelplane ({said}): ask for a role")
    return live


def _ours() -> dict[tuple[str, str], str]:
    known = definitions.load()
    return {key: known[key].plural for key in KINDS}


class _RefusedError(Exception):
    """This user may not list a kind."""


def _list(api: client.ApiClient, path: str) -> list[Manifest] | None:
    """Return the objects of a kind, or None where it is not served."""
    found: list[Manifest] = []
    token = ""
    while True:
        query = {"limit": str(_PAGE), **({"continue": token} if token else {})}
        answer = _get(api, path, query)
        if answer is None:
            return None
        found += [dict(item) for item in paths.mappings(answer, "items")]
        token = paths.text(answer, "metadata", "continue")
        if not token:
            return found


def _get(api: client.ApiClient, path: str, query: Mapping[str, str]) -> Mapping[str, Any] | None:
    host = _shown(api)
    try:
        found = api.call_api(
            path,
            "GET",
            query_params=list(query.items()),
            header_params={"Accept": "application/json"},
            auth_settings=["BearerToken"],
            response_types_map={200: "object"},
            _return_http_data_only=True,
            _request_timeout=_SECONDS,
        )
    except client.ApiException as error:
        if error.status == 404:
            return None
        if error.status == 403:
            raise _RefusedError(f"{error.status} {error.reason}") from None
        raise UnreachableError(
            f"{host} answers {error.status} {error.reason}: check the credentials"
        ) from None
    except urllib3.exceptions.HTTPError as error:
        why = type(getattr(error, "reason", None) or error).__name__
        raise UnreachableError(f"{host} does not answer ({why}): is it the right context?") from None
    if not isinstance(found, Mapping) or not isinstance(found.get("items", ""), list | None):
        # A proxy or a login page says 200 to everything. Go writes an empty list as null, too.
        raise UnreachableError(f"{host} answers {path} with what is no list: is it the right context?")
    return found
