"""The script in the staging Job, run here against a hub that is not the real one."""

from __future__ import annotations

import errno
import json
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from modelplane import contracts as c
from modelplane.kinds import stage_weights
from modelplane.kinds.stage_weights import PERMANENT, RETRY, STAGED

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Hub:
    """Stands in for huggingface_hub: same calls, same kinds of errors."""

    class RepositoryNotFoundError(OSError):
        pass

    class RevisionNotFoundError(OSError):
        pass

    class HFValidationError(ValueError):
        pass

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []
        self.fails: Callable[[], Exception] | None = None

    def snapshot_download(self, **asked: Any) -> str:
        self.calls.append(asked)
        if self.fails is not None:
            raise self.fails()
        folder = Path(asked["cache_dir"]) / "models--a--b" / "snapshots" / COMMIT
        folder.mkdir(parents=True, exist_ok=True)
        return str(folder)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Hub:
    found = Hub()
    for name in ("huggingface_hub", "huggingface_hub.errors"):
        module = types.ModuleType(name)
        module.__dict__.update({k: getattr(found, k) for k in dir(found) if not k.startswith("__")})
        monkeypatch.setitem(sys.modules, name, module)
    return found


def env(root: Path, **over: str) -> dict[str, str]:
    base = {
        c.ENV_HF_CACHE: str(root),
        c.ENV_STAGING_REPO: "a/b",
        c.ENV_STAGING_REVISION: "",
        c.ENV_STAGING_ID: "id1",
    }
    return {**base, **over}


def test_weights_are_staged_in_the_hubs_layout_and_marked_last(hub: Hub, tmp_path: Path) -> None:
    assert stage_weights.main(env(tmp_path, **{c.ENV_STAGING_REVISION: "v1", c.ENV_HF_TOKEN: "t"})) == STAGED
    assert hub.calls == [{"repo_id": "a/b", "revision": "v1", "cache_dir": str(tmp_path), "token": "t"}]
    (marker,) = (tmp_path / ".modelplane").iterdir()
    assert json.loads(marker.read_text())["commit"] == COMMIT


def test_a_second_run_finds_the_marker_and_downloads_nothing(hub: Hub, tmp_path: Path) -> None:
    assert [stage_weights.main(env(tmp_path)) for _ in range(2)] == [STAGED, STAGED]
    assert len(hub.calls) == 1
    assert hub.calls[0]["revision"] is None, "no revision is the default branch"
    assert hub.calls[0]["token"] is False, "no token asks anonymously"


def test_another_artifact_has_a_marker_of_its_own(hub: Hub, tmp_path: Path) -> None:
    stage_weights.main(env(tmp_path))
    stage_weights.main(env(tmp_path, **{c.ENV_STAGING_ID: "id2", c.ENV_STAGING_REVISION: "v2"}))
    assert [call["revision"] for call in hub.calls] == [None, "v2"]
    assert len(list((tmp_path / ".modelplane").iterdir())) == 2


@pytest.mark.parametrize("text", ["", "{", "[]", '{"path": "gone"}', '{"path": 3}'])
def test_a_marker_that_proves_nothing_is_not_believed(hub: Hub, tmp_path: Path, text: str) -> None:
    folder = tmp_path / ".modelplane"
    folder.mkdir()
    (folder / "id1.json").write_text(text)
    assert stage_weights.main(env(tmp_path)) == STAGED
    assert len(hub.calls) == 1


FAILURES: list[tuple[str, Callable[[], Exception], int]] = [
    ("no such repository, or a token is needed", lambda: Hub.RepositoryNotFoundError("404"), PERMANENT),
    ("no such revision", lambda: Hub.RevisionNotFoundError("404"), PERMANENT),
    ("no repository id at all", lambda: Hub.HFValidationError("bad"), PERMANENT),
    ("the volume is full", lambda: OSError(errno.ENOSPC, "No space left on device"), PERMANENT),
    (
        "the volume is not ours to write",
        lambda: PermissionError(errno.EACCES, "Permission denied"),
        PERMANENT,
    ),
    ("the hub does not answer", lambda: ConnectionError("reset"), RETRY),
    ("the hub answers slowly", lambda: TimeoutError("read"), RETRY),
]


@pytest.mark.parametrize(("reason", "fails", "code"), FAILURES, ids=[f[0] for f in FAILURES])
def test_a_failure_is_tried_again_only_where_that_can_help(
    hub: Hub,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    reason: str,
    fails: Callable[[], Exception],
    code: int,
) -> None:
    hub.fails = fails
    assert stage_weights.main(env(tmp_path, **{c.ENV_HF_TOKEN: "s3cret"})) == code, reason
    assert not (tmp_path / ".modelplane").exists(), "no marker without weights"
    out = capsys.readouterr().out
    assert out.strip(), reason
    assert "s3cret" not in out, reason


@pytest.mark.parametrize("revision", ["../../x", "/etc", "a/../../b"])
def test_a_revision_that_is_a_path_writes_nothing(hub: Hub, tmp_path: Path, revision: str) -> None:
    assert stage_weights.main(env(tmp_path, **{c.ENV_STAGING_REVISION: revision})) == PERMANENT
    assert hub.calls == []
