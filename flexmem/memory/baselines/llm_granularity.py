"""``llm_granularity``: at each call the memory model says which units are shown raw, as records or not at all
(docs/methods.md B.6).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from flexmem.history import Unit
from flexmem.memory.asking import MemoryModel, ReplyForm, memory_model
from flexmem.memory.assemble import assemble, require_room
from flexmem.memory.base import IndexedBuild
from flexmem.memory.baselines.call_text import call_text
from flexmem.memory.baselines.kept import KeptReplies
from flexmem.memory.filling import fill_by_rank
from flexmem.memory.flexa.config import FlexaConfig
from flexmem.memory.flexa.model_writer import ModelWriter
from flexmem.memory.flexa.records import Record, RecordWriter
from flexmem.memory.flexa.rule_writer import RuleWriter
from flexmem.memory.flexa.timeline import Entry, record_entry
from flexmem.memory.prompts import template
from flexmem.memory.protocol import Budget, FidelityCard, MethodConfig, MethodInfo, Query, Rendering, Resolution
from flexmem.memory.registry import MethodSpec
from flexmem.memory.selection import Fragment
from flexmem.memory.unit_forms import raw_fragment
from flexmem.ports import IndexConfig, Services

_REPLY_TOKENS = 600  # for the object's frame, and for a model that reasons ...
_TOKENS_PER_UNIT = 6  # ... and for each unit's number in one of the lists


class LlmGranularityConfig(MethodConfig):
    """Who writes records, and how long they are."""

    writer: Literal["rule", "model"] = "rule"
    """Who writes records: FlexA-Mem's rule or model writer, so that the two methods differ in reading alone."""
    record_words: int = Field(80, ge=1)
    """A record's cut, FlexA-Mem's."""


def _numbers(said: object) -> object:
    """A list's ``"7"`` and ``"u07"`` as 7."""
    if not isinstance(said, list):
        return said
    named = [re.fullmatch(r"u?0*(\d{1,9})", item.strip()) if isinstance(item, str) else None for item in said]
    return [int(match.group(1)) if match else item for match, item in zip(named, said, strict=True)]


Units = Annotated[list[int], BeforeValidator(_numbers)]


class GranularityReply(ReplyForm):
    """Which units are shown in which form, the most important first. Only ``raw`` has to be there."""

    raw: Units
    record: Units = Field(default_factory=list)
    hide: Units = Field(default_factory=list)


class LlmGranularityBuild(IndexedBuild):
    """Units and their records."""

    def __init__(self, config: LlmGranularityConfig, services: Services) -> None:
        super().__init__("llm_granularity", config, services, IndexConfig(dense=False))
        self.model: MemoryModel = memory_model(services, self.fallbacks)
        self.records: list[Record] = []
        self.lines: list[Entry] = []
        self._kept = KeptReplies()
        self._writer = self._make_writer(config)

    def view(self) -> LlmGranularityView:
        return LlmGranularityView(self)

    async def written(self, unit: Unit) -> None:
        """Write the unit's record (docs/methods.md A.8)."""
        previous = self.records[-1].text if self.records else None
        self._add(unit, await self._kept.get(unit.uid, "record", lambda: self._writer.write(unit, previous)))

    def extra(self) -> dict[str, Any]:
        return {"records": [asdict(record) for record in self.records], "fallbacks": dict(self.fallbacks)}

    async def restore_extra(self, extra: dict[str, Any]) -> None:
        for unit, fields in zip(self.units, extra["records"], strict=True):
            self._writer.recall(unit)
            self._add(unit, Record(unit.uid, fields["text"], tuple(fields["keywords"]), tuple(fields["entities"])))
        self.fallbacks.update(extra["fallbacks"])

    def _add(self, unit: Unit, record: Record) -> None:
        self.records.append(record)
        self.lines.append(record_entry(unit, record))

    def _make_writer(self, config: LlmGranularityConfig) -> RecordWriter:
        values = FlexaConfig(writer=config.writer, record_words=config.record_words)
        if config.writer == "rule":
            return RuleWriter(values.record_words, values.merge_words)
        assert self.services.model is not None
        return ModelWriter(self.services.model, values, self.fallbacks)


