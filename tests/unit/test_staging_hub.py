"""The staging of a repository with the hub's real client, against a hub on loopback."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import huggingface_hub
import pytest
from huggingface_hub import constants
from huggingface_hub.errors import LocalEntryNotFoundError

from builders import hub as h
from builders import staging as s
from modelplane.staging import hub as hubs
from modelplane.staging import main as program
from modelplane.staging import volume as volumes
from modelplane.staging.outcome import HOPELESS, RETRY, STAGED

Setup = Callable[[h.Hub], None]


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[h.Hub]:
    with h.serving(h.Hub(), monkeypatch) as found:
        yield found


def run(root: Path, report: s.Heard | None = None, pauses: tuple[float, ...] = (), **over: str) -> int:
    return program.main(s.env(root, **over), report or s.Heard(), pauses)


def offline(root: Path, revision: str | None = None) -> str:
    """The commit that an engine finds which asks nobody (HF_HUB_OFFLINE)."""
    found = huggingface_hub.snapshot_download(
        h.REPO, revision=revision, cache_dir=root, local_files_only=True
    )
    return Path(found).name


def blobs(root: Path) -> Path:
    return root / "models--lab--small" / "blobs"


def held(root: Path) -> dict[str, bytes]:
    """What engines load by path."""
    model = (root / "model").resolve()
    return {p.relative_to(model).as_posix(): p.read_bytes() for p in model.rglob("*") if p.is_file()}


def test_weights_are_staged_in_the_hubs_layout_marked_last_and_pointed_to(hub: h.Hub, tmp_path: Path) -> None:
    report = s.Heard()
    assert run(tmp_path, report, STAGING_REVISION="v1") == STAGED
    (marker,) = (tmp_path / ".modelplane").glob("*.json")
    assert json.loads(marker.read_text())["revision"] == h.SECOND
    assert held(tmp_path) == h.files(b'{"v": 1}')
    assert offline(tmp_path, "v1") == offline(tmp_path, h.SECOND) == h.SECOND
    with pytest.raises(LocalEntryNotFoundError):
        offline(tmp_path)
    total = str(sum(map(len, held(tmp_path).values())))
    assert report.last == {"state": "Staged", "revision": h.SECOND, "bytesDone": total, "bytesTotal": total}


def test_no_revision_is_the_default_branch_and_no_token_asks_anonymously(hub: h.Hub, tmp_path: Path) -> None:
    assert run(tmp_path) == STAGED
    assert offline(tmp_path) == offline(tmp_path, "main") == h.FIRST
    assert {login for *_, login in hub.asked} == {""}


def test_the_token_goes_to_the_hub_and_to_no_store_behind_it(hub: h.Hub, tmp_path: Path) -> None:
    hub.token = "t0ken"
    assert run(tmp_path, HF_TOKEN="t0ken") == STAGED
    logins = {path.startswith("/store/"): login for _, path, _, login in hub.asked}
    assert logins == {True: "", False: "Bearer t0ken"}


def test_a_second_run_finds_the_marker_asks_nobody_and_reports_again(hub: h.Hub, tmp_path: Path) -> None:
    reports = [s.Heard(), s.Heard()]
    assert run(tmp_path, reports[0]) == STAGED
    asked = len(hub.asked)
    assert run(tmp_path, reports[1]) == STAGED
    assert len(hub.asked) == asked
    assert reports[0].last == reports[1].last


def test_a_run_that_nobody_heard_of_is_not_over(hub: h.Hub, tmp_path: Path) -> None:
    assert run(tmp_path, s.Heard(taken=False)) == RETRY
    asked = len(hub.asked)
    assert run(tmp_path) == STAGED
    assert len(hub.asked) == asked


def test_another_revision_is_staged_beside_and_the_link_goes_back_and_forth(
    hub: h.Hub, tmp_path: Path
) -> None:
    run(tmp_path)
    first = (tmp_path / "model").resolve()
    run(tmp_path, STAGING_ID="id2", STAGING_REVISION="v1")
    assert held(tmp_path)["config.json"] == b'{"v": 1}'
    assert first.is_dir()
    asked = len(hub.asked)
    run(tmp_path)
    assert len(hub.asked) == asked, "what was staged before is pointed to again"
    assert (tmp_path / "model").resolve() == first
    assert [offline(tmp_path), offline(tmp_path, "v1")] == [h.FIRST, h.SECOND]


def test_the_two_newest_revisions_are_kept_with_what_engines_fetched_themselves(
    hub: h.Hub, tmp_path: Path
) -> None:
    third = "c" * 40
    hub.commits[third] = {**h.files(b'{"v": 3}'), "extra.bin": h.WEIGHTS[::-1]}
    hub.branches["v3"] = third
    assert run(tmp_path) == STAGED
    own = tmp_path / "models--lab--draft" / "snapshots" / ("d" * 40)
    own.mkdir(parents=True)
    assert run(tmp_path, STAGING_ID="id2", STAGING_REVISION="v1") == STAGED
    snapshots = tmp_path / "models--lab--small" / "snapshots"
    assert {x.name for x in snapshots.iterdir()} == {h.FIRST, h.SECOND}
    assert run(tmp_path, STAGING_ID="id3", STAGING_REVISION="v3") == STAGED
    assert {x.name for x in snapshots.iterdir()} == {h.SECOND, third}
    assert not (blobs(tmp_path) / h.small(b"{}")).exists(), "named by the first only"
    assert (blobs(tmp_path) / h.large(h.WEIGHTS)).is_file(), "all three name it"
    assert own.is_dir()
    assert run(tmp_path) == STAGED
    assert held(tmp_path) == h.files(), "what was dropped is staged again when it is asked for again"


def test_nothing_is_dropped_while_nothing_says_what_is_in_use(hub: h.Hub, tmp_path: Path) -> None:
    run(tmp_path)
    run(tmp_path, STAGING_ID="id2", STAGING_REVISION="v1")
    (tmp_path / "model").unlink()
    hub.branches["v3"] = "c" * 40
    hub.commits["c" * 40] = h.files(b"[]")
    assert run(tmp_path, STAGING_ID="id3", STAGING_REVISION="v3") == STAGED
    assert len(list((tmp_path / "models--lab--small" / "snapshots").iterdir())) == 3


def test_two_names_of_one_commit_share_it_and_neither_drops_it(hub: h.Hub, tmp_path: Path) -> None:
    hub.branches["stable"] = h.FIRST
    for artifact, revision in (("id1", "main"), ("id2", "v1"), ("id3", "stable")):
        assert run(tmp_path, STAGING_ID=artifact, STAGING_REVISION=revision) == STAGED
    assert held(tmp_path) == h.files()


# --- never half a model ------------------------------------------------------------------------------------


def test_a_snapshot_that_is_half_there_is_no_model_though_the_client_takes_it_for_one(
    hub: h.Hub, tmp_path: Path
) -> None:
    """Where its look-up fails the client returns whatever folder an earlier run left, and says nothing."""
    hub.refusals = [h.Refusal("GET", "/store/", 500, times=1)]
    assert run(tmp_path) == RETRY
    snapshot = tmp_path / "models--lab--small" / "snapshots" / h.FIRST
    assert (snapshot / "config.json").is_file()
    assert not (snapshot / "model.safetensors").exists()
    hub.refusals = [h.Refusal("GET", "/api/", 503, passes=1)]
    report = s.Heard()
    assert run(tmp_path, report) == RETRY
    assert report.last["reason"] == "Unreachable"
    assert report.last["message"] == "1 of 3 files did not come"
    assert not list((tmp_path / ".modelplane").glob("*.json"))
    assert not (tmp_path / "model").exists()
    with pytest.raises(LocalEntryNotFoundError):
        offline(tmp_path)
    hub.refusals = []
    assert run(tmp_path) == STAGED
    assert held(tmp_path) == h.files()


LEFT: list[tuple[str, bytes, list[int], list[str]]] = [
    ("a pod that was killed", h.WEIGHTS[:5000], [STAGED], ["bytes=5000-"]),
    ("killed before it could rename", h.WEIGHTS, [STAGED], []),
    ("other bytes are found by the digest", b"x" * 5000, [RETRY, STAGED], ["bytes=5000-"]),
    ("more than the whole would be asked for beyond its end for ever", h.WEIGHTS + b"x", [STAGED], []),
    ("nothing yet", b"", [STAGED], []),
]


@pytest.mark.parametrize(("reason", "left", "codes", "ranges"), LEFT, ids=[x[0] for x in LEFT])
def test_what_a_pod_left_unfinished_is_gone_on_with_or_thrown_away(
    hub: h.Hub, tmp_path: Path, reason: str, left: bytes, codes: list[int], ranges: list[str]
) -> None:
    blobs(tmp_path).mkdir(parents=True)
    (blobs(tmp_path) / f"{h.large(h.WEIGHTS)}.incomplete").write_bytes(left)
    assert [run(tmp_path) for _ in codes] == codes, reason
    assert hub.ranges == ranges, reason
    assert held(tmp_path) == h.files(), reason


def test_a_line_that_breaks_is_gone_on_with_where_it_stopped(
    hub: h.Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for what it had of a chunk, 10 MiB in the real."""
    monkeypatch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", 1024)
    hub.cut = {h.large(h.WEIGHTS): 5120}
    assert run(tmp_path, pauses=(0.0,)) == STAGED
    assert hub.ranges == ["bytes=5120-"]
    assert held(tmp_path) == h.files()


