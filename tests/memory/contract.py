"""What every memory method promises (docs/methods.md 0.3), as checks to run over any method and any history.

A check takes a configured method and a `Case` and raises AssertionError. `cases` draws cases with Hypothesis: readers'
sessions or agents' steps, with huge units, empty turns, lines without an end, text that is hard to count, and rooms
from 64 tokens up.

    @settings(max_examples=25, deadline=None)
    @given(cases("reader"))
    def test_my_method_keeps_the_contract(case: Case) -> None:
        for check in CHECKS:
            asyncio.run(check(find_method("my_method").configured(), case))
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import pytest
from hypothesis import strategies as st

from flexmem import tokens
from flexmem.history import Piece, Session, Step, Turn, Unit, pack_steps, split_sessions
from flexmem.llm.errors import Transient
from flexmem.llm.scripted import ScriptedModel, json_record
from flexmem.memory.protocol import (
    VERBATIM,
    Budget,
    BudgetError,
    MemoryBuild,
    MethodInfo,
    Query,
    Rendering,
    Resolution,
    StateError,
    TaskKind,
    WriteOrderError,
)
from flexmem.ports import ChatRequest, HistoryIndex, IndexConfig, IndexFactory, Services, VectorArray
from flexmem.retrieval.index import LocalIndex, SharedIndex

LEAST_ROOM = 64


class BuildsMemory(Protocol):
    """What the checks need of a `flexmem.memory.protocol.Method`."""

    @property
    def info(self) -> MethodInfo: ...

    def build(self, services: Services) -> MemoryBuild: ...


class WordEmbedder:
    """A small real embedder: a text's vector counts its words, each on the axis that its hash names."""

    name = "words"
    dimension = 32

    async def embed(self, texts: Sequence[str]) -> VectorArray:
        """Shape (len(texts), 32), float32, unit length; a text without a word has the vector of the empty one."""
        rows = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            row[0] = 0.5
            for word in text.lower().split():
                row[1 + _hash(word) % (self.dimension - 1)] += 1
            row /= np.linalg.norm(row)
        return rows


def _hash(word: str) -> int:
    return int.from_bytes(hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=4).digest(), "big")


def services(model: ScriptedModel | None = None, open_index: IndexFactory | None = None, seed: int = 0) -> Services:
    """Services without a network: `WordEmbedder`, private indexes."""
    embedder = WordEmbedder()

    def local(config: IndexConfig) -> LocalIndex:
        return LocalIndex(config, embedder if config.dense else None)

    return Services(embedder, open_index or local, model, seed)


# ---------------------------------------------------------------- cases


@dataclass(frozen=True)
class Case:
    """A history and what is asked of it. An agent's ``questions`` are the texts of newest units, asked about ``task``.

    ``cut`` says after how many units a check saves, restores or reads in mid-history.
    """

    kind: TaskKind
    units: tuple[Unit, ...]
    questions: tuple[str, ...]
    budgets: tuple[Budget, ...]
    task: str | None
    cut: int

    async def queries(self) -> list[Query]:
        """The queries as the harness makes them (docs/methods.md 0.3)."""
        embedder = WordEmbedder()
        made = []
        for question in self.questions:
            own = (await embedder.embed([question]))[0]
            if self.task is None:
                made.append(Query.question(question, own))
                continue
            both = own + (await embedder.embed([self.task]))[0]
            made.append(Query(question, both / np.linalg.norm(both), question, own, self.task))
        return made


_WORDS = ("kettle", "stove", "Ann", "Bo", "lid", "red", "7", "2,000", "May", "walked", "to", "the", "garden", "and")
_ODD = [
    *(
        "",
        "\n",
        "\r\n",
        "\n\n\n",
        " ",
        "\t",
        "/",
        "/etc/hosts",
        "!\n/x",
        "\n/tmp/a.txt\n",
        "[...]",
        "### u03 — x",
        "# T",
    ),
    *("🙂", "日本語。", "é", "\ud800", "\ud83d\ude00", "\0", "<|endoftext|>", "<b>bold</b>", "`x`", "a_b", "...", "?!"),
    *("x = api.login(name='Ann')", "Error: no such file", "# a comment", "{'a': 1}"),
]
_sentences = st.lists(st.sampled_from(_WORDS), min_size=1, max_size=9).map(lambda words: " ".join(words) + ".")
_short = st.lists(_sentences | st.sampled_from(_ODD) | st.text(max_size=3), max_size=4).map(
    lambda parts: "".join(part if part.startswith("/") else " " + part for part in parts)
)
_lines = st.lists(_sentences | st.sampled_from(_ODD), min_size=1, max_size=30).map("\n".join)
_huge = st.tuples(
    st.sampled_from(["kettle ", "Ann sang. ", "x", "the lid\n", "/", "🙂", " ", "\n", "7,"]), st.integers(300, 900)
)
_texts = st.one_of(_short, _short, _short, _lines, _huge.map(lambda drawn: drawn[0] * drawn[1]))


