"""Semantic versions: what is one, and which stands above which."""

from __future__ import annotations

import itertools

import pytest

from modelplane.schedule.semver import parse

# Ascending; the specification's own chain (semver.org, section 11) inside ours.
CHAIN = [
    "0.0.0", "0.0.1", "0.1.0", "1.0.0-0", "1.0.0-1", "1.0.0-2", "1.0.0-10", "1.0.0--", "1.0.0-alpha",
    "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta", "1.0.0-beta.2", "1.0.0-beta.11", "1.0.0-rc.1",
    "1.0.0", "1.0.1", "1.2.0", "1.10.0", "2.0.0", "9.0.0", "10.0.0",
]  # fmt: skip

REFUSED = [
    ("", "empty"), ("1", "one part"), ("1.2", "two parts"), ("1.2.3.4", "four parts"),
    ("v1.2.3", "a v"), ("01.2.3", "a leading zero"), ("1.02.3", "a leading zero in the middle"),
    ("1.2.3-", "an empty prerelease"), ("1.2.3-a..b", "an empty part"),
    ("1.2.3-01", "a leading zero in a number"), ("1.2.3+", "empty build metadata"),
    ("1.2.3+a_b", "a character that is none of its own"), (" 1.2.3", "a space before"),
    ("1.2.3\n", "a newline"), ("-1.2.3", "a sign"), ("18446744073709551616.0.0", "beyond uint64"),
]  # fmt: skip

NORMALIZED = [
    ("v1.2.3", "1.2.3", "one v is dropped"),
    ("1", "1.0.0", "missing parts are zero"),
    ("1.2", "1.2.0", "also the last one"),
    ("v01.002.0003", "1.2.3", "leading zeros are dropped"),
    ("v1.2.3-rc.1+b5", "1.2.3-rc.1", "a full version keeps its suffix"),
    ("00", "0.0.0", "zeros alone"),
    ("vv1.2.3", None, "only one v"),
    ("1-rc", None, "a short form takes no prerelease"),
    ("1.2+b", None, "nor build metadata"),
    (" v1.2.3", None, "spaces are not trimmed"),
    ("V1.2.3", None, "a capital V stays"),
    ("", None, "nothing is no version"),
    ("1.", None, "an empty part"),
]  # fmt: skip


def test_versions_stand_in_their_order() -> None:
    for (i, low), (j, high) in itertools.product(enumerate(map(parse, CHAIN)), repeat=2):
        assert (low < high, low == high, low > high) == (i < j, i == j, i > j), (CHAIN[i], CHAIN[j])


def test_build_metadata_is_checked_and_then_ignored() -> None:
    assert parse("1.2.3+001") == parse("1.2.3+zzz") == parse("1.2.3")
    assert parse("1.0.0-a+x") == parse("1.0.0-a")


@pytest.mark.parametrize(("text", "reason"), REFUSED, ids=[row[1] for row in REFUSED])
def test_what_is_no_version_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match="is no semantic version"):
        parse(text)


@pytest.mark.parametrize(("text", "same", "reason"), NORMALIZED, ids=[row[2] for row in NORMALIZED])
def test_normalizing_completes_what_people_write(text: str, same: str | None, reason: str) -> None:
    if same is None:
        with pytest.raises(ValueError, match="version"):
            parse(text, normalize=True)
    else:
        assert parse(text, normalize=True) == parse(same), reason
