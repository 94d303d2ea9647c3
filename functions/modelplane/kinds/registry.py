"""Which composer answers for which composite kind: one line each."""

from collections.abc import Mapping

from modelplane.core import Kind

KINDS: Mapping[tuple[str, str], Kind] = {}
