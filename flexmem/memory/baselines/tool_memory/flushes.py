"""Flushing: when the lines outgrow their share, the oldest become one summary (docs/methods.md B.7)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from flexmem import tokens
from flexmem.memory.asking import MemoryModel
from flexmem.memory.flexa.merging import merge_by_rule
from flexmem.memory.flexa.records import first_words
from flexmem.memory.prompts import template
from flexmem.memory.protocol import Resolution
from flexmem.memory.selection import Fragment
from flexmem.ports import ChatModel

PROMPT = "tool_memory_flush"
FALLBACK = "units flushed by rule, not by the model"
_REPLY_TOKENS = 600


class Summariser(Protocol):
    """Folds records into a running summary."""

    async def fold(self, summary: str, records: Sequence[str]) -> str:
        """The summary of ``summary`` (may be empty) and the records that follow it, oldest first."""
        ...


@dataclass
class Flushed:
    """The first ``units`` units as one text; ``seen`` units had come when it was last looked at."""

    units: int = 0
    text: str = ""
    seen: int = 0

    def fragment(self) -> Fragment | None:
        """Its line, if there is one."""
        if not self.units:
            return None
        line = f"[u00-u{self.units - 1:02d} | summary] {self.text}\n"
        return Fragment(line, tokens.count(line), tuple(range(self.units)), Resolution.MERGED)


async def flush(
    state: Flushed, lines: Sequence[Fragment], records: Sequence[str], limit: float, keep: int, by: Summariser
) -> None:
    """Bring ``state`` up to date as if every unit had been looked at when it came: whenever summary and lines took more
    than ``limit`` tokens, all lines but the newest ``keep`` were folded into the summary.
    """
    while state.seen < len(lines):
        seen = state.seen + 1
        head = state.fragment()
        used = (head.tokens if head else 0) + sum(line.tokens for line in lines[state.units : seen])
        last = seen - keep
        if used > limit and last > state.units:
            state.text = await by.fold(state.text, records[state.units : last])
            state.units = last
        state.seen = seen


class RuleSummariser:
    """The heads of all lines, each with an equal share of the words."""

    def __init__(self, words: int) -> None:
        self._words = words

    async def fold(self, summary: str, records: Sequence[str]) -> str:
        """The summary counts as one more record."""
        return merge_by_rule([text for text in (summary, *records) if text], self._words)


class ModelSummariser:
    """The memory model; the rule where its reply is unusable, counted in ``fallbacks``."""

    def __init__(self, model: ChatModel, words: int, fallbacks: Counter[str]) -> None:
        self._model = MemoryModel(model, fallbacks)
        self._words = words
        self._rule = RuleSummariser(words)

    async def fold(self, summary: str, records: Sequence[str]) -> str:
        """One call."""
        prompt = template(PROMPT).substitute(
            words=self._words, summary=summary or "(none)", records="\n".join(f"- {record}" for record in records)
        )
        reply = await self._model.text(prompt, _REPLY_TOKENS, FALLBACK)
        return await self._rule.fold(summary, records) if reply is None else first_words(reply, self._words)
