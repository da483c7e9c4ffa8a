"""Writing: one record a unit, once; timelines derived and kept; what a state holds (docs/methods.md A.4, A.5)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexmem.contract.cases import WordEmbedder, services
from flexmem.history import Unit
from flexmem.llm.scripted import ScriptedModel
from flexmem.memory.flexa.build import FlexaBuild
from flexmem.memory.flexa.config import FlexaConfig
from flexmem.memory.protocol import Budget, MethodError, Query, StateError, TaskKind
from flexmem.ports import Services, VectorArray
from tests.memory.examples import clerk, history, words

QUESTION = "What did Ann say of the violin?"


async def asked(text: str = QUESTION) -> Query:
    return Query.question(text, (await WordEmbedder().embed([text]))[0])


def built(units: Sequence[Unit], model: ScriptedModel | None = None, **options: object) -> FlexaBuild:
    config = FlexaConfig.model_validate({"writer": "model" if model else "rule", **options})
    build = FlexaBuild(config, services(model))

    async def write() -> None:
        for unit in units:
            await build.write(unit)

    asyncio.run(write())
    return build


def read(build: FlexaBuild, *budgets: Budget, text: str = QUESTION) -> list[str]:
    async def render() -> list[str]:
        return [(await build.view().render(await asked(text), budget)).text for budget in budgets]

    return asyncio.run(render())


class CountingEmbedder(WordEmbedder):
    """Keeps what it was asked to embed, call by call."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []

    async def embed(self, texts: Sequence[str]) -> VectorArray:
        self.calls.append(list(texts))
        return await super().embed(texts)


# ---------------------------------------------------------------- writing


def test_each_unit_has_one_record_which_is_never_rewritten() -> None:
    units = history(1, "reader", 40)
    model = clerk([f"record {unit.uid}" for unit in units])
    build = built(units, model)
    assert [record.text for record in build.records] == [f"{unit.time}: record {unit.uid}" for unit in units]
    assert model.calls == {"memory": len(units)}
    before = list(build.records)
    read(build, Budget(200), Budget(2_000), Budget(300))
    assert build.records == before
    assert [entry.uids for entry in build.lines] == [(unit.uid,) for unit in units]


def test_the_writer_sees_the_record_before_for_context() -> None:
    units = history(1, "reader", 12)
    model = clerk([f"record {unit.uid}" for unit in units])
    built(units, model)
    prompts = [request.messages[0].content for request in model.requests]
    assert "(none)" in prompts[0]
    for uid, prompt in enumerate(prompts[1:]):
        assert f"{units[uid].time}: record {uid}\n" in prompt
        assert units[uid + 1].text in prompt


def test_a_record_is_embedded_with_its_fields_and_pieces_without_our_words() -> None:
    units = history(1, "agent", 8)
    embedder = CountingEmbedder()
    build = FlexaBuild(FlexaConfig(), Services(embedder, services().open_index))

    async def write() -> None:
        for unit in units:
            await build.write(unit)

    asyncio.run(write())
    assert embedder.calls == [[record.index_text] for record in build.records]
    vectors = asyncio.run(WordEmbedder().embed([record.index_text for record in build.records]))
    np.testing.assert_array_equal(build.record_vectors, vectors)


def test_writing_depends_on_no_budget() -> None:
    units = history(3, "reader", 40)
    one, other = built(units), built([])

    async def write_and_read() -> None:
        for unit in units:
            await other.write(unit)
            await other.view().render(await asked(), Budget(150))

    asyncio.run(write_and_read())
    assert other.records == one.records
    assert other.lines == one.lines


def test_writing_by_model_needs_a_model() -> None:
    with pytest.raises(MethodError, match="writer: model needs a memory model"):
        FlexaBuild(FlexaConfig(writer="model"), services(None))


# ---------------------------------------------------------------- reading and merging


