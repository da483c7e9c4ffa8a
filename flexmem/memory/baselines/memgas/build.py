"""MemGAS's build and view (docs/methods.md B.8)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from pydantic import Field, field_validator

from flexmem.history import Unit
from flexmem.memory.asking import MemoryModel, ReplyForm, memory_model
from flexmem.memory.assemble import assemble, require_room
from flexmem.memory.base import IndexedBuild
from flexmem.memory.baselines.kept import KeptReplies
from flexmem.memory.baselines.memgas.config import MemgasConfig
from flexmem.memory.baselines.memgas.graph import Graph
from flexmem.memory.baselines.mixtures import require_packages
from flexmem.memory.baselines.short_texts import labelled, own_text
from flexmem.memory.flexa.config import FlexaConfig
from flexmem.memory.flexa.records import first_words
from flexmem.memory.flexa.rule_writer import RuleWriter
from flexmem.memory.prompts import template
from flexmem.memory.protocol import Budget, Query, Rendering, Resolution
from flexmem.memory.selection import Fragment
from flexmem.memory.unit_forms import raw_fragment
from flexmem.ports import IndexConfig, Services, VectorArray

_REPLY_TOKENS = 1_000
_KIND = {"agent": "an agent's work", "reader": "a conversation"}


class NotesReply(ReplyForm):
    """A unit's summary and keywords."""

    summary: str
    keywords: list[str] = Field(default_factory=list)

    @field_validator("summary")
    @classmethod
    def _says_something(cls, text: str) -> str:
        if not text.strip():
            raise ValueError("the summary is empty")
        return text


@dataclass(frozen=True)
class Notes:
    """What the model, or the rule in its place, wrote about a unit."""

    summary: str
    keywords: tuple[str, ...]


class MemgasBuild(IndexedBuild):
    """Units with their notes, and the graph of sessions.

    A session that takes several units is one all the same: its text is theirs, its summary and keywords are their notes
    put together, and its nodes are made again with each unit. ``sessions`` has the units of each.
    """

    def __init__(self, config: MemgasConfig, services: Services) -> None:
        require_packages("memgas", "sklearn", "networkx")
        super().__init__("memgas", config, services, IndexConfig(dense=False))
        self.config = config
        self.model: MemoryModel = memory_model(services, self.fallbacks)
        self.graph = Graph(config)
        self.sessions: list[list[int]] = []
        self.notes: list[Notes] = []
        self._turns: list[VectorArray] = []  # by unit: the vectors of its blocks
        self._kept = KeptReplies()
        values = FlexaConfig(record_words=config.summary_words)
        self._rule = RuleWriter(values.record_words, values.merge_words)

    def view(self) -> MemgasView:
        return MemgasView(self)

    async def written(self, unit: Unit) -> None:
        """Have the unit's notes written, then make its session's nodes."""
        await self._add(unit, await self._kept.get(unit.uid, "notes", lambda: self._ask(unit)))

    def extra(self) -> dict[str, Any]:
        notes = [[notes.summary, list(notes.keywords)] for notes in self.notes]
        return {"notes": notes, "fallbacks": dict(self.fallbacks)}

    async def restore_extra(self, extra: dict[str, Any]) -> None:
        """Take back the notes; nodes and links are made from them again."""
        for unit, (summary, keywords) in zip(self.units, extra["notes"], strict=True):
            self._rule.recall(unit)
            await self._add(unit, Notes(summary, tuple(keywords)))
        self.fallbacks.update(extra["fallbacks"])

    async def _ask(self, unit: Unit) -> Notes:
        config = self.config
        by_rule = self._rule.record(unit)
        prompt = template("memgas_notes").substitute(
            what=_KIND[unit.kind], words=config.summary_words, keywords=config.keywords, unit=unit.text
        )
        reply = await self.model.fill(NotesReply, prompt, _REPLY_TOKENS, "notes written by rule, not by the model")
        if reply is None:
            return Notes(by_rule.text, by_rule.keywords[: config.keywords])
        return Notes(first_words(reply.summary, config.summary_words), tuple(reply.keywords[: config.keywords]))

    async def _add(self, unit: Unit, notes: Notes) -> None:
        """Nothing is changed before all vectors are there."""
        goes_on = bool(self.sessions) and self._same_session(self.sessions[-1][0], unit)
        before = self.sessions[-1] if goes_on else []
        texts = [unit.text[block.content_start : block.end] for block in unit.blocks]
        all_notes = [*(self.notes[uid] for uid in before), notes]
        session = [
            "".join([*(own_text(self.units[uid]) for uid in before), own_text(unit)]),
            " ".join(part.summary for part in all_notes),
            "; ".join(dict.fromkeys(word for part in all_notes for word in part.keywords)),
        ]
        vectors = await self.services.embedder.embed([*session, *texts])
        turns = np.concatenate([*(self._turns[uid] for uid in before), vectors[len(session) :]])
        mean = turns.mean(axis=0) if len(turns) else np.zeros_like(vectors[0])
        if goes_on:
            self.sessions[-1].append(unit.uid)
        else:
            self.sessions.append([unit.uid])
        self.notes.append(notes)
        self._turns.append(vectors[len(session) :])
        self.graph.put(len(self.sessions) - 1, np.stack([vectors[0], mean, vectors[1], vectors[2]]))

    def _same_session(self, uid: int, unit: Unit) -> bool:
        """Whether a unit belongs to the session of an earlier one; an agent's units and a chat's are each one."""
        return unit.kind == "reader" and unit.session is not None and self.units[uid].session == unit.session


class MemgasView:
    """Reading changes nothing."""

    def __init__(self, build: MemgasBuild) -> None:
        self._build = build

    async def render(self, query: Query, budget: Budget) -> Rendering:
        """Sessions by rank: each one's units in time order, raw while they fit, else as their summary, else not; shown
        in time order (`MemoryView.render`).
        """
        require_room(budget.room, 0, "nothing")
        build = self._build
        order = [uid for session in build.graph.rank(query.vector) for uid in build.sessions[session]]
        left = budget.room
        shown: dict[int, Fragment] = {}
        for uid in order:
            if build.table.unit_tokens[uid] <= left:
                fragment = raw_fragment(build, uid)
            else:
                fragment = labelled(build.units[uid], build.notes[uid].summary, Resolution.SUMMARY)
                if fragment.tokens > left:
                    continue
            shown[uid] = fragment
            left -= fragment.tokens
        fragments: Sequence[Fragment] = [shown[uid] for uid in sorted(shown)]
        return assemble(fragments, ranking=order)