SPOILED: list[tuple[str, str, bytes]] = [
    ("a large file of the right size", h.large(h.WEIGHTS), b"y" * len(h.WEIGHTS)),
    ("a small one: the client compares sizes only", h.small(b"{}"), b"[]"),
]


@pytest.mark.parametrize(("reason", "digest", "data"), SPOILED, ids=[x[0] for x in SPOILED])
def test_a_file_that_differs_from_its_digest_is_fetched_again(
    hub: h.Hub, tmp_path: Path, reason: str, digest: str, data: bytes
) -> None:
    hub.spoiled = {digest: data}
    report = s.Heard()
    assert run(tmp_path, report) == RETRY, reason
    assert report.last["reason"] == "Corrupt", reason
    assert not (tmp_path / "model").exists(), reason
    assert run(tmp_path) == STAGED, reason
    assert held(tmp_path) == h.files(), reason


def test_a_file_is_checked_by_what_the_hub_lists_and_not_by_its_name_here(tmp_path: Path) -> None:
    """On volumes without links the client stores files under their own names."""
    (tmp_path / "config.json").write_bytes(b"[]")
    with pytest.raises(program.Failure):
        hubs.verify(tmp_path, [hubs.File("config.json", h.small(b"{}"), 2)])
    (tmp_path / "config.json").write_bytes(b"{}")
    hubs.verify(tmp_path, [hubs.File("config.json", h.small(b"{}"), 2)])


