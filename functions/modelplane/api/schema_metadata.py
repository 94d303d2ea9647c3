"""The part of every object that no CRD describes: apiVersion, kind and metadata."""

from collections.abc import Mapping
from typing import Any

from modelplane.api.schema_cel import matches
from modelplane.api.schema_paths import Path
from modelplane.api.schema_report import Report, suggestion

TYPE_META = ("apiVersion", "kind", "metadata")

_STRINGS = ("name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "creationTimestamp",
            "deletionTimestamp")  # fmt: skip
_MAPS = ("labels", "annotations")
_NUMBERS = ("generation", "deletionGracePeriodSeconds")
_LISTS = ("ownerReferences", "finalizers", "managedFields")
_KNOWN = [*_STRINGS, *_MAPS, *_NUMBERS, *_LISTS]

_LABEL = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
_SUBDOMAIN = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
_QUALIFIED = r"^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"
_ANNOTATIONS_BYTES = 256 * 1024


def check(value: Any, path: Path, report: Report) -> None:
    """Check an ObjectMeta; absent names are not its business, since a template may leave them out."""
    if not isinstance(value, Mapping):
        report.add(path, "must be an object", blocks=True)
        return
    for key, field in value.items():
        if key not in _KNOWN:
            report.add(path, f'unknown field "{key}"{suggestion(key, _KNOWN)}', key)
        elif key in _STRINGS and not (
            isinstance(field, str) or (field is None and key.endswith("Timestamp"))
        ):
            report.add(path, "must be a string", key, blocks=True)
        elif key in _NUMBERS and (isinstance(field, bool) or not isinstance(field, int | float)):
            report.add(path, "must be a number", key, blocks=True)
        elif key in _LISTS and not isinstance(field, list):
            report.add(path, "must be a list", key, blocks=True)
    _names(value, path, report)
    for key in _MAPS:
        if value.get(key) is not None:
            _string_map(value[key], key, path, report)


def _names(value: Mapping[str, Any], path: Path, report: Report) -> None:
    name, namespace = value.get("name"), value.get("namespace")
    if isinstance(name, str) and not (len(name) <= 253 and matches(name, _SUBDOMAIN)):
        report.add(path, "must be lower-case letters, digits, '-' and '.', at most 253 characters", "name")
    if isinstance(namespace, str) and not (len(namespace) <= 63 and matches(namespace, _LABEL)):
        report.add(path, "must be lower-case letters, digits and '-', at most 63 characters", "namespace")


def _string_map(value: Any, field: str, path: Path, report: Report) -> None:
    here = (*path, field)
    if not isinstance(value, Mapping):
        report.add(here, "must be an object", blocks=True)
        return
    size = 0
    for key, text in value.items():
        if not isinstance(text, str):
            report.add(here, "must be a string", key, blocks=True)
            continue
        size += len(key.encode()) + len(text.encode())
        # Annotation keys are judged in lower case, label keys as they stand.
        problem = _qualified(key.lower() if field == "annotations" else key)
        if problem:
            report.add(here, problem, key)
        if field == "labels" and text and not (len(text) <= 63 and matches(text, _QUALIFIED)):
            report.add(
                here, "a label value is at most 63 letters, digits, '-', '_' and '.', ends alphanumeric", key
            )
    if field == "annotations" and size > _ANNOTATIONS_BYTES:
        report.add(here, f"holds {size} bytes, at most {_ANNOTATIONS_BYTES} are allowed", blocks=True)


def _qualified(key: str) -> str:
    prefix, slash, name = key.rpartition("/")
    if slash and not (len(prefix) <= 253 and matches(prefix, _SUBDOMAIN)):
        return "the prefix of a key must be a DNS name of at most 253 characters"
    if not (len(name) <= 63 and matches(name, _QUALIFIED)):
        return "the name of a key is 1 to 63 letters, digits, '-', '_' and '.', starts and ends alphanumeric"
    return ""
