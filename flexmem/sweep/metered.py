"""A chat model that counts what it is used for, and while it is."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from flexmem.ports import Attempt, ChatModel, ChatReply, ChatRequest
from flexmem.sweep.activity import Activity


@dataclass
class Meter:
    """Calls, tokens and USD so far; a sum turns None for good when an endpoint or a price list does not say a part."""

    calls: int = 0
    input: int | None = 0
    output: int | None = 0
    cached: int | None = 0
    reasoning: int | None = 0
    usd: float | None = 0.0

    def note(self, reply: ChatReply) -> None:
        """Count a reply."""
        self.calls += 1
        self.input = add(self.input, reply.usage.input)
        self.output = add(self.output, reply.usage.output)
        self.cached = add(self.cached, reply.usage.cached)
        self.reasoning = add(self.reasoning, reply.usage.reasoning)
        self.usd = add(self.usd, cost(reply.trail))

    def copy(self) -> Meter:
        """Its state now."""
        return replace(self)

    def since(self, earlier: Meter) -> Meter:
        """What was counted after ``earlier``, an older state of this meter."""
        return Meter(
            self.calls - earlier.calls,
            _difference(self.input, earlier.input),
            _difference(self.output, earlier.output),
            _difference(self.cached, earlier.cached),
            _difference(self.reasoning, earlier.reasoning),
            _difference(self.usd, earlier.usd),
        )


Number = TypeVar("Number", int, float)


def add(total: Number | None, more: Number | None) -> Number | None:
    """A sum that is unknown as soon as a part of it is."""
    return None if total is None or more is None else total + more


def cost(trail: Sequence[Attempt]) -> float | None:
    """USD of a reply, or of several, with what was sent in vain before; None where a reply's own price is unknown. An
    attempt that failed costs what the endpoint said, which is mostly nothing.
    """
    if not trail or any(attempt.usd is None and attempt.outcome == "reply" for attempt in trail):
        return None
    return sum(attempt.usd or 0.0 for attempt in trail)


_reading: ContextVar[Meter | None] = ContextVar("reading", default=None)


@contextmanager
def metered_reading() -> Iterator[Meter]:
    """Counts, beside its build's meter, what the memory model is asked for in this context and in tasks begun in it."""
    meter = Meter()
    token = _reading.set(meter)
    try:
        yield meter
    finally:
        _reading.reset(token)


def _difference(now: Number | None, earlier: Number | None) -> Number | None:
    return None if now is None or earlier is None else now - earlier


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
        reading = _reading.get()
        if reading is not None:
            reading.note(reply)
        return reply


class TimedModel:
    """A reader's model: passes calls on and sums the seconds that they take."""

    def __init__(self, model: ChatModel, activity: Activity) -> None:
        self._model = model
        self._activity = activity
        self.name = model.name
        self.seconds = 0.0

    def describe(self) -> Mapping[str, Any]:
        """The model's own."""
        return self._model.describe()

    async def complete(self, request: ChatRequest) -> ChatReply:
        """The model's reply."""
        start = time.perf_counter()
        try:
            with self._activity.during("reader"):
                return await self._model.complete(request)
        finally:
            self.seconds += time.perf_counter() - start
