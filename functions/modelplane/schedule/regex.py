"""`find` and `findAll`: Kubernetes' functions run on RE2, which is linear; Python's `re` can take for ever.

Patterns are held to what both read alike and `re` runs in bounded time: no group is repeated, none looks
around or refers back, and the product of what repetitions and alternatives can try stays small. Another
pattern is an error, and a selector with an error is not true (github.com/google/re2/wiki/Syntax).
"""

import re
from functools import lru_cache

_MAX_TRIES = 10_000_000
_CLASSES = {
    "alnum": "0-9A-Za-z", "alpha": "A-Za-z", "ascii": r"\x00-\x7f", "blank": r"\t ",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9", "graph": "!-~", "lower": "a-z", "print": " -~", "punct": r"!-/:-@\[-`{-~",
    "space": r"\t\n\v\f\r ", "upper": "A-Z", "word": "0-9A-Za-z_", "xdigit": "0-9A-Fa-f",
}  # fmt: skip
_TOKEN = re.compile(
    r"(?P<escape>\\[0-9A-Za-z])|\\.|(?P<set>\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\\[]|\[(?!:))*\])"
    r"|(?P<open>\((?:\?(?:P?<[A-Za-z_]\w*>|[a-z-]*:))?(?!\?))|(?P<flags>\(\?[a-z-]+\))|(?P<other>\(\?|\[)"
    r"|(?P<close>\)(?P<repeat>[*+]|\{\d)?)|(?P<many>(?:[*+]|\{\d+(?:,\d*)?\})\??)|(?P<option>\?\??)"
    r"|(?P<either>\|)|(?P<end>\$)|(?P<brace>\{)",
    re.DOTALL,
)
_IN_SET = re.compile(r"\[:(?P<not>\^?)(?P<name>\w+):\]|\\(?P<escape>.)|--|[\[&~|]", re.DOTALL)
# Escapes that mean the same to both, outside a set and in one.
_ESCAPES = frozenset("dDsSwWbBAafnrtv")
_SET_ESCAPES = frozenset("dDsSwWafnrtv")


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> tuple[re.Pattern[str], int, int]:
    """Return the pattern as `re` runs it, how many repetitions it has, and its ways through alternatives."""
    repetitions, ways = 0, 1
    alternatives = [1]
    multiline = re.search(r"\(\?[a-z]*m", pattern) is not None
    done: list[str] = []
    at, quantified = 0, False
    for token in _TOKEN.finditer(pattern):
        done.append(pattern[at : token.start()])
        at = token.end()
        text = token.group()
        # `a++` and the like keep what they took in `re`, and are errors in RE2.
        twice = done[-1] == "" and quantified
        quantified = bool(token["many"] or token["option"])
        if token["other"] or token["repeat"] or (twice and quantified):
            raise ValueError(f"{pattern!r}: {text} is not supported")
        if token["open"]:
            alternatives.append(1)
            text = text.replace("(?<", "(?P<")
        elif token["close"] and len(alternatives) > 1:
            ways *= alternatives.pop()
        elif token["either"]:
            alternatives[-1] += 1
        elif token["option"]:
            ways *= 2
        repetitions += bool(token["many"])
        done.append(_spelled(text, token, multiline=multiline))
    for number in alternatives:
        ways *= number
    try:
        return re.compile("".join((*done, pattern[at:])), re.ASCII), repetitions, ways
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(f"{pattern!r} is no regular expression: {error}") from None


def _spelled(text: str, token: re.Match[str], *, multiline: bool) -> str:
    """Return a part of a pattern as `re` spells it."""
    if text == r"\z" or (token["end"] and not multiline):
        # RE2's $ is the very end of a text, not also the place before its last newline.
        return r"\Z"
    if token["escape"] and text[1] not in _ESCAPES:
        raise ValueError(f"{text} is not supported")
    if token["set"]:
        start = 2 if text.startswith("[^") else 1
        return text[:start] + _IN_SET.sub(_in_set, text[start:-1]) + "]"
    return r"\{" if token["brace"] else text


def _in_set(found: re.Match[str]) -> str:
    text = found.group()
    if name := found["name"]:
        if found["not"] or name not in _CLASSES:
            raise ValueError(f"{text} is not supported")
        return _CLASSES[name]
    if escape := found["escape"]:
        if escape.isalnum() and escape not in _SET_ESCAPES:
            raise ValueError(f"{text} is not supported")
        return text
    if text == "--":
        raise ValueError("-- in a set is not supported")
    return rf"\{text}"


def _bounded(text: str, pattern: str) -> re.Pattern[str]:
    found, repetitions, ways = _compiled(pattern)
    if ways > _MAX_TRIES or ways * max(len(text), 2) ** (repetitions + 1) > _MAX_TRIES:
        raise ValueError("the pattern has too many ways to match a text of this length")
    return found


def find(text: str, pattern: str) -> str:
    """Return the first match, or an empty string.

    Raises:
        ValueError: for a pattern that is none, or that is not run here.
    """
    found = _bounded(text, pattern).search(text)
    return found.group() if found else ""


def find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    """Return all matches, or so many at most where the limit is not negative; raises as `find` does."""
    found: list[str] = []
    compiled = _bounded(text, pattern)
    at, last = 0, -1
    while at <= len(text) and len(found) != limit:
        match = compiled.search(text, at)
        if match is None:
            break
        # As Go does: an empty match right after another one does not count, and is stepped over.
        if match.end() > match.start() or match.start() != last:
            found.append(match.group())
        last = match.end()
        at = last + 1 if last == at else last
    return found