# --- branches move -----------------------------------------------------------------------------------------


def test_a_branch_that_moved_while_it_was_read_is_staged_as_it_was_listed(hub: h.Hub, tmp_path: Path) -> None:
    hub.after = lambda: hub.branches.update(main=h.SECOND)
    assert run(tmp_path) == STAGED
    assert offline(tmp_path) == h.FIRST
    assert held(tmp_path) == h.files()


def test_a_branch_is_found_offline_at_its_old_commit_until_the_new_one_is_whole(
    hub: h.Hub, tmp_path: Path
) -> None:
    assert run(tmp_path) == STAGED
    hub.branches["main"], hub.commits[h.SECOND]["new.bin"] = h.SECOND, h.WEIGHTS[::-1]
    hub.refusals = [h.Refusal("GET", "/store/", 500, times=1)]
    assert run(tmp_path, STAGING_ID="id2") == RETRY
    assert offline(tmp_path) == h.FIRST
    assert run(tmp_path, STAGING_ID="id2") == STAGED
    assert offline(tmp_path) == h.SECOND


def test_a_commit_that_went_between_two_requests_is_looked_up_anew_by_its_branch(
    hub: h.Hub, tmp_path: Path
) -> None:
    """A history that was squashed: what the branch names now can be staged."""

    def squash() -> None:
        hub.commits.pop(h.FIRST, None)
        hub.branches["main"] = h.SECOND

    hub.after = squash
    assert run(tmp_path, pauses=(0.0,)) == STAGED
    assert offline(tmp_path) == h.SECOND


