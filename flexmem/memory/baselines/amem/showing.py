"""Notes whole, filled by rank (docs/methods.md B.2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from flexmem.memory.base import IndexedBuild
from flexmem.memory.baselines.amem.store import NoteStore
from flexmem.memory.filling import fill_by_rank
from flexmem.memory.selection import Fragment
from flexmem.memory.unit_forms import beginning, raw_fragment


class ShownNotes(NamedTuple):
    """Fragments in time order, and all candidates by rank."""

    fragments: list[Fragment]
    ranking: list[int]


def show_notes(build: IndexedBuild, store: NoteStore, ranking: Sequence[int], room: int) -> ShownNotes:
    """Notes in rank order while they fit into ``room`` tokens. A best note that is larger than the room is cut at its
    end (ours).
    """
    order = list(ranking)

    def size(uid: int) -> int:
        return build.table.unit_tokens[uid] + (store.head(uid).tokens if store.notes[uid].described else 0)

    if order and size(order[0]) > room:
        cut = _cut(build, store, order[0], room)
        if cut:
            return ShownNotes(cut, order)
    chosen = sorted(fill_by_rank(order, size, room))
    return ShownNotes([fragment for uid in chosen for fragment in _whole(build, store, uid)], order)


def _whole(build: IndexedBuild, store: NoteStore, uid: int) -> list[Fragment]:
    """Head and content; the content alone where the model gave no metadata: its header has the time."""
    raw = raw_fragment(build, uid)
    return [store.head(uid), raw] if store.notes[uid].described else [raw]


def _cut(build: IndexedBuild, store: NoteStore, uid: int, room: int) -> list[Fragment]:
    """The note's beginning: its head if that fits, then the content's pieces up to the first that does not."""
    *heads, _ = _whole(build, store, uid)
    shown = [fragment for fragment in heads if fragment.tokens <= room]
    left = room - sum(fragment.tokens for fragment in shown)
    content = beginning(build, uid, left)
    return [*shown, content] if content is not None else shown
