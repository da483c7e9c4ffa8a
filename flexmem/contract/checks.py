"""The checks. Each takes a method and a case and raises AssertionError; all but the one about bad replies run with a
model that fills every form and keeps every stated length.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol

import pytest

from flexmem import tokens
from flexmem.contract.cases import Case, WordEmbedder, services
from flexmem.history import Piece, Unit
from flexmem.llm.errors import Transient
from flexmem.llm.form_filler import stated_length
from flexmem.llm.scripted import ScriptedModel
from flexmem.memory.protocol import (
    VERBATIM,
    Budget,
    BudgetError,
    MemoryBuild,
    MethodInfo,
    Rendering,
    Resolution,
    StateError,
    WriteOrderError,
)
from flexmem.ports import ChatRequest, Embedder, HistoryIndex, IndexConfig, IndexFactory, Services, VectorArray
from flexmem.retrieval.index import LocalIndex, SharedIndex


class BuildsMemory(Protocol):
    """What the checks need of a `flexmem.memory.protocol.Method`."""

    @property
    def info(self) -> MethodInfo: ...

    def build(self, services: Services) -> MemoryBuild: ...


Check = Callable[[BuildsMemory, Case], Awaitable[None]]


def new_build(
    method: BuildsMemory,
    case: Case,
    model: ScriptedModel | None = None,
    open_index: IndexFactory | None = None,
    embedder: Embedder | None = None,
) -> MemoryBuild:
    """An empty build; one that is written for a budget is written for the case's first."""
    room = case.budgets[0].room if method.info.build_per_budget else None
    made = services(model or ScriptedModel("stated_length"), open_index, room=room)
    return method.build(replace(made, embedder=embedder) if embedder else made)


async def write(build: MemoryBuild, units: Sequence[Unit]) -> None:
    """Write units in order."""
    for unit in units:
        await build.write(unit)


async def read(method: BuildsMemory, build: MemoryBuild, case: Case) -> list[Rendering]:
    """Every question at every budget that the build is for, each through a view of its own."""
    return [
        await build.view().render(query, budget)
        for budget in budgets_of(method, case)
        for query in await case.queries()
    ]


def budgets_of(method: BuildsMemory, case: Case) -> tuple[Budget, ...]:
    """The budgets that one build serves."""
    return case.budgets[:1] if method.info.build_per_budget else case.budgets


async def check_renderings_keep_the_budget_and_tell_their_provenance(method: BuildsMemory, case: Case) -> None:
    """Invariants 1 and 4: a rendering fits, its count and its blocks are exact, and verbatim blocks are verbatim.

    An empty memory is read as well. A negative room is refused.
    """
    build = new_build(method, case)
    budgets = [budget for budget in budgets_of(method, case) for _ in case.questions]
    for rendering, budget in zip(await read(method, build, case), budgets, strict=True):
        check_rendering(rendering, budget, [], build.pieces)
    await write(build, case.units)
    for rendering, budget in zip(await read(method, build, case), budgets, strict=True):
        check_rendering(rendering, budget, case.units, build.pieces)
    with pytest.raises(BudgetError):
        await build.view().render((await case.queries())[0], Budget(10, 11))


def check_rendering(rendering: Rendering, budget: Budget, units: Sequence[Unit], pieces: Sequence[Piece]) -> None:
    """One rendering against its budget, the written units and the build's pieces."""
    assert rendering.tokens <= budget.room
    assert rendering.tokens == tokens.count(rendering.text)
    assert len(set(rendering.ranking)) == len(rendering.ranking)
    assert set(rendering.degraded) <= set(range(len(units)))
    assert rendering.hidden >= 0
    position = 0
    for block in rendering.blocks:
        assert block.start == position < block.end
        position = block.end
        text = rendering.text[block.start : block.end]
        assert block.tokens == tokens.count(text)
        assert all(0 <= uid < len(units) for uid in block.uids)
        assert block.uids or block.resolution is Resolution.FRAME
        if block.resolution not in VERBATIM:
            assert not block.pieces
            continue
        assert list(block.pieces) == sorted(set(block.pieces))
        (unit,) = (units[uid] for uid in block.uids)
        at = 0
        for piece in (pieces[index] for index in block.pieces):
            assert piece.uid == unit.uid
            assert piece.text == unit.text[piece.start : piece.end]
            found = text.find(piece.text, at)
            assert found >= 0, f"piece {piece.index} is not in its block"
            at = found + len(piece.text)
        if block.resolution is Resolution.RAW:
            assert text in unit.text
    assert position == len(rendering.text)


