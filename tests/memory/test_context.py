"""`Memory`, the one-liner for chat loops."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexmem import tokens
from flexmem.llm.scripted import ScriptedModel
from flexmem.memory import BudgetError, HistoryChangedError, Memory, MethodError, StateError, UnknownMethodError
from flexmem.ports import VectorArray

WORDS = [
    "the",
    "cat",
    "dog",
    "Paris",
    "budget",
    "token",
    "memory",
    "likes",
    "hates",
    "blue",
    "green",
    "Monday",
    "Anna",
    "Bob",
    "train",
    "flight",
    "hotel",
    "250",
    "euros",
]


class WordEmbedder:
    """A small real embedder: counts of hashed words, of unit length."""

    name = "words"
    dimension = 16

    async def embed(self, texts: Sequence[str]) -> VectorArray:
        await asyncio.sleep(0)
        rows = np.full((len(texts), self.dimension), 1e-3, dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in text.lower().split():
                row[sum(map(ord, word)) % self.dimension] += 1
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def make(method: str = "flexa_piece", **options: Any) -> Memory:
    return Memory(method, embedder=WordEmbedder(), **options)


def chat(turns: int, words: int = 60, seed: int = 0) -> list[dict[str, Any]]:
    drawn = random.Random(seed)
    messages = [{"role": "system", "content": "You are helpful."}]
    for turn in range(turns):
        text = " ".join(drawn.choice(WORDS) for _ in range(words))
        messages.append({"role": ("user", "assistant")[turn % 2], "content": f"turn {turn}: {text}"})
    return messages


def spent(messages: Sequence[dict[str, Any]]) -> int:
    return sum(tokens.count(message["content"]) for message in messages[1:])


def test_a_short_history_is_sent_as_it_is() -> None:
    messages = chat(4)
    memory = make()
    assert memory.context(messages, 4_000) == messages
    assert memory.rendering is None


@settings(max_examples=15, deadline=None)
@given(st.integers(10, 60), st.integers(5, 120), st.sampled_from([600, 1_000, 2_000, 4_000]), st.integers(0, 5))
def test_memory_and_recent_messages_never_exceed_the_budget(turns: int, words: int, budget: int, seed: int) -> None:
    messages = chat(turns, words, seed)
    memory = make()
    for length in range(2, len(messages) + 1, 3):
        shown = memory.context(messages[:length], budget)
        assert spent(shown) <= budget
        assert shown[0] == messages[0]
        assert shown[-1]["role"] == messages[length - 1]["role"]


def test_recent_messages_stay_as_they_are_and_older_ones_come_back_by_what_is_asked() -> None:
    messages = chat(60)
    messages[5]["content"] += " The vault's code is 7391."
    messages.append({"role": "user", "content": "What is the code of the vault?"})
    memory = make()
    shown = memory.context(messages, 2_000)
    assert shown[-1] == messages[-1]
    assert [message for message in shown if message["role"] != "system"] == messages[-(len(shown) - 2) :]
    assert "7391" in shown[1]["content"]
    assert memory.rendering is not None
    assert memory.rendering.text in shown[1]["content"]


def test_a_memory_goes_on_from_its_saved_state() -> None:
    messages = chat(50)
    memory = make()
    memory.context(messages, 1_500)
    other = make()
    other.restore(memory.save())
    assert other.save() == memory.save()
    longer = [*messages, {"role": "user", "content": "Which flight did Anna take?"}]
    assert other.context(longer, 1_500) == memory.context(longer, 1_500)


def test_a_state_of_another_method_is_refused() -> None:
    memory = make("truncation")
    memory.context(chat(40), 1_000)
    with pytest.raises(StateError, match="family"):
        make("flexa_piece").restore(memory.save())
    with pytest.raises(StateError, match="damaged"):
        make("truncation").restore(memory.save()[:40])


def test_a_changed_history_is_refused() -> None:
    messages = chat(40)
    memory = make()
    memory.context(messages, 1_000)
    with pytest.raises(HistoryChangedError, match="message 2"):
        memory.context([*messages[:3], {"role": "user", "content": "other"}, *messages[4:]], 1_000)
    with pytest.raises(HistoryChangedError, match="messages"):
        memory.context(messages[:10], 1_000)
    restored = make()
    restored.restore(memory.save())
    with pytest.raises(HistoryChangedError, match="message 0"):
        restored.context([messages[0], {"role": "user", "content": "other"}, *messages[2:]], 1_000)


def test_a_huge_newest_message_is_cut_to_head_and_tail() -> None:
    huge = {"role": "user", "content": "begin " + "word " * 5_000 + "end"}
    shown = make().context([*chat(30), huge], 2_000)
    assert shown[-1]["content"].startswith("begin")
    assert shown[-1]["content"].endswith("end")
    assert "omitted" in shown[-1]["content"]
    assert spent(shown) <= 2_000
    assert tokens.count(shown[-1]["content"]) <= 1_500  # three quarters: memory keeps a quarter


def test_a_tools_result_stays_with_its_call() -> None:
    messages = chat(30)
    call = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "1", "function": {"name": "look", "arguments": "{}"}}],
    }
    result = {"role": "tool", "tool_call_id": "1", "content": "seen " * 100}
    messages += [call, result, {"role": "user", "content": "and now?"}]
    for budget in range(600, 1_400, 100):
        shown = make().context(messages, budget)
        roles = [message["role"] for message in shown]
        assert "tool" not in roles or roles[roles.index("tool") - 1] == "assistant"


def test_a_budget_that_holds_nothing_says_so() -> None:
    with pytest.raises(BudgetError, match="larger budget"):
        make().context(chat(40), 20)


def test_it_works_inside_a_running_event_loop_as_in_a_notebook() -> None:
    async def cell() -> list[dict[str, Any]]:
        return make().context(chat(40), 1_000)

    assert asyncio.run(cell()) == make().context(chat(40), 1_000)


def test_two_calls_at_once_are_refused() -> None:
    async def both() -> None:
        memory = make()
        await asyncio.gather(memory.acontext(chat(40), 1_000), memory.acontext(chat(40), 1_000))

    with pytest.raises(MethodError, match="one after the other"):
        asyncio.run(both())


def test_records_can_be_written_by_a_model() -> None:
    model = ScriptedModel("json_record")
    memory = make("flexa_unit", options={"writer": "model"}, model=model)
    memory.context(chat(60), 1_500)
    assert model.calls["memory"] > 0
    with pytest.raises(MethodError, match="memory model"):
        make("flexa_unit", options={"writer": "model"})


def test_unknown_methods_and_options_name_the_nearest() -> None:
    with pytest.raises(UnknownMethodError, match="flexa_piece"):
        make("flexa_pice")
    with pytest.raises(UnknownMethodError, match="timeline_share"):
        make(options={"timeline_shar": 0.5})
    with pytest.raises(MethodError, match="agents"):
        make("observation_masking")
    with pytest.raises(MethodError, match="role"):
        make().context([{"role": "wizard", "content": "x"}], 1_000)


def test_a_state_with_units_of_another_size_is_refused() -> None:
    memory = make(unit_tokens=300)
    memory.context(chat(40), 1_000)
    with pytest.raises(StateError, match="300 tokens"):
        make(unit_tokens=1_000).restore(memory.save())
