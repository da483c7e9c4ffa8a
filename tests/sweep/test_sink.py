"""A writer that is slow bounds what its lanes may hold, and loses nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexmem.llm.scripted import ScriptedModel
from flexmem.sweep.activity import Activity
from flexmem.sweep.plan import make_plan
from flexmem.sweep.sink import RowSink

from .harness import InProcess, sweep


class Writer:
    """Takes a batch and returns when it is told to. ``most`` is the largest number of episodes that ever waited or were
    on their way.
    """

    def __init__(self) -> None:
        self.go_on = asyncio.Event()
        self.begun: list[str] = []
        self.written: list[str] = []
        self.added = self.most = 0
        self.error: Exception | None = None

    def add(self, sink: RowSink, key: str) -> None:
        sink.add("episodes", {"episode": key})
        self.added += 1
        self.most = max(self.most, self.added - len(self.written))

    async def deliver(self, part: str, tables: Mapping[str, pa.Table]) -> int:
        keys = tables["episodes"]["episode"].to_pylist()
        self.begun += keys
        await self.go_on.wait()
        if self.error is not None:
            raise self.error
        self.written += keys
        return len(keys)


async def lane(writer: Writer, sink: RowSink, name: int, episodes: int) -> None:
    for number in range(episodes):
        writer.add(sink, f"{name}-{number}")
        await sink.deliver_if_due()
        await asyncio.sleep(0)


async def settle() -> None:
    for _ in range(200):
        await asyncio.sleep(0)


@pytest.mark.parametrize(("lanes", "rows"), [(1, 3), (8, 3), (32, 10), (5, 1)])
def test_behind_a_writer_that_does_not_return_lanes_hold_two_batches_and_no_more(lanes: int, rows: int) -> None:
    async def play() -> None:
        writer, activity = Writer(), Activity()
        sink = RowSink(writer.deliver, "s", rows=rows, seconds=1e9, activity=activity)
        running = [asyncio.create_task(lane(writer, sink, name, 20)) for name in range(lanes)]
        await settle()
        # One batch is on its way; the next is full, and every lane but the first stands before it.
        assert len(writer.begun) == rows
        assert writer.added == writer.most <= 2 * rows + lanes - 1
        assert activity.report().waiting == {("results", ""): lanes}
        writer.go_on.set()
        await asyncio.gather(*running)
        await sink.deliver()
        assert len(writer.written) == len(set(writer.written)) == 20 * lanes
        assert writer.most <= 2 * (rows + lanes - 1)
        assert activity.report().waiting == {}

    asyncio.run(play())


@settings(deadline=None)
@given(st.integers(1, 6), st.integers(1, 4), st.lists(st.booleans(), max_size=60))
def test_nothing_is_lost_however_the_writer_comes_and_goes(lanes: int, rows: int, open_now: list[bool]) -> None:
    async def play() -> None:
        writer = Writer()
        sink = RowSink(writer.deliver, "s", rows=rows, seconds=1e9)
        running = [asyncio.create_task(lane(writer, sink, name, 7)) for name in range(lanes)]
        for now in open_now:
            writer.go_on.set() if now else writer.go_on.clear()
            await asyncio.sleep(0)
        writer.go_on.set()
        await asyncio.gather(*running)
        await sink.deliver()
        assert sorted(writer.written) == sorted(f"{name}-{number}" for name in range(lanes) for number in range(7))
        assert writer.most <= 2 * (rows + lanes - 1)

    asyncio.run(play())


def test_an_old_batch_waits_for_the_one_before_without_holding_its_lane() -> None:
    async def play() -> None:
        writer = Writer()
        sink = RowSink(writer.deliver, "s", rows=2, seconds=0.0)
        first = asyncio.create_task(lane(writer, sink, 0, 1))
        await settle()
        await lane(writer, sink, 1, 1)  # returns: its batch is old, not full
        assert writer.begun == ["0-0"]
        writer.go_on.set()
        await first
        await sink.deliver()
        assert writer.written == ["0-0", "1-0"]

    asyncio.run(play())


def test_an_error_of_the_writer_reaches_whoever_delivers() -> None:
    async def play() -> None:
        writer = Writer()
        sink = RowSink(writer.deliver, "s", rows=2, seconds=1e9)
        running = [asyncio.create_task(lane(writer, sink, name, 4)) for name in range(3)]
        await settle()
        writer.error = OSError("no space left")
        writer.go_on.set()
        found = await asyncio.gather(*running, return_exceptions=True)
        assert any(isinstance(one, OSError) for one in found)
        with pytest.raises(OSError, match="no space left"):
            await sink.deliver()

    asyncio.run(play())


def test_a_lane_that_is_cancelled_takes_no_rows_with_it() -> None:
    async def play() -> None:
        writer = Writer()
        sink = RowSink(writer.deliver, "s", rows=1, seconds=1e9)
        cancelled = asyncio.create_task(lane(writer, sink, 0, 1))
        await settle()
        cancelled.cancel()
        with suppress(asyncio.CancelledError):
            await cancelled
        last = asyncio.create_task(sink.deliver())
        await settle()
        assert not last.done()  # what the lane had sent is still on its way
        writer.go_on.set()
        await last
        assert writer.written == ["0-0"]

    asyncio.run(play())


@pytest.mark.parametrize("in_flight", [1, 4])
def test_a_group_whose_rows_cant_be_written_raises_what_the_writer_did(
    in_flight: int, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flexmem.sweep.worker.make_model", lambda config: ScriptedModel("echo"))
    reader = {"reader": {"model": {"provider": "scripted", "model": "echo"}}}
    run = InProcess(make_plan(sweep(models=reader, engine={"in_flight": in_flight, "rows_per_part": 1})), out)

    async def full(part: str, tables: Mapping[str, pa.Table]) -> int:
        raise OSError("no space left")

    monkeypatch.setattr(run.worker, "_deliver", full)
    with pytest.raises(OSError, match="no space left"):
        run.run()
