"""An agent's context: what is in the window, what is written, and what it takes of the budget."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flexmem import tokens
from flexmem.agents.agent_memory import EMPTY, PREFACE, AgentContext, AgentMemory, step_messages
from flexmem.history import Step
from flexmem.memory.protocol import BudgetError, MemoryBuild, Query, Rendering
from flexmem.memory.registry import find_method
from flexmem.ports import IndexConfig, Services
from flexmem.retrieval.index import LocalIndex
from tests.agents.errands import WordVectors

EMBEDDER = WordVectors()


def build(method: str) -> MemoryBuild:
    def open_index(config: IndexConfig) -> LocalIndex:
        return LocalIndex(config, EMBEDDER)

    return find_method(method).configured(None).build(Services(EMBEDDER, open_index))


def memory(budget: int | None, method: str | None = "truncation", unit_tokens: int = 100) -> AgentMemory:
    made = build(method) if method else None
    return AgentMemory("Buy a lamp.", budget, EMBEDDER, made, history="h", unit_tokens=unit_tokens)


def step(number: int, words: int = 30) -> Step:
    return Step(number, f"look {number}", f"shelf {number} " + "lamp " * words, f"I look at {number}.")


async def contexts(agent: AgentMemory, steps: list[Step]) -> list[AgentContext]:
    found = [await agent.context()]
    for one in steps:
        agent.append(one)
        found.append(await agent.context())
    return found


def taken(context: AgentContext) -> int:
    return sum(tokens.count(message.content) for message in context.messages())


def test_before_the_first_step_there_is_nothing() -> None:
    (first,) = asyncio.run(contexts(memory(400), []))
    assert (first.rendering, first.window, first.window_tokens) == (None, (), 0)


def test_steps_are_shown_as_they_were_while_they_are_recent() -> None:
    context = asyncio.run(contexts(memory(400), [step(1)]))[-1]
    assert context.window == step_messages(step(1), "python")
    thought, output = (message.content for message in context.window)
    assert thought == "I look at 1.\n```python\nlook 1\n```"
    assert output.startswith("Output:\n```\nshelf 1 lamp")


def test_a_unit_that_leaves_the_window_is_written_once_and_shown_by_the_memory() -> None:
    agent = memory(400)
    last = asyncio.run(contexts(agent, [step(n) for n in range(1, 9)]))[-1]
    # A step of 50 to 100 tokens is a unit of 100; the window of B/4 = 100 holds the newest.
    assert [unit.uid for unit in agent.written] == [0, 1, 2, 3, 4, 5, 6]
    assert last.rendering is not None
    assert "shelf 7 " in last.rendering.text
    assert last.window == step_messages(step(8), "python")
    assert last.messages()[0].content == PREFACE + last.rendering.text


@pytest.mark.parametrize("method", ["truncation", "observation_masking", "flexa_unit", "piece_retrieval", None])
def test_memory_and_window_keep_the_budget_at_every_step(method: str | None) -> None:
    agent = memory(500, method)
    for context in asyncio.run(contexts(agent, [step(n, 20 + n) for n in range(1, 25)])):
        assert taken(context) <= 500
        if context.rendering is not None:
            assert context.rendering.tokens <= 500 - context.window_tokens


def test_without_a_budget_every_step_is_in_the_window() -> None:
    agent = memory(None)
    last = asyncio.run(contexts(agent, [step(n) for n in range(1, 30)]))[-1]
    assert len(last.window) == 2 * 29
    assert last.rendering is None
    assert not agent.written


def test_a_newest_step_over_three_quarters_of_the_budget_is_cut_head_and_tail() -> None:
    agent = memory(400)
    context = asyncio.run(contexts(agent, [step(1), step(2, 2_000)]))[-1]
    assert context.window_tokens <= 300 + tokens.count(PREFACE)
    cut = context.window[-1].content
    assert cut.startswith("Output:\n```\nshelf 2 lamp")
    assert "characters omitted" in cut
    assert context.rendering is not None  # step 1 is written, and there is room for it
    assert "shelf 1" in context.rendering.text


def test_a_budget_that_can_hold_nothing_is_refused() -> None:
    agent = memory(20)
    agent.append(step(1))
    with pytest.raises(BudgetError):
        asyncio.run(agent.context())


def test_the_query_is_the_task_and_the_newest_unit() -> None:
    queries: list[Query] = []
    agent = memory(400)
    inner = agent.view
    assert inner is not None

    class Watching:
        async def render(self, query: Query, budget: object) -> Rendering:
            queries.append(query)
            return await inner.render(query, budget)  # type: ignore[arg-type]

    agent.view = Watching()
    asyncio.run(contexts(agent, [step(n) for n in range(1, 6)]))
    last = queries[-1]
    assert last.task == "Buy a lamp."
    assert last.text == last.excerpt_text == "I look at 5.\nlook 5\n" + step(5).output + "\n"
    assert abs(float(last.vector @ last.vector) - 1) < 1e-5


def test_many_short_steps_fit_a_small_budget() -> None:
    agent = AgentMemory("t", 600, EMBEDDER, build("truncation"), history="h")
    steps = [Step(number, "look", "ok") for number in range(1, 60)]
    for context in asyncio.run(contexts(agent, steps)):
        assert taken(context) <= 600


def test_a_reply_of_nothing_and_a_fence_in_a_text_are_no_trouble() -> None:
    assert step_messages(Step(1, "", "nothing was done"), "python")[0].content == EMPTY
    said, got = step_messages(Step(1, 'print("```")', "```\nx\n````"), "python")
    assert said.content == '````python\nprint("```")\n````'
    assert got.content == "Output:\n`````\n```\nx\n````\n`````"


@given(sizes=st.lists(st.integers(0, 150), min_size=1, max_size=14), budget=st.sampled_from([300, 600, 1_000]))
def test_no_history_breaks_the_budget_or_the_order_of_writing(sizes: list[int], budget: int) -> None:
    agent = memory(budget)
    steps = [step(number, size) for number, size in enumerate(sizes, 1)]
    for context in asyncio.run(contexts(agent, steps)):
        assert taken(context) <= budget
    assert [unit.uid for unit in agent.written] == list(range(len(agent.written)))
    newest = asyncio.run(agent.context()).window[-1].content
    assert newest.startswith(f"Output:\n```\nshelf {len(sizes)}")
