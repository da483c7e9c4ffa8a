"""One summary that every unit is folded into (docs/methods.md B.3)."""

from __future__ import annotations

import math
import re
from collections import Counter

from pydantic import Field

from flexmem import tokens
from flexmem.history import Unit
from flexmem.memory.asking import memory_model
from flexmem.memory.baselines.kept import KeptReplies
from flexmem.memory.baselines.short_texts import own_text
from flexmem.memory.filling import cut_to_room
from flexmem.memory.flexa.records import last_words
from flexmem.memory.prompts import template
from flexmem.memory.protocol import MethodConfig, MethodError, Resolution
from flexmem.memory.selection import Fragment
from flexmem.ports import Services

APPENDED = "unit's words appended to the summary, not folded in by the model"
_WORD = re.compile(r"\S+")


class SummaryConfig(MethodConfig):
    """Ours: the paper names a running summary and gives no length."""

    words_per_token: float = Field(0.6, gt=0)
    """Words that a token of the room pays for: English has some 0.75 words a token, names and numbers fewer, so a
    summary of that length fits."""
    reply_factor: float = Field(2.0, gt=0)
    """A reply's limit in tokens of the room: a summary of the length asked for fits, and so does some reasoning ..."""
    least_reply_tokens: int = Field(600, ge=1)
    """... which a small room leaves no space for."""


def written_room(services: Services) -> int:
    """The room that a build writes for.

    Raises:
        MethodError: the build was opened without one.
    """
    if services.room is None:
        raise MethodError(
            "a summary's length depends on the room, and this build was opened without one "
            "(Services.room: a sweep gives each budget a build of its own)"
        )
    return services.room


class RunningSummary:
    """The summary so far, at most floor(``words_per_token`` · room) words.

    Args:
        config: lengths.
        services: the memory model.
        fallbacks: where the build counts.
    """

    def __init__(self, config: SummaryConfig, services: Services, fallbacks: Counter[str]) -> None:
        self.text = ""
        self._config = config
        self._model = memory_model(services, fallbacks)
        self._kept = KeptReplies()

    async def folded(self, unit: Unit, room: int) -> str:
        """The summary with the next unit in it, to be taken as `text` once the whole write has succeeded. Two unusable
        replies: the unit's words are appended and the oldest give way, counted.

        Args:
            unit: the unit.
            room: tokens that the summary will be shown in.

        Raises:
            ModelError: the model could not be asked.
        """
        return await self._kept.get(unit.uid, "summary", lambda: self._fold(unit, room))

    async def _fold(self, unit: Unit, room: int) -> str:
        words = max(1, math.floor(self._config.words_per_token * room))
        prompt = template("summary_fold").substitute(words=words, summary=self.text or "(none yet)", unit=unit.text)
        limit = max(self._config.least_reply_tokens, math.ceil(self._config.reply_factor * room))
        reply = await self._model.text(prompt, limit, APPENDED)
        if reply is None:
            return last_words(f"{self.text} {own_text(unit)}", words)
        return _cut_words(reply, words)

    def fragment(self, units: int, room: int) -> Fragment | None:
        """The summary of so many units, cut at its end to at most ``room`` tokens; None where none is left."""
        if not units or not self.text:
            return None
        span = "u00" if units == 1 else f"u00-u{units - 1:02d}"
        text = f"[{span} | summary] {self.text}\n"
        return cut_to_room(Fragment(text, tokens.count(text), tuple(range(units)), Resolution.SUMMARY), room)


def _cut_words(text: str, limit: int) -> str:
    """The text up to the end of its ``limit``-th word; its line breaks stay."""
    for number, word in enumerate(_WORD.finditer(text), 1):
        if number == limit:
            return text[: word.end()]
    return text
