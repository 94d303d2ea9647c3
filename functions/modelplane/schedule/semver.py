"""Semantic versions as Kubernetes' CEL library reads and orders them.

Outcomes follow k8s.io/apiserver pkg/cel/library/semverlib.go over github.com/blang/semver/v4: strict three
parts, build metadata checked and then ignored in every comparison.
"""

import re
from dataclasses import dataclass
from functools import total_ordering

_NUMBER = r"0|[1-9][0-9]*"
_STRICT = re.compile(
    rf"(?P<major>{_NUMBER})\.(?P<minor>{_NUMBER})\.(?P<patch>{_NUMBER})"
    r"(?:-(?P<pre>[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?"
    r"(?:\+(?P<build>[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?"
)
_LOOSE = re.compile(r"[0-9]+(?:\.[0-9]+){0,2}")
_UINT64_MAX = 2**64 - 1


@total_ordering
@dataclass(frozen=True, slots=True)
class Semver:
    """A version; `pre` holds the prerelease parts, numeric ones as ints. Build metadata is not kept."""

    major: int
    minor: int
    patch: int
    pre: tuple[int | str, ...] = ()

    def __lt__(self, other: "Semver") -> bool:
        return self._rank() < other._rank()

    def _rank(self) -> tuple[object, ...]:
        # A release stands above its prereleases, a number below a word, a longer list above its own start.
        parts = tuple((0, p, "") if isinstance(p, int) else (1, 0, p) for p in self.pre)
        return (self.major, self.minor, self.patch, not self.pre, parts)

    def __str__(self) -> str:
        head = f"{self.major}.{self.minor}.{self.patch}"
        return f"{head}-{'.'.join(map(str, self.pre))}" if self.pre else head


def parse(text: str, *, normalize: bool = False) -> Semver:
    """Return the version that the text spells; `normalize` first completes what people commonly write.

    Raises:
        ValueError: for text that is no version.
    """
    found = _STRICT.fullmatch(_normal(text) if normalize else text)
    if found is None:
        raise ValueError(f"{text!r} is no semantic version")
    major, minor, patch = (int(found[part]) for part in ("major", "minor", "patch"))
    if max(major, minor, patch) > _UINT64_MAX:
        raise ValueError(f"{text!r} is no semantic version: a number is out of range")
    parts = found["pre"].split(".") if found["pre"] else ()
    return Semver(major, minor, patch, tuple(_prerelease(text, part) for part in parts))


def _normal(text: str) -> str:
    """Strip one `v` and leading zeros, and complete missing parts; only a full version may carry a suffix."""
    text = text.removeprefix("v")
    parts = text.split(".", 2)
    if len(parts) < 3:
        if not _LOOSE.fullmatch(text):
            raise ValueError(f"{text!r} is a short version with a suffix")
        return ".".join(str(int(p)) for p in (*parts, *("0",) * (3 - len(parts))))
    return ".".join(re.sub(r"^0+(?=[0-9])", "", part) for part in parts)


def _prerelease(text: str, part: str) -> int | str:
    if not part.isdigit():
        return part
    if part != "0" and part.startswith("0"):
        raise ValueError(f"{text!r} is no semantic version: {part} has a leading zero")
    if int(part) > _UINT64_MAX:
        raise ValueError(f"{text!r} is no semantic version: {part} is out of range")
    return int(part)
