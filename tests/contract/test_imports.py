"""The server loads what serving needs: each other library is start time and memory of every replica."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence

import pytest

PROGRAM = """
import json, sys
sys.modules.update(dict.fromkeys({absent!r}))
import {module}
print(json.dumps(sorted(name for name, module in sys.modules.items() if module)))
"""
# Of the extras, and of what only tests use; structlog loads rich by itself where it is installed.
EXTRAS = ["rich", "jsonschema", "kubernetes", "kubernetes_validate", "hypothesis", "pytest"]


def loaded(module: str, absent: Sequence[str] = ()) -> set[str]:
    """Top-level modules in a fresh interpreter once the module is imported, where some are not installed."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(module=module, absent=list(absent))],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return {name.partition(".")[0] for name in json.loads(done.stdout)}


def test_the_server_starts_where_only_its_own_libraries_are_installed() -> None:
    found = loaded("modelplane.shell.server", absent=EXTRAS)
    assert {"modelplane", "grpc", "pydantic"} <= found
    assert not found & set(EXTRAS)


def test_the_server_does_not_load_what_is_installed_for_others() -> None:
    assert not loaded("modelplane.shell.server") & {*EXTRAS} - {"rich"}


@pytest.mark.parametrize(
    ("module", "absent", "reason"),
    [
        ("modelplane.core", {"grpc", "google", "crossplane", "cel_expr_python"}, "the core is plain values"),
        ("modelplane.kinds.registry", {"grpc", "crossplane"}, "composers know no transport; CEL's types do"),
        ("modelplane.cli", {"grpc", "crossplane", "pydantic", "rich"}, "a command loads when it is called"),
    ],
)
def test_a_lower_layer_does_not_load_what_a_higher_one_needs(
    module: str, absent: set[str], reason: str
) -> None:
    assert not loaded(module) & absent, reason
