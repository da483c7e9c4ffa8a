"""The common half of methods that rank pieces and fill the room, without a timeline (docs/methods.md B.1)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, Protocol

from pydantic import Field

from flexmem.memory.assemble import assemble, require_room, total_tokens
from flexmem.memory.base import IndexedBuild
from flexmem.memory.protocol import Budget, MethodConfig, Query, Rendering
from flexmem.memory.selection import Selection, Stop, selection_fragments
from flexmem.ports import HistoryIndex, IndexConfig, Services


class RankedPiecesConfig(MethodConfig):
    """How pieces are cut and filled; ours, equal to FlexA-Mem's piece mode so that only the ranking differs."""

    piece_tokens: int = Field(128, ge=8)
    """Lines are packed into pieces up to this size; as FlexA-Mem's piece mode."""
    least_room: int = 20
    """Filling stops when less room is left, as FlexA-Mem's piece mode ..."""
    most_misses: int = 200
    """... or when this many pieces in a row did not fit."""
    bm25: Literal["flexmem", "rank_bm25"] = "flexmem"
    """The lexical back-end; ``rank_bm25`` is the reference, rebuilt on every append."""


class PieceOrder(Protocol):
    """Ranks all pieces of an index for a query, best first."""

    def __call__(self, index: HistoryIndex, query: Query) -> Iterable[int]: ...


class RankedPiecesBuild(IndexedBuild):
    """Pieces in an index; reading ranks and fills."""

    def __init__(
        self, family: str, config: RankedPiecesConfig, services: Services, order: PieceOrder, *, dense: bool = True
    ) -> None:
        index = IndexConfig(piece_tokens=config.piece_tokens, dense=dense, bm25=config.bm25)
        super().__init__(family, config, services, index)
        self.stop = Stop(config.least_room, config.most_misses)
        self.order = order

    def view(self) -> RankedPiecesView:
        return RankedPiecesView(self)


class RankedPiecesView:
    """Reading changes nothing."""

    def __init__(self, build: RankedPiecesBuild) -> None:
        self._build = build

    async def render(self, query: Query, budget: Budget) -> Rendering:
        """Pieces in rank order until the room ends, grouped by unit in time order (`MemoryView.render`)."""
        require_room(budget.room, 0, "nothing")
        selection = Selection(self._build.table)
        selection.fill(self._build.order(self._build.index, query), budget.room, self._build.stop)
        while True:
            fragments = selection_fragments(self._build.table, selection)
            if total_tokens(fragments) <= budget.room:
                return assemble(fragments, ranking=selection.order)
            selection.drop_last()
