"""Excerpts: verbatim pieces of one unit, the best against the query first (FlexA-Mem §3.3; docs/methods.md A.6)."""

from __future__ import annotations

from collections.abc import Sequence

from flexmem.memory.protocol import Resolution
from flexmem.memory.selection import Fragment, PieceTable, Selection, Stop, group_fragment

_TO_THE_END = Stop(least_room=0, most_misses=1 << 30)


def excerpt(table: PieceTable, uid: int, order: Sequence[int], limit: int, least: int) -> Fragment | None:
    """Pieces of a unit in the given order while header, pieces and gap markers take at most ``limit`` tokens; shown in
    original order.

    Returns None where no piece fits or the excerpt has fewer than ``least`` tokens.
    """
    selection = Selection(table)
    selection.fill(order, limit, _TO_THE_END)
    group = selection.groups.get(uid)
    if not group:
        return None
    fragment = group_fragment(table, uid, group, Resolution.EXCERPT)
    return fragment if least <= fragment.tokens <= limit else None
