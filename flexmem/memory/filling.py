"""Filling a room with whole items by rank (docs/methods.md B)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from flexmem import tokens
from flexmem.memory.selection import Fragment


def fill_by_rank(order: Iterable[int], tokens_of: Callable[[int], int], room: int) -> list[int]:
    """The items that are taken, in rank order: each whole where it fits into what is left of ``room`` tokens, else
    passed over.
    """
    left = room
    taken = []
    for item in order:
        size = tokens_of(item)
        if size <= left:
            taken.append(item)
            left -= size
    return taken


def cut_to_room(fragment: Fragment, room: int) -> Fragment | None:
    """A fragment cut at its end to at most ``room`` tokens, with a line break at its own end; None where nothing of it
    fits. Its provenance names no pieces any more: what is left of one is not that piece.
    """
    if fragment.tokens <= room:
        return fragment
    limit = room
    while limit > 0:
        end = tokens.longest_prefix(fragment.text, limit)
        if end <= 0:
            return None
        text = fragment.text[:end].rstrip("\n") + "\n"
        if text == "\n":
            return None
        size = tokens.count(text)
        if size <= room:
            return fragment._replace(text=text, tokens=size, pieces=())
        limit -= size - room
    return None
