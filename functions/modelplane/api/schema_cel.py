"""Compile and run CEL as the API server does for the rules of a schema, and its RE2 regular expressions."""

import re
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from cel_expr_python import cel
from cel_expr_python.ext import ext_bindings, ext_encoders, ext_math, ext_optional, ext_strings

from modelplane.api import schema_library

# https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#validation-rules
_KEYWORDS = frozenset(
    ["true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if",
     "import", "let", "loop", "package", "namespace", "return", "var", "void", "while"]
)  # fmt: skip
_ESCAPES = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_ESCAPED = re.compile(r"__|[./-]")
_LITERAL = re.compile(
    r"""r?(?:\"{3}.*?\"{3}|'{3}.*?'{3}|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')""", re.DOTALL
)
_OLD_SELF = re.compile(r"\boldSelf\b")
_STATUS = re.compile(r"^[A-Z_]+: ")

# No Python value can be bound to an optional type, so the old value comes in a list of none or one.
_OPTIONAL = "cel.bind(oldSelf, size(__old) > 0 ? optional.of(__old[0]) : optional.none(), {})"


@dataclass(frozen=True)
class Program:
    """A compiled expression; `error` says why where it did not compile, and then it must not be run."""

    expression: Any
    error: str = ""

    def run(self, bound: Any) -> "Outcome":
        """Evaluate over what `bind` gave; a run that fails gives an Outcome with its error, no exception."""
        try:
            result = self.expression.eval(bound)
            if result.type() == cel.Type.ERROR:
                return Outcome(None, _STATUS.sub("", str(result.value())))
            return Outcome(result.plain_value())
        except (RuntimeError, TypeError, ValueError) as error:
            return Outcome(None, str(error).splitlines()[0])


@dataclass(frozen=True)
class Outcome:
    """What one run gave; `error` is empty where it gave a value."""

    value: Any
    error: str = ""


@cache
def _environment() -> Any:
    return cel.NewEnv(
        variables={"self": cel.Type.DYN, "oldSelf": cel.Type.DYN, "__old": cel.Type.List(cel.Type.DYN)},
        extensions=[
            ext_strings.ExtStrings(),
            ext_optional.ExtOptional(),
            ext_bindings.ExtBindings(),
            ext_math.ExtMath(),
            ext_encoders.ExtEncoders(),
        ],
        functions=schema_library.functions(),
    )


def bind(current: Any, old: Any = None, *, has_old: bool = False) -> Any:
    """Bind `self` and `oldSelf` once for all rules of a value: the conversion is what costs."""
    return _environment().Activation({"self": current, "oldSelf": old, "__old": [old] if has_old else []})


@cache
def program(expression: str, *, optional_old: bool = False, result: str = "BOOL") -> Program:
    """Compile once per text; with `optional_old` the expression sees `oldSelf` as an optional."""
    source = _OPTIONAL.format(expression) if optional_old else expression
    try:
        compiled = _environment().compile(source)
    except RuntimeError as error:
        return Program(None, str(error).splitlines()[0].removeprefix("INVALID_ARGUMENT: "))
    given = compiled.return_type().name()
    if given.upper() not in (result, "DYN"):
        return Program(None, f"gives {given}, not {result.lower()}")
    return Program(compiled)


def reads_old(expression: str) -> bool:
    """Whether the rule is a transition rule: it names `oldSelf` outside a string."""
    return bool(_OLD_SELF.search(_LITERAL.sub('""', expression)))


@cache
def escape(name: str) -> str:
    """Spell a property's name as rules must: CEL has keywords, and names without dots, dashes and slashes."""
    if name in _KEYWORDS:
        return f"__{name}__"
    return _ESCAPED.sub(lambda match: _ESCAPES[match[0]], name)


@lru_cache(maxsize=65536)
def matches(text: str, pattern: str) -> bool:
    """Whether RE2 finds the pattern in the text; a pattern RE2 refuses matches nothing.

    Python's `re` differs where it hurts: its `$` accepts a trailing newline.
    """
    return program("self.matches(oldSelf)").run(bind(text, pattern)).value is True


@cache
def pattern_error(pattern: str) -> str:
    """Why RE2 refuses the pattern; empty where it takes it."""
    return program("self.matches(oldSelf)").run(bind("", pattern)).error
