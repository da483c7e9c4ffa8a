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
    while selection.order:
        group = selection.groups()[uid]
        fragment = group_fragment(table, uid, group, Resolution.EXCERPT)
        if fragment.tokens <= limit:
            return fragment if fragment.tokens >= least else None
        selection.drop_last()  # the joins cost more than the sum
    return None
