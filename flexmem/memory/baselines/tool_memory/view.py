"""A memory that its reader manages with tools: what is shown, and the tools (docs/methods.md B.7)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING

from flexmem import tokens
from flexmem.history import Unit
from flexmem.memory.asking import ReplyForm
from flexmem.memory.assemble import assemble, require_room, total_tokens
from flexmem.memory.baselines.tool_memory.desk import Desk
from flexmem.memory.filling import cut_to_room
from flexmem.memory.flexa.records import Record
from flexmem.memory.frame import heading
from flexmem.memory.protocol import Budget, Query, Rendering, Resolution
from flexmem.memory.ranking import each
from flexmem.memory.selection import Fragment, Selection, Stop, selection_fragments
from flexmem.memory.tools import Tool
from flexmem.memory.unit_forms import beginning, raw_fragment

if TYPE_CHECKING:
    from flexmem.memory.baselines.tool_memory.build import ToolMemoryBuild

CORE = "# Core memory"
UNITS = "# Stored units"
FOUND = "# Search results"
_TO_THE_END = Stop(least_room=0, most_misses=1 << 30)


def hidden_line(unit: Unit, record: Record) -> Fragment:
    """A hidden unit's line: its record, and how to see it whole."""
    line = f"[{unit.label} | {unit.place}] {' '.join(record.text.split())} (hidden; memory_expand {unit.uid})\n"
    return Fragment(line, tokens.count(line), (unit.uid,), Resolution.RECORD)


class Search(ReplyForm):
    """Arguments of ``memory_search``."""

    query: str
    page: int


class UnitId(ReplyForm):
    """Arguments of ``memory_expand`` and ``memory_fold``."""

    unit_id: int


class Append(ReplyForm):
    """Arguments of ``core_append``."""

    text: str


class Replace(ReplyForm):
    """Arguments of ``core_replace``."""

    old: str
    new: str


