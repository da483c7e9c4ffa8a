"""A-Mem's notes: what stands beside a unit's text, how a note is indexed and shown (docs/methods.md B.2)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from flexmem import tokens
from flexmem.history import Unit
from flexmem.memory.baselines.short_texts import one_line
from flexmem.memory.protocol import Resolution
from flexmem.memory.selection import Fragment


@dataclass(frozen=True, slots=True)
class Note:
    """A note's metadata; its content is the unit. ``links`` are ids of earlier notes. Empty where the model wrote
    none.
    """

    context: str = ""
    keywords: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    links: tuple[int, ...] = ()

    @property
    def described(self) -> bool:
        """Whether there is anything to show beside the content."""
        return bool(self.context or self.keywords or self.tags)

    def saved(self) -> dict[str, Any]:
        """JSON-able fields."""
        return asdict(self)

    @classmethod
    def from_saved(cls, fields: dict[str, Any]) -> Note:
        """The note that ``saved`` described."""
        lists = {name: tuple(fields[name]) for name in ("keywords", "tags", "links")}
        return cls(context=fields["context"], **lists)


def cleaned(texts: Iterable[str]) -> tuple[str, ...]:
    """Texts on one line each, without empty and repeated ones."""
    return tuple(dict.fromkeys(line for line in map(one_line, texts) if line))


def index_text(unit: Unit, note: Note) -> str:
    """What is embedded: content, context, keywords and tags (reference code)."""
    return "\n".join([unit.text, note.context, " ".join(note.keywords), " ".join(note.tags)])


def head(unit: Unit, note: Note) -> Fragment:
    """A note without its content: time, context, keywords and tags."""
    lines = [f"[{unit.label} | {unit.place}] {note.context}".rstrip()]
    lines += [f"{name}: {', '.join(kept)}" for name, kept in (("Keywords", note.keywords), ("Tags", note.tags)) if kept]
    text = "\n".join(lines) + "\n"
    return Fragment(text, tokens.count(text), (unit.uid,), Resolution.NOTE)