@st.composite
def conversations(draw: st.DrawFn) -> list[Unit]:
    """Units of a few sessions; some named speakers, some roles alone, some sessions empty or without a date."""
    sessions = []
    for number in range(draw(st.integers(0, 3))):
        turns = tuple(
            Turn(
                f"D{number}:{position}",
                draw(st.sampled_from(("user", "assistant", "user", "system"))),
                draw(_texts),
                draw(st.sampled_from((None, "Ann", "Bo Li", "/bot"))),
            )
            for position in range(draw(st.integers(0, 7)))
        )
        date = draw(st.sampled_from((None, "8 May 2023", "2023/05/20 (Sat) 02:21")))
        sessions.append(Session(str(number + 1), turns, date))
    return split_sessions(sessions, history="h", limit=draw(st.sampled_from((20, 50, 120))))


@st.composite
def trajectories(draw: st.DrawFn) -> list[Unit]:
    """Units of an agent's steps."""
    steps = [
        Step(number, draw(_texts), draw(_texts), draw(st.sampled_from(("", "I look.")) | _short))
        for number in range(1, draw(st.integers(0, 9)) + 1)
    ]
    return pack_steps(steps, history="h", limit=draw(st.sampled_from((20, 60, 150))))


@st.composite
def cases(draw: st.DrawFn, kind: TaskKind) -> Case:
    """A history with up to three questions and budgets; an agent's window takes up to three quarters of its budget."""
    units = draw(conversations() if kind == "reader" else trajectories())
    rooms = st.integers(LEAST_ROOM, 300) | st.sampled_from((LEAST_ROOM, 500, 1_000, 4_000))
    budgets = []
    for _ in range(draw(st.integers(1, 2))):
        room = draw(rooms)
        window = draw(st.integers(0, 3 * room)) if kind == "agent" else 0
        budgets.append(Budget(room + window, window))
    return Case(
        kind=kind,
        units=tuple(units),
        questions=tuple(draw(st.lists(_short, min_size=1, max_size=2))),
        budgets=tuple(budgets),
        task=draw(_short) if kind == "agent" else None,
        cut=draw(st.integers(0, len(units))),
    )


# ---------------------------------------------------------------- checks

Check = Callable[[BuildsMemory, Case], Awaitable[None]]


async def write(build: MemoryBuild, units: Sequence[Unit]) -> None:
    """Write units in order."""
    for unit in units:
        await build.write(unit)


async def read(build: MemoryBuild, case: Case) -> list[Rendering]:
    """Every question at every budget, each through a view of its own."""
    return [await build.view().render(query, budget) for budget in case.budgets for query in await case.queries()]


async def check_renderings_keep_the_budget_and_tell_their_provenance(method: BuildsMemory, case: Case) -> None:
    """Invariants 1 and 4: a rendering fits, its count and its blocks are exact, and verbatim blocks are verbatim.

    An empty memory is read as well. A negative room is refused.
    """
    build = method.build(services(_model()))
    budgets = [budget for budget in case.budgets for _ in case.questions]
    for rendering, budget in zip(await read(build, case), budgets, strict=True):
        check_rendering(rendering, budget, [], build.pieces)
    await write(build, case.units)
    for rendering, budget in zip(await read(build, case), budgets, strict=True):
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

    first = method.build(services(_model(), local))
    await write(first, case.units)
    renderings = await read(first, case)
    frozen = [index.freeze() for index in opened]

    def shared(config: IndexConfig) -> HistoryIndex:
        snapshot = frozen.pop(0)
        assert snapshot.config == config
        return SharedIndex(snapshot)

    for open_index in (local, shared):
        other = method.build(services(_model(), open_index))
        await write(other, case.units)
        assert await read(other, case) == renderings


async def check_views_are_independent(method: BuildsMemory, case: Case) -> None:
    """What one call shows depends on no other: any order, one view or many, one after the other or at once.

    An agent's timeline lasts for its episode, so there this is about calls of one budget.
    """
    build = method.build(services(_model()))
    await write(build, case.units)
    budgets = case.budgets if case.kind == "reader" else case.budgets[:1]
    calls = [(query, budget) for budget in budgets for query in await case.queries()]
    expected = [await build.view().render(*call) for call in calls]
    other = method.build(services(_model()))
    await write(other, case.units)
    view = other.view()
    assert [await view.render(*call) for call in reversed(calls)] == expected[::-1]
    at_once = await asyncio.gather(*(other.view().render(*call) for call in calls), view.render(*calls[0]))
    assert list(at_once) == [*expected, expected[0]]