def test_reading_calls_the_model_for_merges_alone_and_once_an_allowance() -> None:
    units = history(1, "reader", 40)
    model = clerk([words(12)] * len(units), merged=words(12))
    build = built(units, model)
    written = model.calls["memory"]
    read(build, Budget(10_000))
    assert model.calls["memory"] == written  # everything fits: nothing to merge
    read(build, Budget(600))
    merges = model.calls["memory"] - written
    assert merges > 0
    assert all(request.schema is None for request in model.requests[written:])
    read(build, Budget(600), text="And the kettle?")
    read(build, Budget(600))
    assert model.calls["memory"] == written + merges
    read(build, Budget(500))
    assert model.calls["memory"] > written + merges  # another allowance, derived from the records


def test_one_timeline_an_allowance_is_derived_even_when_questions_come_at_once() -> None:
    units = history(1, "reader", 40)
    alone_model = clerk([words(12)] * len(units), merged=words(12))
    model = clerk([words(12)] * len(units), merged=words(12), latency_s=1e-4)
    expected = read(built(units, alone_model), Budget(600))
    build = built(units, model)

    async def together() -> list[str]:
        query = await asked()
        views = [build.view().render(query, Budget(600)) for _ in range(5)]
        return [rendering.text for rendering in await asyncio.gather(*views)]

    assert asyncio.run(together()) == expected * 5
    assert model.calls == alone_model.calls


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 999), st.integers(100, 500), st.floats(1, 5))
def test_a_huge_newest_unit_hides_and_does_not_merge(seed: int, room: int, times: float) -> None:
    """Whatever a regular window's call has merged is enough: with a larger window nothing is merged any more."""
    units = history(seed, "agent", 30)
    build = built(units, record_words=12)
    regular = Budget(4 * room, room)  # the window takes its quarter
    read(build, regular)
    merged = [entry.uids for entry in asyncio.run(build.timeline(regular)).entries]
    huge = Budget(4 * room, min(int(room * times) + room, 4 * room - 10))
    assert huge.window > huge.total / 4
    read(build, huge)
    assert [entry.uids for entry in asyncio.run(build.timeline(huge)).entries] == merged
    assert read(build, regular) == read(build, regular)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 999), st.lists(st.integers(64, 900), min_size=1, max_size=5))
def test_an_agents_merges_are_never_undone(seed: int, rooms: list[int]) -> None:
    build = built([], record_words=12)
    together: set[tuple[int, ...]] = set()

    async def run() -> None:
        for number, unit in enumerate(history(seed, "agent", 24)):
            await build.write(unit)
            room = rooms[number % len(rooms)]
            timeline = await build.timeline(Budget(room))
            spans = {entry.uids for entry in timeline.entries}
            assert [uid for span in sorted(spans) for uid in span] == list(range(unit.uid + 1))
            assert all(any(set(old) <= set(new) for new in spans) for old in together)
            together.update(spans)

    asyncio.run(run())


# ---------------------------------------------------------------- state


@pytest.mark.parametrize("kind", ["agent", "reader"])
def test_a_state_holds_the_merges_so_that_they_are_not_made_again(kind: TaskKind) -> None:
    units = history(2, kind, 40)
    model = clerk([words(12)] * len(units), merged=words(12))
    build = built(units, model)
    shown = read(build, Budget(600))
    silent = ScriptedModel([])  # any call fails
    restored = FlexaBuild(build.config, services(silent))
    asyncio.run(restored.restore(build.state()))
    assert read(restored, Budget(600)) == shown
    assert not silent.calls
    assert restored.records == build.records


def test_a_state_holds_the_fallbacks() -> None:
    units = history(2, "reader", 10)
    build = built(units, ScriptedModel("garbage"))
    assert build.fallbacks["record written by rule, not by the model"] == len(units)
    restored = FlexaBuild(build.config, services(ScriptedModel([])))
    asyncio.run(restored.restore(build.state()))
    assert restored.fallbacks == build.fallbacks


@pytest.mark.parametrize("options", [{"mode": "piece"}, {"record_words": 81}, {"timeline_share": 0.3}])
def test_a_state_of_another_configuration_is_refused_by_name(options: dict[str, object]) -> None:
    state = built(history(2, "reader", 10)).state()
    other = FlexaBuild(FlexaConfig.model_validate(options), services())
    with pytest.raises(StateError, match=next(iter(options))):
        asyncio.run(other.restore(state))
