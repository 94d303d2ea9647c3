"""Quantities, versions, regular expressions and selectors mean what Kubernetes' own code says they mean.

The outcomes in `tests/vectors` come from the modules named in each file; `tools/vectors` asks them again.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from modelplane.schedule import cel, quantity, regex, semver
from modelplane.schedule.devices import Shape, node

FOLDER = Path(__file__).resolve().parent.parent / "vectors"
A, C = 'device.attributes["gpu.nvidia.com"]', 'device.capacity["gpu.nvidia.com"]'


@cache
def vectors(name: str) -> Any:
    return json.loads((FOLDER / f"{name}.json").read_text())


def attempt(work: Any) -> Any:
    """Return what it gives, or None for an error, as the vectors do."""
    try:
        return work()
    except ValueError:
        return None


@pytest.mark.parametrize("row", vectors("quantities")["parsed"], ids=lambda row: repr(row["text"]))
def test_a_quantity_reads_as_in_kubernetes(row: dict[str, Any]) -> None:
    found = attempt(lambda: quantity.parse(row["text"]))
    assert (None if found is None else str(found.nano)) == row["nano"]
    assert row["is"] is (found is not None)
    if found is not None:
        assert found.sign == row["sign"]
        # Kubernetes denies some whole numbers by how it happens to hold them: 1.5Ki, 1000m, 12Pi.
        if row["is_integer"]:
            assert found.as_integer() == row["integer"]
        else:
            assert row["integer"] is None
        # Kubernetes multiplies its scaled integer in floats, so the last bit may differ from the nearest.
        assert found.as_float() == pytest.approx(row["float"], rel=1e-15)


def test_quantities_relate_as_in_kubernetes() -> None:
    for row in vectors("quantities")["pairs"]:
        a, b = quantity.parse(row["a"]), quantity.parse(row["b"])
        assert (a > b) - (a < b) == row["compare"], row
        assert (a > b, a < b, a == b) == (row["greater"], row["less"], row["equal"]), row
        assert (str(a.add(b).nano), str(a.sub(b).nano)) == (row["add"], row["sub"]), row


def spelled(text: str, *, loose: bool) -> str | None:
    found = attempt(lambda: semver.parse(text, normalize=loose))
    return None if found is None else str(found)


@pytest.mark.parametrize("row", vectors("versions")["parsed"], ids=lambda row: repr(row["text"]))
def test_a_version_reads_as_in_kubernetes(row: dict[str, Any]) -> None:
    for loose, want in ((False, row["strict"]), (True, row["normalized"])):
        # Build metadata is checked, and then no part of the value.
        assert spelled(row["text"], loose=loose) == (want and want.partition("+")[0]), loose
    assert (row["is"], row["is_loose"]) == (row["strict"] is not None, row["normalized"] is not None)
    if row["strict"] is not None:
        found = semver.parse(row["text"])
        assert found.patch == row["patch"]
        for part in ("major", "minor"):
            # A CEL int ends at int64; Kubernetes casts a larger number to a negative one.
            assert (getattr(found, part) + 2**63) % 2**64 - 2**63 == row[part]


def test_versions_relate_as_in_kubernetes() -> None:
    for row in vectors("versions")["pairs"]:
        a, b = semver.parse(row["a"]), semver.parse(row["b"])
        assert (a > b) - (a < b) == row["compare"], row
        assert (a > b, a < b, a == b) == (row["greater"], row["less"], row["equal"]), row


# Patterns that RE2 runs and we do not: repeated groups, which `re` may never finish, and Unicode classes.
NOT_RUN = {"(a+)+", "(a|b)*", r"\pL"}


@pytest.mark.parametrize("row", vectors("regexes")["rows"], ids=lambda row: repr(row["pattern"]))
def test_find_gives_what_re2_gives_or_an_error(row: dict[str, Any]) -> None:
    pattern = row["pattern"]
    for text, first, every in zip(vectors("regexes")["texts"], row["find"], row["find_all"], strict=True):
        want = (None, None) if pattern in NOT_RUN else (first, every)
        found = attempt(lambda: regex.find(text, pattern)), attempt(lambda: regex.find_all(text, pattern))  # noqa: B023
        assert found == want, text


# Functions and macros that Kubernetes has and this runtime has not: such a selector is refused by name.
MISSING = (
    ".exists(k, v,", ".all(k, v,", ".existsOne(k, v,", ".transformList(", ".transformMap(",
    ".transformMapEntry(", ".exists(d, v,", "[1, 2, 1].indexOf", "[1, 2, 1].lastIndexOf", "[1, 2].indexOf",
    ".sortBy(", "ip(", "ip.", "cidr(", "url(", "format.", "1 < 1.5", "1u < 2", "size(cel.bind(v11",
)  # fmt: skip
# An unknown domain is an error, not an empty map, where the maps go by another name than device.…[…].
ALIASED = {
    'cel.bind(d, device, d.attributes["other.io"].size() == 0)',
    'cel.bind(at, device.attributes, at["other.io"].size() == 0)',
    'cel.bind(c, device.capacity, c["other.io"].size() == 0)',
    "device.attributes.foo.size() == 0",
    '(device.attributes)["other.io"].size() == 0',
    '(device).attributes["other.io"].size() == 0',
    '[device.attributes][0]["other.io"].size() == 0',
    '{"d": device}.d.attributes["other.io"].size() == 0',
    '(true ? device.attributes : device.attributes)["other.io"].size() == 0',
    '[device].exists(d, d.attributes["other.io"].size() == 0)',
    'dyn(device.attributes)["other.io"].size() == 0',
    f'{A}.architecture.find("\\\\pL+") == "Hopper"',
}
# Kubernetes refuses these when a claim is made, most for a cost it cannot bound; here they are run.
RUN_ALL_THE_SAME = {
    f"type({A}.one) == int", f"type({A}.mig) == bool", f"type({A}.architecture) == string",
    'type(quantity("1")) == type(quantity("2"))', "type(device) == type(device)",
    "type(device.attributes) == map", f'{C}.memory != quantity("1Gi")', '["a", "b"].join("-") == "a-b"',
    '["b", "a"].isSorted()', "[[1, [2]], [3]].flatten(2) == [1, 2, 3]", '[1, "a"].size() == 2',
    '{"a": 1, "b": "x"}.size() == 2', "has(device.memory)", 'device["driver"] == "gpu.nvidia.com"',
    'device["attributes"]["gpu.nvidia.com"].index == 3', f"{A}.`index` == 3",
    "cel.bind(d, device, d.memory == 1)", 'device.driver.matches("(")', f'{A}.architecture.matches("H(?=o)")',
    f'{A}.architecture.find("(?=o)") == ""', 'duration("x") > duration("1m")', 'int("x") == 1',
}  # fmt: skip
# The schema rules' own functions serve selectors too, and are laxer than Go's parsers.
LAXER = {
    'isIP("::ffff:1.2.3.4")', 'isIP("fe80::1%eth0")', 'isCIDR("10.0.0.0/08")',
    'isURL("https://exa mple.org")',
}  # fmt: skip


def shapes() -> dict[str, Shape]:
    found = vectors("selectors")["devices"].items()
    return {name: node([{**raw, "name": name, "count": 1}]).devices[0].shape for name, raw in found}


@pytest.mark.parametrize("row", vectors("selectors")["rows"], ids=lambda row: repr(row["cel"][:60]))
def test_a_selector_is_true_of_what_kubernetes_says(row: dict[str, Any]) -> None:
    found = cel.selector(row["cel"])
    ours = [name for name, shape in sorted(shapes().items()) if found.matches(shape)]
    if row.get("refused"):
        assert (found.error == "") is (row["cel"] in RUN_ALL_THE_SAME), found.error
    elif found.error:
        assert any(name in row["cel"] for name in MISSING), found.error
    elif row["cel"] in ALIASED:
        assert ours == [], "a doubt is never true"
    elif row["cel"] not in LAXER:
        assert ours == row["true_of"]


def test_every_exception_is_one() -> None:
    """An exception that no longer is one must go from the lists above."""
    rows = {row["cel"]: row for row in vectors("selectors")["rows"]}
    agree = set()
    for text in ALIASED | RUN_ALL_THE_SAME | LAXER:
        found, row = cel.selector(text), rows[text]
        ours = [name for name, shape in sorted(shapes().items()) if found.matches(shape)]
        if (found.error != "") == bool(row.get("refused")) and ours == row.get("true_of", []):
            agree.add(text)
    assert agree == set()
    assert all(any(name in text for text in rows) for name in MISSING)
