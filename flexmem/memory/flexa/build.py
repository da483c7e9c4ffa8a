"""FlexA-Mem's build: what is written once, and the timelines derived from it (FlexA-Mem §3.1, §3.2; docs/methods.md
A.4, A.5).
"""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import Any

from flexmem.history import Unit
from flexmem.memory.base import IndexedBuild
from flexmem.memory.flexa.config import FlexaConfig
from flexmem.memory.flexa.links import Links
from flexmem.memory.flexa.model_writer import ModelWriter
from flexmem.memory.flexa.records import Record, RecordWriter
from flexmem.memory.flexa.rule_writer import RuleWriter
from flexmem.memory.flexa.timeline import Entry, Timeline, record_entry
from flexmem.memory.flexa.view import FlexaView
from flexmem.memory.protocol import Budget, MethodError
from flexmem.memory.vectors import GrowingVectors
from flexmem.ports import IndexConfig, Services, VectorArray


class FlexaBuild(IndexedBuild):
    """Units, records, links and timelines of one history.

    An agent's episode has one timeline, whose merges last. Readers' timelines are derived from the records, one for
    each allowance, and kept beside the build.
    """

    def __init__(self, config: FlexaConfig, services: Services) -> None:
        super().__init__("flexa", config, services, IndexConfig(piece_tokens=config.piece_tokens, bm25=config.bm25))
        self.config = config
        self.records: list[Record] = []
        self.links = Links(config)
        self.lines: list[Entry] = []
        self.writer: RecordWriter = self._make_writer()
        self._record: Record | None = None  # the newest: it outlives a failure to embed it, and is not written again
        self._vectors = GrowingVectors(services.embedder.dimension)
        self._timelines: dict[str, Timeline] = {}
        self._merging = asyncio.Lock()

    def view(self) -> FlexaView:
        """A reader's look; FlexA-Mem's reading changes nothing but the kept timelines, which depend on the allowance
        alone.
        """
        return FlexaView(self)

    @property
    def kind(self) -> str:
        """``agent`` or ``reader``, as the units are."""
        return self.units[0].kind if self.units else "reader"

    @property
    def record_vectors(self) -> VectorArray:
        """e(record), shape (units, dimension)."""
        return self._vectors.array

    async def written(self, unit: Unit) -> None:
        """Write the unit's record, link it and put its line on the timelines (docs/methods.md A.4)."""
        record = self._record
        if record is None or record.uid != unit.uid:
            record = self._record = await self.writer.write(unit, self.records[-1].text if self.records else None)
        vector = (await self.services.embedder.embed([record.index_text]))[0]
        self._add(unit, record, vector)

    async def timeline(self, budget: Budget) -> Timeline:
        """The timeline for a budget, merged to the larger of the current and the reference allowance (FlexA-Mem App.
        A).
        """
        share = self.config.timeline_share
        reference = share * (0.75 * budget.total if self.kind == "agent" else budget.total)
        limit = max(share * budget.room, reference)
        key = "episode" if self.kind == "agent" else repr(limit)
        async with self._merging:
            if key not in self._timelines:
                self._timelines[key] = Timeline(self.config, self.lines)
            await self._timelines[key].merge_down(limit, self.writer)
        return self._timelines[key]

    def extra(self) -> dict[str, Any]:
        return {
            "records": [asdict(record) for record in self.records],
            "timelines": {
                key: [asdict(entry) for entry in timeline.entries] for key, timeline in self._timelines.items()
            },
            "fallbacks": dict(self.fallbacks),
        }

    async def restore_extra(self, extra: dict[str, Any]) -> None:
        """Take back records and timelines; vectors and links are made from them again."""
        records = [
            Record(fields["uid"], fields["text"], tuple(fields["keywords"]), tuple(fields["entities"]))
            for fields in extra["records"]
        ]
        vectors = await self.services.embedder.embed([record.index_text for record in records])
        for unit, record, vector in zip(self.units, records, vectors, strict=True):
            self.writer.recall(unit)
            self._add(unit, record, vector)
        for key, entries in extra["timelines"].items():
            self._timelines[key] = Timeline(
                self.config, [Entry(**{**fields, "uids": tuple(fields["uids"])}) for fields in entries]
            )
        self.fallbacks.update(extra["fallbacks"])

    def _add(self, unit: Unit, record: Record, vector: VectorArray) -> None:
        self.links.add(record, vector, self.record_vectors)
        self._vectors.append(vector)
        self.records.append(record)
        line = record_entry(unit, record)
        self.lines.append(line)
        for timeline in self._timelines.values():
            timeline.append(line)

    def _make_writer(self) -> RecordWriter:
        if self.config.writer == "rule":
            return RuleWriter(self.config.record_words, self.config.merge_words)
        if self.services.model is None:
            raise MethodError("writer: model needs a memory model (models.memory in a sweep, model=... in Memory)")
        return ModelWriter(self.services.model, self.config, self.fallbacks)
