"""What the tests ask of the API server, in plain dicts."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import urllib3
import yaml
from kubernetes import config
from kubernetes.client import ApiException
from kubernetes.dynamic import DynamicClient
from kubernetes.dynamic.exceptions import DynamicApiError, ResourceNotFoundError

Document = dict[str, Any]
FIELD_MANAGER = "modelplane-tests"
PATIENCE_SECONDS = 60
# The API server, or etcd behind it, has more to do than it can take: it asks to be asked again.
BUSY = (429, 503, 504)
QUIET_SECONDS = 3
# A hundred CRDs take Python's own parser a minute.
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class RefusedError(Exception):
    """The API server said no; the message is what a user would read."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class _Raw:
    """An answer as the API server sent it."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def to_dict(self) -> Document:
        found: Document = json.loads(self._data)
        return found


class Client:
    """One user's view of the API server."""

    def __init__(self, kubeconfig: Path) -> None:
        api = config.new_client_from_config(str(kubeconfig))
        # By default a file in /tmp named after the host, which a later server on that port would find.
        self._dynamic = DynamicClient(api, cache_file=str(kubeconfig.with_suffix(".discovery")))

    def apply(
        self,
        document: Mapping[str, Any],
        manager: str = FIELD_MANAGER,
        subresource: str = "",
        **options: Any,
    ) -> Document:
        """Apply it on the server's side, taking over fields of others; raises `RefusedError`."""
        kind = self._kind(document["apiVersion"], document["kind"], subresource)
        return self._answer(
            lambda: self._dynamic.server_side_apply(
                kind, body=dict(document), field_manager=manager, force_conflicts=True, **options
            )
        )

    def apply_files(self, paths: Iterable[Path]) -> list[Document]:
        """Apply every document of the files, in order."""
        return [self.apply(document) for path in paths for document in documents(path)]

    def create(self, document: Mapping[str, Any], **options: Any) -> Document:
        """Create it as `kubectl create` does, unknown fields refused; raises `RefusedError`."""
        kind = self._kind(document["apiVersion"], document["kind"])
        return self._answer(
            lambda: self._dynamic.create(
                kind,
                body=dict(document),
                namespace=document["metadata"].get("namespace"),
                # As an option of its own the client would drop it without a word.
                query_params=[("fieldValidation", "Strict")],
                **options,
            )
        )

    def get(self, api_version: str, kind: str, name: str, namespace: str | None = None) -> Document | None:
        """The object, None where there is none."""
        found = self._kind(api_version, kind)
        try:
            return self._answer(lambda: self._dynamic.get(found, name=name, namespace=namespace))
        except RefusedError as error:
            if error.status == 404:
                return None
            raise

    def read(self, document: Mapping[str, Any]) -> Document | None:
        """The object as it is now, None once it is gone."""
        meta = document["metadata"]
        return self.get(document["apiVersion"], document["kind"], meta["name"], meta.get("namespace"))

    def list(
        self, api_version: str, kind: str, labels: str = "", namespace: str | None = None
    ) -> list[Document]:
        """The objects of a kind, in all namespaces unless one is named."""
        found = self._kind(api_version, kind)
        # As it comes: to make objects of a thousand items and dicts of those takes longer than to send them.
        answer = self._answer(
            lambda: _Raw(
                self._dynamic.get(found, namespace=namespace, label_selector=labels, serialize=False).data
            )
        )
        # A list's items leave out what the list says once.
        return [{"apiVersion": api_version, "kind": kind, **item} for item in answer["items"]]

    def settled(self, document: Mapping[str, Any]) -> Document:
        """The object once nobody has written it for three seconds; it must be there."""
        since, last = time.monotonic(), ""
        while True:
            found = self.read(document)
            assert found is not None, f"{document['kind']} {document['metadata']['name']} is not there"
            if found["metadata"]["resourceVersion"] != last:
                since, last = time.monotonic(), found["metadata"]["resourceVersion"]
            elif time.monotonic() - since > QUIET_SECONDS:
                return found
            time.sleep(0.2)

    def patch(self, document: Mapping[str, Any], body: Any, subresource: str = "") -> Document:
        """Merge the body into the object or its subresource; raises `RefusedError`."""
        kind = self._kind(document["apiVersion"], document["kind"], subresource)
        meta = document["metadata"]
        return self._answer(
            lambda: self._dynamic.patch(
                kind,
                body=body,
                name=meta["name"],
                namespace=meta.get("namespace"),
                content_type="application/merge-patch+json",
            )
        )

    def delete(self, document: Mapping[str, Any], propagation: str = "Background") -> None:
        """Delete it; nothing happens where it is gone already; raises `RefusedError`."""
        kind = self._kind(document["apiVersion"], document["kind"])
        meta = document["metadata"]
        options = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": propagation}
        try:
            self._answer(
                lambda: self._dynamic.delete(
                    kind, name=meta["name"], namespace=meta.get("namespace"), body=options
                )
            )
        except RefusedError as error:
            if error.status != 404:
                raise

    def clear(self, found: Iterable[Mapping[str, Any]]) -> None:
        """Delete the objects, whoever would keep them, and return once they are gone.

        For what nobody answers for: finalizers are taken off. Usages go first, since they refuse the rest.
        """
        left = sorted(found, key=lambda one: not str(one["apiVersion"]).startswith("protection."))
        deadline = time.monotonic() + PATIENCE_SECONDS * 4
        while left:
            left = [one for one in left if not self._cleared(one)]
            if left and time.monotonic() > deadline:
                names = ", ".join(f"{one['kind']} {one['metadata']['name']}" for one in left[:5])
                raise TimeoutError(f"still there: {names}")

    def _cleared(self, document: Mapping[str, Any]) -> bool:
        found = self.read(document)
        if found is None:
            return True
        try:
            if "deletionTimestamp" not in found["metadata"]:
                self.delete(document)
            if found["metadata"].get("finalizers"):
                self.patch(document, {"metadata": {"finalizers": None}})
        except RefusedError as error:
            # In use until its Usage has gone; written by a controller in between; gone already.
            if error.status not in (404, 409):
                raise
        return False

    def may(self, verb: str, group: str, resource: str, namespace: str = "", name: str = "") -> bool:
        """What the authorizer says of the client's own user."""
        about = {"verb": verb, "group": group, "resource": resource, "namespace": namespace, "name": name}
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "metadata": {},
            "spec": {"resourceAttributes": about},
        }
        return bool(self.create(review)["status"]["allowed"])

    def raw(self, path: str) -> Any:
        """What the API server answers to a GET of the path, as JSON."""
        return json.loads(self._dynamic.request("get", path, serialize=False).data)

    def _kind(self, api_version: str, kind: str, subresource: str = "") -> Any:
        """The resource behind a kind; a kind that was just defined takes a moment to be served."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                found = self._dynamic.resources.get(api_version=api_version, kind=kind)
                return found.subresources[subresource] if subresource else found
            except ResourceNotFoundError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)

    @staticmethod
    def _answer(call: Callable[[], Any]) -> Document:
        """The call's answer as a dict; an API server that restarts or is busy is asked again for a while."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                answer: Document = call().to_dict()
                return answer
            except (DynamicApiError, ApiException) as error:
                if error.status not in BUSY or time.monotonic() > deadline:
                    raise RefusedError(error.status, message(error)) from error
            except urllib3.exceptions.HTTPError:
                if time.monotonic() > deadline:
                    raise
            time.sleep(0.2)


def message(error: Any) -> str:
    """The sentence in an API error's body, else the body."""
    body = error.body.decode() if isinstance(error.body, bytes) else str(error.body)
    status = yaml.safe_load(body) if body.startswith("{") else None
    return str(status["message"]) if isinstance(status, dict) and "message" in status else body


def documents(path: Path) -> list[Document]:
    """The YAML documents of a file, empty ones left out."""
    return [found for found in yaml.load_all(path.read_text(), Loader=LOADER) if found]


def condition(document: Mapping[str, Any] | None, kind: str) -> str:
    """The status of a condition; `Absent` while the object or the condition is not there."""
    for found in ((document or {}).get("status") or {}).get("conditions") or ():
        if found["type"] == kind:
            return str(found["status"])
    return "Absent"
