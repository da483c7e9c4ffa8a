"""``memory_evolution``: flat notes, each unit added as a note or rewritten into one (docs/methods.md B.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from pydantic import Field, field_validator

from flexmem import tokens
from flexmem.history import Unit
from flexmem.memory.asking import ReplyForm, memory_model
from flexmem.memory.assemble import assemble, require_room
from flexmem.memory.base import IndexedBuild
from flexmem.memory.baselines.kept import KeptReplies
from flexmem.memory.baselines.short_texts import one_line, own_text
from flexmem.memory.degrading import DegradeRules, DegradingView, RankedItem
from flexmem.memory.filling import cut_to_room, fill_by_rank
from flexmem.memory.flexa.records import first_words
from flexmem.memory.prompts import template
from flexmem.memory.protocol import (
    Budget,
    FidelityCard,
    MemoryView,
    MethodConfig,
    MethodInfo,
    Query,
    Rendering,
    Resolution,
)
from flexmem.memory.registry import MethodSpec, registered_as
from flexmem.memory.selection import Fragment
from flexmem.memory.vectors import GrowingVectors
from flexmem.ports import IndexConfig, Services, VectorArray
from flexmem.retrieval.dense import inner_products
from flexmem.retrieval.ordering import order_by_cosine

OWN_WORDS = "note of the unit's own first words, not written by the model"
UNKNOWN_NOTE = "rewrite of a note that was not shown, taken as a new note"


class MemoryEvolutionConfig(MethodConfig):
    """All ours: FlexA-Mem names memory evolution and leaves it undefined."""

    neighbours: int = Field(5, ge=1)
    """Most similar notes that the model may rewrite one of; as many as A-Mem's evolution is shown."""
    note_words: int = Field(80, ge=1)
    """A new note's length, a cut: a record's, so that what the methods write compares."""
    rewritten_words: int = Field(120, ge=1)
    """A rewritten note's length as it is asked for: a merged record's, as it stands for several units too."""
    rewritten_cut_words: int = Field(150, ge=1)
    """Where a longer rewritten note is cut: as a merged record."""
    reply_tokens: int = Field(1_000, ge=1)
    """Limit of a reply; as A-Mem's."""
    degrade: DegradeRules | None = None
    """Fit-or-degrade over the ranked notes' units (FlexA-Mem App. E.11); None: notes alone are shown."""


class WriteReply(ReplyForm):
    """What a write is asked for as. ``note`` counts for a rewrite only."""

    action: Literal["add", "rewrite"]
    note: int
    text: str

    @field_validator("text")
    @classmethod
    def _says_something(cls, text: str) -> str:
        if not text.strip():
            raise ValueError("the note is empty")
        return text


@dataclass(frozen=True, slots=True)
class EvolvingNote:
    """A note as it is now, and the units that went into it, oldest first."""

    text: str
    uids: tuple[int, ...]


