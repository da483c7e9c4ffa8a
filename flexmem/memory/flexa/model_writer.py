"""Records and merged records written by the memory model (FlexA-Mem §3.1, §3.2; docs/methods.md A.5, A.8)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from flexmem.history import Unit
from flexmem.llm.errors import Malformed, Refused
from flexmem.memory.flexa.config import FlexaConfig
from flexmem.memory.flexa.records import ENTITIES, KEYWORDS, Record, first_words
from flexmem.memory.flexa.rule_writer import RuleWriter
from flexmem.memory.prompts import template
from flexmem.ports import ChatModel, ChatRequest, Message

ATTEMPTS = 2  # an unusable reply twice in a row means: the rule writes
PROMPTS = ("flexa_record_agent", "flexa_record_reader", "flexa_merge")
_RECORD_TOKENS = 1_000
_MERGE_TOKENS = 600

RECORD_SCHEMA = {
    "type": "object",
    "properties": {
        "record": {"type": "string"},
        "keywords": {"type": "array", "items": {"type": "string"}},
        "entities": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["record", "keywords", "entities"],
    "additionalProperties": False,
}


class ModelWriter:
    """Asks the memory model at low effort; after two unusable replies the rule writer steps in, counted in
    ``fallbacks``.
    """

    def __init__(self, model: ChatModel, config: FlexaConfig, fallbacks: Counter[str]) -> None:
        self._model = model
        self._config = config
        self._rule = RuleWriter(config.record_words, config.merge_words)
        self._fallbacks = fallbacks

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
        for attempt in range(ATTEMPTS):
            fields = _record_fields(await self._ask(prompt, _RECORD_TOKENS, RECORD_SCHEMA, attempt))
            if fields is not None:
                text = _dated(fields["record"], unit)
                return Record(
                    unit.uid,
                    first_words(text, self._config.record_words),
                    tuple(fields["keywords"][:KEYWORDS]),
                    tuple(fields["entities"][:ENTITIES]),
                )
        self._fallbacks["record written by rule, not by the model"] += 1
        return by_rule

    async def merge(self, texts: Sequence[str], labels: Sequence[str]) -> str:
        records = "\n".join(f"[{label}] {text}" for label, text in zip(labels, texts, strict=True))
        prompt = template("flexa_merge").substitute(words=self._config.merge_words, records=records)
        for attempt in range(ATTEMPTS):
            reply = await self._ask(prompt, _MERGE_TOKENS, None, attempt)
            if reply is not None and reply.strip():
                return first_words(reply, self._config.merge_cut_words)
        self._fallbacks["records merged by rule, not by the model"] += 1
        return await self._rule.merge(texts, labels)

    def recall(self, unit: Unit) -> None:
        self._rule.recall(unit)

    async def _ask(self, prompt: str, max_tokens: int, schema: dict[str, Any] | None, attempt: int) -> str | None:
        """The reply's text; None where the model refused or answered in a form that is no answer. Other failures are
        the caller's.
        """
        request = ChatRequest(
            (Message("user", prompt),),
            role="memory",
            max_tokens=max_tokens,
            temperature=0.0,
            effort="low",
            schema=schema,
            sample=attempt,
        )
        try:
            return (await self._model.complete(request)).text
        except (Malformed, Refused):
            return None


def _record_fields(reply: str | None) -> dict[str, Any] | None:
    """The reply's JSON object if it has the asked-for form; text around the object is forgiven."""
    if reply is None or "{" not in reply:
        return None
    try:
        fields, _ = json.JSONDecoder().raw_decode(reply[reply.index("{") :])
    except (ValueError, RecursionError):  # a model that loops can nest brackets without end
        return None
    if not isinstance(fields, dict) or not isinstance(fields.get("record"), str) or not fields["record"].strip():
        return None
    for name in ("keywords", "entities"):
        values = fields.setdefault(name, [])
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            return None
    return fields


def _dated(text: str, unit: Unit) -> str:
    """A reader's record begins with the session's date, as the rule's does: the timeline's line does not show it."""
    if unit.kind == "agent" or not unit.time or unit.time in text:
        return text
    return f"{unit.time}: {text}"
