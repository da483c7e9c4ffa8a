"""A-Mem's store of notes: drafted beside the store, then put into it at once (docs/methods.md B.2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from flexmem.history import Unit
from flexmem.memory.asking import memory_model
from flexmem.memory.baselines.amem.config import AMemConfig
from flexmem.memory.baselines.amem.notes import Note, head, index_text
from flexmem.memory.baselines.amem.writing import NoteWriter, evolved
from flexmem.memory.baselines.kept import KeptReplies
from flexmem.memory.protocol import Query
from flexmem.memory.selection import Fragment
from flexmem.memory.vectors import GrowingVectors
from flexmem.ports import Services, VectorArray
from flexmem.retrieval.dense import inner_products
from flexmem.retrieval.ordering import order_by_cosine


class Draft(NamedTuple):
    """A new note, the neighbours that it changed, and the vectors of all of them, the new one's first."""

    unit: Unit
    note: Note
    changed: Mapping[int, Note]
    vectors: VectorArray


class NoteStore:
    """Notes of one build; note i is of unit i. A draft changes nothing until it is `put`, so that a write that fails
    leaves no trace.

    Args:
        config: A-Mem's configuration.
        services: memory model and embedder.
        fallbacks: where the build counts.
        units: the build's units, by uid.
    """

    def __init__(
        self, config: AMemConfig, services: Services, fallbacks: Counter[str], units: Callable[[], Sequence[Unit]]
    ) -> None:
        self.config = config
        self.notes: list[Note] = []
        self._writer = NoteWriter(memory_model(services, fallbacks), config.reply_tokens)
        self._embedder = services.embedder
        self._units = units
        self._vectors = GrowingVectors(services.embedder.dimension)
        self._kept = KeptReplies()
        self._heads: dict[int, Fragment] = {}

    async def draft(self, unit: Unit) -> Draft:
        """The next unit's note: metadata, then evolution among its nearest notes where there are any.

        Raises:
            ModelError: the model could not be asked.
        """
        note = await self._kept.get(unit.uid, "metadata", lambda: self._writer.describe(unit))
        changed: Mapping[int, Note] = {}
        if self.config.evolution and self.notes:
            content = (await self._embedder.embed([unit.text]))[0]
            near = self._by_cosine(content)[: self.config.neighbours]
            reply = await self._kept.get(
                unit.uid, "evolution", lambda: self._writer.evolve(unit, note, near, self._units(), self.notes)
            )
            if reply is not None:
                note, changed = evolved(note, near, self.notes, reply)
        units = self._units()
        texts = [index_text(unit, note), *(index_text(units[uid], new) for uid, new in changed.items())]
        return Draft(unit, note, changed, await self._embedder.embed(texts))

    def put(self, draft: Draft) -> None:
        """Take a draft into the store: vectors follow their notes at once."""
        self.notes.append(draft.note)
        self._vectors.append(draft.vectors[0])
        for (uid, note), vector in zip(draft.changed.items(), draft.vectors[1:], strict=True):
            self.notes[uid] = note
            self._vectors.replace(uid, vector)
            self._heads.pop(uid, None)

    def ranking(self, query: Query) -> list[int]:
        """Notes in the order in which they are tried: the first by cosine, their links, then the others by cosine
        unless the configuration ends there.
        """
        order = self._by_cosine(query.vector)
        first = order[: self.config.top_k]
        links = {uid: self.notes[uid].links[: self.config.links_per_note] for uid in first}
        if self.config.link_order == "beside":
            ranked = [each for uid in first for each in (uid, *links[uid])]
        else:
            ranked = [*first, *(linked for uid in first for linked in links[uid])]
        return list(dict.fromkeys(ranked + (order if self.config.fill else [])))

    def head(self, uid: int) -> Fragment:
        """A note without its content, as it is shown."""
        if uid not in self._heads:
            self._heads[uid] = head(self._units()[uid], self.notes[uid])
        return self._heads[uid]

    def saved(self) -> list[dict[str, Any]]:
        """The notes, JSON-able."""
        return [note.saved() for note in self.notes]

    async def restore(self, saved: Sequence[dict[str, Any]]) -> None:
        """Take back what `saved` gave; the units are in place, and vectors are made from notes again."""
        self.notes = [Note.from_saved(fields) for fields in saved]
        texts = [index_text(unit, note) for unit, note in zip(self._units(), self.notes, strict=True)]
        for vector in await self._embedder.embed(texts):
            self._vectors.append(vector)

    def _by_cosine(self, vector: VectorArray) -> list[int]:
        order: list[int] = order_by_cosine(inner_products(self._vectors.array, vector)).tolist()
        return order