class MemoryEvolutionBuild(IndexedBuild):
    """Units, and notes with e(note). Only fit-or-degrade, whose excerpts compare pieces, needs those of pieces."""

    def __init__(self, config: MemoryEvolutionConfig, services: Services) -> None:
        super().__init__("memory_evolution", config, services, IndexConfig(dense=config.degrade is not None))
        self.config = config
        self.notes: list[EvolvingNote] = []
        self._model = memory_model(services, self.fallbacks)
        self._vectors = GrowingVectors(services.embedder.dimension)
        self._kept = KeptReplies()

    def view(self) -> MemoryView:
        if self.config.degrade is not None:
            return DegradingView(self, self._ranked, self.config.degrade)
        return MemoryEvolutionView(self)

    async def written(self, unit: Unit) -> None:
        """Ask what becomes of the unit, embed the note that it went into, then put that in its place."""
        near: list[int] = []
        if self.notes:
            near = self.by_cosine((await self.services.embedder.embed([unit.text]))[0])[: self.config.neighbours]
        number, note = await self._kept.get(unit.uid, "note", lambda: self._note(unit, near))
        vector = (await self.services.embedder.embed([note.text]))[0]
        if number == len(self.notes):
            self.notes.append(note)
            self._vectors.append(vector)
        else:
            self.notes[number] = note
            self._vectors.replace(number, vector)

    def by_cosine(self, vector: VectorArray) -> list[int]:
        """Notes, nearest first."""
        order: list[int] = order_by_cosine(inner_products(self._vectors.array, vector)).tolist()
        return order

    def line(self, number: int) -> Fragment:
        """A note as it is shown, with the place of the newest unit that went into it."""
        note = self.notes[number]
        newest = self.units[note.uids[-1]]
        span = newest.label if len(note.uids) == 1 else f"u{note.uids[0]:02d} to {newest.label}"
        text = f"[{span} | {newest.place}] {note.text}\n"
        return Fragment(text, tokens.count(text), note.uids, Resolution.NOTE)

    def extra(self) -> dict[str, Any]:
        notes = [{"text": note.text, "uids": note.uids} for note in self.notes]
        return {"notes": notes, "fallbacks": dict(self.fallbacks)}

    async def restore_extra(self, extra: dict[str, Any]) -> None:
        self.notes = [EvolvingNote(fields["text"], tuple(fields["uids"])) for fields in extra["notes"]]
        for vector in await self.services.embedder.embed([note.text for note in self.notes]):
            self._vectors.append(vector)
        self.fallbacks.update(extra["fallbacks"])

    async def _note(self, unit: Unit, near: Sequence[int]) -> tuple[int, EvolvingNote]:
        """The number of the note that the unit goes into, the next one for a new note, and that note."""
        prompt = template("memory_evolution_write").substitute(
            ids=", ".join(map(str, near)) or "none yet",
            words=self.config.note_words,
            rewritten_words=self.config.rewritten_words,
            notes="\n".join(f"Note {number}: {self.notes[number].text}" for number in near) or "(none)",
            unit=unit.text,
        )
        reply = await self._model.fill(WriteReply, prompt, self.config.reply_tokens, OWN_WORDS)
        if reply is not None and reply.action == "rewrite":
            if reply.note in near:
                text = first_words(reply.text, self.config.rewritten_cut_words)
                return reply.note, EvolvingNote(text, (*self.notes[reply.note].uids, unit.uid))
            self.fallbacks[UNKNOWN_NOTE] += 1
        text = first_words(own_text(unit) if reply is None else reply.text, self.config.note_words)
        return len(self.notes), EvolvingNote(one_line(text), (unit.uid,))

    def _ranked(self, query: Query) -> list[RankedItem]:
        return [RankedItem(self.notes[number].uids[::-1], self.line(number)) for number in self.by_cosine(query.vector)]


class MemoryEvolutionView:
    """Reading changes nothing."""

    def __init__(self, build: MemoryEvolutionBuild) -> None:
        self._build = build

    async def render(self, query: Query, budget: Budget) -> Rendering:
        """Notes by rank while they fit, in the order of their newest units; a best note larger than the room is cut at
        its end (`MemoryView.render`).
        """
        require_room(budget.room, 0, "nothing")
        build = self._build
        order = build.by_cosine(query.vector)
        lines = [build.line(number) for number in order]
        ranking = [build.notes[number].uids[-1] for number in order]
        if lines and lines[0].tokens > budget.room:
            cut = cut_to_room(lines[0], budget.room)
            if cut is not None:
                return assemble([cut], ranking=ranking)
        chosen = fill_by_rank(range(len(lines)), lambda rank: lines[rank].tokens, budget.room)
        return assemble(sorted((lines[rank] for rank in chosen), key=lambda line: line.uids[-1]), ranking=ranking)


def _declares(config: MemoryEvolutionConfig, info: MethodInfo) -> MethodInfo:
    """With fit-or-degrade most of what is shown is raw: there a note is what a unit falls back on, as a record is."""
    return replace(info, rewrites_text=config.degrade is None)


MEMORY_EVOLUTION = MethodSpec(
    MethodInfo(
        name="memory_evolution",
        prompts=("memory_evolution_write",),
        family="memory evolution",
        summary="flat notes; the model adds each unit as a note or rewrites the most similar one in place",
        card=FidelityCard(
            source="FlexA-Mem App. E.11 names memory evolution as a method that keeps rewriting; it does not define it",
            follows="that what was written may be written over",
            ours="the method: no links; one call a unit, which adds a note of at most 80 words or rewrites one of the "
            "5 nearest in at most 150; notes by cosine fill the room, in the order of their newest units; two unusable "
            "replies leave the unit's own first 80 words as its note, counted",
            differs="nothing to differ from",
            tuning="nothing tuned: lengths are those of records and merged records, the neighbours' number is A-Mem's",
        ),
        writes_with_model=True,
        rewrites_text=True,
    ),
    MemoryEvolutionConfig(),
    MemoryEvolutionBuild,
    _declares,
)

METHODS = (
    MEMORY_EVOLUTION,
    registered_as(
        MEMORY_EVOLUTION,
        "fit_or_degrade.memory_evolution",
        "the notes' ranking; their units raw or as excerpts, a note where its newest unit fits as neither",
        degrade=DegradeRules(),
    ),
)
