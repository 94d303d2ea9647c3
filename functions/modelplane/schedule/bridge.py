"""Which leaving replicas stay until their replacements serve.

A replacement carries the name of the replica it takes over from (`contracts.REPLACES_ANNOTATION`) while that
one is there: of two that replace two others, the first to serve must not let both go, and one that served
before, or never will, has no say.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace

from modelplane.schedule.seats import Seat


def bridged(
    leaving: Sequence[Seat], good: Sequence[Seat], missing: int, own: Collection[str]
) -> tuple[list[Seat], list[Seat]]:
    """Return the leaving ones that stay this pass, and the good ones with whom they replace.

    One that serves stays until its replacement does. One whose template changed stays also where nothing
    takes its place; one that is driven off its cluster does not.

    Args:
        leaving: replicas that must go.
        good: replicas that need not, the new ones among them.
        missing: wanted ones without a place.
        own: names of all that the deployment has composed.
    """
    replacing = {name: s for s in sorted(good, key=lambda s: s.ready) if (name := _replaces(s)) in own}
    starting = _starting(leaving, good, missing, own)
    pairs: list[tuple[Seat, Seat]] = []
    bereft: list[Seat] = []
    for seat in sorted((s for s in leaving if s.ready), key=lambda s: (not s.urgent, *_order(s))):
        new = replacing.get(_name(seat))
        if new is None:
            bereft.append(seat)
        elif not new.ready:
            pairs.append((seat, new))
    taken = [new for _, new in pairs]
    pairs += zip(bereft, (s for s in starting if all(s is not new for new in taken)), strict=False)
    kept = [old for old, _ in pairs]
    rest = [s for s in leaving if not s.urgent and all(s is not old for old in kept)]
    kept += sorted(rest, key=lambda s: (not s.ready, *_order(s)))[: max(0, missing)]
    marks = {id(new): _name(old) for old, new in pairs}
    going = {_name(s) for s in leaving}
    for seat in good:
        # One that serves is done once the other leaves no more: it owes nothing to its next drain.
        if (name := _replaces(seat)) in (going if seat.ready else own):
            marks.setdefault(id(seat), name)
    return kept, [replace(s, replaces=marks[id(s)]) if id(s) in marks else s for s in good]


def _starting(
    leaving: Sequence[Seat], good: Sequence[Seat], missing: int, own: Collection[str]
) -> list[Seat]:
    """Return the replacements that do not serve yet, whomever they were made for; the marked ones first.

    The newest count as well, so that a mark which somebody took off lets nobody go. Not all do: an older one
    that does not serve must not hold up a drain for ever.
    """
    newest = sorted(good, key=lambda s: (_created(s), *_order(s)), reverse=True)
    marked = [s for s in good if not s.ready and _replaces(s) in own]
    others = [s for s in newest[: max(0, len(leaving) - missing)] if not s.ready]
    return marked + sorted((s for s in others if all(s is not x for x in marked)), key=_order)


def _name(seat: Seat) -> str:
    return seat.replica.name if seat.replica else ""


def _replaces(seat: Seat) -> str:
    return seat.replica.replaces if seat.replica else ""


def _created(seat: Seat) -> str:
    """Return when it was made; one that is being made, or does not say, counts as the newest."""
    return (seat.replica.created if seat.replica else "") or "~"


def _order(seat: Seat) -> tuple[str, int]:
    return seat.cluster, seat.index
