"""A unit's verbatim forms: whole, or as an excerpt against the query (docs/methods.md A.6)."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from flexmem.memory.base import IndexedBuild
from flexmem.memory.excerpt import excerpt
from flexmem.memory.protocol import Query, Resolution
from flexmem.memory.selection import Fragment, Selection, Stop, group_fragment
from flexmem.ports import FloatArray, VectorArray

_UP_TO_THE_FIRST_MISS = Stop(least_room=0, most_misses=1)


def raw_fragment(build: IndexedBuild, uid: int) -> Fragment:
    """A unit whole."""
    unit = build.units[uid]
    return Fragment(unit.text, unit.tokens, (uid,), Resolution.RAW, tuple(build.index.unit_pieces(uid)))


def beginning(build: IndexedBuild, uid: int, room: int) -> Fragment | None:
    """As many of a unit's pieces from its start as take at most ``room`` tokens with its header; None where not even
    the first does.
    """
    selection = Selection(build.table)
    selection.fill(build.index.unit_pieces(uid), room, _UP_TO_THE_FIRST_MISS)
    while selection.order:
        fragment = group_fragment(build.table, uid, selection.groups()[uid], Resolution.EXCERPT)
        if fragment.tokens <= room:
            return fragment
        selection.drop_last()  # the joins cost more than the sum
    return None


class Excerpts:
    """Excerpts of units for one query: pieces by BM25 with the query's excerpt text, ties by cosine. Nothing
    is scored before the first one is asked for.

    Args:
        build: the build whose units they are of.
        query: the call's query.
        least: an excerpt of fewer tokens is none.
    """

    def __init__(self, build: IndexedBuild, query: Query, least: int) -> None:
        self._build = build
        self._query = query
        self._least = least

    def __call__(self, uid: int, limit: int) -> Fragment | None:
        """The unit's excerpt of at most ``limit`` tokens; None where there is none."""
        scores, cosines = self._ranks
        pieces = self._build.index.unit_pieces(uid)
        span = slice(pieces.start, pieces.stop)
        order = np.lexsort((-cosines[span], -scores[span])) + pieces.start
        return excerpt(self._build.table, uid, order.tolist(), limit, self._least)

    @cached_property
    def _ranks(self) -> tuple[FloatArray, VectorArray]:
        index, query = self._build.index, self._query
        return index.bm25(query.excerpt_text), index.cosine(query.excerpt_vector)
