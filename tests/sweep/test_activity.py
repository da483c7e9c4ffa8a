"""What a worker's work waits for, counted as it goes."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexmem.ports import ChatReply, ChatRequest
from flexmem.sweep.activity import STAGES, Activity
from flexmem.sweep.plan import make_plan
from flexmem.sweep.worker import EpisodeWorker

from .harness import InProcess, sweep


def waiting(activity: Activity) -> dict[tuple[str, str], int]:
    return dict(activity.report().waiting)


def test_work_is_where_its_innermost_block_is() -> None:
    activity = Activity()
    with activity.during("writing", "arm"):
        assert waiting(activity) == {("writing", "arm"): 1}
        with activity.during("memory_model"):
            assert waiting(activity) == {("memory_model", ""): 1}
        assert waiting(activity) == {("writing", "arm"): 1}
    assert waiting(activity) == {}
    assert activity.report().steps == 2


def test_calls_side_by_side_are_counted_each_and_their_work_once() -> None:
    activity = Activity()
    seen = []

    async def call(go_on: asyncio.Event) -> None:
        with activity.during("memory_model"):
            await go_on.wait()

    async def play() -> None:
        first, second = asyncio.Event(), asyncio.Event()
        with activity.during("writing", "arm"):
            calls = [asyncio.create_task(call(event)) for event in (first, second)]
            await asyncio.sleep(0)
            seen.append(waiting(activity))
            first.set()
            await calls[0]
            seen.append(waiting(activity))
            second.set()
            await calls[1]
            seen.append(waiting(activity))

    asyncio.run(play())
    assert seen == [{("memory_model", ""): 2}, {("memory_model", ""): 1}, {("writing", "arm"): 1}]
    assert waiting(activity) == {}


def test_what_outlives_the_work_that_began_it_is_counted_to_its_end() -> None:
    activity = Activity()

    async def call(go_on: asyncio.Event) -> None:
        with activity.during("history", "h"):
            await go_on.wait()

    async def play() -> None:
        go_on = asyncio.Event()
        with activity.during("writing", "arm"):
            left = asyncio.create_task(call(go_on))
            await asyncio.sleep(0)
        assert waiting(activity) == {("history", "h"): 1}
        go_on.set()
        await left

    asyncio.run(play())
    assert waiting(activity) == {}
    assert activity.report().steps == 2


Block = tuple[str, int, list[Any]]
blocks: st.SearchStrategy[list[Block]] = st.recursive(
    st.just([]),
    lambda inner: st.lists(st.tuples(st.sampled_from(STAGES), st.integers(0, 3), inner), max_size=3),
    max_leaves=12,
)


@settings(deadline=None)
@given(blocks, blocks)
def test_counts_are_those_of_blocks_that_nobody_is_deeper_in(one: list[Block], other: list[Block]) -> None:
    """Two lanes, each with blocks in blocks; a lane is at one place at a time, the deepest that it has entered."""
    activity = Activity()
    places: dict[int, list[str]] = {0: [], 1: []}
    entered = 0

    async def walk(lane: int, left: list[Block]) -> None:
        nonlocal entered
        for stage, turns, inner in left:
            with activity.during(stage):  # type: ignore[arg-type]
                entered += 1
                places[lane].append(stage)
                for _ in range(turns):
                    check()
                    await asyncio.sleep(0)
                await walk(lane, inner)
                check()
                places[lane].pop()

    def check() -> None:
        assert waiting(activity) == Counter((stack[-1], "") for stack in places.values() if stack)

    async def play() -> None:
        await asyncio.gather(walk(0, one), walk(1, other))

    asyncio.run(play())
    assert waiting(activity) == {}
    assert activity.report().steps == entered


def test_a_report_names_its_process_and_the_memory_that_it_takes() -> None:
    before = Activity().report()
    taken = b"x" * (64 << 20)
    after = Activity().report()
    assert before.pid == os.getpid()
    assert before.memory is not None
    assert after.memory is not None
    # What else this process does meanwhile is small beside it.
    assert after.memory - before.memory == pytest.approx(len(taken), rel=0.25)


# ---------------------------------------------------------------- in a worker


class Watching:
    """A chat model that looks at the worker's activity while it is asked."""

    name = "watching"

    def __init__(self) -> None:
        self.seen: Counter[tuple[str, frozenset[tuple[str, str]]]] = Counter()
        self.look: Callable[[], Mapping[tuple[str, str], int]] = dict

    def describe(self) -> Mapping[str, Any]:
        return {"provider": "scripted", "model": self.name}

    async def complete(self, request: ChatRequest) -> ChatReply:
        from flexmem.llm.scripted import ScriptedModel

        self.seen[request.role, frozenset(self.look())] += 1
        return await ScriptedModel("json_record").complete(request)


def watched(out: Path, monkeypatch: pytest.MonkeyPatch, **changes: Any) -> tuple[InProcess, Watching]:
    model = Watching()
    monkeypatch.setattr("flexmem.sweep.worker.make_model", lambda config: model)
    run = InProcess(make_plan(sweep(**changes)), out)
    model.look = lambda: run.worker.activity.report().waiting
    return run, model


SCRIPTED = {"provider": "scripted", "model": "json_record"}
BY_MODEL = {"method": "flexa_unit", "label": "by_model", "options": {"writer": "model"}}


def test_models_are_waited_for_in_their_own_stages_and_each_reply_is_a_step(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = {"reader": {"model": SCRIPTED}, "memory": SCRIPTED}
    run, model = watched(out, monkeypatch, arms=[BY_MODEL], models=models, engine={"in_flight": 1})
    assert run.run() == {"ok": 6}
    assert set(model.seen) == {
        ("memory", frozenset({("memory_model", "")})),
        ("reader", frozenset({("reader", "")})),
    }
    units = len(next(iter(run.plan.benchmarks[0].instances.values())).units)
    calls = model.seen.total()
    assert calls >= units + 6
    report = run.worker.activity.report()
    assert report.waiting == {}
    assert report.steps >= calls + units + 6  # written units and renderings count as well


def test_what_a_history_waits_for_is_named(out: Path) -> None:
    run = InProcess(make_plan(sweep()), out)
    seen: list[Mapping[tuple[str, str], int]] = []
    embed = run.embedder.embed

    async def embed_and_look(texts: Any) -> Any:
        seen.append(run.worker.activity.report().waiting)
        return await embed(texts)

    run.embedder.embed = embed_and_look  # type: ignore[method-assign]
    run.run()
    (instance,) = run.plan.benchmarks[0].instances
    assert seen
    assert all(one == {("history", f"synthetic/{instance}"): 1} for one in seen)


def test_rows_that_are_made_durable_are_waited_for(out: Path) -> None:
    run = InProcess(make_plan(sweep()), out)
    seen = []
    deliver: Callable[..., Awaitable[int]] = run._deliver

    async def look(part: str, tables: Any) -> int:
        seen.append(dict(worker.activity.report().waiting))
        return await deliver(part, tables)

    worker = EpisodeWorker(
        run.plan.config,
        out,
        embedder=run.embedder,
        fetch_instance=run._instance,
        fetch_snapshot=run._snapshot,
        deliver=look,
    )
    asyncio.run(worker.run(next(run.plan.groups())))
    assert seen == [{("results", ""): 1}] * len(seen)
    assert seen
