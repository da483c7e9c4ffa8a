"""Pages in a room: gists, and the pages that replace theirs (docs/methods.md B.4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from flexmem.memory.base import IndexedBuild
from flexmem.memory.filling import cut_to_room
from flexmem.memory.protocol import Resolution
from flexmem.memory.selection import Fragment
from flexmem.memory.unit_forms import raw_fragment


class Gist(NamedTuple):
    """A page's short text, and the line that shows it."""

    text: str
    line: Fragment


class Pages:
    """What one call shows. At first the newest gists that fit, without gaps; where not even the newest does, its
    beginning.

    Args:
        build: whose units the pages are.
        gists: one a unit, in order.
        room: tokens in all.
        make_room: whether an opened page may push out gists, from the oldest on.
    """

    def __init__(self, build: IndexedBuild, gists: Sequence[Gist], room: int, *, make_room: bool) -> None:
        self._build = build
        self._gists = gists
        self._make_room = make_room
        self._shown: dict[int, Fragment] = {}
        self._left = room
        for uid in reversed(range(len(gists))):
            if gists[uid].line.tokens > self._left:
                break
            self._show(uid, gists[uid].line)
        beginning = cut_to_room(gists[-1].line, room) if gists and not self._shown else None
        if beginning is not None:
            self._show(len(gists) - 1, beginning)

    def __len__(self) -> int:
        return len(self._gists)

    def open(self, uid: int) -> None:
        """Show a page whole, in its gist's place where that is shown; not where it doesn't fit."""
        page = raw_fragment(self._build, uid)
        own = self._shown.get(uid)
        missing = page.tokens - (own.tokens if own else 0) - self._left
        leaving = self._oldest(missing, beside=uid) if self._make_room else []
        if missing > sum(self._shown[other].tokens for other in leaving):
            return
        for other in [*leaving, *([uid] if own else [])]:
            self._left += self._shown.pop(other).tokens
        self._show(uid, page)

    def fragments(self) -> list[Fragment]:
        """What is shown, in time order."""
        return [self._shown[uid] for uid in sorted(self._shown)]

    def described(self, limit: int) -> str:
        """The pages as a look-up is shown them: numbered, opened ones in full; of the gists the newest that have at
        most ``limit`` tokens together, whether the room holds them or not.
        """
        lines = []
        left = limit
        for uid in reversed(range(len(self._gists))):
            shown, gist = self._shown.get(uid), self._gists[uid]
            if shown is not None and shown.resolution is Resolution.RAW:
                lines.append(f"Page {uid}, in full:\n{shown.text}")
                continue
            left -= gist.line.tokens
            if left >= 0:
                lines.append(f"Page {uid} ({self._build.units[uid].place}): {gist.text}")
        return "\n".join(reversed(lines))

    def _oldest(self, tokens: int, beside: int) -> list[int]:
        """The oldest shown gists, other than ``beside``, that have so many tokens together, or all where they don't."""
        leaving: list[int] = []
        for uid in sorted(self._shown):
            if tokens <= 0:
                break
            if uid != beside and self._shown[uid].resolution is Resolution.RECORD:
                leaving.append(uid)
                tokens -= self._shown[uid].tokens
        return leaving

    def _show(self, uid: int, fragment: Fragment) -> None:
        self._shown[uid] = fragment
        self._left -= fragment.tokens
