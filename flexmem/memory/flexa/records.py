"""Records: the short text that stands for a unit, with its retrieval fields (FlexA-Mem §3.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from flexmem.history import Unit

KEYWORDS = 8
ENTITIES = 12


@dataclass(frozen=True, slots=True)
class Record:
    """What a writer makes of a unit; written once, never rewritten. ``text`` is one line; ``entities`` are verbatim."""

    uid: int
    text: str
    keywords: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()

    @property
    def index_text(self) -> str:
        """What is embedded: the text and the retrieval fields (docs/methods.md A.4)."""
        return " ".join([self.text, *self.keywords, *self.entities])


class RecordWriter(Protocol):
    """Writes records in the order of units, and merges them."""

    async def write(self, unit: Unit, previous: str | None) -> Record:
        """The record of the next unit; ``previous`` is the last record's text, for context only."""
        ...

    async def merge(self, texts: Sequence[str], labels: Sequence[str]) -> str:
        """One text for consecutive records, oldest first; labels are their spans in the timeline."""
        ...

    def recall(self, unit: Unit) -> None:
        """Take note of a unit whose record was restored, so that later records come out as if it had been written."""
        ...


def first_words(text: str, limit: int) -> str:
    """The first ``limit`` words, on one line."""
    return " ".join(text.split()[:limit])


def last_words(text: str, limit: int) -> str:
    """The last ``limit`` words, on one line."""
    return " ".join(text.split()[-limit:])
