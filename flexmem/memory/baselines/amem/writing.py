"""How the memory model writes A-Mem's notes: metadata, then evolution (docs/methods.md B.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

from flexmem.history import Unit
from flexmem.memory.asking import MemoryModel, ReplyForm
from flexmem.memory.baselines.amem.notes import Note, cleaned
from flexmem.memory.baselines.short_texts import one_line
from flexmem.memory.prompts import template

EMPTY_METADATA = "note left without metadata"
NO_EVOLUTION = "note left without evolution"


class MetadataReply(ReplyForm):
    """What a note's metadata are asked for as."""

    context: str
    keywords: list[str]
    tags: list[str]


class EvolutionReply(ReplyForm):
    """What evolution is asked for as; the last two lists are in the order in which the neighbours were shown."""

    evolve: bool
    actions: list[Literal["strengthen", "update_neighbours"]]
    connections: list[int]
    tags: list[str]
    neighbour_contexts: list[str]
    neighbour_tags: list[list[str]]


class NoteWriter:
    """Asks for metadata and for evolution."""

    def __init__(self, model: MemoryModel, reply_tokens: int) -> None:
        self._model = model
        self._reply_tokens = reply_tokens

    async def describe(self, unit: Unit) -> Note:
        """The new note, yet without links. Two unusable replies: empty metadata, counted.

        Raises:
            ModelError: the model could not be asked.
        """
        prompt = template("amem_note").substitute(unit=unit.text)
        reply = await self._model.fill(MetadataReply, prompt, self._reply_tokens, EMPTY_METADATA)
        if reply is None:
            return Note()
        return Note(one_line(reply.context), cleaned(reply.keywords), cleaned(reply.tags))

    async def evolve(
        self, unit: Unit, note: Note, near: Sequence[int], units: Sequence[Unit], notes: Sequence[Note]
    ) -> EvolutionReply | None:
        """What the model would change, shown the new note and the nearest ones, by id. Two unusable replies: nothing,
        counted.

        Raises:
            ModelError: the model could not be asked.
        """
        prompt = template("amem_evolve").substitute(
            note=_shown(unit, note),
            neighbours="\n\n".join(f"Note {uid}\n{_shown(units[uid], notes[uid])}" for uid in near),
            ids=", ".join(map(str, near)),
            number=len(near),
        )
        return await self._model.fill(EvolutionReply, prompt, self._reply_tokens, NO_EVOLUTION)


def evolved(
    note: Note, near: Sequence[int], notes: Sequence[Note], reply: EvolutionReply
) -> tuple[Note, Mapping[int, Note]]:
    """The new note and the changed neighbours, by id.

    ``strengthen`` links the new note to those neighbours that the reply names and replaces its tags;
    ``update_neighbours`` overwrites neighbours' contexts and tags, in the order of ``near``. What is blank or missing
    changes nothing, and an id that is no neighbour's is no link (ours).
    """
    changed: dict[int, Note] = {}
    if not reply.evolve:
        return note, changed
    if "strengthen" in reply.actions:
        links = tuple(dict.fromkeys(uid for uid in reply.connections if uid in near))
        note = replace(note, links=links, tags=cleaned(reply.tags) or note.tags)
    if "update_neighbours" in reply.actions:
        for place, uid in enumerate(near):
            context = reply.neighbour_contexts[place] if place < len(reply.neighbour_contexts) else ""
            tags = reply.neighbour_tags[place] if place < len(reply.neighbour_tags) else []
            old = notes[uid]
            changed[uid] = replace(old, context=one_line(context) or old.context, tags=cleaned(tags) or old.tags)
    return note, {uid: new for uid, new in changed.items() if new != notes[uid]}


def _shown(unit: Unit, note: Note) -> str:
    """A note as the model is shown it."""
    return (
        f"Context: {note.context}\nKeywords: {', '.join(note.keywords)}\nTags: {', '.join(note.tags)}\n"
        f"Content:\n{unit.text}"
    )
