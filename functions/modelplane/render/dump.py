"""Manifests as YAML, the same bytes on every run."""

from typing import Any

import yaml

from modelplane.core import Manifest


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    def ignore_aliases(self, _: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    style = "|" if "\n" in value else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _text)


def dump(manifests: list[Manifest]) -> str:
    """Return the manifests as one YAML stream, keys sorted, long texts as blocks."""
    return yaml.dump_all(manifests, Dumper=_Dumper, sort_keys=True, explicit_start=True, width=110)
