"""Calls on an account's budget: what each attempt asks for, what it gives back, and what waiting means."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from aiohttp import web

from flexmem.llm.errors import ContextOverflow, ModelError, RateLimited, Transient
from flexmem.llm.local_budget import LocalRateBudget
from flexmem.llm.rate_budget import RateLimits
from flexmem.ports import ChatRequest, Lease, Message

from .endpoint import Call, answer, completion, error, hang, ok, reset, status
from .session import APIS, HELLO, Open


class Book:
    """A budget that takes notes. ``waits``: seconds by which each turn moves the clock."""

    def __init__(self, waits: list[float] | None = None, refuse_after: int | None = None) -> None:
        self.asked: list[int] = []
        self.settled: list[tuple[str, int | None]] = []
        self.rejections: list[tuple[str, float | None]] = []
        self.now = 0.0
        self._waits = waits or []
        self._refuse_after = refuse_after

    def clock(self) -> float:
        return self.now

    async def acquire(self, tokens: int) -> Lease:
        if self._refuse_after is not None and len(self.asked) >= self._refuse_after:
            raise RateLimited("paused for a day", attempts=0)
        self.asked.append(tokens)
        if self._waits:
            self.now += self._waits.pop(0)
        return Lease(str(len(self.asked)), tokens)

    async def settle(self, lease: Lease, tokens: int | None) -> None:
        self.settled.append((lease.key, tokens))

    async def rejected(self, lease: Lease, retry_after: float | None) -> None:
        self.rejections.append((lease.key, retry_after))


def on(book: Book | LocalRateBudget, **options: Any) -> dict[str, Any]:
    return {"budget": book, **options}


@pytest.mark.parametrize("api", APIS)
def test_every_attempt_asks_and_gives_back_what_it_used(opened: Open, api: str) -> None:
    book = Book()
    session = opened([status(429, retry_after="7"), reset, ok()], options=on(book), **APIS[api])
    session.call(ChatRequest((Message("user", "x" * 400),), "reader", 50))
    assert book.asked == [150, 150, 150]  # four bytes a token, and the reply
    assert book.rejections == [("1", 7.0)]
    assert book.settled == [("2", None), ("3", 10)]


def test_what_is_answered_without_counts_is_settled_as_unknown(opened: Open) -> None:
    book = Book()
    opened([answer({**completion(), "usage": None})], options=on(book)).call()
    assert book.settled == [("1", None)]


def test_a_failure_that_ends_the_call_is_settled_too(opened: Open) -> None:
    book = Book()
    overflow = status(400, error("maximum context length is 8", "context_length_exceeded"))
    opened([overflow], options=on(book)).fail(ContextOverflow)
    assert book.settled == [("1", None)]


def test_what_is_never_sent_asks_for_nothing(opened: Open) -> None:
    book = Book()
    opened([ok()], options=on(book), context_tokens=20).fail(ContextOverflow)
    assert book.asked == []


def test_a_call_that_is_cancelled_gives_its_lease_back(opened: Open) -> None:
    book, arrived = Book(), threading.Event()

    async def arrive_and_hang(request: web.Request, call: Call) -> web.StreamResponse:
        arrived.set()
        return await hang(request, call)

    session = opened([arrive_and_hang], options=on(book))

    async def cancelled() -> None:
        call = asyncio.create_task(session.model.complete(HELLO))
        await asyncio.to_thread(arrived.wait)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await session.model.aclose()

    asyncio.run(cancelled())
    assert book.settled == [("1", None)]


def test_waiting_for_a_turn_does_not_count_against_the_deadline(opened: Open) -> None:
    book = Book(waits=[10_000.0, 10_000.0, 10_000.0])
    session = opened([status(500), status(500), ok()], options=on(book, clock=book.clock), deadline_s=60)
    reply = session.call()
    assert reply.attempts == 3
    assert session.waits == [0.5, 1.0]
    assert [attempt.latency_s for attempt in reply.trail] == [0.0, 0.0, 0.0]  # nor is it part of an attempt


def test_retries_still_end_with_the_deadline(opened: Open) -> None:
    book = Book(waits=[10_000.0, 10_000.0])
    options = on(book, clock=book.clock, uniform=lambda: 0.0)
    session = opened([status(429, retry_after="61")], options=options, deadline_s=60)
    assert session.fail(RateLimited).attempts == 1


def test_a_budget_that_turns_away_fails_the_call_with_what_was_sent_so_far(opened: Open) -> None:
    raised = opened([status(500)], options=on(Book(refuse_after=0))).fail(RateLimited)
    assert (raised.attempts, raised.trail) == (0, ())
    session = opened([status(500)], options=on(Book(refuse_after=1)))
    raised = session.fail(RateLimited)
    assert raised.attempts == len(session.endpoint.chats) == 1
    assert [attempt.outcome for attempt in raised.trail] == ["Transient"]


def test_one_rejection_holds_back_the_others(opened: Open) -> None:
    """A daily limit: one call meets it, the others are not sent at all."""
    session = opened([status(429, retry_after="86400")], options={})

    async def many() -> list[BaseException | object]:
        budget = LocalRateBudget(RateLimits(60, None), patience_s=60)
        session.model._budget = budget
        try:
            return await asyncio.gather(*(session.model.complete(HELLO) for _ in range(20)), return_exceptions=True)
        finally:
            await session.model.aclose()

    failed = asyncio.run(many())
    assert all(type(one) is RateLimited for one in failed)
    assert len(session.endpoint.chats) == 1
    assert sorted(one.attempts for one in failed if isinstance(one, ModelError)) == [0] * 19 + [1]


def test_without_a_budget_nothing_is_asked(opened: Open) -> None:
    assert opened([status(500), ok()]).call().attempts == 2
    assert opened([reset], attempts=1).fail(Transient).attempts == 1
