"""``dense_pieces``: pieces by cosine (docs/methods.md B.1)."""

from __future__ import annotations

from collections.abc import Iterable

from flexmem.memory.baselines.ranked_pieces import RankedPiecesBuild, RankedPiecesConfig
from flexmem.memory.protocol import FidelityCard, MethodInfo, Query
from flexmem.memory.ranking import each
from flexmem.memory.registry import MethodSpec
from flexmem.ports import HistoryIndex, Services


def cosine_order(index: HistoryIndex, query: Query) -> Iterable[int]:
    """By cosine, ties by the earlier piece."""
    return each(index.nearest(query.vector))


def _build(config: RankedPiecesConfig, services: Services) -> RankedPiecesBuild:
    return RankedPiecesBuild("dense_pieces", config, services, cosine_order)


METHODS = (
    MethodSpec(
        MethodInfo(
            name="dense_pieces",
            family="no written memory",
            summary="pieces by cosine with the query; the best fill the room, shown in time order",
            card=FidelityCard(
                source="common dense retrieval; FlexA-Mem names no such baseline",
                follows="the embedder, pieces and filling of FlexA-Mem's piece recovery",
                ours="the method itself",
                differs="nothing to differ from",
                tuning="nothing tuned",
            ),
        ),
        RankedPiecesConfig(),
        _build,
    ),
)
