"""A memory that its reader manages with tools, after MemGPT (docs/methods.md B.7): what is written."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import Any

from flexmem.history import Unit
from flexmem.memory.asking import memory_model
from flexmem.memory.base import IndexedBuild
from flexmem.memory.baselines.tool_memory.config import ToolMemoryConfig
from flexmem.memory.baselines.tool_memory.desk import Desk
from flexmem.memory.baselines.tool_memory.flushes import Flushed, ModelSummariser, RuleSummariser, Summariser, flush
from flexmem.memory.baselines.tool_memory.view import ToolMemoryView, hidden_line
from flexmem.memory.flexa.config import FlexaConfig
from flexmem.memory.flexa.model_writer import ModelWriter
from flexmem.memory.flexa.records import Record, RecordWriter
from flexmem.memory.flexa.rule_writer import RuleWriter
from flexmem.memory.protocol import Budget
from flexmem.memory.selection import Fragment
from flexmem.ports import IndexConfig, Services


class ToolMemoryBuild(IndexedBuild):
    """Units, a record each, and summaries of what was flushed: one for an agent's episode, one for each allowance of
    readers. An agent's desk lasts with the build; a reader's view has its own.
    """

    def __init__(self, config: ToolMemoryConfig, services: Services) -> None:
        super().__init__("tool_memory", config, services, IndexConfig(piece_tokens=config.piece_tokens))
        self.config = config
        self.records: list[Record] = []
        self.lines: list[Fragment] = []
        self.desk = Desk()
        self._record: Record | None = None  # the newest: it outlives a failure after its writing
        self._flushed: dict[str, Flushed] = {}
        self._flushing = asyncio.Lock()
        words = FlexaConfig(record_words=config.record_words)
        self._writer: RecordWriter
        self._summariser: Summariser
        if config.writer == "model":
            memory_model(services, self.fallbacks)  # refuses where there is none
            assert services.model is not None
            self._writer = ModelWriter(services.model, words, self.fallbacks)
            self._summariser = ModelSummariser(services.model, config.summary_words, self.fallbacks)
        else:
            self._writer = RuleWriter(config.record_words, config.summary_words)
            self._summariser = RuleSummariser(config.summary_words)

    @property
    def for_agent(self) -> bool:
        """Whether the history is an agent's."""
        return bool(self.units) and self.units[0].kind == "agent"

    def view(self) -> ToolMemoryView:
        """An agent's build and view live together; a reader's view starts with an empty desk."""
        return ToolMemoryView(self, self.desk if self.for_agent else Desk())

    async def written(self, unit: Unit) -> None:
        """Write the unit's record."""
        record = self._record
        if record is None or record.uid != unit.uid:
            record = self._record = await self._writer.write(unit, self.records[-1].text if self.records else None)
        self._add(unit, record)

    async def flushed(self, budget: Budget) -> Flushed:
        """What is flushed at a budget."""
        limit = self.config.flush_share * budget.room
        key = "episode" if self.for_agent else repr(limit)
        async with self._flushing:
            state = self._flushed.setdefault(key, Flushed())
            texts = [record.text for record in self.records]
            await flush(state, self.lines, texts, limit, self.config.keep_last, self._summariser)
        return state

    def extra(self) -> dict[str, Any]:
        return {
            "records": [asdict(record) for record in self.records],
            "flushed": {key: asdict(state) for key, state in self._flushed.items()},
            "desk": asdict(self.desk),
            "fallbacks": dict(self.fallbacks),
        }

    async def restore_extra(self, extra: dict[str, Any]) -> None:
        """Take back records, summaries and desk."""
        for unit, fields in zip(self.units, extra["records"], strict=True):
            self._writer.recall(unit)
            record = Record(fields["uid"], fields["text"], tuple(fields["keywords"]), tuple(fields["entities"]))
            self._add(unit, record)
        self._flushed = {key: Flushed(**fields) for key, fields in extra["flushed"].items()}
        self.desk = Desk(**extra["desk"])
        self.fallbacks.update(extra["fallbacks"])

    def _add(self, unit: Unit, record: Record) -> None:
        self.records.append(record)
        self.lines.append(hidden_line(unit, record))
