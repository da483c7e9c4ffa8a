"""Choosing pieces in rank order until the room ends, and showing them grouped by unit in time order (docs/methods.md
A.7).

The fill's arithmetic is exact wherever counts add up exactly (docs/methods.md 0.2), so a rendering is not encoded
again on the hot path.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

from flexmem import tokens
from flexmem.history import Piece, Unit
from flexmem.memory.protocol import Resolution
from flexmem.ports import IntArray

GAP = "[...]\n"


def gap_tokens() -> int:
    """T of the gap marker's line."""
    return _GAP_TOKENS.value


class _Lazy:
    """Counts once, at first use: importing this module must not load the token table."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: int | None = None

    @property
    def value(self) -> int:
        if self._tokens is None:
            self._tokens = tokens.count(self._text)
        return self._tokens


_GAP_TOKENS = _Lazy(GAP)


@dataclass
class PieceTable:
    """What filling needs to know of each piece and unit, in plain lists: row i is piece i.

    ``additive`` is False where a piece's count does not simply add up: no line break at its end, or a beginning that
    could merge into the line break before it.
    """

    pieces: list[Piece] = field(default_factory=list)
    uids: list[int] = field(default_factory=list)
    costs: list[int] = field(default_factory=list)
    additive: list[bool] = field(default_factory=list)
    headers: dict[int, str] = field(default_factory=dict)
    header_tokens: dict[int, int] = field(default_factory=dict)

    def extend(self, unit: Unit, pieces: Sequence[Piece]) -> None:
        """Add the next unit and its pieces."""
        self.headers[unit.uid] = unit.header
        self.header_tokens[unit.uid] = tokens.count(unit.header)
        for piece in pieces:
            whole_line = piece.text.endswith("\n")
            self.pieces.append(piece)
            self.uids.append(unit.uid)
            self.costs.append(piece.tokens + (0 if whole_line else 1))  # the line break that a gap would add
            self.additive.append(whole_line and tokens.starts_plainly(piece.text))


@dataclass(frozen=True)
class Stop:
    """When to stop looking for pieces that still fit (ours: docs/methods.md A.7)."""

    least_room: int = 20
    most_misses: int = 200


def each(chunks: Iterable[IntArray]) -> Iterator[int]:
    """The pieces of a lazily made order, one by one."""
    return chain.from_iterable(chunk.tolist() for chunk in chunks)


class Selection:
    """Pieces chosen so far, by unit, with what they cost in tokens: headers and gap markers included."""

    def __init__(self, table: PieceTable) -> None:
        self._table = table
        self.groups: dict[int, list[int]] = {}
        self.order: list[int] = []
        self.cost = 0

    def cost_of(self, piece: int) -> int:
        """What adding a piece costs now: its tokens, its unit's header if it is the unit's first, and the change in
        gap markers.
        """
        uid = self._table.uids[piece]
        group = self.groups.get(uid)
        if not group:
            return self._table.costs[piece] + self._table.header_tokens[uid]
        at = bisect_left(group, piece)
        has_before, has_after = at > 0, at < len(group)
        gaps = (has_before and group[at - 1] != piece - 1) + (has_after and group[at] != piece + 1)
        return self._table.costs[piece] + (gaps - (has_before and has_after)) * gap_tokens()

    def add(self, piece: int) -> None:
        """Choose a piece that was not chosen before."""
        self.cost += self.cost_of(piece)
        insort(self.groups.setdefault(self._table.uids[piece], []), piece)
        self.order.append(piece)

    def drop_last(self) -> int:
        """Give up the piece chosen last, which is the lowest-ranked; returns it."""
        piece = self.order.pop()
        uid = self._table.uids[piece]
        self.groups[uid].remove(piece)
        if not self.groups[uid]:
            del self.groups[uid]
        self.cost = -1  # no longer maintained: what follows counts the text itself
        return piece

    def fill(self, order: Iterable[int], room: int, stop: Stop) -> None:
        """Take pieces in order while they fit into ``room`` tokens; a smaller, lower piece may still fit after a
        miss."""
        costs, gap = self._table.costs, gap_tokens()
        left = room
        misses = 0
        for piece in order:
            if left < stop.least_room:
                return
            if costs[piece] <= left + gap:
                cost = self.cost_of(piece)
                if cost <= left:
                    insort(self.groups.setdefault(self._table.uids[piece], []), piece)
                    self.order.append(piece)
                    self.cost += cost
                    left -= cost
                    misses = 0
                    continue
            misses += 1
            if misses >= stop.most_misses:
                return


@dataclass(frozen=True, slots=True)
class Fragment:
    """A stretch of a rendering before it has a place: its text ends with a newline and starts plainly, so tokens add
    up.
    """

    text: str
    tokens: int
    uids: tuple[int, ...]
    resolution: Resolution
    pieces: tuple[int, ...] = ()


def group_fragment(table: PieceTable, uid: int, group: Sequence[int], resolution: Resolution) -> Fragment:
    """A unit's chosen pieces in original order under the unit's header, a gap marker where two are not neighbours."""
    parts = [table.headers[uid]]
    total = table.header_tokens[uid]
    exact = True
    previous = None
    for piece in group:
        text = table.pieces[piece].text
        if previous is not None and piece != previous + 1:
            if not parts[-1].endswith("\n"):
                parts.append("\n")
            parts.append(GAP)
            total += gap_tokens()
        parts.append(text)
        total += table.costs[piece]
        exact = exact and table.additive[piece]
        previous = piece
    if not parts[-1].endswith("\n"):
        parts.append("\n")
    text = "".join(parts)
    return Fragment(text, total if exact else tokens.count(text), (uid,), resolution, tuple(group))


def selection_fragments(table: PieceTable, selection: Selection) -> list[Fragment]:
    """All chosen pieces, grouped by unit, units in time order."""
    return [
        group_fragment(table, uid, group, Resolution.PIECE) for uid, group in sorted(selection.groups.items()) if group
    ]
