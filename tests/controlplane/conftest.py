"""One control plane for all tests here; they run when asked for: `make test` stays without Go."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from controlplane.client import Client
    from controlplane.control_plane import ControlPlane
    from controlplane.installed import Installed

HERE = Path(__file__).resolve().parent


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave this folder out unless an argument names it or something in it."""
    if not collection_path.is_relative_to(HERE):
        return None
    asked = (Path(config.invocation_params.dir, arg.partition("::")[0]).resolve() for arg in config.args)
    return None if any(path.is_relative_to(HERE) for path in asked) else True


# An upgrade is among what the fleet lives through; after the removal nothing is installed any more.
LAST = ("test_fleet_for_real.py", "test_package_removal.py")


# Before xdist's own, which reads the groups.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let what changes the installation come after what looks at it; each control plane has a worker."""
    items.sort(key=lambda item: LAST.index(item.path.name) if item.path.name in LAST else -1)
    for item in items:
        if item.path.is_relative_to(HERE):
            group = "installed" if "installed" in getattr(item, "fixturenames", ()) else "others"
            item.add_marker(pytest.mark.xdist_group(group))


@pytest.fixture(scope="session")
def control_plane(request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """A running control plane; a part that cannot be had fails every test by its name."""
    # Not at the top: `make test` loads this file too, and does not install the kubernetes client.
    from controlplane.binaries import find_or_build  # noqa: PLC0415
    from controlplane.control_plane import ControlPlane  # noqa: PLC0415

    with ControlPlane(find_or_build()) as running:
        yield running
        running.failed = request.session.testsfailed > 0


@pytest.fixture(scope="session")
def installed(request: pytest.FixtureRequest, crds: Path) -> Iterator[Installed]:
    """A second control plane, installed from packages; whoever writes to it puts it back."""
    from controlplane.binaries import find_or_build  # noqa: PLC0415
    from controlplane.installed import Installed  # noqa: PLC0415

    with Installed(find_or_build(), crds) as running:
        yield running
        running.failed = request.session.testsfailed > 0


@pytest.fixture
def client(control_plane: ControlPlane) -> Client:
    """The administrator's client."""
    return control_plane.client
