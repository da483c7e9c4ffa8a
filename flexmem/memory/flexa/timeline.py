"""The timeline: one line a record, merged as it outgrows its allowance, hidden for a call that leaves it less
(FlexA-Mem §3.2; docs/methods.md A.5).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flexmem import tokens
from flexmem.history import Unit
from flexmem.memory.flexa.config import FlexaConfig
from flexmem.memory.flexa.records import Record, RecordWriter, first_words


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the timeline: a record (level 0) or a merged record. ``line`` ends with a newline and ``tokens`` is
    its T.
    """

    level: int
    uids: tuple[int, ...]
    text: str
    label: str
    line: str
    tokens: int


def record_entry(unit: Unit, record: Record) -> Entry:
    """A unit's own line: ``[u07 | steps 15-18] text``. A reader's record begins with its date, so the label has the
    session alone.
    """
    place = f"session {unit.session}" if unit.kind == "reader" and unit.session else unit.place
    return make_entry(0, (unit.uid,), record.text, f"{unit.label} | {place}")


def make_entry(level: int, uids: Sequence[int], text: str, label: str) -> Entry:
    """An entry with its line and count."""
    line = f"[{label}] {' '.join(text.split())}\n"
    return Entry(level, tuple(uids), text, label, line, tokens.count(line))


def merge_label(uids: Sequence[int]) -> str:
    """``u01-u04 | merged``."""
    return f"u{uids[0]:02d}-u{uids[-1]:02d} | merged"


class Timeline:
    """Entries in time order. Merges persist; hiding is for one call only."""

    def __init__(self, config: FlexaConfig, entries: Sequence[Entry] = ()) -> None:
        self._config = config
        self.entries = list(entries)
        self._tokens = sum(entry.tokens for entry in self.entries)
        self.merges = 0

    def append(self, entry: Entry) -> None:
        """Add the newest record's line."""
        self.entries.append(entry)
        self._tokens += entry.tokens

    async def merge_down(self, limit: float, writer: RecordWriter) -> None:
        """Merge until the lines take at most ``limit`` tokens or a single entry is left; oldest first, at most four at
        a time.
        """
        while self._tokens > limit and len(self.entries) >= 2:
            first, past = self._group()
            group = self.entries[first:past]
            uids = [uid for entry in group for uid in entry.uids]
            text = await writer.merge([entry.text for entry in group], [entry.label for entry in group])
            text = first_words(text, self._config.merge_cut_words)
            merged = make_entry(max(entry.level for entry in group) + 1, uids, text, merge_label(uids))
            self.entries[first:past] = [merged]
            self._tokens += merged.tokens - sum(entry.tokens for entry in group)
            self.merges += 1

    def shown(self, allowance: float) -> list[Entry]:
        """The newest entries whose lines take at most ``allowance`` tokens; the older ones are hidden for this call."""
        total = self._tokens
        first = 0
        while first < len(self.entries) and total > allowance:
            total -= self.entries[first].tokens
            first += 1
        return self.entries[first:]

    def _group(self) -> tuple[int, int]:
        """Which entries to merge next: the oldest unprotected ones, or protected ones too when no two others are
        left."""
        size = self._config.merge_group
        free = len(self.entries) - self._config.protect_newest
        if free < 2:
            return 0, min(size, len(self.entries))
        if self._config.merge_policy == "level":
            level_run = self._lowest_level_run(free)
            if level_run is not None:
                return level_run[0], min(level_run[0] + size, level_run[1])
        return 0, min(size, free)

    def _lowest_level_run(self, free: int) -> tuple[int, int] | None:
        """The oldest run of two or more entries of the lowest level that has one."""
        runs: list[tuple[int, int, int]] = []
        first = 0
        for position in range(1, free + 1):
            if position == free or self.entries[position].level != self.entries[first].level:
                if position - first >= 2:
                    runs.append((self.entries[first].level, first, position))
                first = position
        if not runs:
            return None
        _, start, past = min(runs)
        return start, past