def test_branches_that_cannot_both_be_files_are_both_staged(hub: h.Hub, tmp_path: Path) -> None:
    hub.branches |= {"fix": h.FIRST, "fix/one": h.SECOND}
    assert run(tmp_path, STAGING_REVISION="fix") == STAGED
    assert run(tmp_path, STAGING_REVISION="fix/one", STAGING_ID="id2") == STAGED
    assert offline(tmp_path, "fix") == h.FIRST
    assert held(tmp_path)["config.json"] == b'{"v": 1}'


def test_a_renamed_repository_is_found_under_its_former_name(hub: h.Hub, tmp_path: Path) -> None:
    hub.former = "old/name"
    assert run(tmp_path, STAGING_LOCATION="old/name") == STAGED
    assert held(tmp_path) == h.files()


# --- what the hub refuses ----------------------------------------------------------------------------------


def _refuse(*refusals: h.Refusal) -> Setup:
    return lambda hub: hub.refusals.extend(refusals)


def _private(hub: h.Hub) -> None:
    hub.token = "other"


def _gated(hub: h.Hub) -> None:
    hub.token, hub.gated = "other", True


def _empty(hub: h.Hub) -> None:
    hub.commits[h.FIRST] = {}


def _leads_out(hub: h.Hub) -> None:
    hub.commits[h.FIRST]["../../../out"] = b"x"


DISABLED = "Access to this resource is disabled."
REFUSALS: list[tuple[str, Setup, dict[str, str], int, str]] = [
    ("private, and no token", _private, {}, HOPELESS, "NotFound"),
    ("a token that the hub does not know", _private, {"HF_TOKEN": "s3cret"}, HOPELESS, "Unauthorized"),
    ("terms that nobody accepted", _gated, {}, HOPELESS, "Unauthorized"),
    ("terms that this account did not accept", _gated, {"HF_TOKEN": "s3cret"}, HOPELESS, "Unauthorized"),
    (
        "a token that may list and not read",
        _refuse(h.Refusal("HEAD", "/", 403)),
        {"HF_TOKEN": "s3cret"},
        HOPELESS,
        "Unauthorized",
    ),
    ("no such repository", lambda _: None, {"STAGING_LOCATION": "lab/none"}, HOPELESS, "NotFound"),
    ("taken down", _refuse(h.Refusal("GET", "/api/", 403, text=DISABLED)), {}, HOPELESS, "NotFound"),
    ("no such branch", lambda _: None, {"STAGING_REVISION": "none"}, HOPELESS, "NotFound"),
    ("no such commit", lambda _: None, {"STAGING_REVISION": "c" * 40}, HOPELESS, "NotFound"),
    ("nothing in it", _empty, {}, HOPELESS, "NotFound"),
    ("a file that leads out of it", _leads_out, {}, HOPELESS, "Corrupt"),
    ("malformed", _refuse(h.Refusal("GET", "/api/", 400)), {}, HOPELESS, "Invalid"),
    ("too many look-ups", _refuse(h.Refusal("GET", "/api/", 429)), {}, RETRY, "Unreachable"),
    ("broken at the look-up", _refuse(h.Refusal("GET", "/api/", 500)), {}, RETRY, "Unreachable"),
    ("overloaded at a file", _refuse(h.Refusal("HEAD", "/", 503)), {}, RETRY, "Unreachable"),
    ("the store is broken", _refuse(h.Refusal("GET", "/store/", 502)), {}, RETRY, "Unreachable"),
]


