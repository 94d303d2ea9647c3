"""Kubernetes quantities, with the API server's exact outcomes, as whole numbers of nano units.

Parsing follows resource.ParseQuantity (k8s.io/apimachinery, pkg/api/resource/quantity.go): a fraction below
nano is rounded away from zero, and a value written with a binary suffix saturates at the largest int64 while
one written in decimal keeps its size.
"""

import re
from dataclasses import dataclass

NANO = 10**9
INT64_MAX = 2**63 - 1
INT64_MIN = -(2**63)
# Text of a selector may name any exponent; beyond this the number would fill memory before it is compared.
_MAX_EXPONENT = 4096

_TEXT = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]*)(?:\.(?P<fraction>[0-9]*))?"
    r"(?:(?P<binary>[KMGTPE]i)|(?P<decimal>[numkMGTPE])|[eE](?P<exponent>[+-]?[0-9]+))?"
)
_BINARY = {f"{letter}i": 10 * power for power, letter in enumerate("KMGTPE", start=1)}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}


@dataclass(frozen=True, slots=True, order=True)
class Quantity:
    """An amount in nano units; two spellings of one amount are equal."""

    nano: int

    @classmethod
    def of(cls, number: int) -> "Quantity":
        """Return the quantity of a whole number."""
        return cls(number * NANO)

    @property
    def sign(self) -> int:
        """1, 0 or -1."""
        return (self.nano > 0) - (self.nano < 0)

    @property
    def is_integer(self) -> bool:
        """Whether `as_integer` gives a number."""
        whole, rest = divmod(self.nano, NANO)
        return rest == 0 and INT64_MIN <= whole <= INT64_MAX

    def as_integer(self) -> int:
        """Return the whole number; a fraction, or one outside int64, raises ValueError."""
        if not self.is_integer:
            raise ValueError("cannot convert value to integer")
        return self.nano // NANO

    def as_float(self) -> float:
        """Return the nearest float; infinite where the amount is larger than any."""
        try:
            return self.nano / NANO
        except OverflowError:
            return float("inf") * self.sign

    def add(self, other: "Quantity") -> "Quantity":
        """Return the sum."""
        return Quantity(self.nano + other.nano)

    def sub(self, other: "Quantity") -> "Quantity":
        """Return the difference."""
        return Quantity(self.nano - other.nano)


def parse(text: str) -> Quantity:
    """Return the quantity that the text spells.

    Raises:
        ValueError: for text that Kubernetes refuses: none, spaces, `K`, a comma.
    """
    found = _TEXT.fullmatch(text)
    # No digit at all is 0 to Kubernetes, as in `Gi`, `-` or `.`; only the empty text is refused.
    if found is None or not text:
        raise ValueError(
            f"{text!r} is no quantity: quantities must match the regular expression of Kubernetes"
        )
    digits = int((found["whole"] or "") + (found["fraction"] or "") or "0")
    places = len(found["fraction"] or "")
    if found["binary"]:
        nano = min(_scaled(digits << _BINARY[found["binary"]], 9 - places), INT64_MAX * NANO)
    else:
        exponent = _DECIMAL.get(found["decimal"] or "", 0) + int(found["exponent"] or 0)
        if abs(exponent) > _MAX_EXPONENT:
            raise ValueError(f"{text!r} is no quantity: the exponent is out of range")
        nano = _scaled(digits, exponent + 9 - places)
    return Quantity(-nano if found["sign"] == "-" else nano)


def _scaled(digits: int, power: int) -> int:
    """Return digits * 10**power, rounded up: the caller has taken the sign off."""
    if power >= 0:
        return digits * int(10**power)
    return -(-digits // int(10**-power))
