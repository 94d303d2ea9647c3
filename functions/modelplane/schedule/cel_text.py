"""What must be known of a selector's text before CEL sees it: its bounds, and where it indexes a domain.

Kubernetes refuses a selector longer than 10 KiB and one whose run could cost too much (k8s.io/api
resource/v1, CELSelectorExpressionMaxLength and -MaxCost). This runtime counts no cost, so what multiplies
work or text is bounded here, before anything runs: loops in loops, bindings, and functions that make more.
"""

import re
from collections.abc import Iterator

MAX_LENGTH = 10 * 1024
# Steps of the most expensive selector admitted, as this module counts them: some 100 ms of evaluation.
MAX_COST = 32_000_000
# Elements assumed in a list or map that a macro walks: a device has at most 32 attributes and 32 amounts.
_ELEMENTS = 32
# The most that `lists.range` gives.
MAX_RANGE = 1000

# Literals and comments, in which nothing else is looked for.
_OPAQUE = r"""[rR]?[bB]?[rR]?(?:\"{3}.*?\"{3}|'{3}.*?'{3}|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')|//[^\n]*"""
_LITERAL = re.compile(_OPAQUE, re.DOTALL)
_TOKEN = re.compile(rf"(?P<opaque>{_OPAQUE})|(?P<open>[(\[{{])|(?P<close>[)\]}}])|(?P<comma>,)", re.DOTALL)
_STEP = re.compile(
    r"(?P<bind>\bcel\s*\.\s*bind\s*\(\s*(?P<name>\w+))"
    r"|(?P<walk>\.\s*(?:all|exists|exists_one|existsOne|map|filter|sortBy|optMap|optFlatMap)\s*\()"
    r"|(?P<grow>\.\s*(?:flatten|join|format)\s*\()"
    r"|(?P<open>[(\[{])|(?P<close>[)\]}])|(?P<comma>,)"
)
_REPLACE = re.compile(
    rf"\.\s*replace\s*\((?:\s*(?P<old>{_OPAQUE})\s*,\s*(?P<new>{_OPAQUE})\s*[,)])?", re.DOTALL
)
_LISTING = re.compile(r"\.\s*(?:split|findAll)\s*\(")
_RANGE = re.compile(r"\blists\s*\.\s*range\s*\(")
_INDEX = re.compile(
    rf"(?P<opaque>{_OPAQUE})|(?<![\w.])device\s*\.\s*(?P<field>attributes|capacity)\s*\[(?P<optional>\??)",
    re.DOTALL,
)
# The calls that `with_domains` writes are no functions of Kubernetes'.
_OWN = re.compile(r"\b__(?:attributes|capacity)\b")
# `device` as a value, or asked for by has(): the checked variables are its fields, not itself.
_WHOLE = re.compile(
    rf"(?P<opaque>{_OPAQUE})|(?P<whole>(?<![\w.])device\b(?!\s*\.\s*[A-Za-z_])"
    r"|\bhas\s*\(\s*device\s*\.\s*\w+\s*\))",
    re.DOTALL,
)


def bounded(text: str) -> str:
    """Return why the selector is not even compiled, mostly for its size, or an empty string."""
    # Kubernetes counts bytes, the XRD characters.
    if (size := len(text.encode(errors="surrogatepass"))) > MAX_LENGTH:
        return f"the selector has {size} bytes; {MAX_LENGTH} are admitted"
    # A comment may stand anywhere, also between a macro and its parenthesis.
    plain = _LITERAL.sub(lambda found: " " if found.group().startswith("//") else found.group(), text)
    bare = _LITERAL.sub('""', plain)
    if own := _OWN.search(bare):
        return f"undeclared reference to '{own.group()}'"
    cost = max(len(bare), 1) * _growth(plain)
    # A binding multiplies what it names each time it is named; a list it makes longer is walked longer.
    bindings, depth, growing, commas = _steps(bare)
    elements = max(_ELEMENTS, commas + 1) * bindings
    if _LISTING.search(bare):
        elements = max(elements, len(text) * bindings)
    if _RANGE.search(bare):
        elements = max(elements, MAX_RANGE * bindings)
    cost *= bindings
    for _ in range(depth + growing):
        cost *= elements
        if cost > MAX_COST:
            break
    return "the selector costs too much: nest fewer macros and bindings" if cost > MAX_COST else ""


def _growth(text: str) -> int:
    """Return by how much calls of `replace` can lengthen a text."""
    factor = 1
    for call in _REPLACE.finditer(text):
        if call["old"] is None:
            factor *= _ELEMENTS * 2
        else:
            # Between quotes; an escape counts as its length, which is more than it gives.
            old, new = len(call["old"].strip("rRbB\"'")), len(call["new"].strip("rRbB\"'"))
            factor *= max(1, -(-new // old) if old else new + 1)
        if factor > MAX_COST:
            break
    return factor


def _steps(bare: str) -> tuple[int, int, int, int]:
    """Return the factor of all bindings, how deep loops nest, calls that join texts or lists, and commas."""
    bindings, deepest, growing, commas = 1, 0, 0, 0
    names = re.findall(r"\w+", bare)
    open_walks: list[bool] = []
    for step in _STEP.finditer(bare):
        if step["close"]:
            if open_walks:
                open_walks.pop()
        elif step["comma"]:
            commas += 1
        else:
            open_walks.append(bool(step["walk"]))
            deepest = max(deepest, sum(open_walks)) if step["walk"] else deepest
            growing += bool(step["grow"])
            if step["bind"] and bindings <= MAX_COST:
                bindings *= max(1, names.count(step["name"]) - 1)
    return bindings, deepest, growing, commas


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
