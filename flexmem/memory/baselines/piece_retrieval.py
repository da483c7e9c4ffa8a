"""``piece_retrieval``: BM25 over all pieces, no written memory (FlexA-Mem §5.3; docs/methods.md B.1)."""

from __future__ import annotations

from flexmem.memory.baselines.ranked_pieces import RankedPiecesBuild, RankedPiecesConfig
from flexmem.memory.protocol import FidelityCard, MethodInfo
from flexmem.memory.ranking import bm25_order
from flexmem.memory.registry import MethodSpec
from flexmem.ports import Services


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