class LlmGranularityView:
    """Reading changes nothing; each rendering asks the model anew."""

    def __init__(self, build: LlmGranularityBuild) -> None:
        self._build = build

    async def render(self, query: Query, budget: Budget) -> Rendering:
        """The units in the forms that the model names while they fit, the others as records (`MemoryView.render`)."""
        require_room(budget.room, 0, "nothing")
        build = self._build
        reply = await self._ask(query, budget.room) if build.units else None
        chosen = honour(
            reply,
            [build.table.unit_tokens[uid] for uid in range(len(build.units))],
            [line.tokens for line in build.lines],
            budget.room,
        )
        fragments = [self._fragment(uid, chosen[uid]) for uid in sorted(chosen)]
        return assemble(fragments, ranking=list(chosen))

    async def _ask(self, query: Query, room: int) -> GranularityReply | None:
        build = self._build
        prompt = template("llm_granularity").substitute(
            query=call_text(query),
            units=len(build.units),
            first=0,
            last=len(build.units) - 1,
            room=room,
            records="".join(
                f"{uid} ({build.table.unit_tokens[uid]} tokens raw, {line.tokens} as a record) {line.line}"
                for uid, line in enumerate(build.lines)
            ),
        )
        most = _REPLY_TOKENS + _TOKENS_PER_UNIT * len(build.units)
        return await build.model.fill(GranularityReply, prompt, most, "all records shown, not the model's choice")

    def _fragment(self, uid: int, form: Resolution) -> Fragment:
        if form is Resolution.RAW:
            return raw_fragment(self._build, uid)
        line = self._build.lines[uid]
        return Fragment(line.line, line.tokens, (uid,), Resolution.RECORD)


def honour(
    reply: GranularityReply | None, raw_tokens: Sequence[int], record_tokens: Sequence[int], room: int
) -> dict[int, Resolution]:
    """Which units are shown in which form, in the order of acceptance (docs/methods.md B.6).

    A unit's first mention counts, ``raw`` before ``record`` before ``hide``; numbers that name no unit are passed over.
    """
    wanted = reply or GranularityReply(raw=[])
    there = range(len(raw_tokens))
    raw = [uid for uid in dict.fromkeys(wanted.raw) if uid in there]
    chosen = dict.fromkeys(fill_by_rank(raw, raw_tokens.__getitem__, room), Resolution.RAW)
    left = room - sum(raw_tokens[uid] for uid in chosen)
    hidden = set(wanted.hide).difference(raw, wanted.record)
    order = dict.fromkeys([*wanted.record, *raw, *reversed(there)])  # raw ones that did not fit come after the records
    as_records = [uid for uid in order if uid in there and uid not in chosen and uid not in hidden]
    chosen.update(dict.fromkeys(fill_by_rank(as_records, record_tokens.__getitem__, left), Resolution.RECORD))
    return chosen


def _declares(config: LlmGranularityConfig, info: MethodInfo) -> MethodInfo:
    return replace(info, writes_with_model=config.writer == "model")


METHODS = (
    MethodSpec(
        MethodInfo(
            name="llm_granularity",
            prompts=("llm_granularity", "flexa_record_agent", "flexa_record_reader"),
            family="FlexA-Mem's baselines",
            summary="the memory model sees all records at each call and says which units are raw, records or hidden",
            card=FidelityCard(
                source="a baseline that FlexA-Mem §4.2 names and does not describe",
                follows="the name alone: a language model controls the granularity of each unit",
                ours="all of it: the model sees every record with its unit's size and the room, and names units by "
                "form in order of importance; a raw unit that does not fit is a record after those that were named so; "
                "units that it does not name are records, newest first; an unusable reply leaves all records, newest "
                "first",
                differs="nothing to differ from",
                tuning="nothing tuned; records are FlexA-Mem's",
            ),
            reads_with_model=True,
            asks_per_call=True,
        ),
        LlmGranularityConfig(),
        LlmGranularityBuild,
        _declares,
    ),
)
