"""A cap in USD is never passed, lets calls in flight finish, and does not stop before it must."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flexmem.llm.errors import Transient
from flexmem.llm.reply_store import ReplayMissing, ReplayStore, ReplyStoreError, SqliteReplyStore
from flexmem.llm.reply_tables import ledger
from flexmem.llm.spending import CostCapReached, Spending
from flexmem.llm.stored import StoredModel
from flexmem.ports import Attempt, Call, ChatReply, ChatRequest, Message, Usage

PRICE = 0.5


def attempt(number: int = 1, usd: float | None = PRICE, outcome: str = "reply") -> Attempt:
    return Attempt(number, 1_000.0, 0.1, outcome, 200 if outcome == "reply" else 500, Usage(10, 5, 2, 1, 3), usd)


class Priced:
    """A model whose every reply costs half a dollar, and which waits until it is told to go on."""

    name = "priced"

    def __init__(self) -> None:
        self.sent = 0
        self.go = asyncio.Event()

    def describe(self) -> dict[str, object]:
        return {"model": self.name}

    async def complete(self, request: ChatRequest) -> ChatReply:
        self.sent += 1
        await self.go.wait()
        return ChatReply("yes", self.name, Usage(10, 5), "stop", trail=(attempt(),))


def request(text: str) -> ChatRequest:
    return ChatRequest((Message("user", text),), "reader", 50)


def stored(model: Priced, store: SqliteReplyStore | ReplayStore, most: float | None = PRICE) -> StoredModel:
    return StoredModel(model, store, 0, "w", subject="episode:e1", most_usd=lambda _: most)


def test_calls_in_flight_finish_and_the_next_is_refused(tmp_path: Path) -> None:
    async def run() -> None:
        store = SqliteReplyStore(tmp_path / "r.sqlite", "s", cap_usd=1.0)
        model = Priced()
        calls = [asyncio.ensure_future(stored(model, store).complete(request(str(i)))) for i in range(4)]
        await asyncio.sleep(0.2)
        assert model.sent == 2  # two may cost all there is; the others wait, since the two may cost less
        model.go.set()
        done = await asyncio.gather(*calls, return_exceptions=True)
        assert sum(isinstance(outcome, ChatReply) for outcome in done) == 2
        refused = [outcome for outcome in done if isinstance(outcome, CostCapReached)]
        assert len(refused) == 2
        assert "cap of 1.00 USD is reached: 1.00 USD are spent" in str(refused[0])
        assert "raise engine.max_usd" in str(refused[0])
        assert (store.spent_usd, model.sent) == (1.0, 2)
        store.close()
        raised = SqliteReplyStore(tmp_path / "r.sqlite", "t", cap_usd=2.0)
        assert raised.spent_usd == 1.0
        for text in "0123":
            await stored(model, raised).complete(request(text))
        assert (raised.spent_usd, model.sent) == (2.0, 4)  # the first two were kept
        raised.close()

    asyncio.run(run())


def test_what_nobody_knows_counts_with_the_most_it_can_have_cost(tmp_path: Path) -> None:
    path = tmp_path / "r.sqlite"

    async def run() -> None:
        store = SqliteReplyStore(path, "s", cap_usd=10)
        for name in ("lost", "open"):
            assert await store.begin(Call(name, name, name, "m", "reader", most_usd=3.0)) is None
        await store.release("lost")
        assert store.spent_usd == 3.0
        store.close()
        same = SqliteReplyStore(path, "s", cap_usd=10)  # restarted: `open` may still be in flight
        assert same.spent_usd == 3.0
        with pytest.raises(CostCapReached):
            await same.begin(Call("big", "big", "w", "m", "reader", most_usd=8.0))
        same.close()
        later = SqliteReplyStore(path, "another", cap_usd=10)
        assert later.spent_usd == 6.0
        later.close()

    asyncio.run(run())


@given(st.lists(st.tuples(st.floats(0, 3), st.floats(0, 1)), max_size=20), st.floats(0.5, 5))
def test_a_cap_is_never_passed(calls: list[tuple[float, float]], cap: float) -> None:
    async def run() -> float:
        spending = Spending(cap, 0.0)

        async def call(number: int, most: float, share: float) -> None:
            await spending.reserve(str(number), most)
            await asyncio.sleep(0)
            spending.settle(str(number), most * share)

        jobs = (call(number, most, share) for number, (most, share) in enumerate(calls))
        for outcome in await asyncio.gather(*jobs, return_exceptions=True):
            assert outcome is None or isinstance(outcome, CostCapReached)
        return spending.spent_usd

    assert asyncio.run(run()) <= cap + 1e-9


def test_a_caller_that_is_cancelled_keeps_the_reply_that_was_paid(tmp_path: Path) -> None:
    async def run() -> None:
        store = SqliteReplyStore(tmp_path / "r.sqlite", "s")
        model = Priced()
        call = asyncio.ensure_future(stored(model, store).complete(request("x")))
        await asyncio.sleep(0.1)
        call.cancel()
        await asyncio.sleep(0.1)
        assert not call.done()
        model.go.set()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert (await stored(model, store).complete(request("x"))).text == "yes"
        assert model.sent == 1
        store.close()

    asyncio.run(run())


def test_a_caller_that_is_cancelled_while_it_waits_takes_no_money_with_it(tmp_path: Path) -> None:
    async def run() -> None:
        store = SqliteReplyStore(tmp_path / "r.sqlite", "s", cap_usd=1.0)
        model = Priced()
        calls = [asyncio.ensure_future(stored(model, store).complete(request(str(i)))) for i in range(3)]
        await asyncio.sleep(0.2)
        assert model.sent == 2
        waiting = calls.pop()
        waiting.cancel()
        model.go.set()
        await asyncio.gather(*calls, return_exceptions=True)
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert store.spent_usd == 1.0
        store.close()
        more = SqliteReplyStore(tmp_path / "r.sqlite", "s", cap_usd=1.5)
        await asyncio.wait_for(stored(model, more).complete(request("2")), 30)  # nobody holds its claim
        more.close()

    asyncio.run(run())


def test_the_ledger_holds_every_attempt(tmp_path: Path) -> None:
    path = tmp_path / "r.sqlite"

    async def run() -> None:
        store = SqliteReplyStore(path, "s")
        first = Call("k1", "c1", "w", "m", "reader", 2, "episode:e", 0.7)
        await store.begin(first)
        trail = (attempt(1, None, "Transient"), attempt(2))
        await store.finish(
            first, ChatReply("yes", "m", Usage(10, 5), "stop", attempts=2, dropped=("effort",), trail=trail)
        )
        failed = Call("k2", "c2", "w", "m", "memory", subject="build:b")
        await store.begin(failed)
        error = Transient("down", trail=(attempt(1, None, "Transient"),))
        await store.give_up(failed, "Transient", error.trail)
        await store.begin(Call("k3", "c3", "w", "m", "judge"))
        store.close()

    asyncio.run(run())
    found = list(ledger(path))
    assert [(row.call.call, row.attempt.number if row.attempt else None, row.ended) for row in found] == [
        ("c1", 1, "reply"),
        ("c1", 2, "reply"),
        ("c2", 1, "Transient"),
        ("c3", None, None),
    ]
    assert found[1].attempt == attempt(2)
    assert found[1].call == Call("k1", "c1", "w", "m", "reader", 2, "episode:e", 0.7)
    assert found[1].dropped == ("effort",)


def test_a_store_of_version_1_is_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "r.sqlite"
    with closing(sqlite3.connect(path)) as db:
        db.executescript(
            """
            CREATE TABLE intents (
                call TEXT PRIMARY KEY, key TEXT NOT NULL, owner TEXT NOT NULL, session TEXT NOT NULL,
                model TEXT NOT NULL, role TEXT NOT NULL, begun_at REAL NOT NULL, ended TEXT
            );
            CREATE TABLE replies (
                key TEXT PRIMARY KEY, call TEXT NOT NULL, reply TEXT NOT NULL, finished_at REAL NOT NULL
            );
            INSERT INTO intents VALUES ('c', 'k', 'w', 's', 'm', 'reader', 1.0, 'reply');
            INSERT INTO replies VALUES (
                'k', 'c', '{"text": "yes", "model": "m", "usage": {"input": 3}, "finish": "stop", "dropped": []}', 2.0
            );
            """
        )
        db.commit()

    async def run() -> None:
        store = SqliteReplyStore(path, "t")
        reply = await store.begin(Call("k", "c2", "w", "m", "reader"))
        assert reply is not None
        assert (reply.text, reply.usage.input, reply.trail) == ("yes", 3, ())
        store.close()

    asyncio.run(run())
    (row,) = ledger(path)
    assert (row.call.subject, row.attempt) == ("", None)
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 99")
    with pytest.raises(Exception, match="version 99"):
        SqliteReplyStore(path, "t")


def test_a_replay_answers_what_is_kept_and_sends_nothing(tmp_path: Path) -> None:
    path = tmp_path / "r.sqlite"

    async def run() -> None:
        store = SqliteReplyStore(path, "s")
        model = Priced()
        model.go.set()
        await stored(model, store).complete(request("asked"))
        store.close()
        before = path.read_bytes()
        replay = ReplayStore(path)
        assert (await stored(model, replay).complete(request("asked"))).text == "yes"
        with pytest.raises(ReplayMissing, match="has no reply to this reader call of priced"):
            await stored(model, replay).complete(request("never asked"))
        replay.close()
        assert (model.sent, path.read_bytes()) == (1, before)

    asyncio.run(run())


def test_a_replay_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ReplyStoreError, match="holds no replies to replay"):
        ReplayStore(tmp_path / "none.sqlite")


def test_what_may_have_been_charged_counts_with_the_most_that_it_can_cost(tmp_path: Path) -> None:
    path = tmp_path / "r.sqlite"
    broke_off = Attempt(1, 1_000.0, 0.1, "Transient", None, Usage(), None)
    unreadable = Attempt(2, 1_001.0, 0.1, "Malformed", 200, Usage(), None)
    refused = Attempt(3, 1_002.0, 0.1, "Transient", 503, Usage(), None)

    async def run() -> None:
        store = SqliteReplyStore(path, "s", cap_usd=10.0)
        call = Call("k1", "c1", "w", "m", "reader", most_usd=0.7)
        await store.begin(call)
        trail = (broke_off, unreadable, refused, attempt(4))
        await store.finish(call, ChatReply("yes", "m", Usage(10, 5), "stop", attempts=4, trail=trail))
        assert store.spent_usd == pytest.approx(0.7 + 0.7 + PRICE)
        unpriced = Call("k2", "c2", "w", "m", "reader")
        await store.begin(unpriced)
        await store.give_up(unpriced, "Transient", (broke_off,))
        assert store.spent_usd == pytest.approx(0.7 + 0.7 + PRICE)
        store.close()

    asyncio.run(run())
    again = SqliteReplyStore(path, "t")
    assert again.spent_usd == pytest.approx(0.7 + 0.7 + PRICE)
    again.close()
