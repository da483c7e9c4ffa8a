"""Replies are kept before they are used, intents before calls are sent, and equal calls are one call."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
from contextlib import closing
from pathlib import Path

import pytest

from flexmem.llm.errors import Transient
from flexmem.llm.reply_store import BALLAST_BYTES, ReplyStoreError, SqliteReplyStore
from flexmem.llm.scripted import ScriptedModel
from flexmem.llm.stored import StoredModel, reply_key
from flexmem.ports import Call, ChatReply, ChatRequest, Message, Usage

from ..disks import small_disk


def request(text: str = "hello", **changes: object) -> ChatRequest:
    fields = {"role": "reader", "max_tokens": 50, **changes}
    return ChatRequest((Message("user", text),), **fields)  # type: ignore[arg-type]


def call(key: str = "k", name: str = "c1", owner: str = "w1") -> Call:
    return Call(key, name, owner, "model", "reader")


REPLY = ChatReply("yes", "model", Usage(3, 1, 0, None), "stop", 0.5, 2, ("effort",))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "replies.sqlite"


def rows(path: Path, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as database:
        return list(database.execute(query))


def test_a_reply_comes_back_whole_in_another_process_life(path: Path) -> None:
    async def first() -> None:
        store = SqliteReplyStore(path, "s1")
        assert await store.begin(call()) is None
        assert rows(path, "SELECT key, ended FROM intents") == [("k", None)]  # before anything is sent
        await store.finish(call(), REPLY)
        store.close()

    async def second() -> ChatReply | None:
        store = SqliteReplyStore(path, "s2")
        found = await store.begin(call(name="c2"))
        store.close()
        return found

    asyncio.run(first())
    assert asyncio.run(second()) == REPLY
    assert rows(path, "SELECT ended FROM intents") == [("reply",)]  # a kept reply needs no intent


def test_equal_calls_at_one_time_are_one_call(path: Path) -> None:
    async def run() -> tuple[list[ChatReply], int]:
        store = SqliteReplyStore(path, "s")
        model = ScriptedModel("echo", latency_s=0.02)
        stored = [StoredModel(model, store, 0, f"w{i}") for i in range(8)]
        replies = await asyncio.gather(*(one.complete(request()) for one in stored))
        store.close()
        return replies, model.calls.total()

    replies, calls = asyncio.run(run())
    assert calls == 1
    assert {reply.text for reply in replies} == {"hello"}


def test_repeats_samples_and_models_are_asked_anew(path: Path) -> None:
    async def run() -> int:
        store = SqliteReplyStore(path, "s")
        model = ScriptedModel("echo")
        for repeat in range(3):
            for sample in range(2):
                for _ in range(2):
                    await StoredModel(model, store, repeat, "w").complete(request(sample=sample))
        await StoredModel(ScriptedModel("first_sentence"), store, 0, "w").complete(request())
        store.close()
        return model.calls.total()

    assert asyncio.run(run()) == 6
    assert rows(path, "SELECT count(*) FROM replies") == [(7,)]


@pytest.mark.parametrize(
    "changed",
    [{"max_tokens": 51}, {"temperature": 0.5}, {"effort": "low"}, {"role": "judge"}, {"schema": {"type": "object"}}],
    ids=lambda changed: next(iter(changed)),
)
def test_whatever_shapes_a_reply_is_part_of_its_key(changed: dict[str, object]) -> None:
    model = {"model": "m"}
    assert reply_key(model, request(), 0) == reply_key(model, request(), 0)
    assert reply_key(model, request(**changed), 0) != reply_key(model, request(), 0)


def test_a_failed_call_keeps_nothing_and_lets_the_next_try(path: Path) -> None:
    async def run() -> str:
        store = SqliteReplyStore(path, "s")
        model = StoredModel(ScriptedModel([Transient("down"), "up"]), store, 0, "w")
        with pytest.raises(Transient):
            await model.complete(request())
        reply = await model.complete(request())
        store.close()
        return reply.text

    assert asyncio.run(run()) == "up"
    assert sorted(rows(path, "SELECT ended FROM intents")) == [("Transient",), ("reply",)]


def test_whoever_waits_sends_when_the_sender_is_gone(path: Path) -> None:
    async def run() -> None:
        store = SqliteReplyStore(path, "s")
        assert await store.begin(call(owner="dead")) is None
        waiting = asyncio.create_task(store.begin(call(name="c2", owner="alive")))
        await asyncio.sleep(0.05)
        assert not waiting.done()
        assert await store.release("dead") == 1
        assert await waiting is None  # it may send now
        await store.finish(call(name="c2", owner="alive"), REPLY)
        assert await store.counts() == {"replies": 1, "intents": 2, "open": 0}
        store.close()

    asyncio.run(run())


def test_a_restarted_store_knows_which_calls_of_its_session_are_in_flight(path: Path) -> None:
    async def run() -> None:
        store = SqliteReplyStore(path, "s")
        assert await store.begin(call()) is None
        again = SqliteReplyStore(path, "s")  # the first one was killed; its worker lives on
        assert await again.begin(call()) is None  # the worker's own request, sent again by Ray
        waiting = asyncio.create_task(again.begin(call(name="c2", owner="w2")))
        await asyncio.sleep(0.05)
        assert not waiting.done()
        await again.finish(call(), REPLY)
        assert await waiting == REPLY
        other = SqliteReplyStore(path, "another session")  # of another run: nobody is in flight
        assert await other.begin(call(key="k2", name="c3")) is None
        for one in (store, again, other):
            one.close()

    asyncio.run(run())


def test_the_first_reply_stays(path: Path) -> None:
    async def run() -> ChatReply | None:
        store = SqliteReplyStore(path, "s")
        await store.begin(call())
        await store.finish(call(), REPLY)
        await store.finish(call(name="late"), ChatReply("no", "model", Usage(), "stop"))
        found = await store.begin(call(name="c3"))
        store.close()
        return found

    assert asyncio.run(run()) == REPLY


def test_no_reply_that_was_used_is_lost_to_a_kill(path: Path) -> None:
    program = textwrap.dedent(
        f"""
        import asyncio, pathlib
        from flexmem.llm.reply_store import SqliteReplyStore
        from flexmem.llm.scripted import ScriptedModel
        from flexmem.llm.stored import StoredModel
        from flexmem.ports import ChatRequest, Message

        async def main():
            store = SqliteReplyStore(pathlib.Path({str(path)!r}), "s")
            model = StoredModel(ScriptedModel("echo"), store, 0, "w")
            async def lane(n):
                for i in range(10_000):
                    reply = await model.complete(ChatRequest((Message("user", f"{{n}}/{{i}}"),), "reader", 20))
                    print(reply.text, flush=True)
            await asyncio.gather(*(lane(n) for n in range(8)))
        asyncio.run(main())
        """
    )
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    used = [process.stdout.readline().strip() for _ in range(300)]
    os.kill(process.pid, signal.SIGKILL)
    used += [line.strip() for line in process.stdout.read().split("\n")[:-1]]
    process.wait()
    process.stdout.close()

    async def kept() -> list[str]:
        store = SqliteReplyStore(path, "later")
        model = ScriptedModel("echo")
        replies = [await StoredModel(model, store, 0, "w").complete(request(text, max_tokens=20)) for text in used]
        assert model.calls.total() == 0
        counts = await store.counts()
        assert counts["open"] <= 8  # at most the calls in flight
        store.close()
        return [reply.text for reply in replies]

    assert asyncio.run(kept()) == used


async def fill(store: SqliteReplyStore, model: ScriptedModel) -> int:
    """Calls with large replies until the store refuses; returns how many replies were used."""
    stored = StoredModel(model, store, 0, "w")
    used = 0
    try:
        while True:
            await stored.complete(request(f"{used}", max_tokens=10_000))
            used += 1
    except ReplyStoreError:
        return used


def test_a_full_disk_loses_no_reply_that_was_used(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 12 * 1024) as disk:

        async def run() -> tuple[int, int]:
            store = SqliteReplyStore(disk / "replies.sqlite", "s")
            model = ScriptedModel(lambda asked: "x" * 20_000)
            used = await fill(store, model)
            store.close()
            return used, model.calls.total()

        used, calls = asyncio.run(run())
        assert used * 20_000 > BALLAST_BYTES / 2  # the ballast made room for what was in flight
        assert calls - used <= 1
        assert rows(disk / "replies.sqlite", "SELECT count(*) FROM replies") == [(used,)]


def test_a_folder_without_room_is_refused_at_once(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 1024) as disk, pytest.raises(ReplyStoreError, match="8 MB"):
        SqliteReplyStore(disk / "replies.sqlite", "s")