class ToolMemoryView:
    """One reader's, or one agent's, look at a `ToolMemoryBuild`."""

    def __init__(self, build: ToolMemoryBuild, desk: Desk) -> None:
        self._build = build
        self._desk = desk

    async def render(self, query: Query, budget: Budget) -> Rendering:
        """Core block, summary and lines of units, expanded ones whole in their lines' places, and what the last search
        found (`MemoryView.render`).

        What is short of room gives way in this order: lines (the oldest first), the summary, search results, expanded
        units (the first expanded first), the end of the core block.
        """
        require_room(budget.room, 0, "nothing")
        build = self._build
        flushed = await build.flushed(budget)
        left = budget.room
        core = self._core(left)
        left -= total_tokens(core)
        whole = self._expanded(left - heading(UNITS).tokens)
        if whole:
            left -= heading(UNITS).tokens + total_tokens(list(whole.values()))
        found = self._results(left)
        left -= total_tokens(found)
        warning = self._warning(budget)
        if not whole:
            left -= heading(UNITS).tokens
        rows = dict(whole)
        summary = flushed.fragment()
        if summary is not None and summary.tokens <= left:
            left -= summary.tokens
        else:
            summary = None
        hidden = 0
        lines: dict[int, Fragment] = {}
        for line in reversed(build.lines[flushed.units :]):
            if line.uids[0] in whole:
                continue
            if line.tokens <= left and not hidden:
                lines[line.uids[0]] = line
                left -= line.tokens
            else:
                hidden += 1
        rows |= lines
        units = [*([summary] if summary else []), *(rows[uid] for uid in sorted(rows))]
        shown = [*core, *([heading(UNITS), *units] if units else []), *found]
        used = budget.window + total_tokens(shown)
        if used >= build.config.warn_share * budget.total and warning.tokens <= budget.room - total_tokens(shown):
            shown.append(warning)
        return assemble(shown, hidden=hidden)

    def tools(self) -> Sequence[Tool]:
        """Search, expand, fold, and the core block."""
        size = self._build.config.page_size
        return (
            Tool(
                "memory_search",
                f"Find what was said or done: shows the {size} stored passages nearest in meaning to the query; page 0 "
                "has the best, page 1 the next.",
                Search,
                self._search,
            ),
            Tool("memory_expand", "Show a stored unit whole, until it is folded.", UnitId, self._expand),
            Tool("memory_fold", "Hide an expanded unit again; its line stays.", UnitId, self._fold),
            Tool("core_append", "Add a line to the core memory, which is always shown.", Append, self._append),
            Tool("core_replace", "Replace text in the core memory; an empty new text deletes.", Replace, self._replace),
        )

    # ------------------------------------------------------------ what is shown

    def _core(self, room: int) -> list[Fragment]:
        if not self._desk.core:
            return []
        text = "".join(f"- {line}\n" for line in self._desk.core.split("\n"))
        uids = tuple(range(len(self._build.units)))
        block = Fragment(text, tokens.count(text), uids, Resolution.NOTE if uids else Resolution.FRAME)
        kept = cut_to_room(block, room - heading(CORE).tokens)
        return [heading(CORE), kept] if kept is not None else []

    def _expanded(self, room: int) -> dict[int, Fragment]:
        """Expanded units, the last expanded first served; one that is larger than the whole room is cut at its end."""
        shown: dict[int, Fragment] = {}
        left = room
        for uid in reversed(self._desk.expanded):
            fragment: Fragment | None = raw_fragment(self._build, uid)
            if fragment is not None and fragment.tokens > left and not shown:
                fragment = beginning(self._build, uid, left)
            if fragment is not None and fragment.tokens <= left:
                shown[uid] = fragment
                left -= fragment.tokens
        return shown

    def _results(self, room: int) -> list[Fragment]:
        selection = Selection(self._build.table)
        selection.fill(self._desk.found, room - heading(FOUND).tokens, _TO_THE_END)
        while selection.order:
            fragments = [heading(FOUND), *selection_fragments(self._build.table, selection)]
            if total_tokens(fragments) <= room:
                return fragments
            selection.drop_last()
        return []

    def _warning(self, budget: Budget) -> Fragment:
        percent = round(100 * self._build.config.warn_share)
        line = (
            f"[memory pressure: more than {percent} % of {budget.total} tokens are in use; fold what is not needed and "
            "keep what matters in core memory]\n"
        )
        return Fragment(line, tokens.count(line), (), Resolution.FRAME)

    # ------------------------------------------------------------ tools

    async def _search(self, wanted: Search) -> str:
        if wanted.page < 0:
            return "error: argument page: pages count from 0"
        build = self._build
        vector = (await build.services.embedder.embed([wanted.query]))[0]
        written = len(build.table)
        size = build.config.page_size
        ranked = (piece for piece in each(build.index.nearest(vector)) if piece < written)
        self._desk.found = list(islice(ranked, wanted.page * size, (wanted.page + 1) * size))
        pages = -(-written // size)
        if not self._desk.found:
            return f"nothing on page {wanted.page}; there are {pages} pages, from 0"
        units = ", ".join(dict.fromkeys(f"u{build.table.uids[piece]:02d}" for piece in sorted(self._desk.found)))
        return f"{len(self._desk.found)} passages of {units} are shown; page {wanted.page} of {pages}"

    async def _expand(self, wanted: UnitId) -> str:
        if not 0 <= wanted.unit_id < len(self._build.units):
            return self._no_such(wanted.unit_id)
        self._desk.expanded = [uid for uid in self._desk.expanded if uid != wanted.unit_id] + [wanted.unit_id]
        return f"u{wanted.unit_id:02d} is shown whole, as far as there is room"

    async def _fold(self, wanted: UnitId) -> str:
        if wanted.unit_id not in self._desk.expanded:
            return f"error: u{wanted.unit_id:02d} is not expanded"
        self._desk.expanded.remove(wanted.unit_id)
        return f"u{wanted.unit_id:02d} is hidden; its line stays"

    async def _append(self, wanted: Append) -> str:
        return self._core_set("\n".join(filter(None, (self._desk.core, " ".join(wanted.text.split())))))

    async def _replace(self, wanted: Replace) -> str:
        if not wanted.old or wanted.old not in self._desk.core:
            return "error: argument old: the core memory has no such text"
        return self._core_set(self._desk.core.replace(wanted.old, " ".join(wanted.new.split()), 1).strip("\n"))

    def _core_set(self, text: str) -> str:
        limit = self._build.config.core_characters
        if len(text) > limit:
            return f"error: the core memory would have {len(text)} characters, {limit} is its limit; replace something"
        self._desk.core = text
        return f"core memory: {len(text)} of {limit} characters"

    def _no_such(self, uid: int) -> str:
        count = len(self._build.units)
        stored = f"units 0 to {count - 1} are stored" if count else "none is stored"
        return f"error: there is no unit {uid}; {stored}"