async def check_a_restored_build_goes_on_like_the_saved_one(method: BuildsMemory, case: Case) -> None:
    """A state taken in mid-history, after reading, gives the same next renderings; saving changes nothing."""
    saved = method.build(services(_model()))
    await write(saved, case.units[: case.cut])
    await read(saved, case)
    state = saved.state()
    restored = method.build(services(_model()))
    await restored.restore(state)
    assert list(restored.pieces) == list(saved.pieces)
    assert await read(restored, case) == await read(saved, case)
    for build in (saved, restored):
        await write(build, case.units[case.cut :])
    assert await read(restored, case) == await read(saved, case)
    assert restored.state() == saved.state()
    assert dict(restored.fallbacks) == dict(saved.fallbacks)


async def check_unusable_states_are_refused(method: BuildsMemory, case: Case) -> None:
    """A damaged state, and any state, even an empty one, over written units."""
    build = method.build(services(_model()))
    await write(build, case.units)
    state = build.state()
    for damaged in (b"", state[:-5], state[:20] + bytes([state[20] ^ 255]) + state[21:], b"{}"):
        with pytest.raises(StateError):
            await method.build(services(_model())).restore(damaged)
    if case.units:
        for other in (state, method.build(services(_model())).state()):
            with pytest.raises(WriteOrderError):
                await build.restore(other)


async def check_units_are_written_once_and_in_order(method: BuildsMemory, case: Case) -> None:
    """Invariants 3 and 4: a repeated, a skipped and an earlier unit are refused without a trace; units stay as they
    were.
    """
    digests = [unit.digest for unit in case.units]
    build = method.build(services(_model()))
    for position, unit in enumerate(case.units):
        for wrong in {position - 1, position + 1} & set(range(len(case.units))):
            with pytest.raises(WriteOrderError):
                await build.write(case.units[wrong])
        await build.write(unit)
    if case.units:
        with pytest.raises(WriteOrderError):
            await build.write(case.units[-1])
    untouched = method.build(services(_model()))
    await write(untouched, case.units)
    assert await read(build, case) == await read(untouched, case)
    assert [replace(unit).digest for unit in case.units] == digests  # `replace`: a digest is computed once an object


async def check_a_failed_write_can_be_tried_again(method: BuildsMemory, case: Case) -> None:
    """Where the embedder or the model fails while a unit is written, the same unit can be written again, and the memory
    is as if nothing had happened.
    """
    steady = method.build(services(_model()))
    await write(steady, case.units)
    expected = await read(steady, case), steady.state()
    for embedder, rule in (
        (FailingOnce(case.cut + 1), json_record),
        (WordEmbedder(), _failing_once(case.cut + 1, until=len(case.units))),
    ):

        def local(config: IndexConfig, embedder: WordEmbedder = embedder) -> LocalIndex:
            return LocalIndex(config, embedder if config.dense else None)

        build = method.build(Services(embedder, local, ScriptedModel(rule)))
        for unit in case.units:
            try:
                await build.write(unit)
            except (OSError, Transient):
                await build.write(unit)
        assert (await read(build, case), build.state()) == expected


class FailingOnce(WordEmbedder):
    """Fails at one call, the ``at``-th from 1."""

    def __init__(self, at: int) -> None:
        self._at = at
        self._calls = 0

    async def embed(self, texts: Sequence[str]) -> VectorArray:
        self._calls += 1
        if self._calls == self._at:
            raise OSError("the embedder failed")
        return await super().embed(texts)


def _failing_once(at: int, until: int) -> Callable[[ChatRequest], str]:
    """`json_record`, but for the ``at``-th call if that is among the first ``until``: a call a unit, when written."""
    calls = 0

    def answer(request: ChatRequest) -> str:
        nonlocal calls
        calls += 1
        if calls == at <= until:
            raise Transient("the endpoint failed")
        return json_record(request)

    return answer


async def check_the_model_is_called_as_declared(method: BuildsMemory, case: Case) -> None:
    """Only a method that says so calls the memory model when it writes or reads; and what reading made it write lasts,
    so that the same calls again are free.
    """
    model = _model()
    build = method.build(services(model))
    await write(build, case.units)
    written = model.calls.total()
    assert method.info.writes_with_model or written == 0
    await read(build, case)
    read_once = model.calls.total()
    assert method.info.reads_with_model or read_once == written
    await read(build, case)
    assert model.calls.total() == read_once
    assert set(model.calls) <= {"memory"}


def _model() -> ScriptedModel:
    return ScriptedModel("json_record")


CHECKS: tuple[Check, ...] = (
    check_renderings_keep_the_budget_and_tell_their_provenance,
    check_equal_input_gives_equal_bytes,
    check_views_are_independent,
    check_a_restored_build_goes_on_like_the_saved_one,
    check_unusable_states_are_refused,
    check_units_are_written_once_and_in_order,
    check_a_failed_write_can_be_tried_again,
    check_the_model_is_called_as_declared,
)


def run(check: Check, method: BuildsMemory, case: Case) -> None:
    """One check, in an event loop of its own."""
    coroutine: Any = check(method, case)
    asyncio.run(coroutine)
