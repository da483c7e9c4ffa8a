"""What a memory shows of a log: the budget, the words, and the calls before."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

import flexmem.logs.showing
from flexmem import tokens
from flexmem.agents.agent_memory import AgentMemory, step_messages
from flexmem.llm.scripted import ScriptedModel
from flexmem.logs import Log, LogError, ShowingError, Shown, Tools, show_answer, show_next_call
from flexmem.memory import BudgetError, Memory
from flexmem.memory.chat import message_text
from flexmem.memory.protocol import VERBATIM
from flexmem.memory.registry import MethodSpec, find_method, methods
from tests.logs.files import BLOCKS, CHAT, INSPECT, TOOL_CALLS, TRAJECTORY, content, loaded
from tests.sweep.harness import WordEmbedder

INFOS = {name: spec.configured().info for name, spec in methods().items()}
BY_RULE = sorted(name for name, info in INFOS.items() if not (info.writes_with_model or info.reads_with_model))
WITH_MODEL = sorted(set(methods()) - set(BY_RULE))
CHATS = [name for name in BY_RULE if "reader" in INFOS[name].tasks]
TRAJECTORY_LOG = loaded(TRAJECTORY)
CHAT_LOG = loaded(CHAT)


def tools(model: str | None = None) -> Tools:
    return Tools(WordEmbedder(), None if model is None else ScriptedModel(model))


def next_call(
    log: Log, name: str, budget: int, options: Mapping[str, Any] | None = None, model: str | None = None
) -> Shown:
    return asyncio.run(show_next_call(log, name, options or {}, budget, tools(model)))


def answer(log: Log, name: str, question: str, budget: int, model: str | None = None) -> Shown:
    return asyncio.run(show_answer(log, name, {}, question, budget, tools(model)))


def check(shown: Shown) -> None:
    """What holds whatever the method."""
    assert shown.memory_tokens + shown.window_tokens <= shown.budget
    assert shown.over == 0
    assert 0 <= shown.written <= len(shown.units)
    rendering = shown.rendering
    if rendering is None:
        return
    assert rendering.tokens == shown.memory_tokens
    assert shown.utilisation is not None
    assert 0 <= shown.utilisation <= 1
    ends = [0, *(block.end for block in rendering.blocks)]
    assert [block.start for block in rendering.blocks] == ends[:-1]
    assert ends[-1] == len(rendering.text)
    for block in rendering.blocks:
        assert all(0 <= uid < shown.written for uid in block.uids)
        if block.resolution in VERBATIM:
            words = "".join(shown.units[uid].text for uid in block.uids)
            lines = rendering.text[block.start : block.end].splitlines()
            assert all(line in words for line in lines if line != "[...]")


# ---------------------------------------------------------------- the next call


@pytest.mark.parametrize("name", BY_RULE)
@pytest.mark.parametrize("budget", [1_500, 2_000, 4_000])
def test_an_agents_next_call_keeps_the_budget_and_the_words(name: str, budget: int) -> None:
    shown = next_call(TRAJECTORY_LOG, name, budget)
    check(shown)
    assert shown.calls == TRAJECTORY_LOG.length + 1
    assert shown.outside == tokens.count(TRAJECTORY_LOG.task)
    window = [m for step in TRAJECTORY_LOG.steps for m in step_messages(step, "bash")][-len(shown.window) :]
    assert list(shown.window) == [{"role": m.role, "content": m.content} for m in window]


@pytest.mark.parametrize("name", CHATS)
@pytest.mark.parametrize("budget", [200, 400])
def test_a_chats_next_call_keeps_the_budget_and_the_words(name: str, budget: int) -> None:
    shown = next_call(CHAT_LOG, name, budget)
    check(shown)
    assert shown.written > 0
    said = [message.as_sent() for message in CHAT_LOG.messages]
    assert list(shown.window) == said[-len(shown.window) :]
    recent = "".join(unit.text for unit in shown.units[shown.written :])
    assert sum(len(unit.blocks) for unit in shown.units[shown.written :]) == len(shown.window)
    assert all(message_text(message) in recent for message in shown.window)


@pytest.mark.parametrize("name", ["flexa_piece", "flexa_unit", "hybrid_pieces"])
def test_an_agents_memory_is_what_its_own_calls_have_left(name: str) -> None:
    async def live() -> tuple[str, int]:
        made = tools()
        build = find_method(name).configured({}).build(made.services(None))
        memory = AgentMemory(TRAJECTORY_LOG.task, 2_000, made.embedder, build, history="h", language="bash")
        for step in TRAJECTORY_LOG.steps:
            await memory.context()
            memory.append(step)
        context = await memory.context()
        assert context.rendering is not None
        return context.rendering.text, context.window_tokens

    shown = next_call(TRAJECTORY_LOG, name, 2_000)
    assert (shown.text, shown.window_tokens) == asyncio.run(live())


@pytest.mark.parametrize("path", [TOOL_CALLS, CHAT], ids=lambda path: path.name)
def test_a_chats_memory_is_what_the_library_gives_a_chat_loop(path: Any) -> None:
    log = loaded(path)
    said = [message.as_sent() for message in log.messages]
    memory = Memory("flexa_unit", embedder=WordEmbedder())
    for end in range(1, len(said)):
        if said[end]["role"] == "assistant":
            memory.context(said[:end], 400)
    sent = memory.context(said, 400)
    shown = next_call(log, "flexa_unit", 400)
    assert shown.text == (memory.rendering.text if memory.rendering else "")
    assert list(shown.window) == sent[-len(shown.window) :]


@pytest.mark.parametrize("name", ["flexa_unit", "fused_pieces", "truncation"])
def test_the_same_log_is_shown_alike(name: str) -> None:
    first, again = (next_call(TRAJECTORY_LOG, name, 2_000) for _ in range(2))
    assert (first.rendering, first.window) == (again.rendering, again.window)


def test_a_call_in_the_middle_sees_nothing_of_what_came_later() -> None:
    shown = next_call(TRAJECTORY_LOG.cut(9), "truncation", 2_000)
    altered = replace(
        TRAJECTORY_LOG, steps=(*TRAJECTORY_LOG.steps[:9], *(replace(s, output="!") for s in TRAJECTORY_LOG.steps[9:]))
    )
    assert next_call(altered.cut(9), "truncation", 2_000) == shown
    assert shown.units[-1].span[1] == 9


def test_what_fits_into_the_window_needs_no_memory() -> None:
    shown = next_call(TRAJECTORY_LOG.cut(2), "flexa_piece", 4_000)
    assert (shown.rendering, shown.written, shown.text, shown.utilisation) == (None, 0, "", None)
    assert len(shown.window) == 4


@pytest.mark.parametrize("path", [BLOCKS, TOOL_CALLS], ids=lambda path: path.name)
def test_opening_system_messages_are_outside_the_budget(path: Any) -> None:
    log = loaded(path)
    shown = next_call(log, "truncation", 400)
    assert shown.outside == tokens.count(log.messages[0].text) > 0
    assert all(message["role"] != "system" for message in shown.window)


@pytest.mark.parametrize("name", ["flexa_unit", "truncation", "dense_pieces"])
def test_a_chat_of_system_messages_alone_has_nothing_to_show(name: str) -> None:
    log = loaded(TOOL_CALLS).cut(1)
    shown = next_call(log, name, 400)
    assert (shown.units, shown.window, shown.rendering) == ([], (), None)
    check(answer(log, name, "When?", 400))


# ---------------------------------------------------------------- a question


@pytest.mark.parametrize("name", CHATS)
def test_an_answers_memory_holds_the_whole_chat(name: str) -> None:
    shown = answer(CHAT_LOG, name, "Which hive got a queen from Almut?", 300)
    check(shown)
    assert (shown.written, shown.window, shown.window_tokens, shown.room) == (len(shown.units), (), 0, 300)
    assert [unit.time for unit in shown.units] == ["2026-03-02", "2026-04-11", "2026-07-01"]


def test_a_question_finds_its_turn() -> None:
    shown = answer(CHAT_LOG, "piece_retrieval", "Which hive got a queen from Almut?", 120)
    assert "Mira: Late June. The old hive, the green one, is the weakest; I gave it the queen from Almut." in shown.text


@pytest.mark.parametrize("name", BY_RULE)
def test_a_trajectory_can_be_asked_about_as_well(name: str) -> None:
    shown = answer(TRAJECTORY_LOG, name, "Where is the key of the lift truck?", 900)
    check(shown)
    assert shown.written == len(shown.units) == 3


def test_the_units_of_a_question_hold_every_turn_but_the_system_prompt() -> None:
    text = "".join(unit.text for unit in answer(loaded(TOOL_CALLS), "truncation", "When?", 400).units)
    assert "tool: RE 74: 12 minutes late\n" in text
    assert "timetable" in text
    assert "You look up trains" not in text


# ---------------------------------------------------------------- models


@pytest.mark.parametrize("name", WITH_MODEL)
def test_a_method_that_needs_a_model_says_so(name: str) -> None:
    with pytest.raises(ShowingError, match=f"method '{name}' (writes|reads) with a model, and none is given"):
        next_call(TRAJECTORY_LOG, name, 2_000)


# The first clustering of a process compiles for a minute, and a tree of summaries is no other case than the rest here.
@pytest.mark.parametrize("name", [name for name in WITH_MODEL if not name.startswith("raptor")])
def test_a_method_with_a_model_keeps_the_budget(name: str) -> None:
    for shown in (
        next_call(TRAJECTORY_LOG, name, 2_000, model="stated_length"),
        next_call(CHAT_LOG, name, 400, model="stated_length"),
        answer(CHAT_LOG, name, "Which hive got a queen from Almut?", 400, model="stated_length"),
    ):
        check(shown)


def test_earlier_calls_are_left_out_where_nothing_of_them_lasts() -> None:
    assert next_call(TRAJECTORY_LOG, "readagent", 2_000, model="stated_length").calls == 1
    assert next_call(CHAT_LOG, "readagent", 400, model="stated_length").calls == 1


def test_what_a_method_did_in_place_of_a_reply_is_counted() -> None:
    shown = next_call(TRAJECTORY_LOG, "amem", 2_000, model="garbage")
    assert shown.fallbacks
    assert sum(shown.fallbacks.values()) >= shown.written


# ---------------------------------------------------------------- what can't be shown


@pytest.mark.parametrize("name", ["observation_masking"])
def test_a_method_for_agents_is_refused_on_a_chat(name: str) -> None:
    said = rf"method '{name}' is for an agent's steps; .*chat\.jsonl holds a chat's messages"
    with pytest.raises(ShowingError, match=said):
        next_call(CHAT_LOG, name, 400)
    with pytest.raises(ShowingError, match=said):
        answer(CHAT_LOG, name, "When?", 400)


def test_a_method_for_chats_is_refused_on_a_trajectory(monkeypatch: pytest.MonkeyPatch) -> None:
    def for_readers(name: str) -> MethodSpec:
        spec = find_method(name)
        return replace(spec, info=replace(spec.info, tasks=("reader",)))

    monkeypatch.setattr(flexmem.logs.showing, "find_method", for_readers)
    with pytest.raises(ShowingError, match=r"is for a chat's messages; .* holds an agent's steps"):
        next_call(TRAJECTORY_LOG, "truncation", 2_000)


def test_a_budget_that_is_too_small_is_named_with_the_call() -> None:
    with pytest.raises(BudgetError, match="method 'truncation', budget 40, the call after step 1: the 30 tokens"):
        next_call(TRAJECTORY_LOG, "truncation", 40)
    with pytest.raises(BudgetError, match="method 'flexa_piece', budget 20, the call after message 3: "):
        next_call(CHAT_LOG, "flexa_piece", 20)
    with pytest.raises(BudgetError, match="method 'flexa_piece', budget 2: "):
        answer(CHAT_LOG, "flexa_piece", "When?", 2)


@pytest.mark.parametrize("at", [0, -1, 16])
def test_a_step_that_is_not_there_is_named(at: int) -> None:
    with pytest.raises(LogError, match=rf"trajectory\.traj: there is no step {at}; it has 15 steps"):
        TRAJECTORY_LOG.cut(at)


def test_steps_of_an_inspect_log_are_shown() -> None:
    log = loaded(INSPECT, "vault/1")
    shown = next_call(replace(log, steps=log.steps * 8), "truncation", 2_000)
    assert shown.written > 0
    answers = content(INSPECT)["samples"][0]["messages"][-1]["content"]
    assert answers in shown.text
