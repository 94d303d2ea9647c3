"""What a provider or a controller refuses, told in the condition that says whether the composite works.

A refused update leaves Ready as it was, for what ran before still runs; only Synced turns False
(crossplane-runtime, pkg/reconciler/managed). Without this nobody who looks at a composite would learn of it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from modelplane import contracts as c
from modelplane.core import paths
from modelplane.core.plan import Condition

_MARK = "not applied: "
_NAMED = 3
# A provider's error may quote a whole object; its beginning says what is wrong.
_LIMIT = 300
# What the provider reports of an Object that only observes (crossplane-runtime, pkg/reconciler/managed).
NOT_THERE = "external resource does not exist"
# Composers quote errors too, each up to a limit of its own: so much of one is enough to know it again.
_ENOUGH = 100
# Until what it refers to has an ID (crossplane-runtime, pkg/reconciler/managed/api.go): a wait, no refusal,
# and where that never comes its own complaint is the one that counts.
_WAITS = "cannot resolve references"


def said(observed: Mapping[str, Any] | None) -> str:
    """Return what is said against applying a composed resource; empty where nothing is.

    An error about a Secret is not quoted, since it may quote the Secret ("expected string, got
    &value.valueUnstructured{...}", structured-merge-diff).
    """
    synced = paths.condition(observed, "Synced")
    if synced.get("status") != "False":
        return ""
    if paths.text(observed, "spec", "forProvider", "manifest", "kind") == "Secret":
        return "it was refused; its own condition Synced says why"
    return paths.text(synced, "message") or paths.text(synced, "reason") or "it was refused"


def complaint(observed: Mapping[str, Any] | None) -> str:
    """Return the same after the resource's kind and name, cut to a length for messages."""
    words = said(observed)
    return f"{_who(observed)}: {cut(words)}" if words else ""


def tell(
    conditions: Sequence[Condition],
    health: str,
    observed: Mapping[str, Mapping[str, Any]],
    keys: Iterable[str],
) -> list[Condition]:
    """Return the conditions, with what is said against the resources of these keys in the message of one.

    What a condition says already is not said again; children of ours hand on what they tell.
    """
    told: dict[str, list[str]] = {}
    for key in sorted(keys):
        if seen := observed.get(key):
            for words in _all_said(seen):
                if not any(words[:_ENOUGH] in x.message for x in conditions):
                    told.setdefault(cut(words), []).append(_who(seen))
    if not told:
        return list(conditions)
    line = _MARK + "; ".join(_line(words, whom) for words, whom in list(told.items())[:_NAMED])
    if len(told) > _NAMED:
        line += f"; and {len(told) - _NAMED} more"
    return [
        replace(x, message=f"{x.message}; {line}" if x.message else line) if x.type == health else x
        for x in conditions
    ]


def without(message: str) -> str:
    """Return a message as it was before `tell`: said again in a later pass it may not be true any more."""
    return message.partition(_MARK)[0].removesuffix("; ")


def _all_said(observed: Mapping[str, Any]) -> Iterator[str]:
    # What is only looked at is never applied; whoever looks says what its absence means.
    if paths.items(observed, "spec", "managementPolicies") == ["Observe"]:
        return
    words = said(observed)
    if words and not (words.startswith(_WAITS) and not paths.is_true(observed, c.READY)):
        yield words
    if paths.text(observed, "apiVersion").partition("/")[0] in (c.GROUP, c.INFRA_GROUP):
        for condition in paths.mappings(observed, "status", "conditions"):
            if handed := paths.text(condition, "message").partition(_MARK)[2]:
                yield handed


def cut(words: str) -> str:
    """Return words of somebody else's, cut to a length for messages."""
    return words if len(words) <= _LIMIT else f"{words[: _LIMIT - 1]}…"


def _who(observed: object) -> str:
    return f"{paths.text(observed, 'kind')} {paths.name(observed)}"


def _line(words: str, whom: Sequence[str]) -> str:
    more = f" and {len(whom) - 1} more" if len(whom) > 1 else ""
    return f"{whom[0]}{more}: {words}"
