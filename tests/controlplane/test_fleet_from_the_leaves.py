"""Every example on the real core, deleted with `--cascade=foreground`: what is composed goes first."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from controlplane import living
from controlplane.binaries import find_or_build
from controlplane.control_plane import ControlPlane


@pytest.fixture
def fleet(crds: Path, request: pytest.FixtureRequest) -> Iterator[living.Fleet]:
    """A control plane of its own, beside that of the other fleet: both spend their time waiting for core."""
    with ControlPlane(find_or_build(), living.BREAKER) as plane:
        plane.install_providers(crds)
        found = living.Fleet(plane)
        found.providers.start()
        yield found
        plane.failed = request.session.testsfailed > 0
        found.providers.stop()


def test_a_fleet_that_is_deleted_from_the_leaves_up_goes_without_a_trace(fleet: living.Fleet) -> None:
    fleet.apply()
    fleet.becomes_ready()
    fleet.goes("Foreground")
    assert fleet.all() == {}
    assert fleet.providers.leaks == []
