"""Quantities: Kubernetes' outcome for each spelling."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelplane.schedule.quantity import INT64_MAX, NANO, Quantity, parse

PARSED = [
    ("0", 0, "zero"),
    ("80Gi", 80 * 2**30, "binary suffix"),
    ("1.5Ki", 1536, "a fraction of a binary unit"),
    (".5Mi", 2**19, "no digit before the dot"),
    ("5.", 5, "no digit after the dot"),
    ("+3", 3, "a plus sign"),
    ("-2k", -2000, "a minus sign"),
    ("1500m", Fraction(3, 2), "milli"),
    ("7u", Fraction(7, 10**6), "micro"),
    ("9n", Fraction(9, 10**9), "nano, the smallest"),
    ("0.1n", Fraction(1, 10**9), "below nano is rounded away from zero"),
    ("-0.1n", Fraction(-1, 10**9), "and so is a negative one"),
    ("1.0000000001", Fraction(10**9 + 1, 10**9), "also past the dot"),
    ("1e3", 1000, "a decimal exponent"),
    ("1E3", 1000, "an upper-case exponent"),
    ("1E", 10**18, "an upper-case E alone is exa"),
    ("25e-1", Fraction(5, 2), "a negative exponent"),
    ("256E", 256 * 10**18, "decimal values keep their size beyond int64"),
    ("8Ei", INT64_MAX, "binary values saturate at int64"),
    ("100Ei", INT64_MAX, "so every larger one is equal"),
    ("-100Ei", -INT64_MAX, "on both sides"),
    ("7Ei", 7 * 2**60, "the last one below"),
    ("0001", 1, "leading zeros"),
    ("12e0", 12, "exponent zero"),
    ("Gi", 0, "no digit at all is zero to Kubernetes"),
    (".", 0, "nor need there be more than a dot"),
]  # fmt: skip

REFUSED = [
    ("", "empty"), ("1K", "capital K is no unit"),
    ("1,5", "a comma"), (" 1", "a space before"), ("1 ", "a space after"), ("1\n", "a newline"),
    ("1e", "an exponent without digits"), ("1Gib", "more than a suffix"), ("0x10", "hexadecimal"),
    ("\u0661", "digits of another script"), ("--1", "two signs"), ("1e99999", "an exponent nobody can hold"),
    ("1_000", "Python's own grouping"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "value", "reason"), PARSED, ids=[row[2] for row in PARSED])
def test_a_spelling_has_kubernetes_value(text: str, value: Fraction | int, reason: str) -> None:
    assert parse(text).nano == value * NANO, reason


@pytest.mark.parametrize(("text", "reason"), REFUSED, ids=[row[1] for row in REFUSED])
def test_what_kubernetes_refuses_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match="is no quantity"):
        parse(text)


@pytest.mark.parametrize(
    ("text", "whole", "reason"),
    [
        ("1000m", 1, "whole by value, whatever its unit"),
        ("1500m", None, "a fraction"),
        ("8Ei", INT64_MAX, "the saturated value is a number"),
        ("10E", None, "outside int64"),
        ("-9223372036854775808", -(2**63), "the smallest int64"),
    ],
)
def test_as_integer_fails_where_int64_cannot_hold_it(text: str, whole: int | None, reason: str) -> None:
    found = parse(text)
    assert found.is_integer is (whole is not None), reason
    if whole is None:
        with pytest.raises(ValueError, match="cannot convert"):
            found.as_integer()
    else:
        assert found.as_integer() == whole, reason


def test_arithmetic_order_and_sign_go_by_value() -> None:
    assert parse("1Ki") == parse("1024")
    assert parse("1k") < parse("1Ki")
    assert parse("1").add(parse("500m")) == parse("1500m")
    assert parse("1").sub(Quantity.of(2)) == parse("-1")
    assert [parse(t).sign for t in ("-1n", "0", "1n")] == [-1, 0, 1]
    assert parse("1e4000").as_float() == float("inf")


@given(st.integers(-(10**30), 10**30), st.integers(-12, 12))
def test_decimal_exponents_agree_with_exact_arithmetic(digits: int, exponent: int) -> None:
    exact = abs(digits) * Fraction(10) ** exponent * NANO
    up = -(-exact.numerator // exact.denominator)
    assert parse(f"{digits}e{exponent}").nano == (up if digits >= 0 else -up)


@given(st.integers(0, 10**12), st.sampled_from(["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"]))
def test_binary_suffixes_agree_with_shifts_up_to_the_cap(digits: int, suffix: str) -> None:
    shift = 10 * (1 + ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"].index(suffix))
    assert parse(f"{digits}{suffix}").nano == min(digits << shift, INT64_MAX) * NANO
