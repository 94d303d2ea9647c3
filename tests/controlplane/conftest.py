"""One control plane for all tests here; they run when asked for: `make test` stays without Go."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

if TYPE_CHECKING:
    from controlplane.client import Client
    from controlplane.control_plane import ControlPlane
    from controlplane.installed import Installed

HERE = Path(__file__).resolve().parent


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave this folder out unless an argument names it or something in it."""
    if not collection_path.is_relative_to(HERE):
        return None
    return None if any(_ours(config)) else True


def _ours(config: pytest.Config) -> Iterator[bool]:
    """Whether each argument of pytest names this folder or something in it."""
    for arg in config.args:
        yield Path(config.invocation_params.dir, arg.partition("::")[0]).resolve().is_relative_to(HERE)


# Tests of the control plane that package/install made. The order of the last two counts: an upgrade is among
# what the fleet lives through, and after the removal nothing is installed any more.
LAST = ("test_fleet_for_real.py", "test_package_removal.py")
INSTALLED = (
    "test_package_install.py",
    "test_package_refused.py",
    "test_rbac_front_door.py",
    "test_rbac_teams.py",
    "test_reuse.py",
    *LAST,
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let what changes the installation come after what looks at it."""
    items.sort(key=lambda item: LAST.index(item.path.name) if item.path.name in LAST else -1)
    for item in items:
        # Pytest hands over the items of all folders, and elsewhere `installed` is something else.
        uses = item.path.is_relative_to(HERE) and "installed" in getattr(item, "fixturenames", ())
        if uses and item.path.name not in INSTALLED:
            # Another worker would start a second one, which waits for the first one's end.
            raise pytest.UsageError(f"{item.path.name} uses `installed`: list it in {__file__}, INSTALLED")


class ByControlPlane(LoadScopeScheduling):
    """One worker for the installed control plane, another for the rest.

    Not by xdist's groups: with pytest 9.2 they do nothing (github.com/pytest-dev/pytest-xdist/issues/1386).
    """

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0].rpartition("/")[2]
        return "installed" if file in INSTALLED else "others"


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByControlPlane | None:
    """Ours where pytest was asked for nothing but this folder, else the usual one."""
    return ByControlPlane(config, log) if all(_ours(config)) else None


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
