"""A chat model that counts what it is used for, and while it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from flexmem.ports import ChatModel, ChatReply, ChatRequest
from flexmem.sweep.activity import Activity


@dataclass
class Meter:
    """Calls and tokens so far; tokens turn None for good when an endpoint does not say them."""

    calls: int = 0
    input: int | None = 0
    output: int | None = 0

    def note(self, reply: ChatReply) -> None:
        """Count a reply."""
        self.calls += 1
        self.input = None if self.input is None or reply.usage.input is None else self.input + reply.usage.input
        self.output = None if self.output is None or reply.usage.output is None else self.output + reply.usage.output


class MeteredModel:
    """The memory model: passes calls on and counts them."""

    def __init__(self, model: ChatModel, meter: Meter, activity: Activity) -> None:
        self._model = model
        self._meter = meter
        self._activity = activity
        self.name = model.name

    def describe(self) -> Mapping[str, Any]:
        """The model's own."""
        return self._model.describe()

    async def complete(self, request: ChatRequest) -> ChatReply:
        """The model's reply."""
        with self._activity.during("memory_model"):
            reply = await self._model.complete(request)
        self._meter.note(reply)
        return reply
