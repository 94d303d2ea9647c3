"""provider-kubernetes readiness queries, evaluated for real over what the simulated cluster reports."""

from functools import cache
from typing import Any

from cel_expr_python import cel

from modelplane.core import Manifest


class QueryError(Exception):
    """A readiness query that does not compile: a bug in whoever composed it."""


@cache
def _compiled(query: str) -> Any:
    env = cel.NewEnv(variables={"object": cel.Type.DYN})
    try:
        return env.compile(query)
    except (RuntimeError, ValueError) as error:
        raise QueryError(f"{query}: {error}") from error


def holds(query: str, remote: Manifest) -> bool:
    """Tell whether the query is true; an evaluation error is false, as the provider treats it."""
    compiled = _compiled(query)
    try:
        result = compiled.eval(data={"object": remote})
        return result.type() != cel.Type.ERROR and result.plain_value() is True
    except (RuntimeError, TypeError, ValueError):
        return False