async def check_equal_input_gives_equal_bytes(method: BuildsMemory, case: Case) -> None:
    """Invariant 2: another build renders the same, and so does one over a shared index."""
    opened: list[LocalIndex] = []

    def local(config: IndexConfig) -> LocalIndex:
        opened.append(LocalIndex(config, WordEmbedder() if config.dense else None))
        return opened[-1]

    first = new_build(method, case, open_index=local)
    await write(first, case.units)
    renderings = await read(method, first, case)
    frozen = [index.freeze() for index in opened]

    def shared(config: IndexConfig) -> HistoryIndex:
        snapshot = frozen.pop(0)
        assert snapshot.config == config
        return SharedIndex(snapshot)

    for open_index in (local, shared):
        other = new_build(method, case, open_index=open_index)
        await write(other, case.units)
        assert await read(method, other, case) == renderings


async def check_views_are_independent(method: BuildsMemory, case: Case) -> None:
    """What one call shows depends on no other: any order, one view or many, one after the other or at once.

    An agent's timeline lasts for its episode, so there this is about calls of one budget.
    """
    build = new_build(method, case)
    await write(build, case.units)
    budgets = budgets_of(method, case) if case.kind == "reader" else case.budgets[:1]
    calls = [(query, budget) for budget in budgets for query in await case.queries()]
    expected = [await build.view().render(*call) for call in calls]
    other = new_build(method, case)
    await write(other, case.units)
    view = other.view()
    assert [await view.render(*call) for call in reversed(calls)] == expected[::-1]
    at_once = await asyncio.gather(*(other.view().render(*call) for call in calls), view.render(*calls[0]))
    assert list(at_once) == [*expected, expected[0]]


async def check_a_restored_build_goes_on_like_the_saved_one(method: BuildsMemory, case: Case) -> None:
    """A state taken in mid-history, after reading, gives the same next renderings; saving changes nothing."""
    saved = new_build(method, case)
    await write(saved, case.units[: case.cut])
    await read(method, saved, case)
    state = saved.state()
    restored = new_build(method, case)
    await restored.restore(state)
    assert list(restored.pieces) == list(saved.pieces)
    assert await read(method, restored, case) == await read(method, saved, case)
    for build in (saved, restored):
        await write(build, case.units[case.cut :])
    assert await read(method, restored, case) == await read(method, saved, case)
    assert restored.state() == saved.state()
    assert dict(restored.fallbacks) == dict(saved.fallbacks)


async def check_unusable_states_are_refused(method: BuildsMemory, case: Case) -> None:
    """A damaged state, and any state, even an empty one, over written units."""
    build = new_build(method, case)
    await write(build, case.units)
    state = build.state()
    for damaged in (b"", state[:-5], state[:20] + bytes([state[20] ^ 255]) + state[21:], b"{}"):
        with pytest.raises(StateError):
            await new_build(method, case).restore(damaged)
    if case.units:
        for other in (state, new_build(method, case).state()):
            with pytest.raises(WriteOrderError):
                await build.restore(other)


async def check_units_are_written_once_and_in_order(method: BuildsMemory, case: Case) -> None:
    """Invariants 3 and 4: a repeated, a skipped and an earlier unit are refused without a trace; units stay as they
    were.
    """
    digests = [unit.digest for unit in case.units]
    build = new_build(method, case)
    for position, unit in enumerate(case.units):
        for wrong in {position - 1, position + 1} & set(range(len(case.units))):
            with pytest.raises(WriteOrderError):
                await build.write(case.units[wrong])
        await build.write(unit)
    if case.units:
        with pytest.raises(WriteOrderError):
            await build.write(case.units[-1])
    untouched = new_build(method, case)
    await write(untouched, case.units)
    assert await read(method, build, case) == await read(method, untouched, case)
    assert [replace(unit).digest for unit in case.units] == digests  # `replace`: a digest is computed once an object


