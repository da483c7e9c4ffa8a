"""``piece_retrieval``: BM25 over all pieces, no written memory (FlexA-Mem §5.3; docs/methods.md B.1)."""

from __future__ import annotations

from collections.abc import Iterable

from flexmem.memory.baselines.ranked_pieces import RankedPiecesBuild, RankedPiecesConfig
from flexmem.memory.protocol import FidelityCard, MethodInfo, Query
from flexmem.memory.registry import MethodSpec
from flexmem.memory.selection import each
from flexmem.ports import HistoryIndex, Services
from flexmem.retrieval.ordering import piece_chunks


def bm25_order(index: HistoryIndex, query: Query) -> Iterable[int]:
    """By BM25, ties by cosine, then by the earlier piece."""
    return each(piece_chunks(index.bm25(query.text), index.cosine(query.vector)))


def _build(config: RankedPiecesConfig, services: Services) -> RankedPiecesBuild:
    return RankedPiecesBuild("piece_retrieval", config, services, bm25_order)


METHODS = (
    MethodSpec(
        MethodInfo(
            name="piece_retrieval",
            family="no written memory",
            summary="BM25 over all pieces of the history; the best fill the room, shown in time order",
            card=FidelityCard(
                source="FlexA-Mem §5.3, a keyword retriever that writes no memory",
                follows="pieces, BM25 text and tie-breaks of FlexA-Mem's piece recovery; the room is all of M",
                ours="piece size and when to stop filling",
                differs="no reference code could be read",
                tuning="nothing tuned",
            ),
        ),
        RankedPiecesConfig(),
        _build,
    ),
)
