"""Records and merged records written by the memory model (FlexA-Mem §3.1, §3.2; docs/methods.md A.5, A.8)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from pydantic import Field, field_validator

from flexmem.history import Unit
from flexmem.memory.asking import MemoryModel, ReplyForm
from flexmem.memory.flexa.config import FlexaConfig
from flexmem.memory.flexa.records import ENTITIES, KEYWORDS, Record, first_words
from flexmem.memory.flexa.rule_writer import RuleWriter
from flexmem.memory.prompts import template
from flexmem.ports import ChatModel

PROMPTS = ("flexa_record_agent", "flexa_record_reader", "flexa_merge")
_RECORD_TOKENS = 1_000
_MERGE_TOKENS = 600


class RecordReply(ReplyForm):
    """What a record is asked for as."""

    record: str
    keywords: list[str] = Field(default_factory=list)
    entities: list[str] = Field(default_factory=list)

    @field_validator("record")
    @classmethod
    def _says_something(cls, text: str) -> str:
        if not text.strip():
            raise ValueError("the record is empty")
        return text


class ModelWriter:
    """Asks the memory model at low effort; after two unusable replies the rule writer steps in, counted in
    ``fallbacks``.
    """

    def __init__(self, model: ChatModel, config: FlexaConfig, fallbacks: Counter[str]) -> None:
        self._model = MemoryModel(model, fallbacks)
        self._config = config
        self._rule = RuleWriter(config.record_words, config.merge_words)

    async def write(self, unit: Unit, previous: str | None) -> Record:
        """The model's record, else the rule's (docs/methods.md A.8).

        Raises:
            ModelError: the model could not be asked.
        """
        by_rule = self._rule.record(unit)
        prompt = template(f"flexa_record_{unit.kind}").substitute(
            words=self._config.record_words,
            keywords=KEYWORDS,
            entities=ENTITIES,
            previous=previous or "(none)",
            unit=unit.text,
        )
        reply = await self._model.fill(RecordReply, prompt, _RECORD_TOKENS, "record written by rule, not by the model")
        if reply is None:
            return by_rule
        return Record(
            unit.uid,
            first_words(_dated(reply.record, unit), self._config.record_words),
            tuple(reply.keywords[:KEYWORDS]),
            tuple(reply.entities[:ENTITIES]),
        )

    async def merge(self, texts: Sequence[str], labels: Sequence[str]) -> str:
        records = "\n".join(f"[{label}] {text}" for label, text in zip(labels, texts, strict=True))
        prompt = template("flexa_merge").substitute(words=self._config.merge_words, records=records)
        reply = await self._model.text(prompt, _MERGE_TOKENS, "records merged by rule, not by the model")
        if reply is None:
            return await self._rule.merge(texts, labels)
        return first_words(reply, self._config.merge_cut_words)

    def recall(self, unit: Unit) -> None:
        self._rule.recall(unit)


def _dated(text: str, unit: Unit) -> str:
    """A reader's record begins with the session's date, as the rule's does: the timeline's line does not show it."""
    if unit.kind == "agent" or not unit.time or unit.time in text:
        return text
    return f"{unit.time}: {text}"