@pytest.mark.parametrize(
    ("reason", "setup", "over", "code", "told"), REFUSALS, ids=[r[0].replace(" ", "-") for r in REFUSALS]
)
def test_what_the_hub_refuses_is_told_and_tried_again_only_where_that_can_help(
    hub: h.Hub,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    reason: str,
    setup: Setup,
    over: dict[str, str],
    code: int,
    told: str,
) -> None:
    setup(hub)
    report = s.Heard()
    assert run(tmp_path, report, **over) == code, reason
    assert (report.last["state"], report.last["reason"]) == ("Failed", told), reason
    assert report.last["message"], reason
    assert not list((tmp_path / ".modelplane").glob("*.json")), "no marker without weights"
    out = capsys.readouterr().out + json.dumps(report.told)
    assert "s3cret" not in out, reason
    assert "http" not in out, "an address may hold a signature"


def test_a_hub_that_asks_for_patience_gets_it(hub: h.Hub, tmp_path: Path) -> None:
    hub.refusals = [h.Refusal("HEAD", "/", 429, times=1)]
    assert run(tmp_path) == STAGED


NO_NAMES = [
    "lab/small/x",
    "../x",
    "lab//small",
    "lab/small?x=1",
    "lab small/x",
    "lab/..",
    "$(id)/x",
    "a\\b/c",
]


@pytest.mark.parametrize("name", NO_NAMES)
def test_a_repository_id_that_is_none_asks_nobody_and_writes_nothing(
    hub: h.Hub, tmp_path: Path, name: str
) -> None:
    report = s.Heard()
    assert run(tmp_path, report, STAGING_LOCATION=name) == HOPELESS
    assert report.last["reason"] == "Invalid"
    assert hub.asked == []
    assert list(tmp_path.iterdir()) == []


NO_REVISIONS = [
    ("out of the cache", "../../x"),
    ("from the root", "/etc"),
    ("out by a detour", "a/../../b"),
    ("clients make it the default branch", "."),
    ("clients make it a/b", "a/./b"),
    ("an empty part", "a//b"),
    ("a last empty part", "a/"),
    ("longer than a file's name", "x" * 201),
    ("a line break", "a\nb"),
    ("a space", "a b"),
    ("a query", "a?b"),
    ("git's own locks", "a.lock"),
]


@pytest.mark.parametrize(("reason", "revision"), NO_REVISIONS, ids=[r[0] for r in NO_REVISIONS])
def test_a_revision_that_git_would_not_take_asks_nobody_and_writes_nothing(
    hub: h.Hub, tmp_path: Path, reason: str, revision: str
) -> None:
    hub.branches[revision] = h.SECOND
    report = s.Heard()
    assert run(tmp_path, report, STAGING_REVISION=revision) == HOPELESS, reason
    assert report.last["reason"] == "Invalid", reason
    assert hub.asked == [], reason
    assert list(tmp_path.iterdir()) == [], reason


@pytest.mark.parametrize("revision", ["refs/pr/1", "v1.0-rc.2", "fix/a_b", "-rf", "%2e%2e/x", "é", "a#b"])
def test_every_name_that_git_takes_is_asked_for_as_it_is(hub: h.Hub, tmp_path: Path, revision: str) -> None:
    hub.branches[revision] = h.SECOND
    assert run(tmp_path, STAGING_REVISION=revision) == STAGED
    assert hub.asked[0][1] == f"/api/models/{h.REPO}/revision/{revision}"
    assert offline(tmp_path, revision) == h.SECOND


# --- room --------------------------------------------------------------------------------------------------


def test_a_volume_that_is_too_small_says_so_before_the_download(
    hub: h.Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(volumes.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 10}))
    report = s.Heard()
    assert run(tmp_path, report) == HOPELESS
    assert report.last["reason"] == "NoSpace"
    assert "raise sizeGiB" in report.last["message"]
    assert [path for _, path, *_ in hub.asked] == [f"/api/models/{h.REPO}"]


def test_a_client_that_does_not_say_why_it_broke_is_asked_whether_there_was_room(
    hub: h.Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """hf_xet, which brings most weights now, knows one error only."""
    free = [10**12]

    def breaks(**_: object) -> str:
        free[0] = 10
        raise RuntimeError("data processing error")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", breaks)
    monkeypatch.setattr(volumes.shutil, "disk_usage", lambda _: type("Usage", (), {"free": free[0]}))
    report = s.Heard()
    assert run(tmp_path, report) == HOPELESS
    assert report.last["reason"] == "NoSpace"
