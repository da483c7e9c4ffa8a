"""Choosing pieces in rank order until the room ends, and showing them grouped by unit in time order (docs/methods.md
A.7).

The fill's arithmetic is exact wherever counts add up exactly (docs/methods.md 0.2), so a rendering is not encoded
again on the hot path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple

from flexmem import tokens
from flexmem.history import Piece, Unit
from flexmem.memory.protocol import Resolution

GAP = "[...]\n"
_ALL_FIT = 1 << 40  # tokens: more than any history has
_TEXTS_KEPT = 1 << 14  # of pieces that were shown; some 5 MB


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
    """What filling needs to know of each piece and unit, in plain lists: row i is piece i, or unit i. Text stays where
    ``text_of`` finds a piece's.

    ``costs`` are tokens, and one more where a gap would add a line break. Neighbours in a unit meet. ``inexact`` holds
    the pieces whose counts do not simply add up: no line break at the end, or a beginning that could merge into the
    line break before it. ``unit_tokens`` are those of whole units, ``header_tokens`` of their headers.
    """

    text_of: Callable[[int], str]
    uids: list[int] = field(default_factory=list)
    costs: list[int] = field(default_factory=list)
    inexact: set[int] = field(default_factory=set)
    headers: list[str] = field(default_factory=list)
    header_tokens: list[int] = field(default_factory=list)
    unit_tokens: list[int] = field(default_factory=list)
    shown_texts: dict[int, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.uids)

    def extend(self, unit: Unit, pieces: Iterable[Piece]) -> None:
        """Add the next unit and its pieces."""
        self.headers.append(unit.header)
        self.header_tokens.append(tokens.count(unit.header))
        self.unit_tokens.append(unit.tokens)
        for piece in pieces:
            whole_line = piece.text.endswith("\n")
            self.uids.append(unit.uid)
            self.costs.append(piece.tokens + (0 if whole_line else 1))
            if not whole_line or not tokens.starts_plainly(piece.text):
                self.inexact.add(piece.index)

    def text(self, piece: int) -> str:
        """A piece's text; kept, since what was shown once is mostly shown again."""
        if piece not in self.shown_texts:
            if len(self.shown_texts) >= _TEXTS_KEPT:
                self.shown_texts.clear()
            self.shown_texts[piece] = self.text_of(piece)
        return self.shown_texts[piece]


@dataclass(frozen=True)
class Stop:
    """When to stop looking for pieces that still fit (ours: docs/methods.md A.7)."""

    least_room: int = 20
    most_misses: int = 200


class Selection:
    """Pieces chosen so far and what they cost in tokens: headers and gap markers included."""

    def __init__(self, table: PieceTable) -> None:
        self._table = table
        self._chosen = bytearray(len(table))
        self._ends: dict[int, tuple[int, int]] = {}  # first and last chosen piece of a unit
        self.order: list[int] = []
        self.cost = 0

    def fill(self, order: Iterable[int], room: int, stop: Stop) -> None:
        """Take pieces in order while they fit into ``room`` tokens; a smaller one may still fit after a miss.

        A piece costs its tokens, its unit's header if it is the first there, and the change in gap markers. This is the
        hot path of piece recovery, hence one loop without calls.
        """
        costs, uids, headers = self._table.costs, self._table.uids, self._table.header_tokens
        chosen, ends, take = self._chosen, self._ends, self.order.append
        gap, least, most = gap_tokens(), stop.least_room, stop.most_misses
        left = room
        misses = 0
        for piece in order:
            if left < least:
                break
            cost = costs[piece]
            if cost <= left + gap:  # at best a piece closes a gap
                uid = uids[piece]
                span = ends.get(uid)
                if span is None:
                    cost += headers[uid]
                    grown = (piece, piece)
                else:
                    first, last = span
                    if last < piece:
                        cost += 0 if chosen[piece - 1] else gap
                        grown = (first, piece)
                    elif piece < first:
                        cost += 0 if chosen[piece + 1] else gap
                        grown = (piece, last)
                    else:
                        cost += gap - gap * (chosen[piece - 1] + chosen[piece + 1])
                        grown = span
                if cost <= left:
                    ends[uid] = grown
                    chosen[piece] = 1
                    take(piece)
                    left -= cost
                    misses = 0
                    continue
            misses += 1
            if misses >= most:
                break
        self.cost += room - left

    def drop_last(self) -> None:
        """Give up the piece chosen last, which is the lowest-ranked; what the others cost is counted anew."""
        kept = self.order[:-1]
        self._chosen = bytearray(len(self._chosen))
        self._ends = {}
        self.order = []
        self.cost = 0
        self.fill(kept, _ALL_FIT, Stop(least_room=0))

    def groups(self) -> dict[int, list[int]]:
        """Chosen pieces by unit, both in time order."""
        return {uid: list(group) for uid, group in groupby(sorted(self.order), self._table.uids.__getitem__)}


class Fragment(NamedTuple):
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
    kept = table.shown_texts
    parts = [table.headers[uid]]
    following = group[0]
    gaps = 0
    for piece in group:
        if piece != following:
            parts.append(GAP)
            gaps += 1
        parts.append(kept[piece] if piece in kept else table.text(piece))
        following = piece + 1
    if table.inexact.isdisjoint(group):
        total = table.header_tokens[uid] + sum(map(table.costs.__getitem__, group)) + gaps * gap_tokens()
        return Fragment("".join(parts), total, (uid,), resolution, tuple(group))
    text = _with_line_breaks(parts)
    return Fragment(text, tokens.count(text), (uid,), resolution, tuple(group))


def _with_line_breaks(parts: Sequence[str]) -> str:
    """The parts joined, a line break put where a piece without one is followed by a gap or by the end."""
    text = ""
    for part in parts:
        if part is GAP and not text.endswith("\n"):
            text += "\n"
        text += part
    return text if text.endswith("\n") else text + "\n"


def selection_fragments(table: PieceTable, selection: Selection) -> list[Fragment]:
    """All chosen pieces, grouped by unit, units in time order."""
    return [group_fragment(table, uid, group, Resolution.PIECE) for uid, group in selection.groups().items()]
