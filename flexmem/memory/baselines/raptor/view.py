"""Reading RAPTOR's tree: leaves and summaries in one ranking (docs/methods.md B.8)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from flexmem import tokens
from flexmem.memory.assemble import assemble, require_room, total_tokens
from flexmem.memory.protocol import Budget, Query, Rendering, Resolution
from flexmem.memory.selection import Fragment, Selection, Stop, selection_fragments
from flexmem.retrieval.dense import inner_products
from flexmem.retrieval.ordering import order_by_cosine

if TYPE_CHECKING:
    from flexmem.memory.baselines.raptor.build import RaptorBuild, Summaries

_ONE = Stop(least_room=0)


class RaptorView:
    """A look at a `RaptorBuild`; it keeps no state of its own."""

    def __init__(self, build: RaptorBuild) -> None:
        self._build = build
        self._config = build.config

    async def render(self, query: Query, budget: Budget) -> Rendering:
        """Nodes of all layers in order of their cosine while they fit: pieces by unit in time order, a summary ahead of
        its first unit (`MemoryView.render`). In a ranking, summaries come after all pieces' numbers.
        """
        require_room(budget.room, 0, "nothing")
        tree = await self._build.tree()
        leaves = self._build.vectors.array
        cosines = [inner_products(rows, query.vector) for rows in (leaves, tree.vectors) if len(rows)]
        order = order_by_cosine(np.concatenate(cosines)).tolist() if cosines else []
        ranking = order[: self._config.top_k]
        return self._fill(tree, ranking, budget.room)

    def _fill(self, tree: Summaries, ranking: list[int], room: int) -> Rendering:
        """The nodes of the ranking that fit; where joins cost more than the sum, the last ones are given up again."""
        pieces = len(self._build.vectors)
        limit = min(room, self._config.most_tokens or room)
        selection = Selection(self._build.table)
        lines: dict[int, Fragment] = {}
        taken: list[int] = []
        for node in ranking:
            left = limit - selection.cost - total_tokens(list(lines.values()))
            if node < pieces:
                before = len(selection.order)
                selection.fill([node], left, _ONE)
                fits = len(selection.order) > before
            else:
                line = self._line(tree, node - pieces)
                fits = line.tokens <= left
                if fits:
                    lines[node] = line
            if fits:
                taken.append(node)
            elif self._config.top_k is not None:
                break
        while True:
            fragments = self._laid_out(selection, lines)
            if total_tokens(fragments) <= limit:
                return assemble(fragments, ranking=ranking)
            last = taken.pop()
            if lines.pop(last, None) is None:
                selection.drop_last()

    def _laid_out(self, selection: Selection, lines: dict[int, Fragment]) -> list[Fragment]:
        groups = selection_fragments(self._build.table, selection)
        placed = [(line.uids[0], 0, -len(line.uids), node, line) for node, line in lines.items()]
        placed += [(group.uids[0], 1, 0, 0, group) for group in groups]
        return [fragment for *_, fragment in sorted(placed, key=lambda place: place[:4])]

    def _line(self, tree: Summaries, number: int) -> Fragment:
        uids = self._build.units_below(tree, number)
        span = f"u{uids[0]:02d}" if len(uids) == 1 else f"u{uids[0]:02d}-u{uids[-1]:02d}"
        line = f"[{span} | summary] {tree.nodes[number].text}".rstrip() + "\n"
        return Fragment(line, tokens.count(line), uids, Resolution.SUMMARY)
