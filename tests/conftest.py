"""Fixtures that several suites share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes says more of the machine than of the test. The parent is what hypothesis itself
# has chosen: in CI it tries the same examples each time.
settings.register_profile(
    "any machine", settings.default, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def crds() -> Path:
    """The folder of third-party CRDs that `CRDS_DIR` names; without it a test says that it did not run."""
    named = os.environ.get("CRDS_DIR", "")
    if named:
        folder = Path(named)
        if not any(folder.rglob("*.yaml")):
            pytest.fail(f"CRDS_DIR is {named}, which holds no YAML: run `make crds` or correct it")
        return folder
    reason = "did not run: CRDS_DIR names no folder of third-party CRDs (`make crds` fetches them)"
    if os.environ.get("MODELPLANE_REQUIRE_CRDS") == "1":
        pytest.fail(reason)
    pytest.skip(reason)
