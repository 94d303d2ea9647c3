"""What must be known of a selector's text before CEL sees it: its bounds, and where it indexes a domain.

Kubernetes refuses a selector longer than 10 KiB and stops one whose run costs too much (k8s.io/api
resource/v1, CELSelectorExpressionMaxLength and -MaxCost). This runtime counts no cost, so loops and bindings,
the only constructs that multiply work, are bounded here, before anything runs.
"""

import re
from collections.abc import Iterator

MAX_LENGTH = 10 * 1024
# Steps of the most expensive selector admitted: about what 10 ms of evaluation take.
MAX_COST = 1_000_000
# Elements assumed in a list or map that a macro walks: a device has at most 32 attributes and 32 amounts.
_ELEMENTS = 32

# Literals and comments, in which nothing else is looked for.
_OPAQUE = r"""[rR]?[bB]?[rR]?(?:\"{3}.*?\"{3}|'{3}.*?'{3}|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')|//[^\n]*"""
_TOKEN = re.compile(rf"(?P<opaque>{_OPAQUE})|(?P<open>[(\[{{])|(?P<close>[)\]}}])|(?P<comma>,)", re.DOTALL)
_MACRO = re.compile(
    r"(?P<bind>\bcel\s*\.\s*bind\s*\(\s*(?P<name>\w+))"
    r"|\.\s*(?:all|exists|exists_one|existsOne|map|filter|transformList|transformMap|transformMapEntry|optMap"
    r"|optFlatMap|sum|find|findAll|replace|join|split|format)\s*\("
)
_INDEX = re.compile(
    rf"(?P<opaque>{_OPAQUE})|(?<![\w.])device\s*\.\s*(?P<field>attributes|capacity)\s*\[(?P<optional>\??)",
    re.DOTALL,
)
# `device` as a value, or asked for by has(): the checked variables are its fields, not itself.
_WHOLE = re.compile(
    rf"(?P<opaque>{_OPAQUE})|(?P<whole>(?<![\w.])device\b(?!\s*\.\s*[A-Za-z_])"
    r"|\bhas\s*\(\s*device\s*\.\s*\w+\s*\))",
    re.DOTALL,
)


def bounded(text: str) -> str:
    """Return why the selector is too large to run, or an empty string."""
    if len(text) > MAX_LENGTH:
        return f"the selector has {len(text)} characters; {MAX_LENGTH} are admitted"
    bare = re.sub(_OPAQUE, '""', text, flags=re.DOTALL)
    cost = max(len(bare), 1)
    commas = bare.count(",") + 1
    for macro in _MACRO.finditer(bare):
        if macro["bind"]:
            cost *= max(1, len(re.findall(rf"\b{macro['name']}\b", bare)) - 1)
        elif _nested(bare, macro.start()):
            cost *= max(_ELEMENTS, commas)
        if cost > MAX_COST:
            return "the selector costs too much: nest fewer macros and bindings"
    return ""


def _nested(bare: str, at: int) -> bool:
    """Tell whether the macro stands inside another one's parentheses; alone it adds, inside it multiplies."""
    open_at: list[int] = []
    for found in _TOKEN.finditer(bare, 0, at):
        if found["open"]:
            open_at.append(found.end())
        elif found["close"] and open_at:
            open_at.pop()
    starts = {macro.end() for macro in _MACRO.finditer(bare)}
    return any(start in starts for start in open_at)


def whole_device(text: str) -> bool:
    """Tell whether the selector takes `device` itself as a value."""
    return any(found["whole"] for found in _WHOLE.finditer(text))


def with_domains(text: str) -> str:
    """Return the selector with each `device.attributes[...]` as a call that knows the default.

    Kubernetes gives an empty map for a domain the device does not have; a CEL map gives an error. The call
    takes the real map, so `"domain" in device.attributes` stays as it is.
    """
    done: list[str] = []
    at = 0
    for found in _INDEX.finditer(text):
        if found["opaque"] or found.start() < at:
            continue
        end = _closing(text, found.end())
        if end is None:
            continue
        call = f"__{found['field']}(device.{found['field']}, {with_domains(text[found.end() : end])})"
        done += text[at : found.start()], f"optional.of({call})" if found["optional"] else call
        at = end + 1
    return "".join((*done, text[at:]))


def _closing(text: str, start: int) -> int | None:
    depth = 0
    for token in _brackets(text, start):
        if token["open"]:
            depth += 1
        elif depth == 0:
            return token.start()
        else:
            depth -= 1
    return None


def _brackets(text: str, start: int) -> Iterator[re.Match[str]]:
    return (t for t in _TOKEN.finditer(text, start) if t["open"] or t["close"])
