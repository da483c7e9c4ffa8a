"""``hybrid_pieces`` and ``hybrid_pieces_stem``: reciprocal rank fusion of BM25 and cosine over pieces (docs/methods.md
B.1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pydantic import Field

from flexmem.memory.baselines.ranked_pieces import PieceOrder, RankedPiecesBuild, RankedPiecesConfig
from flexmem.memory.protocol import FidelityCard, MethodInfo, Query
from flexmem.memory.ranking import each
from flexmem.memory.registry import MethodSpec
from flexmem.ports import HistoryIndex, Services
from flexmem.retrieval.fusion import RRF_K, ranks, reciprocal_rank_fusion
from flexmem.retrieval.ordering import order_by_cosine, order_pieces, score_chunks


class HybridPiecesConfig(RankedPiecesConfig):
    """As piece retrieval, with the fusion's constant."""

    fusion_k: int = Field(RRF_K, ge=1)
    """The usual constant of reciprocal rank fusion."""


def fused_order(config: HybridPiecesConfig, *, stemmed: bool) -> PieceOrder:
    """By 1/(k + 1 + rank by BM25) + 1/(k + 1 + rank by cosine), ranks from 0."""

    def order(index: HistoryIndex, query: Query) -> Iterable[int]:
        cosine = index.cosine(query.vector)
        by_cosine = order_by_cosine(cosine)
        lexical = order_pieces(index.bm25(query.text, stemmed=stemmed), cosine, by_cosine)
        scores = reciprocal_rank_fusion([ranks(lexical), ranks(by_cosine)], k=config.fusion_k)
        return each(score_chunks(scores))

    return order


def _build(family: str, *, stemmed: bool) -> Callable[[HybridPiecesConfig, Services], RankedPiecesBuild]:
    def build(config: HybridPiecesConfig, services: Services) -> RankedPiecesBuild:
        return RankedPiecesBuild(family, config, services, fused_order(config, stemmed=stemmed))

    return build


_CARD = FidelityCard(
    source="reciprocal rank fusion of lexical and dense retrieval; FlexA-Mem names no such baseline",
    follows="pieces, tie-breaks and filling of FlexA-Mem's piece recovery; k = 60",
    ours="the method itself; stemming (English Snowball) in the second variant",
    differs="nothing to differ from",
    tuning="nothing tuned",
)

METHODS = (
    MethodSpec(
        MethodInfo(
            name="hybrid_pieces",
            family="no written memory",
            summary="pieces by reciprocal rank fusion of BM25 and cosine",
            card=_CARD,
        ),
        HybridPiecesConfig(),
        _build("hybrid_pieces", stemmed=False),
    ),
    MethodSpec(
        MethodInfo(
            name="hybrid_pieces_stem",
            family="no written memory",
            summary="pieces by reciprocal rank fusion of stemmed BM25 and cosine",
            card=_CARD,
        ),
        HybridPiecesConfig(),
        _build("hybrid_pieces_stem", stemmed=True),
    ),
)
