"""Rendering FlexA-Mem: the timeline, then detail fitted into what it leaves (FlexA-Mem §3.3-3.5; docs/methods.md A.6,
A.7).
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from flexmem.memory.assemble import assemble, require_room, total_tokens
from flexmem.memory.fit_or_degrade import Forms, Plan, fit_or_degrade
from flexmem.memory.flexa.timeline import Entry
from flexmem.memory.flexa.unit_recovery import anchor_count, rank_candidates
from flexmem.memory.frame import DETAILS, TIMELINE, heading
from flexmem.memory.protocol import Budget, Query, Rendering, Resolution
from flexmem.memory.ranking import bm25_order
from flexmem.memory.selection import Fragment, Selection, Stop, selection_fragments
from flexmem.memory.unit_forms import Excerpts, raw_fragment
from flexmem.retrieval.dense import inner_products

if TYPE_CHECKING:
    from flexmem.memory.flexa.build import FlexaBuild


class FlexaView:
    """A look at a `FlexaBuild`; it keeps no state of its own."""

    def __init__(self, build: FlexaBuild) -> None:
        self._build = build
        self._config = build.config

    async def render(self, query: Query, budget: Budget) -> Rendering:
        """The memory for one call (`MemoryView.render`)."""
        require_room(budget.room, self._least_room(), "the timeline's and details' headings")
        entries, shown = await self._timeline(budget)
        if not self._config.recovery:
            return assemble(self._lines(entries, shown, Plan()), hidden=len(entries) - len(shown))
        if self._config.mode == "piece":
            return self._render_pieces(query, budget.room, entries, shown)
        return self._render_units(query, budget.room, entries, shown)

    async def _timeline(self, budget: Budget) -> tuple[list[Entry], list[Entry]]:
        """All entries, and those that this call shows."""
        if not self._config.timeline:
            return [], []
        timeline = await self._build.timeline(budget)
        allowance = min(self._config.timeline_share * budget.room, budget.room - self._least_room())
        return timeline.entries, timeline.shown(allowance)

    def _least_room(self) -> int:
        framed = self._config.mode == "piece" and self._config.timeline
        return heading(TIMELINE).tokens + heading(DETAILS).tokens if framed else 0

    # ------------------------------------------------------------ piece mode

    def _render_pieces(self, query: Query, room: int, entries: Sequence[Entry], shown: Sequence[Entry]) -> Rendering:
        """The timeline under its heading, the chosen pieces under theirs; what the timeline leaves is lent to the
        pieces.
        """
        config = self._config
        head = self._lines(shown, shown, Plan())
        if config.timeline:
            head = [heading(TIMELINE), *head] if head else []
        details = [heading(DETAILS)] if config.timeline else []
        selection = Selection(self._build.table)
        left = room - total_tokens(head) - total_tokens(details)
        selection.fill(self._piece_order(query), left, Stop(config.least_room, config.most_misses))
        while True:
            groups = selection_fragments(self._build.table, selection)
            fragments = [*head, *details, *groups] if groups else head
            if total_tokens(fragments) <= room or not selection.order:
                break
            selection.drop_last()
        return assemble(fragments, ranking=selection.order, hidden=len(entries) - len(shown))

    def _piece_order(self, query: Query) -> Iterable[int]:
        if self._config.candidates == "random":
            return self._random_order(len(self._build.table), query)
        index = self._build.index
        return bm25_order(index, query)

    # ------------------------------------------------------------ unit mode

    def _render_units(self, query: Query, room: int, entries: Sequence[Entry], shown: Sequence[Entry]) -> Rendering:
        """Raw units and excerpts at their places among the timeline's lines."""
        left = room - sum(entry.tokens for entry in shown)
        candidates = self._candidates(query, left)
        plan = fit_or_degrade(candidates, len(self._build.units), left, self._forms(query, shown), self._config)
        while True:
            fragments = self._lines(entries, shown, plan)
            if total_tokens(fragments) <= room or not plan.fragments:
                break
            plan.drop_last()
        return assemble(fragments, ranking=candidates, degraded=plan.degraded, hidden=len(entries) - len(shown))

    def _candidates(self, query: Query, room: int) -> list[int]:
        build = self._build
        if not build.units:
            return []
        if self._config.candidates == "random":
            return self._random_order(len(build.units), query)
        last = len(build.units) - 1

        def neighbours(uid: int) -> set[int]:
            return build.links.of(uid) | {near for near in (uid - 1, uid + 1) if 0 <= near <= last}

        return rank_candidates(
            inner_products(build.record_vectors, query.vector),
            anchor_count(self._config, room, build.table.unit_tokens),
            neighbours,
            self._config.decay(build.kind),
        )

    def _forms(self, query: Query, shown: Sequence[Entry]) -> Forms:
        build = self._build

        def raw(uid: int) -> Fragment:
            return raw_fragment(build, uid)

        def record(uid: int) -> Fragment:
            return _line_fragment(build.lines[uid])

        singles = {entry.uids[0]: entry.tokens for entry in shown if len(entry.uids) == 1}
        return Forms(raw, Excerpts(build, query, self._config.excerpt_min), record, singles)

    # ------------------------------------------------------------ both

    def _lines(self, entries: Sequence[Entry], shown: Sequence[Entry], plan: Plan) -> list[Fragment]:
        """The timeline's shown lines in time order, each recovered unit in its line's place or right after the line
        that covers it.
        """
        if not entries:
            return [plan.fragments[uid] for uid in sorted(plan.fragments)]
        first_shown = len(entries) - len(shown)
        fragments = []
        for position, entry in enumerate(entries):
            replaced = len(entry.uids) == 1 and plan.raw(entry.uids[0]) and self._config.raw_replaces_record
            if position >= first_shown and not replaced:
                fragments.append(_line_fragment(entry))
            fragments += [plan.fragments[uid] for uid in entry.uids if uid in plan.fragments]
        return fragments

    def _random_order(self, count: int, query: Query) -> list[int]:
        history = self._build.units[0].history if self._build.units else ""
        order = list(range(count))
        seed = f"{self._build.services.seed}/{history}/{query.text}"
        random.Random(seed.encode("utf-8", "surrogatepass")).shuffle(order)
        return order


def _line_fragment(entry: Entry) -> Fragment:
    resolution = Resolution.RECORD if entry.level == 0 else Resolution.MERGED
    return Fragment(entry.line, entry.tokens, entry.uids, resolution)
