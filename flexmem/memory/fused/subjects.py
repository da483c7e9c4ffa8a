"""Who says a piece, and whom a question is about (docs/methods.md A.12)."""

from __future__ import annotations

import re
from collections.abc import Collection

from flexmem.history import Unit

USER = "user"
_ASKER = re.compile(r"\b(?:i|i'm|i've|i'd|i'll|me|my|mine|myself|we|our|ours|us)\b", re.IGNORECASE)
_ADDRESSED = re.compile(r"\b(?:you|your|yours|you're|you've)\b", re.IGNORECASE)


def block_speakers(unit: Unit) -> list[str]:
    """The speaker of each block of a unit: the name that a turn begins with, else its role; "" in an agent's steps."""
    if unit.kind == "agent":
        return [""] * len(unit.blocks)
    return [_speaker(unit, position) for position in range(len(unit.blocks))]


def subjects(question: str, speakers: Collection[str]) -> frozenset[str]:
    """The speakers that a question is about: those that it names; else the user, if it speaks of itself and to nobody;
    else none.
    """
    named = frozenset(speaker for speaker in speakers if speaker and _names(question, speaker))
    if named:
        return named
    if USER in speakers and _ASKER.search(question) and not _ADDRESSED.search(question):
        return frozenset([USER])
    return frozenset()


def _names(question: str, speaker: str) -> bool:
    """Whether the whole name or its first word stands in the question, written as a name is."""
    if speaker in (USER, "assistant", "system"):
        return False  # roles are no names
    return any(re.search(rf"\b{re.escape(name)}\b", question) for name in {speaker, speaker.split()[0]})


def _speaker(unit: Unit, position: int) -> str:
    block = unit.blocks[position]
    prefix = unit.text[block.start : block.content_start]
    if prefix:
        return prefix.rstrip(": \n")
    return unit.text[block.content_start : block.end].split(":", 1)[0].strip()