async def check_a_failed_write_can_be_tried_again(method: BuildsMemory, case: Case) -> None:
    """Where the embedder or the model fails while a unit is written, the same unit can be written again, and the memory
    is as if nothing had happened.
    """
    steady = new_build(method, case)
    await write(steady, case.units)
    expected = await read(method, steady, case), steady.state()
    for embedder, rule in (
        (FailingOnce(case.cut + 1), FailingRule(at=0)),
        (FailingOnce(0), FailingRule(at=case.cut + 1)),
    ):

        def local(config: IndexConfig, embedder: FailingOnce = embedder) -> LocalIndex:
            return LocalIndex(config, embedder if config.dense else None)

        build = new_build(method, case, ScriptedModel(rule), local, embedder)
        for unit in case.units:
            try:
                await build.write(unit)
            except (OSError, Transient):
                await build.write(unit)
        embedder.on = rule.on = False  # reading is another matter
        assert (await read(method, build, case), build.state()) == expected


class FailingOnce(WordEmbedder):
    """Fails at one call, the ``at``-th from 1, while it is ``on``."""

    def __init__(self, at: int) -> None:
        self.on = True
        self._at = at
        self._calls = 0

    async def embed(self, texts: Sequence[str]) -> VectorArray:
        """Shape (len(texts), 32)."""
        self._calls += self.on
        if self.on and self._calls == self._at:
            raise OSError("the embedder failed")
        return await super().embed(texts)


class FailingRule:
    """`stated_length`, but for the ``at``-th call from 1 while it is ``on``."""

    def __init__(self, at: int) -> None:
        self.on = True
        self._at = at
        self._calls = 0

    def __call__(self, request: ChatRequest) -> str:
        self._calls += self.on
        if self.on and self._calls == self._at:
            raise Transient("the endpoint failed")
        return stated_length(request)


async def check_the_model_is_called_as_declared(method: BuildsMemory, case: Case) -> None:
    """Only a method that says so calls the memory model when it writes or reads; and what reading made it write lasts,
    so that the same calls again are free, unless it says that every call asks anew.
    """
    model = ScriptedModel("stated_length")
    build = new_build(method, case, model)
    await write(build, case.units)
    written = model.calls.total()
    assert method.info.writes_with_model or written == 0
    await read(method, build, case)
    read_once = model.calls.total()
    assert method.info.reads_with_model or read_once == written
    await read(method, build, case)
    assert method.info.asks_per_call or model.calls.total() == read_once
    assert set(model.calls) <= {"memory"}


async def check_unusable_replies_have_a_counted_fallback(method: BuildsMemory, case: Case) -> None:
    """A model that answers with garbage, or refuses, at every call: the memory is there all the same, within its room
    and the same every time, and what took the replies' place is counted.
    """
    for rule in ("garbage", "refuse"):
        shown = []
        for _ in range(2):
            model = ScriptedModel(rule)
            build = new_build(method, case, model)
            await write(build, case.units)
            renderings = await read(method, build, case)
            budgets = [budget for budget in budgets_of(method, case) for _ in case.questions]
            for rendering, budget in zip(renderings, budgets, strict=True):
                check_rendering(rendering, budget, case.units, build.pieces)
            # Garbage is a text like any other where the method asks for plain text.
            if rule == "refuse" and model.calls.total():
                assert sum(build.fallbacks.values()) > 0
            shown.append((renderings, dict(build.fallbacks)))
        assert shown[0] == shown[1]


CHECKS: tuple[Check, ...] = (
    check_renderings_keep_the_budget_and_tell_their_provenance,
    check_equal_input_gives_equal_bytes,
    check_views_are_independent,
    check_a_restored_build_goes_on_like_the_saved_one,
    check_unusable_states_are_refused,
    check_units_are_written_once_and_in_order,
    check_a_failed_write_can_be_tried_again,
    check_the_model_is_called_as_declared,
    check_unusable_replies_have_a_counted_fallback,
)
"""What our own methods and plug-ins promise."""

REDUCED: tuple[Check, ...] = (
    check_renderings_keep_the_budget_and_tell_their_provenance,
    check_units_are_written_once_and_in_order,
    check_a_failed_write_can_be_tried_again,
)
"""Budget, order and failure: what an adapter over another package can promise."""


def run(check: Check, method: BuildsMemory, case: Case) -> None:
    """One check, in an event loop of its own."""
    coroutine: Any = check(method, case)
    asyncio.run(coroutine)
